"""Plans, their steps, and the results of steps."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal, Self

import jmespath
from jmespath.exceptions import JMESPathError
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from callsheet.agents.calls.outcome import Call
from callsheet.agents.calls.review import AnswerError, DecisionType, read_decision, review_answers, review_request
from callsheet.agents.calls.token_usage import Usage
from callsheet.graphs.errors import CallsheetError, PlanError


class Question(BaseModel):
    """A question to the user."""

    question: str = Field(min_length=1, description="What the user must say before the request can be carried out")
    choices: list[str] = Field(default_factory=list, description="The possible answers, where there are few")


KIND = "question"
"""The ``type`` of the interrupt that asks the user, and the name of its action."""
_REPLIES: tuple[DecisionType, ...] = ("respond", "reject")


def user_question(asked: Question) -> dict[str, Any]:
    """Returns the payload of the interrupt that asks the user."""
    return review_request(KIND, KIND, asked.model_dump(), question_text(asked), _REPLIES)


def question_text(asked: Question) -> str:
    """Returns the question with its choices, on one line."""
    return f"{asked.question} ({', '.join(asked.choices)})" if asked.choices else asked.question


def ask_user(asked: Question) -> str:
    """Asks the user and returns the answer; empty if the question is left unanswered."""
    answer = interrupt(user_question(asked), response_schema=review_answers(KIND, _REPLIES))
    try:
        decision = read_decision(answer, KIND, _REPLIES)
    except AnswerError:
        return ""
    return " ".join(decision.message.split()) if decision.type == "respond" else ""


Mode = Literal["auto", "none", "no_model"]
"""How a request was planned: by a model, without a plan (one worker), or without a model (by clauses)."""
Status = Literal["done", "partly", "failed", "needs_input", "outcome_unknown", "skipped"]
GAVE: tuple[Status, ...] = ("done", "partly")
"""The statuses of a step whose result later steps may use."""


class Step(BaseModel):
    """One thing to be done; tools are searched for its text, and a run shows it to the user.

    Attributes:
        text: What is done, in a few words; for a step with its own worker, the whole task.
        depends_on: Ids of the steps whose results the step uses.
        for_each: Id of a step, with an optional path into its result (``1.items``): the step is done once for each item
            there. Empty for a step that is done once.
        item: The item that the step is done for, as JSON; empty if there is none.
        tools: Ids of tools and skills that the planner has named for the step; its worker gets all of them.
        apart: Whether the step has its own worker, because of long material or long independent work.
        uses: Ids of the results of earlier requests of the conversation that the step uses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    depends_on: tuple[str, ...] = ()
    for_each: str = ""
    item: str = ""
    tools: tuple[str, ...] = ()
    apart: bool = False
    uses: tuple[str, ...] = ()


class Plan(BaseModel):
    """A directed acyclic graph of steps; or, without steps, an answer or a question to the user.

    Attributes:
        note: Remarks on how the plan was made, such as a fallback or a repair.
        open: Whether further steps will be planned when the results so far are known.
        request: The request, understandable without the conversation.
        cannot: Why nothing of the request can be done; empty if something can.
        incomplete: Why the plan ended early; empty if it did not.
        usage: Cost of making the plan.

    Raises:
        PlanError: Two steps have the same id, a dependency is unknown, or the dependencies have a cycle.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    steps: tuple[Step, ...] = ()
    note: str = ""
    mode: Mode = "auto"
    open: bool = False
    answer: str = ""
    ask: Question | None = None
    cannot: str = ""
    request: str = ""
    incomplete: str = ""
    usage: Usage = Usage()

    @model_validator(mode="after")
    def _is_dag(self) -> Self:
        if not (self.steps or self.answer or self.ask or self.cannot):
            raise PlanError("it has no steps")
        ids = [step.id for step in self.steps]
        repeated = sorted({i for i in ids if ids.count(i) > 1})
        if repeated:
            raise PlanError(f"steps repeat the id {', '.join(repeated)}")
        for step in self.steps:
            unknown = sorted(set(step.depends_on) - set(ids))
            if unknown:
                raise PlanError(f"step {step.id} depends on unknown step {', '.join(unknown)}")
        try:
            TopologicalSorter({step.id: step.depends_on for step in self.steps}).prepare()
        except CycleError as error:
            raise PlanError(f"steps wait for each other in a circle: {' -> '.join(error.args[1])}") from error
        return self

    def step(self, step_id: str) -> Step | None:
        """Returns the step with this id; None if there is none."""
        return next((step for step in self.steps if step.id == step_id), None)

    def ready(self, finished: Collection[str]) -> tuple[Step, ...]:
        """Returns the unfinished steps whose dependencies are all finished, in plan order."""
        return tuple(s for s in self.steps if s.id not in finished and set(s.depends_on) <= set(finished))

    def ancestors(self, step_id: str) -> tuple[str, ...]:
        """Returns the ids of all steps on which a step depends, directly or indirectly, in plan order."""
        waits = {step.id: step.depends_on for step in self.steps}
        found = set[str]()
        todo = [*waits[step_id]]
        while todo:
            current = todo.pop()
            if current not in found:
                found.add(current)
                todo.extend(waits[current])
        return tuple(step.id for step in self.steps if step.id in found)


def source_of(reference: str, ids: Collection[str]) -> str:
    """Returns the id of the step to which a reference such as ``1.items`` leads: the longest id that begins it.

    If no id begins it, its first part is returned.
    """
    begins = [name for name in ids if reference == name or reference.startswith((f"{name}.", f"{name}["))]
    return max(begins, key=len, default=re.split(r"[.\[]", reference, maxsplit=1)[0])


@contextmanager
def plan_errors() -> Iterator[None]:
    """Converts a ``ValidationError`` in the block to a ``PlanError``."""
    try:
        yield
    except ValidationError as error:
        first = error.errors()[0]
        raise PlanError(str(first.get("ctx", {}).get("error") or first["msg"])) from error


class StepEnd(BaseModel):
    """How one step of a worker ended, as the worker reports it: the status, and the result as JSON, if any."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    status: Status
    data: Any = None


class StepResult(BaseModel):
    """The result of one step; a failure is stored as data and is never raised.

    Attributes:
        status: ``done``, ``partly`` (something was done and something was not), ``failed``, ``needs_input`` (a required
            argument has no value), ``outcome_unknown`` (a call may or may not have taken effect, so a person must
            check) or ``skipped`` (a step that it needs was not done).
        agents: Ids of the selected agents, best first.
        tools: Ids of the tools that the worker had, best first.
        calls: Its calls, in order.
        result: The worker's answer, a text for people.
        note: A note for the reader, for example that no tool was called for the step.
        data: The answer as JSON, or a reference to the result of a call (``{"$call": "c2", "path": "items"}``); None if
            there is only a text.
        error: The reason why the step was not done; it names what is missing.
        missing: Tool id -> parameters without a value, or "" -> what the worker asks for; a person may provide them.
        replan: Whether the worker asks for a change of the plan.
        usage: The cost of the worker's model; if a worker had several steps, only the first one has it.
        worker: Id of the first step of the worker that did the step; empty if no worker has started it.
        ends: For the whole result of a worker: how steps ended, by id, if they ended differently from the worker.
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
    note: str = ""
    data: Any = None
    error: str = ""
    replan: bool = False
    missing: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    usage: Usage = Usage()
    worker: str = ""
    ends: dict[str, StepEnd] = Field(default_factory=dict)


FROM = "$from"
CALL = "$call"
PATH = "path"
_LONGEST_PATH = 500


class ResultValueError(CallsheetError, ValueError):
    """Raised if there is no such result, or no value at a path in it."""


def value_of(result: StepResult | Call) -> Any:
    """Returns the value of a result: the data of a step, otherwise its text; for a call, what it returned.

    A text that is JSON is parsed. Raises a ``ResultValueError`` if the data refer to a call or a value that does not
    exist.
    """
    if result.data is not None:
        return resolve_references(result.data, (), result.calls) if isinstance(result, StepResult) else result.data
    text = result.result if isinstance(result, StepResult) else result.output
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def named_result(name: object, results: Sequence[StepResult], calls: Sequence[Call] = ()) -> StepResult | Call:
    """Returns the result with this name: ``1`` is step 1, ``1/c2`` its second call, and ``c2`` the second of ``calls``.

    Raises a ``ResultValueError`` if there is no such result.
    """
    made = {call.id: call for call in calls}
    made |= {f"{result.id}/{call.id}": call for result in results for call in result.calls if call.id}
    known: dict[str, StepResult | Call] = {result.id: result for result in results}
    known |= {called: call for called, call in made.items() if called and not call.error}
    if str(name) not in known:
        raise ResultValueError(f"there is no earlier result {str(name)!r}; there are: {', '.join(known) or 'none'}")
    return known[str(name)]


def named_value(name: object, path: object, results: Sequence[StepResult], calls: Sequence[Call] = ()) -> Any:
    """Returns the value at a JMESPath of a ``named_result``, such as ``items[0].id``; an empty path means the whole.

    Raises a ``ResultValueError`` if there is no such result, or no value at the path.
    """
    value = value_of(named_result(name, results, calls))
    if not isinstance(path, str | None):
        raise ResultValueError(f"the path of a reference must be a text, not {path!r}")
    try:
        at = jmespath.search(path[:_LONGEST_PATH], value) if path else value
    except JMESPathError as error:
        raise ResultValueError(f"{path!r} is not a path such as items[0].id: {error}") from error
    if at is None and path:
        raise ResultValueError(f"there is nothing at {path!r}; there is {shape(value)}")
    return at


def resolve_references(value: Any, results: Sequence[StepResult], calls: Sequence[Call] = ()) -> Any:
    """Returns a value, such as the arguments of a call, in which each reference is replaced by its target.

    ``{"$from": "1", "path": "items[0].id"}`` refers to the result of step 1, ``{"$call": "c2"}`` to the result of a
    call. Raises a ``ResultValueError`` if there is no such result, or no value at the path.
    """
    if isinstance(value, Mapping):
        for kind in (FROM, CALL):
            if kind in value and value.keys() <= {kind, PATH}:
                return named_value(value[kind], value.get(PATH), results, calls)
        return {key: resolve_references(item, results, calls) for key, item in value.items()}
    return [resolve_references(item, results, calls) for item in value] if isinstance(value, list) else value


def shape(value: Any) -> str:
    """Describes a value briefly: its type, size and fields."""
    match value:
        case dict():
            names = ", ".join(map(str, list(value)[:12]))
            return f"an object of {len(value)} fields ({names})"
        case list():
            inside = f", the first {shape(value[0])}" if value else ""
            return f"a list of {len(value)} items{inside}"
        case str():
            return f"a text of {len(value):,} characters"
        case _:
            return json.dumps(value)
