"""The routes by which the page shows and starts runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from langgraph.types import StateSnapshot
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from callsheet.agents.approval.questions import NEEDS_INPUT, typed_value
from callsheet.agents.calls.question_text import inexact
from callsheet.agents.calls.review import AnswerError, decision_on, flat
from callsheet.graphs import CallsheetError, UnknownNameError
from callsheet.orchestrator.run_events import RunEvent, last_states, state_events
from callsheet.orchestrator.server.page_requests import HEADERS, Body, Endpoint, RefusedError, body_of
from callsheet.orchestrator.server.runs.question_views import WITHHELD, question_views
from callsheet.orchestrator.server.runs.runs import Runs, missing_thread, no_thread
from callsheet.orchestrator.server.runs.visible_events import VisibleEvents, picture_of
from callsheet.orchestrator.server.visible_catalog import Json, VisibleCatalog

_Id = Annotated[str, Field(min_length=1, max_length=200)]


class _Start(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, pattern=r"\S")]
    thread: _Id | None = None


class _Thread(Body):
    thread: _Id


class Resume(_Thread):
    """The answers to open questions, by the ids of their interrupts."""

    answers: Annotated[dict[str, Any], Field(max_length=100)] = Field(default_factory=dict)


def run_endpoints(runs: Runs) -> tuple[dict[str, Endpoint], dict[str, Endpoint]]:
    """Returns the endpoints that only read, and those that take a body, by the last part of their address."""

    async def threads(visible: VisibleCatalog, request: Request) -> object:
        return [*await runs.backend.recent(request)]

    async def thread(visible: VisibleCatalog, request: Request) -> object:
        name = _thread_of(request)
        history = await runs.history(request, name)
        if not history:
            raise UnknownNameError(no_thread(name))
        return await run_in_threadpool(_requests_of, visible, history)

    async def picture(visible: VisibleCatalog, request: Request) -> object:
        history = await runs.history(request, _thread_of(request))
        file = request.query_params.get("file", "")
        return await run_in_threadpool(picture_of, visible, history, file)

    async def watch(visible: VisibleCatalog, request: Request) -> StreamingResponse:
        """Server-sent events: those of the run, as it goes."""
        events = _events(visible, runs.watch(request, _thread_of(request)))
        headers = {**HEADERS, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def start(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, _Start)
        return {"thread": await runs.start(request, given.thread, given.text.strip())}

    async def resume(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, Resume)
        answers = _checked_answers(visible, await runs.state(request, given.thread), given)
        await runs.resume(request, given.thread, answers)
        return {"thread": given.thread}

    async def cancel(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, _Thread)
        await runs.backend.cancel(request, given.thread)
        return {"thread": given.thread}

    reading: dict[str, Endpoint] = {"runs": threads, "run": thread, "picture": picture, "watch": watch}
    return reading, {"start": start, "resume": resume, "cancel": cancel}


def _requests_of(visible: VisibleCatalog, history: Sequence[StateSnapshot]) -> list[list[Json]]:
    """Returns the events of each request of a thread, the latest request first."""
    requests: list[list[Json]] = []
    for state in last_states(history):
        events = VisibleEvents(visible)
        requests.append([drawn for event in state_events(state) for drawn in events.of(event)])
    return requests


def _checked_answers(visible: VisibleCatalog, state: StateSnapshot | None, given: Resume) -> dict[str, Any]:
    """Returns the answers by the ids of their questions, with the values that texts of a form stand for.

    Raises:
        RefusedError: A question does not wait, is not for this user, or a value does not fit.
    """
    if state is None:
        raise missing_thread(given.thread)
    waiting = {question.id: question.value for question in state.interrupts}
    strange = sorted(set(given.answers) - set(waiting))
    if strange:
        raise RefusedError(f"no question {', '.join(strange)} waits in this thread: it was answered meanwhile")
    if waiting and not given.answers:
        raise RefusedError("the run waits for answers to its questions")
    shown = [view for name in given.answers for view in question_views(visible, name, waiting[name])]
    if any(question["text"] == WITHHELD for question in shown):
        raise RefusedError("a question is about tools that you may not see: another user has to answer it")
    refusal = inexact(given.answers)
    if refusal:
        raise RefusedError(f"the answer cannot be used: {refusal}")
    return {name: with_values(waiting[name], answer) for name, answer in given.answers.items()}


def with_values(asked: Any, answer: Any) -> Any:
    """Converts the texts that a person wrote for missing values to the answer to their question.

    Any other answer is returned unchanged.
    """
    wanted = flat(asked)
    match answer:
        case {"values": Mapping() as texts} if wanted.get("type") == NEEDS_INPUT:
            pass
        case _:
            return answer
    values: dict[str, Any] = {}
    required = wanted["schema"].get("required", ())
    for name in wanted["args"]:
        text = str(texts.get(name, ""))
        if not text and name not in required:
            continue  # an empty field leaves it out
        try:
            values[name] = typed_value(wanted["schema"], name, text)
        except AnswerError as error:
            raise RefusedError(f"{name}: {error}") from error
    return decision_on("edit", asked, args=values)


def _thread_of(request: Request) -> str:
    return _Thread.model_validate({"thread": request.query_params.get("id", "")}).thread


async def _events(visible: VisibleCatalog, events: AsyncIterator[RunEvent]) -> AsyncIterator[str]:
    """Yields the events of a run as server-sent events; an error is one too, for the answer has begun already."""
    shown = VisibleEvents(visible)
    try:
        async for event in events:
            for drawn in await run_in_threadpool(shown.of, event):
                yield _sent(drawn)
    except CallsheetError as error:
        for drawn in shown.of({"event": "trouble", "text": str(error)}):
            yield _sent(drawn)


def _sent(event: Json) -> str:
    return f"data: {json.dumps(event)}\n\n"
