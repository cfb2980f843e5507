"""What the supervisor decides and what workers report: plans, steps, results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from callsheet.agents.models.token_usage import Usage
from callsheet.agents.planning.drafts import Question
from callsheet.agents.tools.tool_result import Effect, Kind
from callsheet.graphs.catalog.errors import PlanError

Mode = Literal["none", "once", "adaptive"]
"""How a request is planned: not at all (one worker), once, or once and then revised by what comes back."""
Status = Literal["done", "failed", "needs_input", "outcome_unknown", "skipped"]


class Step(BaseModel):
    """One thing to do, small enough for one agent.

    Attributes:
        id: Short and unique in its plan, such as ``1``.
        text: What to do, in the request's own words as far as possible.
        depends_on: Ids of the steps whose results this one uses.
        for_each: Id of a step, with a path into its result where needed (``1.items``): the step is done once for each
            item there. Empty for a step that is done once.
        item: The item that the step is done for, as JSON; empty where it is done for none.
        uses: Ids of results of earlier requests of the conversation that this one uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    depends_on: tuple[str, ...] = ()
    for_each: str = ""
    item: str = ""
    uses: tuple[str, ...] = ()


class Plan(BaseModel):
    """A directed acyclic graph of steps; or, without steps, an answer or a question to the user.

    Attributes:
        steps: At least one, unless there is an answer or a question.
        note: How the plan came about, where that is worth saying (a fallback, a repair).
        mode: How it was made and is carried out: ``none``, ``once`` or ``adaptive``.
        open: Whether further steps depend on results and can only be planned once these are known.
        answer: What the user is answered in place of steps.
        ask: What the user is asked in place of steps.
        request: The request that it is for, understandable without the conversation.
        incomplete: Why the plan ended before the request was carried out; empty where it was not ended so.
        usage: What it cost to make the plan.

    Raises:
        PlanError: Ids repeat, a dependency is unknown, or the steps wait for each other in a circle.
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
        """The step of this id; None where there is none."""
        return next((step for step in self.steps if step.id == step_id), None)

    def ready(self, finished: Collection[str]) -> tuple[Step, ...]:
        """The unfinished steps whose dependencies are all finished, in the plan's order."""
        return tuple(s for s in self.steps if s.id not in finished and set(s.depends_on) <= set(finished))

    def ancestors(self, step_id: str) -> tuple[str, ...]:
        """Ids of the steps that this one builds on, directly or through others, in the plan's order."""
        waits = {step.id: step.depends_on for step in self.steps}
        found: set[str] = set()
        todo = list(waits[step_id])
        while todo:
            if (current := todo.pop()) not in found:
                found.add(current)
                todo.extend(waits[current])
        return tuple(step.id for step in self.steps if step.id in found)


@contextmanager
def plan_errors() -> Iterator[None]:
    """What a model drafted may make no step and no plan: whatever pydantic says of it becomes a ``PlanError``."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanError(str(first.get("ctx", {}).get("error") or first["msg"])) from error


class Call(BaseModel):
    """One tool call of a worker.

    Attributes:
        agent: Id of the tool's owner.
        tool: Id of the tool.
        args: What it was called with.
        output: What it answered, as text; empty when it failed.
        error: What went wrong, naming agent and tool; empty when nothing did.
        kind: The sort of trouble.
        effect: Whether the tool ran, see ``Outcome``.
        files: Media of the result, and the whole of what was cut.
        seconds: How long the call took.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    agent: str
    tool: str
    args: Mapping[str, Any] = Field(default_factory=dict)
    output: str = ""
    error: str = ""
    kind: Kind = ""
    effect: Effect = "reported"
    files: tuple[str, ...] = ()
    seconds: float = 0.0


class StepResult(BaseModel):
    """What became of one step; a failure is data, never an exception.

    Attributes:
        id: The step's id.
        text: The step's text.
        depends_on: The steps whose results it used.
        status: ``done``, ``failed``, ``needs_input`` (a required argument has no evidence), ``outcome_unknown`` (a
            call may or may not have taken effect, so a person has to look) or ``skipped`` (a step that it waits for
            was not done).
        agents: Ids of the agents that were picked, best first.
        tools: Ids of the tools that the worker was given, best first.
        calls: What was called for it, in order, by the workers of all attempts.
        result: The worker's answer.
        error: Why it was not done; names what is missing.
        attempts: How many selections were tried, the re-plans included.
        exhausted: Whether no other agent is left that could do it.
        missing: Tool id -> its parameters that nothing gives a value for; a person may.
        usage: What the worker's model cost, over all attempts.
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
    error: str = ""
    attempts: int = 1
    exhausted: bool = False
    missing: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    usage: Usage = Usage()
