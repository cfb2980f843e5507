"""Tasks over a fleet of real servers: what selection alone finds of the gold path, and what comes of playing it.

The plan has the clauses of the task as its steps. Selection is looked at twice: for the whole question, and for each
step of that plan. Then a stand-in for a model plays the gold path, and the end state is looked at. It can call only
what the selection gave it, or what it gets by asking for it.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fleet.end_states import FleetTask, GoldCall, moved, read_tasks
from benchmarks.fleet.fleet_runs import Played, World, opened, play
from callsheet import AgentGraphRetriever
from callsheet.agents import Plan, Step
from callsheet.graphs.text.clauses import clause_spans, parts_of

AGENTS, TOOLS, WIDE = 5, 10, 50
COLUMNS = (
    "task, step", "gold tool", "agent, question", "agent, step", "tool, question", "tool, step", "given by", "end state"
)  # fmt: skip
GIVEN = ("selection", "asked for in the step's words", "asked for in the tool's words")
_ABOUT = (
    "{} tasks over {} MCP servers with {} tools. Ranks of the gold agents among the first {} and of the gold tools "
    "among the first {}, by the default settings: for the whole question, and for each clause of "
    "it; in brackets a tool that only a budget of {} tools would hold. Then the gold path is played through the "
    "supervisor, over stdio, by a stand-in for a model that can call only what it was given; every call is approved by "
    "its hash. *Given by*: how it got the tool of the step. *Holds*: the end state was not there before, is there "
    "after, and the gold calls were made, each once, and no other"
)


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where a selection has the agent and the tool of a call, from 1; None where it has not.

    Attributes:
        agent: Among ``AGENTS`` agents.
        tool: Among ``TOOLS`` tools.
        wide: Among ``WIDE`` tools.
    """

    agent: int | None
    tool: int | None
    wide: int | None = None

    @property
    def shown(self) -> tuple[str, str]:
        """Agent and tool, as a table has them."""
        beyond = f"({self.wide})" if self.wide else "-"
        return str(self.agent or "-"), str(self.tool or beyond)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found out about a task: for each gold call its ranks for the question and for the step, and the play."""

    task: FleetTask
    question: tuple[Ranks, ...]
    steps: tuple[Ranks, ...]
    played: Played

    @property
    def right(self) -> bool:
        """Whether the task was done."""
        return self.played.right(self.task.gold)


def measure(config: Path, tasks: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of the results file.

    Args:
        config: The ``mcp.json`` of the installed servers; their data are copied, and nothing of the fleet is changed.
        tasks: The ``tasks.json``.
        say: Told what is measured next.

    Raises:
        CatalogError: Servers or tasks are not what they should be.
        RuntimeError: A server cannot be listed, a plan has not one step a gold call, or what a person refused was done.
    """
    with tempfile.TemporaryDirectory(prefix="callsheet-fleet-") as folder:
        scratch = Path(folder).resolve()
        copy, known = moved(config, scratch), read_tasks(tasks, scratch)
        say("listing the servers")
        world = opened(copy, scratch)
        found = []
        for task in known:
            say(f"{task.id}: {task.task}")
            found.append(find_out(task, world))
    catalog = world.loaded.catalog
    return {
        "about": _ABOUT.format(len(known), len(catalog.agents), len(catalog.tools), AGENTS, TOOLS, WIDE),
        "columns": list(COLUMNS),
        "rows": [*(row for one in found for row in rows_of(one)), total_row(found)],
        "approved": {one.task.id: one.played.asked for one in found},
        "refused_first": [task.id for task in known if task.approval],
    }


def find_out(task: FleetTask, world: World) -> Found:
    """Ranks and play of one task.

    Raises:
        RuntimeError: As in ``measure``.
    """
    plan = planned(task)
    question = tuple(ranks(task.task, call, world.retriever) for call in task.gold)
    steps = tuple(ranks(step.text, call, world.retriever) for step, call in zip(plan.steps, task.gold, strict=True))
    return Found(task, question, steps, asyncio.run(_with_refusal(task, plan, world)))


def planned(task: FleetTask) -> Plan:
    """The clauses of a task and their parts as a plan, in which each step is one call of the gold path.

    Raises:
        RuntimeError: It has another number of steps.
    """
    clauses = [task.task[start:end] for start, end in clause_spans(task.task)] or [task.task]
    texts = clauses if len(clauses) == len(task.gold) else [part for one in clauses for part in parts_of(one)]
    if len(texts) != len(task.gold):
        raise RuntimeError(f"{task.id}: the plan has {len(texts)} steps, the gold path {len(task.gold)} calls")
    before = [str(number) for number in range(len(texts))]
    return Plan(
        steps=tuple(Step(id=str(n), text=text, depends_on=tuple(before[1:n])) for n, text in enumerate(texts, 1))
    )


def ranks(query: str, call: GoldCall, retriever: AgentGraphRetriever) -> Ranks:
    """Where the agent and the tool of a call are in the selection for a query."""
    selection = retriever.select(query, agents=AGENTS, tools=TOOLS)
    wide = retriever.select(query, agents=AGENTS, tools=WIDE)
    return Ranks(
        agent=_place(call.server, [agent.id for agent in selection.agents]),
        tool=_place(call.id, [tool.id for tool in selection.tools]),
        wide=_place(call.id, [tool.id for tool in wide.tools]),
    )


def _place(wanted: str, found: Sequence[str]) -> int | None:
    return found.index(wanted) + 1 if wanted in found else None


async def _with_refusal(task: FleetTask, plan: Plan, world: World) -> Played:
    """The task; before it, where it asks for an approval, the same with every question answered by a refusal."""
    if task.approval:
        refused = await play(task, plan, world, answer="reject")
        if refused.done or refused.held or not refused.asked:
            raise RuntimeError(f"{task.id}: what a person refused was done, or nobody was asked")
    return await play(task, plan, world)


def rows_of(found: Found) -> list[Sequence[str]]:
    """A row for each gold call; the last one says what became of the task."""
    state = "holds" if found.right else "does not hold"
    parts = zip(found.task.gold, found.question, found.steps, found.played.requests, strict=True)
    rows: list[Sequence[str]] = []
    for number, (call, question, step, requests) in enumerate(parts, 1):
        (agent, tool), (step_agent, step_tool) = question.shown, step.shown
        given = "nothing" if requests is None else GIVEN[requests]
        last = state if number == len(found.task.gold) else ""
        rows.append((f"{found.task.id}, {number}", call.id, agent, step_agent, tool, step_tool, given, last))
    return rows


def total_row(found: Sequence[Found]) -> Sequence[str]:
    """How many of the calls, and of the tasks with all of their calls."""
    requests = [count for one in found for count in one.played.requests]
    columns = (
        [[rank.agent for rank in one.question] for one in found],
        [[rank.agent for rank in one.steps] for one in found],
        [[rank.tool for rank in one.question] for one in found],
        [[rank.tool for rank in one.steps] for one in found],
    )
    return (
        "all",
        f"{len(requests)} calls, {len(found)} tasks",
        *map(_counted, columns),
        f"selection: {requests.count(0)} of {len(requests)}",
        f"{sum(one.right for one in found)} of {len(found)} hold",
    )


def _counted(ranks_of: Sequence[Sequence[int | None]]) -> str:
    calls = sum(rank is not None for task in ranks_of for rank in task)
    whole = sum(None not in task for task in ranks_of)
    return f"{calls} calls, {whole} tasks"
