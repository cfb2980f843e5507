"""What each default part of the retriever brings: every part off, one at a time, on every set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from benchmarks.bootstrap import Bootstrap, Interval, cell, short
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case, with_dependencies
from callsheet.retrievers import AgentGraphRetriever, Selector, SelectSettings
from callsheet.retrievers.evaluation.evaluator import complete, recall
from callsheet.retrievers.selection import selector_factory
from callsheet.retrievers.selection.copies import Copies

SETS = (
    "livemcpbench-steps",
    "livemcpbench-direct",
    "mcp-atlas-steps",
    "mcp-atlas-requests",
    "metatool",
    "sealtools",
    "toollinkos-shuffled",
    "toolsandbox",
    "restbench",
)
MOST = 400
"""Maximum number of queries of a set, evenly spread."""
CHAINS = "restbench"
"""The set whose dependencies were read off its queries: it is measured without them only."""
COLUMNS = ("set", "n", "without", "R@5", "R@10", "complete@10")
WHOLE = "nothing"
METRICS = (("R@5", recall, 5), ("R@10", recall, 10), ("complete@10", complete, 10))
_ABOUT = (
    f"Selections of ten tools, for at most {MOST} queries of each set. The first row of a set has its figures, the "
    "others what they gain or lose without one part of the default, with the 95 % interval of the paired difference. "
    "*Undeclared*: the tools of the set without their dependencies; the model that proposes some was trained on these "
    "sets too. Parts that need outcomes of earlier calls, skills or a chat model change nothing here"
)

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "search by words": {"lexical_weight": 0.0},
    "scores of agents for their tools": {"context": 0.0},
    "clauses": {"clauses": False},
    "implied steps": {"implied": False},
    "general tools": {"general": 0.0},
    "inferred dependencies": {"proposed": 0.0},
    "shares of all dependencies": {"tool_dependency": 0.0, "parameter_dependency": 0.0},
    "the order in which dependencies are listed": {"listing": 1.0},
}
"""The parts that a setting switches off."""
Values = Mapping[str, Sequence[float]]
Select = Callable[[str], Sequence[str]]


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row for each set, and for each part that is off."""
    rows: list[list[str]] = []
    for whole, world in worlds:
        if whole.name not in SETS:
            continue
        bench = whole.sample(MOST)
        if bench.name != CHAINS:
            rows += rows_of(bench, world)
        if bench.dependencies:
            bare = with_dependencies(bench.catalog, lambda tool: ())
            undeclared = replace(bench, name=f"{bench.name.removesuffix('-shuffled')}, undeclared", catalog=bare)
            rows += rows_of(undeclared, World(bare, world.vectors, world.published))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def rows_of(bench: Benchmark, world: World) -> list[list[str]]:
    """The figures of a set, and what they gain or lose without each part."""
    cases = bench.cases("tool")
    bootstrap = Bootstrap([case.group for case in cases])
    rows: list[list[str]] = []
    whole: Values | None = None
    for part, select in _selections(world):
        values = _values(select, cases)
        if whole is None:
            whole = values
            figures = [cell(bootstrap.mean(values[metric])) for metric in values]
        else:
            figures = [gain(bootstrap.difference(values[metric], whole[metric])) for metric in values]
        rows.append([bench.name, f"{len(cases):,}", part, *figures])
    return rows


def gain(difference: Interval) -> str:
    """``+.033 (+.011 to +.059)``; the page shows these intervals."""
    mean, low, high = (short(value, "+.3f") for value in difference)
    return f"{mean} ({low} to {high})"


def _selections(world: World) -> Iterator[tuple[str, Select]]:
    """Yields the default, then the default without each part; a part of the index needs an index without it."""
    whole = _selector(world)
    yield WHOLE, _tools_of(whole)
    for part, changes in SETTINGS.items():
        yield part, _tools_of(whole, **changes)
    with patch.object(selector_factory, "find_copies", lambda *_: Copies()):
        yield "places of copies", _tools_of(_selector(world))
    yield "our text of a node", _tools_of(_selector(world, settings=SelectSettings(texts="plain")))
    yield "the training of the embedder", _tools_of(_selector(world, embeddings=world.published))


def _selector(world: World, **more: Any) -> Selector:
    given = {"embeddings": world.vectors, **more}
    return AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", **given).selector


def _tools_of(selector: Selector, **changes: Any) -> Select:
    return lambda query: [tool.id for tool in selector.select(query, **changes).tools]


def _values(select: Select, cases: Sequence[Case]) -> Values:
    found = [select(case.query) for case in cases]
    return {
        name: [metric(tools, case.tools, k) for tools, case in zip(found, cases, strict=True)]
        for name, metric, k in METRICS
    }
