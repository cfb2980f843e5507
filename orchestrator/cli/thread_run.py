"""Runs the supervisor in a thread of the command line, and reports the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callsheet.orchestrator.run.threads import Threads

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.types import StateSnapshot

_STEP_FIELDS = ("id", "text", "depends_on", "agents", "tools", "status", "calls", "result", "data", "error")
_WAITS = {
    "tool_approval": "needs_approval",
    "unknown_outcome": "outcome_unknown",
    "needs_input": "needs_input",
}
_NO_PLAN: Mapping[str, Any] = {"steps": [], "note": ""}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The state of a run.

    Attributes:
        waiting: The interrupts that wait for a person; empty if the run has ended.
        results: Step id -> result, those of an unfinished wave included.
        picked: Step id -> selection, for unfinished steps.
    """

    state: Mapping[str, Any]
    waiting: tuple[Any, ...]
    results: Mapping[str, Any]
    picked: Mapping[str, Any]

    @property
    def answer(self) -> str:
        """The text of the last message."""
        text: str = self.state["messages"][-1].text
        return text

    @property
    def left(self) -> bool:
        """Whether ``--resume`` can continue: with a question, or with a failed step."""
        return bool(self.waiting) or any(step["status"] in ("failed", "skipped") for step in self.steps())

    @property
    def done(self) -> bool:
        """Whether the request was answered and every step of its plan done, for exit status 0."""
        steps = self.steps()
        answered = bool(steps or self.plan.get("answer")) and not self.plan.get("incomplete")
        return answered and all(step["status"] == "done" for step in steps)

    @property
    def plan(self) -> Mapping[str, Any]:
        """The plan; without steps while the user is asked about the request."""
        return self.state.get("plan") or _NO_PLAN

    def steps(self) -> list[dict[str, Any]]:
        """Every step of the plan with its result; ``waiting`` if it has not run."""
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
            "data": None,
            "error": " ".join(value["description"] for value in asked),
        }


async def run(
    workflow: StateGraph[Any, Any, Any, Any],
    threads: Threads,
    thread: str,
    given: Any,
    show: Callable[[Mapping[str, Any]], None],
) -> RunResult:
    """Runs a workflow until it ends or waits for a person.

    Args:
        workflow: The supervisor.
        threads: Stores its checkpoints.
        thread: The thread.
        given: Its input; None to continue.
        show: Called with each custom event.

    Raises:
        SettingsError: There is nothing to continue, or a new request would replace an unfinished one.
    """
    from callsheet.orchestrator.run.threads import stream_in_thread

    return _ran(
        await stream_in_thread(
            workflow, threads, thread, given, modes=["custom"], take=lambda _, __, event: show(event)
        )
    )


def _ran(now: StateSnapshot) -> RunResult:
    """Collects results from the state; those of an unfinished wave are in its tasks."""
    results: dict[str, Any] = dict(now.values.get("results", {}))
    picked: dict[str, Any] = {}
    for task in now.tasks:
        within = getattr(task.state, "values", {})
        if isinstance(task.result, Mapping):
            results.update(task.result.get("results", {}))
        elif "step" in within:
            picked[within["step"]["id"]] = within.get("selection", {})
    return RunResult(now.values, now.interrupts, results, picked)


def _of_step(value: Any, step_id: str) -> bool:
    return isinstance(value, Mapping) and value.get("type") in _WAITS and value.get("step_id") == step_id
