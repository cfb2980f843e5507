"""Plans, steps and results."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from callsheet.agents.calls.questions import Question
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.calls.tool_result import Effect, Kind
from callsheet.graphs.catalog.errors import PlanError

Mode = Literal["none", "once", "adaptive"]
"""How a request is planned: without a plan (one worker), once, or once and then revised after results."""
Status = Literal["done", "failed", "needs_input", "outcome_unknown", "skipped"]


class Step(BaseModel):
    """One task, small enough for one agent.

    Attributes:
        id: Short and unique in its plan, such as ``1``.
        text: What to do, as far as possible in the words of the request.
        depends_on: Ids of the steps whose results it uses.
        for_each: Id of a step, with an optional path into its result (``1.items``): the step is done once for each item
            there. Empty for a step that is done once.
        item: The item that the step is done for, as JSON; empty if there is none.
        tools: Ids of tools that the planner wants for it; its worker gets these first.
        uses: Ids of results of earlier requests of the conversation that it uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    depends_on: tuple[str, ...] = ()
    for_each: str = ""
    item: str = ""
    tools: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


class Plan(BaseModel):
    """A directed acyclic graph of steps; or, without steps, an answer or a question to the user.

    Attributes:
        steps: At least one, unless there is an answer or a question.
        note: Remarks on how the plan was made, such as a fallback or a repair.
        mode: How it was made and is carried out: ``none``, ``once`` or ``adaptive``.
        open: Whether further steps depend on results, and will be planned when these are known.
        answer: The answer to the user in place of steps.
        ask: The question to the user in place of steps.
        request: The request, understandable without the conversation.
        incomplete: Why the plan ended early; empty if it did not.
        usage: Cost of making the plan.

    Raises:
        PlanError: Two steps have the same id, a dependency is unknown, or the dependencies have a cycle.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[Step, ...] = ()
    note: str = ""
    mode: Mode = "once"
    open: bool = False
    answer: str = ""
    ask: Question | None = None
    request: str = ""
    incomplete: str = ""
    usage: Usage = Usage()

    @model_validator(mode="after")
    def _is_dag(self) -> Self:
        if not (self.steps or self.answer or self.ask):
            raise PlanError("it has no steps")
        ids = [step.id for step in self.steps]
        if repeated := sorted({i for i in ids if ids.count(i) > 1}):
            raise PlanError(f"steps repeat the id {', '.join(repeated)}")
        for step in self.steps:
            if unknown := sorted(set(step.depends_on) - set(ids)):
                raise PlanError(f"step {step.id} depends on unknown step {', '.join(unknown)}")
        try:
            TopologicalSorter({step.id: step.depends_on for step in self.steps}).prepare()
        except CycleError as error:
            raise PlanError(f"steps wait for each other in a circle: {' -> '.join(error.args[1])}") from error
        return self

    def step(self, step_id: str) -> Step | None:
        """The step with this id; None if there is none."""
        return next((step for step in self.steps if step.id == step_id), None)

    def ready(self, finished: Collection[str]) -> tuple[Step, ...]:
        """The unfinished steps whose dependencies are all finished, in plan order."""
        return tuple(s for s in self.steps if s.id not in finished and set(s.depends_on) <= set(finished))

    def ancestors(self, step_id: str) -> tuple[str, ...]:
        """Ids of the steps that a step depends on, directly or indirectly, in plan order."""
        waits = {step.id: step.depends_on for step in self.steps}
        found: set[str] = set()
        todo = list(waits[step_id])
        while todo:
            if (current := todo.pop()) not in found:
                found.add(current)
                todo.extend(waits[current])
        return tuple(step.id for step in self.steps if step.id in found)


def source_of(reference: str, ids: Collection[str]) -> str:
    """The step that ``1.items`` refers to: the longest of these ids that it begins with, else its first part."""
    begins = [name for name in ids if reference == name or reference.startswith((f"{name}.", f"{name}["))]
    return max(begins, key=len, default=re.split(r"[.\[]", reference, maxsplit=1)[0])


@contextmanager
def plan_errors() -> Iterator[None]:
    """Turns a ``ValidationError`` for a model's draft into a ``PlanError``."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanError(str(first.get("ctx", {}).get("error") or first["msg"])) from error


class Call(BaseModel):
    """One tool call of a worker.

    Attributes:
        id: Its name for references, unique in its step: ``c1`` for the first call.
        agent: Id of the tool's agent.
        tool: Id of the tool.
        args: The arguments.
        output: The answer as text; empty if the call failed.
        error: What went wrong, with agent and tool; empty if nothing did.
        kind: The kind of error.
        effect: Whether the tool ran, see ``Outcome``.
        files: Files with media of the result, and with the full text of what was cut.
        seconds: Duration of the call.
        began: Its start, in seconds since 1970; 0 if it is not known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    agent: str
    tool: str
    args: Mapping[str, Any] = Field(default_factory=dict)
    output: str = ""
    error: str = ""
    kind: Kind = ""
    effect: Effect = "reported"
    files: tuple[str, ...] = ()
    seconds: float = 0.0
    began: float = 0.0


class StepResult(BaseModel):
    """The result of one step; a failure is data, never an exception.

    Attributes:
        id: Id of the step.
        text: Text of the step.
        depends_on: Ids of the steps whose results it used.
        status: ``done``, ``failed``, ``needs_input`` (a required argument has no value), ``outcome_unknown`` (a call
            may or may not have taken effect, so a person must check) or ``skipped`` (a step that it needs was not
            done).
        agents: Ids of the selected agents, best first.
        tools: Ids of the tools that the worker had, best first.
        calls: The calls of all attempts, in order.
        result: The worker's answer, a text for people.
        data: The answer as JSON, or a reference to the result of a call (``{"$call": "c2", "path": "items"}``); None if
            the text is all that there is.
        error: Why it was not done; names what is missing.
        attempts: Number of selections tried, including replans.
        exhausted: Whether no other agent is left to try.
        missing: Tool id -> parameters without a value, or "" -> what the worker asks for; a person may provide them.
        usage: Cost of the worker's model over all attempts.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    text: str
    depends_on: tuple[str, ...] = ()
    status: Status = "done"
    agents: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    result: str = ""
    data: Any = None
    error: str = ""
    attempts: int = 1
    exhausted: bool = False
    missing: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    usage: Usage = Usage()
