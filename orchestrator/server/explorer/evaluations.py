"""Evaluation reports for the explorer: files with the output of ``callsheet eval --json``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from callsheet.graphs import CatalogError, SettingsError
from callsheet.graphs.catalog.model import Record

_METRICS = {"recall": "recall", "map": "mAP", "ndcg": "nDCG", "complete": "complete"}
Figures = dict[str, Annotated[float, Field(allow_inf_nan=False)]]


class _Part(Record):
    """A part of a report; fields that are not shown are ignored."""

    model_config = ConfigDict(extra="ignore")


class ConfusedTool(_Part):
    """A tool that was ranked above a wanted one, with the number of queries."""

    wanted: str
    instead: str
    count: int


class _Lacking(_Part):
    ids: tuple[str, ...]
    why: str = ""


class _Missed(_Part):
    query: str
    lacking: tuple[_Lacking, ...] = ()
    got: tuple[str, ...] = ()


class _File(_Part):
    """A report in a file."""

    n: int
    seconds: float = 0.0
    agent: Figures
    tool: Figures = Field(default_factory=dict)
    complete: Figures = Field(default_factory=dict)
    intervals: dict[str, tuple[float, float]] = Field(default_factory=dict)
    confused: tuple[ConfusedTool, ...] = ()
    missed: tuple[_Missed, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of a report.

    Attributes:
        of: ``agent`` or ``tool``.
        metric: Name of the metric.
        values: Value at each cut of the report; None if not measured.
        interval: 95 % confidence interval of the last value; None if there is none.
    """

    of: str
    metric: str
    values: tuple[float | None, ...]
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class MissedQuery:
    """A query whose selection misses something: what was wanted, what came, and why."""

    query: str
    wanted: tuple[str, ...]
    got: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """One evaluation: metrics at each cut (number of agents or tools), confused tools, and incomplete selections."""

    name: str
    n: int
    seconds: float
    cuts: tuple[int, ...]
    rows: tuple[Row, ...]
    confused: tuple[ConfusedTool, ...]
    missed: tuple[MissedQuery, ...]

    @property
    def figures(self) -> Report:
        """The report with its metrics only, which name no agent and no tool."""
        return replace(self, confused=(), missed=())


def read_reports(paths: Sequence[str | Path]) -> tuple[Report, ...]:
    """Reads reports from files.

    Raises:
        SettingsError: A file cannot be read, or is not the output of ``callsheet eval --json``.
    """
    return tuple(_report(Path(path).expanduser()) for path in paths)


def _report(path: Path) -> Report:
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"the report {path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"the report {path} must be an object, as `callsheet eval --json` prints it")
    complete = {key: value for key, value in content.items() if key.startswith("complete@") and value is not None}
    try:
        file = _File(**{**content, "complete": complete})
    except (CatalogError, TypeError) as error:
        raise SettingsError(f"the report {path} is not what `callsheet eval --json` prints: {error}") from error
    cuts = tuple(sorted({_cut(name) for name in (*file.agent, *file.tool, *file.complete)}))
    families = (("agent", file.agent), ("tool", file.tool), ("tool", file.complete))
    return Report(
        name=path.name,
        n=file.n,
        seconds=file.seconds,
        cuts=cuts,
        rows=tuple(row for of, figures in families for row in _rows(of, figures, file.intervals, cuts)),
        confused=file.confused,
        missed=tuple(_missed(query) for query in file.missed),
    )


def _rows(
    of: str, figures: Figures, intervals: Mapping[str, tuple[float, float]], cuts: tuple[int, ...]
) -> Iterator[Row]:
    for name, title in _METRICS.items():
        if measured := [f"{name}@{cut}" for cut in cuts if f"{name}@{cut}" in figures]:
            interval = intervals.get(f"{of}.{measured[-1]}", intervals.get(measured[-1]))
            yield Row(of, title, tuple(figures.get(f"{name}@{cut}") for cut in cuts), interval)


def _missed(query: _Missed) -> MissedQuery:
    wanted = tuple(" or ".join(lacking.ids) for lacking in query.lacking)
    why = "; ".join(lacking.why for lacking in query.lacking if lacking.why)
    return MissedQuery(query.query, wanted, query.got, why)


def _cut(name: str) -> int:
    digits = name.rpartition("@")[2]
    return int(digits) if digits.isdecimal() else 0
