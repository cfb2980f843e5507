"""Tasks played over running servers: through the supervisor, over stdio, with a person's answers, to the end state."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from benchmarks.fleet.end_states import FleetTask, GoldCall
from benchmarks.fleet.gold_path import GoldPath, Taken
from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import Limits, Plan, PlanDraft, SessionPool, ToolRegistry
from callsheet.agents.planning.drafts import PlannedStep
from callsheet.agents.registry.binding import NEED_TOOL
from callsheet.agents.servers.catalogs.listings import LastListings
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.graphs import Loaded, load
from callsheet.graphs.catalog.loading import servers_in
from callsheet.graphs.trust.pin_book import PinBook
from callsheet.retrievers.index.node_texts import first_sentence

SETTINGS = Settings()
"""The defaults: five agents, ten tools, a person asked about what is not known to be harmless."""
TAKEN: Mapping[str, Sequence[Taken]] = {
    "t01": (Taken("18:00", r"T(\d\d:\d\d):\d\d\+09:00"),),
    "t05": (Taken("42.164813", r"42\.\d+"), Taken("26.08", r"26\.\d+", form=".2f")),
    "t08": (Taken("# Hello", r"# .+"),),
    "t09": (Taken("(x - 1)*(x + 1)", r"\(x.*\)"), Taken("working tree clean", r"working tree clean")),
}
"""What of the gold arguments is not known before the step that gives it, by task."""


@dataclass(frozen=True, slots=True)
class World:
    """The fleet as it was listed, and what finds and calls its tools."""

    loaded: Loaded
    retriever: AgentGraphRetriever
    registry: ToolRegistry


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a task.

    Attributes:
        done: Ids of the tools that were called with success, in the plan's order.
        requests: For each step, how many times its tool was asked for before it was called; None where it never was.
        asked: How many calls a person was asked about.
        held_before: Whether the end state was there before anything was done.
        held: Whether it was there at the end.
    """

    done: tuple[str, ...]
    requests: tuple[int | None, ...]
    asked: int
    held_before: bool
    held: bool

    def right(self, gold: Sequence[GoldCall]) -> bool:
        """Whether the task was done: by these calls, in this order, each made once, and by nothing else."""
        return self.held and not self.held_before and self.done == tuple(call.id for call in gold)


def opened(config: Path, scratch: Path) -> World:
    """The servers of a configuration, listed, with everything that is kept about them in ``scratch``.

    Raises:
        RuntimeError: One does not answer.
    """
    servers = servers_in(str(config))
    answers = SessionPool(limits=Limits(start=300, list=120)).list_all(servers)
    if broken := [f"{name}: {answer.error}" for name, answer in answers.items() if answer.error]:
        raise RuntimeError(f"not listed: {'; '.join(broken)}")
    pins, listings = PinBook(scratch / "pins.json"), LastListings(scratch / "listings")
    loaded = load(read_listings(servers, answers, pins=pins, listings=listings))
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    return World(loaded, retriever, ToolRegistry.from_catalog(loaded))


async def play(task: FleetTask, plan: Plan, world: World, *, answer: str = "approve") -> Played:
    """Plays the gold path of a task through the supervisor.

    Args:
        task: The task.
        plan: The plan of it, one call a step, which the supervisor gets from its planner.
        world: The servers.
        answer: What a person says to each question about a call: ``approve`` or ``reject``.

    Raises:
        RuntimeError: Something else was asked.
    """
    calls = {step.text: call for step, call in zip(plan.steps, task.gold, strict=True)}
    words = {call.id: first_sentence(world.loaded.catalog.tool(call.id).description) for call in task.gold}
    model = GoldPath(calls=calls, words=words, taken=TAKEN.get(task.id, ()))
    drafts = [PlannedStep(id=step.id, text=step.text, depends_on=list(step.depends_on)) for step in plan.steps]
    planner = GenericFakeChatModel(messages=iter([AIMessage(PlanDraft(steps=drafts).model_dump_json())]))
    workflow = create_supervisor(
        world.loaded,
        planner_model=planner,
        worker_model=model,
        retriever=world.retriever,
        registry=world.registry,
        settings=SETTINGS,
    )
    before = task.check.holds()
    state, asked = await _answered(workflow.compile(checkpointer=InMemorySaver()), task.task, answer)
    results = [state["results"][step.id] for step in plan.steps]
    made = [[call["tool"] for call in result["calls"] if not call["error"]] for result in results]
    return Played(
        done=tuple(tool for tools in made for tool in tools if tool != NEED_TOOL),
        requests=tuple(
            tools.count(NEED_TOOL) if call.id in tools else None for tools, call in zip(made, task.gold, strict=True)
        ),
        asked=asked,
        held_before=before,
        held=task.check.holds(),
    )


async def _answered(app: Any, request: str, answer: str) -> tuple[Mapping[str, Any], int]:
    """The state at a run's end, and how many calls were asked about; each answer is for the call as it was shown."""
    config, asked = {"configurable": {"thread_id": uuid.uuid4().hex}}, 0
    state = await app.ainvoke({"messages": [HumanMessage(request)]}, config)
    while questions := state.get("__interrupt__"):
        if other := [str(one.value) for one in questions if one.value.get("type") != "tool_approval"]:
            raise RuntimeError(f"something else was asked than whether a call may be made: {other[0]}")
        asked += len(questions)
        said = {one.id: {"type": answer, "hash": one.value["hash"]} for one in questions}
        state = await app.ainvoke(Command(resume=said), config)
    return state, asked
