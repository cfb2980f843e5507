"""General tools, such as a search of the web: what the texts of tools say, beside a judgement by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.bootstrap import Bootstrap, cell
from benchmarks.fleet import FOLDER
from benchmarks.search import vectors_of_this_run
from callsheet.graphs import Catalog, load
from callsheet.retrievers import AgentGraphRetriever

LABELS = Path(__file__).parents[1] / "sets" / "general_tools.json"
COLUMNS = ("class", "half", "judged", "found", "precision", "recall")
CLASSES: Mapping[str, str] = {
    "web-search": "web search",
    "web-fetching": "web fetching",
    "command-execution": "code",
    "file-reading": "own stores",
    "content-search": "own stores",
    "note-reading": "own stores",
    "database-query": "own stores",
    "arithmetic": "calculator",
}
"""General capability of the detailed taxonomy -> class of the judgement."""
JUDGED: Mapping[str, str] = {
    "web-search": "web search",
    "web-fetching": "web fetching",
    "code": "code",
    "files": "own stores",
    "notes": "own stores",
    "databases": "own stores",
    "calculator": "calculator",
}
"""Class in the file -> class of the table, where the user's own files, notes and databases are one."""
_ABOUT = (
    "General tools beside {} tools of MCP servers that one person judged before looking at any result: 300 drawn by a "
    "seed, the others from servers that have such tools. Intervals by server; the half for development was looked at "
    "when the phrases were written, the held-out half has other servers"
)


class Judged(NamedTuple):
    """One tool: its server, its half, the class by hand (empty: not general) and the classes that were found."""

    server: str
    half: str
    gold: str
    found: frozenset[str]


def measure(data: Path) -> Mapping[str, object]:
    """The body of the results file; the recorded servers are expected beside the data, as ``../fleet/manifests``."""
    places = {
        "fleet": data / FOLDER / "manifests",
        "livemcpbench": data / "livemcpbench" / "tools.json",
        "mcp-atlas": data / "mcp-atlas" / "catalog",
    }
    labels = json.loads(LABELS.read_text(encoding="utf-8"))["sets"]
    tools: list[Judged] = []
    for name, place in places.items():
        tools += judged(labels[name], load(place).catalog)
    rows = [row for half in ("held out", "development") for row in rows_of(tools, half)]
    return {"about": _ABOUT.format(len(tools)), "columns": list(COLUMNS), "rows": rows}


def judged(labels: Mapping[str, Mapping[str, Mapping[str, str]]], catalog: Catalog) -> list[Judged]:
    """Every judged tool of a catalog, with the classes that its general capabilities say."""
    known = {"embeddings": vectors_of_this_run()}
    index = AgentGraphRetriever.from_catalog(catalog, index=":memory:", **known).selector.capabilities.general_index
    found: dict[int, set[str]] = {}
    for general in index.general_classes:
        for row in general.rows.tolist():
            found.setdefault(row, set()).add(CLASSES[general.capability])
    tools: list[Judged] = []
    for half, servers in labels.items():
        for server, entries in servers.items():
            for name, gold in entries.items():
                row = index.rows[f"{server}/{name}"]
                tools.append(Judged(server, half, JUDGED.get(gold, ""), frozenset(found.get(row, ()))))
    return tools


def rows_of(tools: Sequence[Judged], half: str) -> list[list[str]]:
    """The rows of one half: each class, and any of them."""
    part = [tool for tool in tools if tool.half == half]
    bootstrap = Bootstrap([tool.server.casefold() for tool in part])
    rows: list[list[str]] = []
    for name in (*dict.fromkeys(JUDGED.values()), "any"):
        gold = np.array([bool(tool.gold) if name == "any" else tool.gold == name for tool in part], float)
        found = np.array([bool(tool.found) if name == "any" else name in tool.found for tool in part], float)
        ratios = (bootstrap.ratio(gold * found, total) for total in (found, gold))
        shown = [cell(one) if total.sum() else "" for one, total in zip(ratios, (found, gold), strict=True)]
        rows.append([name, half, str(int(gold.sum())), str(int(found.sum())), *shown])
    return rows
