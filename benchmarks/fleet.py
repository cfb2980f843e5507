"""Tasks over a fleet of real servers: what selection finds of the gold path, for the whole question and for each step.

The tasks are data from outside (``tasks.json``), and so are the recordings of the servers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from callsheet import AgentGraphRetriever
from callsheet.graphs import CatalogError, load
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.text.words import clause_spans
from callsheet.retrievers import Selection

FOLDER, FLEET = "../fleet", "{FLEET}"
"""Tasks and recordings beside the data sets; what stands for the servers' folder in tasks."""
TOOLS, WIDE = 10, 50
COLUMNS = ("task, step", "gold tool", "agent, question", "agent, step", "tool, question", "tool, step")
_ABOUT = (
    "{} tasks over {} MCP servers with {} tools. Ranks of the gold agents and tools in a selection by default, for the "
    "whole question, and the best for a clause of it; in brackets a tool that only a budget of {} tools would hold"
)


class Task(Record):
    """A request, and the calls that do it, in order. Other fields of the file are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    id: str
    task: str
    gold: tuple[Mapping[str, Any], ...] = ()


def read_tasks(path: Path, fleet: Path) -> tuple[Task, ...]:
    """The tasks of a file, in which ``{FLEET}`` stands for a folder; a ``CatalogError`` if there are none."""
    try:
        document = json.loads(path.read_text(encoding="utf-8").replace(FLEET, _in_json(fleet)))
        entries = document["tasks"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path} holds no tasks: {type(error).__name__}: {error}") from error
    return tuple(Task(**entry) for entry in entries)


def _in_json(path: Path) -> str:
    return json.dumps(str(path))[1:-1]


def measure(data: Path) -> dict[str, object]:
    """The body of the results file, from recordings of the servers."""
    folder = data / FOLDER
    known, catalog = read_tasks(folder / "tasks.json", folder), load(folder / "manifests").catalog
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:")
    rows = [row for task in known for row in rows_of(task, retriever)]
    about = _ABOUT.format(len(known), len(catalog.agents), len(catalog.tools), WIDE)
    return {"about": about, "columns": list(COLUMNS), "rows": [*rows, total_row(rows)]}


def rows_of(task: Task, retriever: AgentGraphRetriever) -> list[list[str]]:
    """A row for each gold call: its places for the whole question, and the best of those for a clause of it."""
    clauses = [task.task[start:end] for start, end in clause_spans(task.task)] or [task.task]
    rows = []
    for number, call in enumerate(task.gold, 1):
        both = [places(queries, call["server"], call["tool"], retriever) for queries in ([task.task], clauses)]
        cells = [cell for level in zip(*both, strict=True) for cell in level]
        rows.append([f"{task.id}, {number}", f"{call['server']}/{call['tool']}", *cells])
    return rows


def places(queries: Sequence[str], agent: str, name: str, retriever: AgentGraphRetriever) -> tuple[str, str]:
    """The best places of an agent and of its tool in the selections for these queries, from 1, as a table has them."""
    chosen, wide = ([retriever.select(query, tools=most) for query in queries] for most in (TOOLS, WIDE))

    def best(wanted: str, found: Sequence[Selection], kind: str) -> int:
        ids = [[node.id for node in getattr(selection, kind)] for selection in found]
        return min((one.index(wanted) + 1 for one in ids if wanted in one), default=0)

    tool, further = (best(f"{agent}/{name}", found, "tools") for found in (chosen, wide))
    return str(best(agent, chosen, "agents") or "-"), str(tool or (f"({further})" if further else "-"))


def total_row(rows: Sequence[Sequence[str]]) -> list[str]:
    """How many of the calls, and of the tasks with all of their calls."""
    task_of = [row[0].partition(",")[0] for row in rows]
    tasks, counts = set(task_of), []
    for column in range(2, len(COLUMNS)):
        lacking = {task for task, row in zip(task_of, rows, strict=True) if not row[column].isdecimal()}
        counts.append(f"{sum(row[column].isdecimal() for row in rows)} calls, {len(tasks - lacking)} tasks")
    return ["all", f"{len(rows)} calls, {len(tasks)} tasks", *counts]
