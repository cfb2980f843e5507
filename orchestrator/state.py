"""The states of the workflows: only ids and plain values, so that any checkpointer can store them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired, cast

from langchain_core.messages import AnyMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import add_messages
from pydantic import ValidationError
from typing_extensions import TypedDict

from callsheet.agents import Plan, Step, StepResult
from callsheet.graphs import PlanError, SettingsError


def by_key(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merges mappings of results; a second result under the same key replaces the first."""
    return {**before, **new}


def latest(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Keeps the new value in place of the old one."""
    return dict(new)


def step_result(step: Step, **fields: Any) -> StepResult:
    """Makes the result of a step."""
    return StepResult(id=step.id, text=step.text, depends_on=step.depends_on, **fields)


def continue_result(result: StepResult, before: StepResult) -> StepResult:
    """Adds the calls and the cost of an earlier attempt to a result."""
    note = "" if any(call.agent for call in before.calls) else result.note
    calls = (*before.calls, *result.calls)
    usage = before.usage + result.usage
    return result.model_copy(update={"calls": calls, "usage": usage, "note": note})


class ChatInput(TypedDict):
    """The input of the supervisor: the conversation, whose last message is the request."""

    messages: Annotated[list[AnyMessage], add_messages]


class ChatOutput(TypedDict):
    """The output of the supervisor.

    Attributes:
        messages: The conversation with the answer.
        plan: The steps (``Plan`` as plain values).
        selections: Step id -> its selection (``Selection`` as plain values, without its trace), or only ``error``.
        results: Step id -> its result (``StepResult`` as plain values).
        revisions: Changes of the plan (``Revision`` as plain values).
        usage: Cost of the run's models, in total, ``by_role`` and ``by_step`` (``Usage`` as plain values).
    """

    messages: Annotated[list[AnyMessage], add_messages]
    plan: dict[str, Any]
    selections: Annotated[dict[str, dict[str, Any]], by_key]
    results: Annotated[dict[str, dict[str, Any]], by_key]
    revisions: list[dict[str, Any]]
    usage: dict[str, Any]


class State(ChatOutput):
    """The state of the supervisor.

    Attributes:
        run: Identifies the sessions of this request.
        begun: Start of this request, in seconds since 1970.
        request: The user's message, unchanged.
        waves: The workers of each wave so far, each as the ids of its steps.
        note: What the last request of the thread has left undone; empty if it was finished.
        question: The pending question to the user (``Question`` as plain values), or ``answered``.
        answers: Questions that the user answered during this request, with the answers, one text each.
        spent: Cost of models, by role and place in the run (``Usage`` as plain values).
        replaced: Step id -> result of a step that a revision dropped or changed.
        turns: Earlier requests of the conversation, the latest last, each with ``id``, ``request`` and ``results``.
        ended: How the request ended, from ``ending``; empty while it runs.
    """

    run: str
    ended: str
    begun: float
    request: str
    preferences: Annotated[dict[str, Any], latest]
    waves: list[list[list[str]]]
    note: str
    question: dict[str, Any]
    answers: list[str]
    spent: Annotated[dict[str, dict[str, Any]], by_key]
    replaced: Annotated[dict[str, dict[str, Any]], by_key]
    turns: list[dict[str, Any]]


def with_defaults(state: State) -> State:
    """Returns the state with defaults for missing fields, because it may be written by hand.

    Raises:
        PlanError: An earlier version of Callsheet began the request, and its plan cannot be continued.
    """
    if _of_earlier_version(state):
        raise PlanError(
            "this request was begun by an earlier version of Callsheet, and cannot be continued: send it again; "
            "effects of its calls are not undone"
        )
    empty: Any = {name: [] for name in _LISTS} | {name: {} for name in _MAPPINGS} | dict.fromkeys(_TEXTS, "")
    return cast("State", {**empty, "begun": time.time(), **state})


def _of_earlier_version(state: State) -> bool:
    """Returns whether a plan is of the time when each step had a worker of its own."""
    plan: object = state.get("plan")  # as it is read back: a client may have written anything
    if isinstance(plan, Mapping) and plan.get("mode") in {"once", "adaptive"}:
        return True
    return any(isinstance(worker, str) for wave in state.get("waves") or () for worker in wave)


def has_steps(state: State) -> bool:
    """Returns whether the plan has steps.

    Raises an ``InvalidUpdateError`` if there is no plan, because the state was changed by hand.
    """
    plan: object = state.get("plan")
    if not isinstance(plan, Mapping) or not isinstance(plan.get("steps"), list | tuple):
        raise InvalidUpdateError(
            "the state has no plan with steps, so nothing can be dispatched: begin with messages, or give a plan"
        )
    return bool(plan["steps"])


def ending(plan: Mapping[str, Any], results: Mapping[str, Any]) -> str:
    """Returns how an answered request ended, from plain values: ``done``, ``partly`` done, ``failed``, or ``refused``.

    A request is refused if nothing was tried: nothing was planned, or no step did more than ask or wait.
    """
    ended = [results.get(step["id"], {}).get("status", "skipped") for step in plan.get("steps") or ()]
    if all(status == "done" for status in ended) and (ended or plan.get("answer")):
        return "partly" if plan.get("incomplete") else "done"
    if {"done", "partly"} & {*ended}:
        return "partly"
    return "failed" if {"failed", "outcome_unknown"} & {*ended} else "refused"


def plan_of(state: State) -> Plan:
    """Returns the plan in the state."""
    return Plan(**state["plan"])


def results_of(state: State) -> dict[str, StepResult]:
    """Returns the results so far, by the id of the step."""
    return read_results(state["results"])


def read_results(results: Mapping[str, Any]) -> dict[str, StepResult]:
    """Reads results by the id of the step from plain values; fields of an earlier version are ignored."""
    return {name: read_result(result) for name, result in results.items()}


def read_result(result: Mapping[str, Any]) -> StepResult:
    """Reads a result from plain values; raises an ``InvalidUpdateError`` if that is not possible."""
    try:
        return StepResult(**{name: value for name, value in result.items() if name in StepResult.model_fields})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidUpdateError(
            f"the state has a result that cannot be read ({place}: {first['msg']}): it was changed by hand, or another "
            "version of Callsheet has written it; send the request again"
        ) from error


_LISTS = ("messages", "revisions", "waves", "answers", "turns")
_MAPPINGS = ("plan", "selections", "results", "usage", "preferences", "question", "spent", "replaced")
_TEXTS = ("ended", "run", "request", "note")


class StepState(TypedDict):
    """The state of one worker.

    Attributes:
        run_id: The ``run`` of ``State``. It has another name because, when events are streamed, LangGraph writes every
            channel of a worker's state back to the supervisor's, which only channels with a reducer allow for two
            workers at once. For the same reason, ``run_request`` and ``run_begun`` are ``request`` and ``begun``.
        steps: The steps of the worker, the first one first.
        conversation: The latest turns before the request, as text.
        place: The steps' place in the plan, as text for a model.
        before: The result of an earlier attempt at the first step, or of its earlier text; empty for none.
        tokens_left: Maximum tokens of the worker; no limit if None.
        inputs: The ``StepResult`` of each step on which these steps depend, directly or indirectly.
        picked: Step id -> its selection.
        results: The results by step id, for the supervisor.
        given: Tool id -> parameter -> value that a person entered.
        asking: The pending question for missing values, with the result that needs them; empty without one.
    """

    run_id: str
    run_request: str
    run_begun: NotRequired[float]
    steps: list[dict[str, Any]]
    conversation: NotRequired[str]
    place: NotRequired[str]
    before: NotRequired[dict[str, Any]]
    tokens_left: int | None
    preferences: Annotated[dict[str, Any], latest]
    inputs: list[dict[str, Any]]
    picked: dict[str, dict[str, Any]]
    results: Annotated[dict[str, dict[str, Any]], by_key]
    given: NotRequired[dict[str, dict[str, Any]]]
    asking: NotRequired[dict[str, Any]]


class StepOutput(TypedDict):
    """The output of a worker for the supervisor."""

    results: Annotated[dict[str, dict[str, Any]], by_key]


def input_text(given: Mapping[str, Any], field: str) -> str:
    """Returns a text field of a run's input; raises a ``SettingsError`` if there is none."""
    if not isinstance(text := given.get(field), str):
        raise SettingsError(f'the input needs a text {field!r}: send {{"{field}": "..."}}')
    return text


class Query(TypedDict):
    """The input of the retriever app."""

    query: str


class Picked(TypedDict):
    """The output of the retriever app: the ``Selection`` as plain values, with its trace."""

    selection: dict[str, Any]


class RetrieverState(Query, Picked):
    """The state of the retriever app."""


class ReaderInput(TypedDict):
    """The input of ``arag``: the conversation, whose last message is the question."""

    messages: Annotated[list[AnyMessage], add_messages]


class ReaderOutput(TypedDict):
    """The output of ``arag``.

    Attributes:
        citations: Ids of the cited chunks, which were all read; if a model cites none, the chunks that were read.
        loops: Number of searches and readings.
        retrieved_tokens: Tokens of all tool results for this question.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    citations: list[str]
    loops: int
    retrieved_tokens: int


class ReaderState(ReaderOutput):
    """The state of ``arag``, stored with the thread.

    Attributes:
        read: The context tracker: chunk id -> digest of the text that was read.
        forced: Whether the answer was forced because the budget was spent.
        trouble: Why the question cannot be answered; empty if it can.
    """

    read: Annotated[dict[str, str], by_key]
    folder: str
    forced: bool
    trouble: str
