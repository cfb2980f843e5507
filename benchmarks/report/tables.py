"""The tables of the terminal and of ``docs/reference/benchmarks.md``, made from the results files alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "benchmarks.md"
BEGIN, END = "<!-- tables: begin, made by python -m benchmarks --tables -->", "<!-- tables: end -->"
COLUMNS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "livemcpbench": {
        "agent": ("recall@1", "recall@3", "recall@5", "map@5", "ndcg@5"),
        "tool": ("recall@5", "recall@10"),
    },
    "toollinkos": {"tool": ("map@10", "map@20", "map@30", "recall@10", "ndcg@10")},
    "toolsandbox": {"tool": ("map@10", "map@20", "map@30", "recall@10", "ndcg@10")},
    "sealtools": {"agent": ("recall@1", "recall@5"), "tool": ("recall@5", "recall@10", "complete@10")},
    "metatool": {"tool": ("recall@5", "recall@10", "complete@10")},
}
"""What is shown of each family of results; the files hold all."""
_SHOWN = {"recall": "R", "map": "mAP", "ndcg": "nDCG", "complete": "complete"}


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    """All tables, as Markdown."""
    return "\n".join(line for name, result in results.items() for line in section(name, result))


def section(name: str, result: Mapping[str, Any]) -> Iterator[str]:
    """The tables of one results file."""
    yield f"### {name}\n"
    yield f"{result.get('about', '')}. Measured {result['date']} at commit {result['commit'] or 'unknown'}.\n"
    for level, found in result.get("levels", {}).items():
        shown = COLUMNS[name.removeprefix("rivals-").partition("-")[0]][level]
        yield f"**{level.capitalize()}s**, n={found['n']} in {found['groups']} groups.\n"
        yield from _table(found["methods"], shown)
        yield ""
    if "rows" in result:
        yield from grid(result["columns"], result["rows"])
        yield ""


def _table(methods: Mapping[str, Mapping[str, Any]], shown: Sequence[str]) -> Iterator[str]:
    chief = next((metric for metric in ("map@10", "recall@10", "recall@5") if metric in shown), shown[0])
    columns = ["", *map(heading, shown), f"ours - this, {heading(chief)}", "tuning"]
    yield from grid(columns, [_row(name, method, shown, chief) for name, method in methods.items()])


def _row(name: str, method: Mapping[str, Any], shown: Sequence[str], chief: str) -> list[str]:
    values = [interval(method["metrics"][metric]) for metric in shown]
    difference = method["ours_minus_this"][chief]
    apart = "" if difference["low"] == difference["high"] else interval(difference, form="+.3f")
    return [name, *values, apart, method["tuning"]]


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A Markdown table, aligned so that it reads in a terminal too."""
    table = [list(columns), *map(list, rows)]
    widths = [max(len(str(row[i])) for row in table) for i in range(len(columns))]
    for place, row in enumerate(table):
        yield "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if place == 0:
            yield "| " + " | ".join("-" * width for width in widths) + " |"


def heading(metric: str) -> str:
    """``R@5`` for ``recall@5``."""
    name, k = metric.split("@")
    return f"{_SHOWN[name]}@{k}"


def interval(value: Mapping[str, float], form: str = ".3f") -> str:
    """``.812 [.770, .850]``."""
    return f"{_short(value['mean'], form)} [{_short(value['low'], form)}, {_short(value['high'], form)}]"


def _short(value: float, form: str) -> str:
    """``0.812`` as ``.812``."""
    return format(value, form).replace("0.", ".", 1)


def write_page(results: Mapping[str, Mapping[str, Any]], path: Path = PAGE) -> None:
    """Puts the tables between their markers."""
    put_between(path, BEGIN, END, page(results))


def put_between(path: Path, begin: str, end: str, text: str) -> None:
    """Puts a text between two markers of a page; what stands around them is kept.

    Raises:
        ValueError: The page does not have both markers.
    """
    before, found, rest = path.read_text(encoding="utf-8").partition(begin)
    _, also, after = rest.partition(end)
    if not (found and also):
        raise ValueError(f"{path} does not have {begin} and {end}")
    path.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")
