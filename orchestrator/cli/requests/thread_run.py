"""A run of the supervisor in a thread of the command line, and what is reported of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.orchestrator.run.thread_files import Threads

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.types import StateSnapshot

_STEP_FIELDS = ("id", "text", "depends_on", "agents", "tools", "status", "calls", "result", "error")
_WAITS = {"tool_approval": "needs_approval", "unknown_outcome": "outcome_unknown", "needs_input": "needs_input"}
_NO_PLAN: Mapping[str, Any] = {"steps": [], "note": ""}


@dataclass(frozen=True, slots=True)
class Ran:
    """How far a run has come.

    Attributes:
        state: The supervisor's state.
        waiting: The interrupts that wait for a person; none when the run is over.
        results: Step id -> result, those of a wave that is not over among them.
        picked: Step id -> selection, of the steps that are not over.
    """

    state: Mapping[str, Any]
    waiting: tuple[Any, ...]
    results: Mapping[str, Any]
    picked: Mapping[str, Any]

    @property
    def answer(self) -> str:
        """The last message."""
        text: str = self.state["messages"][-1].text
        return text

    @property
    def left(self) -> bool:
        """Whether ``--resume`` has something to do: a question to ask, or a step that failed."""
        return bool(self.waiting) or any(step["status"] in ("failed", "skipped") for step in self.steps())

    @property
    def done(self) -> bool:
        """Whether the request was answered, or every step of its plan done: what makes the exit status 0."""
        steps = self.steps()
        answered = bool(steps or self.plan.get("answer")) and not self.plan.get("incomplete")
        return answered and all(step["status"] == "done" for step in steps)

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan; without steps while the user is asked about the request."""
        return self.state.get("plan") or _NO_PLAN

    def steps(self) -> list[dict[str, Any]]:
        """What became of each step of the plan; one that did not run yet is ``waiting``."""
        return [self._step(step) for step in self.plan["steps"]]

    def _step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        if (done := self.results.get(step["id"])) is not None:
            return {name: done[name] for name in _STEP_FIELDS}
        agents = self.picked.get(step["id"], {}).get("agents", [])
        asked = [found.value for found in self.waiting if _of_step(found.value, step["id"])]
        return {
            "id": step["id"],
            "text": step["text"],
            "depends_on": list(step["depends_on"]),
            "agents": [agent["id"] for agent in agents],
            "tools": [tool["id"] for agent in agents for tool in agent["tools"]],
            "status": _WAITS[asked[0]["type"]] if asked else "waiting",
            "calls": [],
            "result": "",
            "error": " ".join(value["description"] for value in asked),
        }


async def run(
    workflow: StateGraph[Any, Any, Any, Any],
    threads: Threads,
    thread: str,
    given: Any,
    show: Callable[[Mapping[str, Any]], None],
) -> Ran:
    """Runs a workflow until it is over, or waits for a person.

    Args:
        workflow: The supervisor.
        threads: Where its checkpoints are kept.
        thread: The thread.
        given: Its input; None to go on where it was.
        show: Called with each custom event.

    Raises:
        SettingsError: There is nothing to go on with, or a new request would take the place of an unfinished one.
    """
    from callsheet.orchestrator.run.resumption import take_up

    config: Any = {"configurable": {"thread_id": thread}}
    async with threads.saver(thread) as saver:
        app = workflow.compile(checkpointer=saver, name="supervisor")
        if isinstance(given, dict) and (await app.aget_state(config)).tasks:
            raise SettingsError(f"the last request of {thread!r} is not finished: go on with --resume, or name another")
        if given is not None or await take_up(app, config):
            stream: Any = app.astream(given, config, stream_mode="custom", subgraphs=True, durability="sync")
            async for _, event in stream:
                show(event)
        return _ran(await app.aget_state(config, subgraphs=True))


def _ran(now: StateSnapshot) -> Ran:
    """The results of a wave are in its tasks until the last one is done."""
    results: dict[str, Any] = dict(now.values.get("results", {}))
    picked: dict[str, Any] = {}
    for task in now.tasks:
        within = getattr(task.state, "values", {})
        if isinstance(task.result, Mapping):
            results.update(task.result.get("results", {}))
        elif "step" in within:
            picked[within["step"]["id"]] = within.get("selection", {})
    return Ran(now.values, now.interrupts, results, picked)


def _of_step(value: Any, step_id: str) -> bool:
    return isinstance(value, Mapping) and value.get("type") in _WAITS and value.get("step_id") == step_id
