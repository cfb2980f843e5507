"""Whole requests, planned by a strong model from the names of all tools: what a worker gets, in several ways."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.bootstrap import SEED, Bootstrap, cell
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs.trust.policy import view_of
from callsheet.retrievers import AgentGraphRetriever, Selection, StepNeed
from callsheet.retrievers.evaluation.evaluator import recall

PLANS: Mapping[str, str] = {
    "mcp-atlas-requests": "plans_mcp_atlas.jsonl",
    "livemcpbench-direct": "plans_livemcpbench.jsonl",
    "sealtools": "plans_sealtools.jsonl",
}
"""The recorded answers of a model, by the name of the benchmark whose requests it planned."""
LARGE = "sealtools"
"""The benchmark of which a part is a large catalog: the names of all its tools do not fit into a prompt."""
LARGE_TOOLS, LARGE_QUERIES = 3_000, 60
COLUMNS = ("requests", "n", "what a worker gets", "recall", "all needed", "tools", "schema tokens")
_FOLDER = Path(__file__).parents[1] / "sets"
_ABOUT = (
    "Whole requests, with the plans of a strong model: tools by name (picks) and short texts (steps), given before any "
    "answer was known. It saw the names of all tools; of the 3,000 of Seal-Tools, what a planner sees of so many. All "
    "needed: share of requests with every needed tool. Tools and tokens of their schemas: means"
)
_FAR = 60
"""Number of tools of a ranking in which the step of a pick is looked for."""


@dataclass(frozen=True, slots=True)
class RecordedPlan:
    """What a model answered to a request: tools by name, the most needed first, and the texts of the steps."""

    picks: tuple[str, ...]
    steps: tuple[str, ...]


def large_catalog(bench: Benchmark, *, tools: int = LARGE_TOOLS, queries: int = LARGE_QUERIES) -> Benchmark:
    """A part of a benchmark: agents drawn until they have so many tools, and queries drawn of those that need no other.

    Source of randomness: ``bootstrap.SEED``, the same part each time.
    """
    chance = random.Random(SEED)
    agents, count = set[str](), 0
    for agent in chance.sample(bench.catalog.agents, len(bench.catalog.agents)):
        if count >= tools:
            break
        agents.add(agent.id)
        count += len(agent.tools)
    catalog = view_of(bench.catalog, lambda tool: tool.agent in agents).catalog
    inside = [case for case in bench.cases("tool") if set().union(*case.tools) <= catalog.tools.keys()]
    cases = chance.sample(inside, min(queries, len(inside)))
    about = f"{bench.about}; {len(catalog.agents)} agents with {len(catalog.tools)} tools"
    name = f"{bench.name}-{tools}"
    cases = sorted(cases, key=lambda case: case.id)
    return replace(bench, name=name, about=about, catalog=catalog, queries=tuple(cases))


Way = Callable[[AgentGraphRetriever, Case, RecordedPlan], list[str]]
"""From a request and its plan to the ids of the tools that a worker gets."""


def read_plans(path: Path) -> dict[str, RecordedPlan]:
    """The recorded answers by the id of the request; a line a request: ``id``, ``picks``, ``steps``."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line["id"]: RecordedPlan(tuple(line["picks"]), tuple(line["steps"])) for line in lines}


def plans_of(name: str) -> dict[str, RecordedPlan]:
    """The recorded answers to the requests of a benchmark, by their ids; empty if there are none."""
    return read_plans(_FOLDER / PLANS[name]) if name in PLANS else {}


def by_request(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """Retrieval by the whole request, as by default."""
    return [tool.id for tool in retriever.select(case.query).tools]


def by_request_twice(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """Retrieval by the whole request, twice as many tools, of any number of agents."""
    return [tool.id for tool in retriever.select(case.query, tools=20, agents=20).tools]


def by_steps(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """The best tools of each step in turn; no pick is used."""
    return _together(retriever.select_steps([StepNeed(step) for step in plan.steps]))


def by_name(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """The picks alone."""
    return list(plan.picks)


def by_name_and_steps(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """The picks, and then the best tools of each step in turn, as if the plan named none of them."""
    return _together(retriever.select_steps([StepNeed("", plan.picks), *map(StepNeed, plan.steps)]))


def as_planned(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """The product's path: a plan with all picks on its first step."""
    first, *others = plan.steps
    return _together(retriever.select_steps([StepNeed(first, plan.picks), *map(StepNeed, others)]))


def as_planned_by_step(retriever: AgentGraphRetriever, case: Case, plan: RecordedPlan) -> list[str]:
    """The product's path: a plan with each pick on the step whose text ranks it highest."""
    named: list[list[str]] = [[] for _ in plan.steps]
    most = len(retriever.catalog.agents)
    ranked = [retriever.select(step, tools=_FAR, agents=most).tools for step in plan.steps]
    uses = [{tool.id: tool.use for tool in tools} for tools in ranked]
    for pick in plan.picks:
        best = max(range(len(uses)), key=lambda number: uses[number].get(pick, 0.0))
        named[best].append(pick)
    needs = [StepNeed(step, tuple(picks)) for step, picks in zip(plan.steps, named, strict=True)]
    return _together(retriever.select_steps(needs))


WAYS: Mapping[str, Way] = {
    "retrieval by the whole request": by_request,
    "twice as many tools": by_request_twice,
    "the steps, each through the retriever, in turn": by_steps,
    "picks by name alone": by_name,
    "picks by name, then the steps' best up to ten": by_name_and_steps,
    "the product's path, picks on the first step": as_planned,
    "the product's path, picks on the step they fit": as_planned_by_step,
}


def measure(worlds: Sequence[tuple[Benchmark, World]]) -> Mapping[str, object]:
    """The body of the results file: a row for each way and set of requests."""
    rows = []
    for bench, world in worlds:
        if bench.name not in PLANS:
            continue
        plans = plans_of(bench.name)
        if bench.name == LARGE:
            part = large_catalog(bench)
            rows += rows_of(part, World(part.catalog, world.vectors), plans)
        else:
            rows += rows_of(bench, world, plans)
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def rows_of(
    bench: Benchmark, world: World, plans: Mapping[str, RecordedPlan], *, ways: Collection[str] = tuple(WAYS)
) -> list[list[str]]:
    """A row for each of these ways, over the requests that have a plan."""
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    cases = [case for case in bench.cases("tool") if case.id in plans]
    bootstrap = Bootstrap([case.group for case in cases])
    rows = []
    for title in ways:
        given = [WAYS[title](retriever, case, plans[case.id]) for case in cases]
        found = [recall(tools, case.tools, max(1, len(tools))) for tools, case in zip(given, cases, strict=True)]
        every = [float(share == 1) for share in found]
        counts = [float(len(tools)) for tools in given]
        tokens = [float(retriever.selector.tokens.count(tools)) for tools in given]
        figures = [cell(bootstrap.mean(found)), cell(bootstrap.mean(every)), cell(bootstrap.mean(counts), ".1f")]
        rows.append([bench.name, str(len(cases)), title, *figures, cell(bootstrap.mean(tokens), ",.0f")])
    return rows


def _together(selections: Sequence[Selection]) -> list[str]:
    """The ids of the tools of all selections, each once."""
    return list(dict.fromkeys(tool.id for selection in selections for tool in selection.tools))
