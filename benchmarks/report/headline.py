"""The few figures that the README shows: ours beside the best baseline of each set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measurements.run import OURS, OURS_FOLDED, OURS_PUBLISHED
from benchmarks.methods.oracle import ORACLE
from benchmarks.report.tables import grid, heading, interval

PAGE = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- figures: begin, made by python -m benchmarks --tables -->", "<!-- figures: end -->"
FIGURES = (
    ("livemcpbench-steps", "agent", "recall@5", "LiveMCPBench, the servers of a step"),
    ("livemcpbench-steps", "tool", "recall@10", "LiveMCPBench, the tools of a step"),
    ("livemcpbench-direct", "agent", "recall@5", "LiveMCPBench, the servers of a whole question"),
    ("toollinkos-shuffled", "tool", "map@10", "ToolLinkOS, tools and what they depend on"),
    ("toolsandbox", "tool", "map@10", "ToolSandbox, tools and what they depend on"),
    ("sealtools", "tool", "recall@10", "Seal-Tools, 4,076 tools"),
    ("metatool", "tool", "recall@10", "MetaTool, what people ask of plugins"),
)
COLUMNS = ("", "measure", "Callsheet", "best baseline", "which")


def headline(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table: ours cross-validated, and the baseline that is best on these very queries."""
    return "\n".join(grid(COLUMNS, [_row(results[name], level, metric, what) for name, level, metric, what in FIGURES]))


def _row(result: Mapping[str, Any], level: str, metric: str, what: str) -> list[str]:
    methods = result["levels"][level]["methods"]
    others = {name: found for name, found in methods.items() if name not in (OURS, OURS_FOLDED, OURS_PUBLISHED, ORACLE)}
    best = max(others, key=lambda name: float(others[name]["metrics"][metric]["mean"]))
    return [
        what,
        heading(metric),
        interval(methods[OURS_FOLDED]["metrics"][metric]),
        interval(others[best]["metrics"][metric]),
        best,
    ]
