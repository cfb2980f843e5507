"""What an agent is shown of the tools that a question needs, once it says by which steps it wants to answer it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage

from benchmarks.methods.search import World
from benchmarks.report.statistics import Bootstrap, Interval
from benchmarks.sets.cases import Benchmark, Case
from callsheet.orchestrator.apps.agent_requests import Request, picked, requests_of
from callsheet.retrievers import AgentGraphRetriever

SET, STEPS = "livemcpbench-direct", "livemcpbench-steps"
REACH = {"agents": 5, "tools": 10}
COLUMNS = ("what asks", "questions", "wanted tools shown", "all shown", "tools")
_ABOUT = (
    "What CallsheetTools shows an agent of the tools that a question needs: by the question alone (10 tools), and by "
    "its steps, in the words of the data, as items of a to-do list or as sentences that begin with 'Now I need to'. In "
    "the second row, the question alone with as many tools as the list brings in all"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What an agent has for one question.

    Attributes:
        group: The group of the question.
        share: Of the wanted tools, alternatives counted once.
        tools: How many it has.
    """

    group: str
    share: float
    tools: int


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row for each way of asking; no row without data."""
    said = {bench.name: (bench, world) for bench, world in worlds}
    if not {SET, STEPS} <= set(said):
        return {}
    (bench, world), steps = said[SET], said[STEPS][0]
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    found = shown(bench.cases("tool"), steps.queries, retriever)
    return {
        "about": _ABOUT,
        "columns": list(COLUMNS),
        "rows": [_row(name, one) for name, one in found.items()],
        "shown": {name: sum(case.share for case in one) / len(one) for name, one in found.items()},
    }


def shown(
    cases: Sequence[Case], steps: Sequence[Case], retriever: AgentGraphRetriever
) -> Mapping[str, Sequence[Shown]]:
    """By what asks: what an agent has for each question.

    Args:
        cases: The questions.
        steps: Their steps, in the same groups.
        retriever: Over their catalog.
    """
    texts = {case.group: [step.query for step in steps if step.group == case.group] for case in cases}

    def listed(case: Case) -> list[str]:
        todos = [{"content": text, "status": "pending"} for text in texts[case.group]]
        return _held(case, requests_of({"todos": todos}), retriever)

    def spoken(case: Case) -> list[str]:
        words = (AIMessage(f"Now I need to {text[:1].lower()}{text[1:]}") for text in texts[case.group])
        return _held(case, [one for said in words for one in requests_of({"messages": [said]})], retriever)

    def as_many(case: Case) -> list[str]:
        return picked(Request(case.query, "user"), retriever, set(), agents=5, tools=len(listed(case)))

    ways: Mapping[str, Callable[[Case], list[str]]] = {
        "the question alone": lambda case: _held(case, [], retriever),
        "the question alone, as many tools": as_many,
        "the question, then its steps as a to-do list": listed,
        "the question, then its steps as sentences": spoken,
    }
    return {name: [_shown(case, way(case)) for case in cases] for name, way in ways.items()}


def _held(case: Case, requests: Sequence[Request], retriever: AgentGraphRetriever) -> list[str]:
    held: dict[str, None] = {}
    for request in (Request(case.query, "user"), *requests):
        held |= dict.fromkeys(picked(request, retriever, set(held), **REACH))
    return list(held)


def _shown(case: Case, held: Sequence[str]) -> Shown:
    return Shown(case.group, sum(bool(wanted & set(held)) for wanted in case.tools) / len(case.tools), len(held))


def _row(name: str, found: Sequence[Shown]) -> list[str]:
    bootstrap = Bootstrap([one.group for one in found])
    share, whole = (
        bootstrap.mean([one.share for one in found]),
        bootstrap.mean([float(one.share == 1) for one in found]),
    )
    tools = sum(one.tools for one in found) / len(found)
    return [name, f"{len(found):,}", _interval(share), _interval(whole), f"{tools:.1f}"]


def _interval(value: Interval) -> str:
    mean, low, high = (f"{number:.3f}".removeprefix("0") for number in (value.mean, value.low, value.high))
    return f"{mean} [{low}, {high}]"
