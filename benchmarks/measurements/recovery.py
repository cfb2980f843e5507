"""How much of what a selection missed comes when a worker says what it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.methods.search import World
from benchmarks.report.statistics import Bootstrap, Interval
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Tool, split_name
from callsheet.graphs.text.words import tokens
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.index.node_texts import first_sentence

SET = "livemcpbench-steps"
BOUND, REQUESTS = 5, 2
COLUMNS = ("what the worker says that it lacks", "missed tools", "after one request", "after two", "tools added")
_ABOUT = (
    "Each step with the first 5 tools bound. A scripted worker asks for what it lacks at most twice; each request adds "
    "up to 5 tools. Of the wanted tools that were not among the first 5: the share that it has then. Every "
    "script but the first is told which tool is wanted, as a model would work out from the step; none says its agent"
)

Script = Callable[[Case, Tool], str]
SCRIPTS: Mapping[str, Script] = {
    "the step again": lambda case, tool: case.query,
    "the step, then the words of the tool's name": lambda case, tool: f"{case.query}: {split_name(tool.name)}",
    "the words of the tool's name": lambda case, tool: split_name(tool.name),
    "the first sentence of its description": lambda case, tool: first_sentence(tool.description),
    "the same without the words of its name": lambda case, tool: in_other_words(tool) or case.query,
}


@dataclass(frozen=True, slots=True)
class Missed:
    """One wanted tool that was not bound at first.

    Attributes:
        group: The group of its query.
        came: After how many requests one of its alternatives was there; 0 if it never was.
        added: How many tools all requests brought.
    """

    group: str
    came: int
    added: int


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row a script; no row without data."""
    found: dict[str, list[Missed]] = {}
    for bench, world in worlds:
        if bench.name == SET:
            retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
            found = {name: list(misses(bench, retriever, script)) for name, script in SCRIPTS.items()}
    return {
        "about": _ABOUT,
        "columns": list(COLUMNS),
        "rows": [_row(name, missed) for name, missed in found.items()],
        "recovered": {name: sum(one.came > 0 for one in missed) / len(missed) for name, missed in found.items()},
    }


def misses(bench: Benchmark, retriever: AgentGraphRetriever, script: Script) -> Iterator[Missed]:
    """Every wanted tool that a selection of five leaves out, and what came of asking for it."""
    for case in bench.cases("tool"):
        has = [tool.id for tool in retriever.select(case.query, tools=BOUND).tools]
        for wanted in case.tools:
            if not wanted & set(has):
                said = script(case, bench.catalog.tool(min(wanted)))
                yield _asked(case.group, wanted, has, said, retriever)


def in_other_words(tool: Tool) -> str:
    """The first sentence of its description without any word of its name or of its agent's."""
    named = set(tokens(f"{split_name(tool.name)} {split_name(tool.agent)}"))
    words = first_sentence(tool.description).split()
    return " ".join(word for word in words if not named & set(tokens(word)))


def _asked(group: str, wanted: frozenset[str], has: Sequence[str], said: str, retriever: AgentGraphRetriever) -> Missed:
    held = list(has)
    for request in range(1, REQUESTS + 1):
        held += retriever.more(said, held)
        if wanted & set(held):
            return Missed(group, request, len(held) - len(has))
    return Missed(group, 0, len(held) - len(has))


def _row(name: str, missed: Sequence[Missed]) -> list[str]:
    bootstrap = Bootstrap([one.group for one in missed])
    shares = (bootstrap.mean([0 < one.came <= most for one in missed]) for most in (1, 2))
    added = sum(one.added for one in missed) / len(missed)
    return [name, f"{len(missed):,}", *map(_interval, shares), f"{added:.1f}"]


def _interval(value: Interval) -> str:
    mean, low, high = (f"{number:.3f}".removeprefix("0") for number in (value.mean, value.low, value.high))
    return f"{mean} [{low}, {high}]"
