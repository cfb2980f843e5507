"""What travels between the nodes: ids and plain values only, so that any checkpointer can keep it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.errors import InvalidUpdateError
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from callsheet.agents import Plan, StepResult, Usage
from callsheet.graphs import SettingsError


def by_step(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Joins what steps report by their ids; the same report twice changes nothing."""
    return {**before, **new}


def latest(before: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What was said last."""
    return dict(new)


def with_earlier(result: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """What became of a step, with the calls of an attempt before it; and if it was not done, with why that failed.

    The first cause comes first: it is what has to be mended. That other agents lack input for what they were not
    meant for is no question to the user. A worker that only says something, after others have failed, has not done
    the step.

    Args:
        result: A ``StepResult`` as plain values.
        before: That of the attempt before, which holds those before it.
    """
    if before is None or result["attempts"] <= before["attempts"]:
        return dict(result)
    usage = Usage(**before.get("usage", {})) + Usage(**result.get("usage", {}))
    told = {**result, "calls": [*before["calls"], *result["calls"]], "usage": usage.model_dump()}
    by_word = result["status"] == "done" and not any(call["agent"] and not call["error"] for call in result["calls"])
    if result["status"] == "done" and not by_word:
        return told
    error = f"no tool was called, but: {result['result']}" if by_word else result["error"]
    causes = filter(None, dict.fromkeys((before["error"], error)))
    status = before["status"] if by_word or result["status"] == "needs_input" else result["status"]
    return {**told, "status": status, "result": "", "error": "; after that, with other agents: ".join(causes)}


class ChatInput(TypedDict):
    """What a caller sends: the conversation, whose last message is the request."""

    messages: Annotated[list[AnyMessage], add_messages]


class ChatOutput(TypedDict):
    """What a caller gets.

    Attributes:
        messages: The conversation with the answer.
        plan: The steps (``Plan`` as plain values).
        selections: Step id -> what the retriever picked for it (``Selection`` as plain values, without its trace).
        results: Step id -> what became of it (``StepResult`` as plain values).
        revisions: How the plan was changed on the way (``Revision`` as plain values).
        usage: What the run's models cost, in all, ``by_role`` and ``by_step`` (``Usage`` as plain values).
    """

    messages: Annotated[list[AnyMessage], add_messages]
    plan: dict[str, Any]
    selections: Annotated[dict[str, dict[str, Any]], by_step]
    results: Annotated[dict[str, dict[str, Any]], by_step]
    revisions: list[dict[str, Any]]
    usage: dict[str, Any]


class State(ChatOutput):
    """The supervisor's own state.

    Attributes:
        run: Tells the sessions of this request from those of others.
        begun: When this request was begun, in seconds since 1970.
        request: What is asked, in plain text, understandable without the conversation.
        preferences: What the user of this request prefers, from the store.
        waves: The ids of the steps of each wave so far.
        note: Why the request was taken without the conversation; empty otherwise.
        question: The question that waits for the user (``Question`` as plain values), or ``answered``.
        answers: What the user was asked during this request, and answered, a text each.
        spent: What models cost, by role and place in the run (``Usage`` as plain values).
        turns: Earlier requests of the conversation, the latest last, each with its ``id``, ``request`` and ``results``.
    """

    run: str
    begun: float
    request: str
    preferences: Annotated[dict[str, Any], latest]
    waves: list[list[str]]
    note: str
    question: dict[str, Any]
    answers: list[str]
    spent: Annotated[dict[str, dict[str, Any]], by_step]
    turns: list[dict[str, Any]]


def completed(state: State) -> State:
    """The state with what it lacks: of a thread of an older version, or one that somebody has written by hand."""
    return {**_DEFAULTS, "begun": time.time(), **state}


def planned(state: State) -> bool:
    """Whether there is anything to be done.

    Raises:
        InvalidUpdateError: There is no plan: somebody has changed the state of a thread that has none, or taken it.
    """
    plan: object = state.get("plan")
    if not isinstance(plan, Mapping) or not isinstance(plan.get("steps"), list | tuple):
        raise InvalidUpdateError(
            "the state has no plan with steps, so nothing can be dispatched: begin with messages, or give a plan"
        )
    return bool(plan["steps"])


def plan_of(state: State) -> Plan:
    """The plan of a run that has one."""
    return Plan(**state["plan"])


def results_of(state: State) -> dict[str, StepResult]:
    """What became of the steps so far, by id."""
    return read_results(state["results"])


def read_results(results: Mapping[str, Any]) -> dict[str, StepResult]:
    """Results by id, from plain values."""
    return {name: StepResult(**result) for name, result in results.items()}


_DEFAULTS: State = {
    "messages": [],
    "plan": {},
    "selections": {},
    "results": {},
    "revisions": [],
    "usage": {},
    "run": "",
    "begun": 0.0,
    "request": "",
    "preferences": {},
    "waves": [],
    "note": "",
    "question": {},
    "answers": [],
    "spent": {},
    "turns": [],
}


class StepState(TypedDict):
    """One step on its way through retrieve and work.

    Attributes:
        run_id: ``run`` of ``State``, under a name of its own: where events are streamed, LangGraph writes every
            channel of a step's state back to the supervisor's, and of two steps at once only reducers take both.
        run_request: ``request`` of ``State``, likewise.
        tokens_left: How many tokens the step may cost; no limit where None.
        step: The ``Step`` as plain values.
        inputs: The ``StepResult`` of each step that it builds on, directly or through others.
        tried: Agents that failed at it before and are not picked again.
        attempts: How many times it was sent out, this time included.
        selection: What the retriever picked.
        results: The result by step id, for the supervisor.
        selections: The selection by step id, for the supervisor.
        preferences: As in ``State``.
        given: Tool id -> parameter -> value, as a person gave them.
        asking: What a person is asked for, with the result that asks for it; empty where nobody is asked.
    """

    run_id: str
    run_request: str
    tokens_left: int | None
    preferences: Annotated[dict[str, Any], latest]
    step: dict[str, Any]
    inputs: list[dict[str, Any]]
    tried: list[str]
    attempts: int
    selection: dict[str, Any]
    results: Annotated[dict[str, dict[str, Any]], by_step]
    selections: Annotated[dict[str, dict[str, Any]], by_step]
    given: NotRequired[dict[str, dict[str, Any]]]
    asking: NotRequired[dict[str, Any]]


class StepOutput(TypedDict):
    """What a step gives back to the supervisor."""

    results: Annotated[dict[str, dict[str, Any]], by_step]
    selections: Annotated[dict[str, dict[str, Any]], by_step]


def text_of(given: Mapping[str, Any], field: str) -> str:
    """A text of a run's input.

    Raises:
        SettingsError: The input has none by that name.
    """
    if not isinstance(text := given.get(field), str):
        raise SettingsError(f'the input needs a text {field!r}: send {{"{field}": "..."}}')
    return text


class Query(TypedDict):
    """Input of the retriever app."""

    query: str


class Picked(TypedDict):
    """Output of the retriever app: the ``Selection`` as plain values, with its trace."""

    selection: dict[str, Any]


class RetrieverState(Query, Picked):
    """State of the retriever app."""


def by_chunk(before: Mapping[str, str], new: Mapping[str, str]) -> dict[str, str]:
    """The context tracker: what was read stays read; a new digest of a chunk takes the place of the old one."""
    return {**before, **new}


class ReaderInput(TypedDict):
    """What ``arag`` is sent: the conversation, whose last message is the question."""

    messages: Annotated[list[AnyMessage], add_messages]


class ReaderOutput(TypedDict):
    """What ``arag`` gives.

    Attributes:
        messages: The conversation, with every call and the answer.
        citations: Ids of the chunks that the answer cites, each of them read; what was read where a model cites none.
        loops: How many times the model, or the rules, were asked.
        retrieved_tokens: The tokens of what the interfaces gave for this question.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    citations: list[str]
    loops: int
    retrieved_tokens: int


class ReaderState(ReaderOutput):
    """The state of ``arag``; it is kept for the thread.

    Attributes:
        read: The context tracker: chunk id -> digest of the text that was read.
        folder: The documents of this question.
        forced: Whether the answer was forced by a spent budget.
        trouble: Why the question cannot be worked on; empty when it can.
    """

    read: Annotated[dict[str, str], by_chunk]
    folder: str
    forced: bool
    trouble: str
