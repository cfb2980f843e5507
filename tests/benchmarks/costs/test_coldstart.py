"""What is measured from nothing to the first answer, and what must not be imported on the way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.costs.coldstart import Took, _row, ran

HEAVY = ("chromadb", "langchain", "langchain_core", "langgraph", "mcp", "networkx", "numpy", "onnxruntime", "rdflib")


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import callsheet", (*HEAVY, "pydantic")),
        ("from callsheet.orchestrator.cli.main import callsheet; callsheet(['--help'], standalone_mode=False)", HEAVY),
        ("import callsheet; callsheet.Catalog", HEAVY[:5]),
    ],
)
def test_what_costs_seconds_to_import_waits_until_it_is_needed(program: str, heavy: tuple[str, ...]) -> None:
    check = f"import sys; {program}; print('loaded', *(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]


def test_a_row_tells_medians_and_their_difference() -> None:
    ours, beside = [Took(3, 1), Took(1, 2), Took(2, 3)], [Took(0.5, 0.1)]
    row = _row("x", 3.0, ours, "y", beside, over=True)
    assert row == ["x", "3 more", "2.00", "2.00", "y", "0.50", "0.10", "+1.50 (+1.90)"]


def test_a_process_is_timed_with_what_it_used_itself() -> None:
    worked = ran([sys.executable, "-c", "sum(range(3_000_000))"], os.environ)
    slept = ran([sys.executable, "-c", "import time; time.sleep(1)"], os.environ)
    assert slept.wall - slept.processor > 0.9
    assert worked.processor > 0
