"""Routes of the page's runs, and checks of requests to the server for runs and assistants.

A LangGraph server ignores options that a graph does not know, and an answer to no question that waits sets its thread
to ``error``. Both are usage errors, and get status 422 with the correction.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from langgraph.types import Interrupt
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callsheet.agents.approval.questions import NEEDS_INPUT, typed_value
from callsheet.agents.calls.question_text import inexact
from callsheet.agents.calls.review import AnswerError, decided, flat
from callsheet.graphs import SettingsError, UnknownNameError
from callsheet.orchestrator.run.answers import by_id, is_by_id
from callsheet.orchestrator.run.settings import unknown_setting
from callsheet.orchestrator.server.page_requests import HEADERS, Body, Endpoint, RefusedError, body_of
from callsheet.orchestrator.server.runs.local_runs import LocalRuns
from callsheet.orchestrator.server.runs.run_history import (
    WITHHELD,
    RunSnapshot,
    picture_of,
    question_views,
    run_of,
    runs_of,
)
from callsheet.orchestrator.server.runs.server_runs import ServerRuns, allowed
from callsheet.orchestrator.server.visible_catalog import VisibleCatalog

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

Runs = LocalRuns | ServerRuns
_RUNS = re.compile(r"(?:/threads/(?P<thread>[^/]+))?/runs(?:/(?:stream|wait|batch|crons))?/?")
_ASSISTANTS = re.compile(r"/assistants(?:/(?P<assistant>[^/]+))?/?")
_UUID = re.compile(r"[0-9a-fA-F-]{36}")
_MOST_BYTES = 16_000_000  # of a body that is checked
_PAUSE = 0.1  # seconds between two states of a watched run
_Id = Annotated[str, Field(min_length=1, max_length=200)]


class RunChecks:
    """Checks requests that create runs and assistants; all others pass."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers 422 to an invalid request."""
        path = scope.get("path", "") if scope["type"] == "http" and scope["method"] in ("POST", "PATCH") else ""
        found = _RUNS.fullmatch(path) or _ASSISTANTS.fullmatch(path)
        if found is None:
            await self._app(scope, receive, send)
            return
        messages = await _read(receive)
        for payload in _payloads(messages):
            if problem := await _problem(Request(scope), found.groupdict(), payload):
                await JSONResponse({"detail": problem}, 422)(scope, receive, send)
                return

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)


async def _read(receive: Receive) -> list[Message]:
    """Returns the parts of a body; only the first ones if it is very long."""
    messages: list[Message] = []
    size, more = 0, True
    while more and size <= _MOST_BYTES:
        messages.append(message := await receive())
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    return messages


def _payloads(messages: list[Message]) -> list[Mapping[str, Any]]:
    """Returns the parsed requests; empty if the server itself will refuse the body."""
    try:
        given = json.loads(b"".join(message.get("body", b"") for message in messages))
    except (ValueError, RecursionError):
        return []
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, Mapping)]


async def _problem(request: Request, named: Mapping[str, str | None], payload: Mapping[str, Any]) -> str:
    assistant = payload.get("assistant_id") or payload.get("graph_id") or named.get("assistant")
    problem = ""
    match payload, named.get("thread"):
        case {"command": {"resume": resume}}, str(thread) if resume is not None:
            problem = await _unknown_question(request, thread, resume)
    if assistant and isinstance(context := payload.get("context"), Mapping) and context:
        problem = problem or await _unknown_settings(request, str(assistant), context)
    return problem


async def _unknown_settings(request: Request, assistant: str, context: Mapping[str, Any]) -> str:
    """Returns options that the graph does not know, if its schema allows no others."""

    async def schema(client: LangGraphClient) -> Any:
        named = [] if _UUID.fullmatch(assistant) else await client.assistants.search(graph_id=assistant, limit=1)
        schemas: Any = await client.assistants.get_schemas(named[0]["assistant_id"] if named else assistant)
        return schemas["context_schema"]

    told = await allowed(request, schema)
    if not isinstance(told, Mapping) or told.get("additionalProperties") is not False:
        return ""
    known = told.get("properties", {})
    return "; ".join(unknown_setting(name, known) for name in context if name not in known)


async def _unknown_question(request: Request, thread: str, resume: Any) -> str:
    """Returns why an answer without an id is for none of the questions that wait.

    Empty if it is for one, or has ids.
    """
    if is_by_id(resume):
        return ""

    async def interrupts(client: LangGraphClient) -> Any:
        state: Any = await client.threads.get_state(thread)
        return state.get("interrupts")

    found = await allowed(request, interrupts)
    try:
        by_id(resume, [Interrupt(one.get("value"), id=str(one["id"])) for one in found or ()])
    except SettingsError as error:
        return str(error)
    return ""


class _Start(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, pattern=r"\S")]
    thread: _Id | None = None


class _Thread(Body):
    thread: _Id


class Resume(_Thread):
    """The answers to open questions, by the ids of their interrupts."""

    answers: Annotated[dict[str, Any], Field(max_length=100)] = Field(default_factory=dict)


def run_endpoints(runs: Runs) -> tuple[dict[str, Endpoint], dict[str, Endpoint]]:
    """Returns the endpoints of runs that only read, and those with a body, by the last part of their address."""

    async def threads(visible: VisibleCatalog, request: Request) -> object:
        return [*await runs.recent(request)]

    async def thread(visible: VisibleCatalog, request: Request) -> object:
        name = _thread_of(request)
        if not (history := await runs.history(request, name)):
            raise UnknownNameError(f"there is no thread {name!r} that you may see")
        return await run_in_threadpool(runs_of, visible, history)

    async def picture(visible: VisibleCatalog, request: Request) -> object:
        history, file = await runs.history(request, _thread_of(request)), request.query_params.get("file", "")
        return await run_in_threadpool(picture_of, visible, history, file)

    async def watch(visible: VisibleCatalog, request: Request) -> StreamingResponse:
        """Server-sent events: the run as it goes, each time as a whole."""
        events = _events(visible, runs.watch(request, _thread_of(request)))
        headers = {**HEADERS, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)

    async def start(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, _Start)
        return {"thread": await runs.start(request, given.thread, given.text.strip())}

    async def resume(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, Resume)
        answers = _checked_answers(visible, await runs.history(request, given.thread), given)
        await runs.resume(request, given.thread, answers)
        return {"thread": given.thread}

    async def cancel(visible: VisibleCatalog, request: Request) -> object:
        given = await body_of(request, _Thread)
        await runs.cancel(request, given.thread)
        return {"thread": given.thread}

    reading: dict[str, Endpoint] = {"runs": threads, "run": thread, "picture": picture, "watch": watch}
    return reading, {"start": start, "resume": resume, "cancel": cancel}


def _checked_answers(visible: VisibleCatalog, history: Sequence[RunSnapshot], given: Resume) -> dict[str, Any]:
    """Returns the answers by the ids of their questions, with the values that texts of a form stand for.

    Raises:
        RefusedError: A question does not wait, is not for this user, or a value does not fit.
    """
    if not history:
        raise RefusedError(f"there is no thread {given.thread!r} that you may see")
    waiting = {question.id: question.value for question in history[0].questions}
    if strange := sorted(set(given.answers) - set(waiting)):
        raise RefusedError(f"no question {', '.join(strange)} waits in this thread: it was answered meanwhile")
    if waiting and not given.answers:
        raise RefusedError("the run waits for answers to its questions")
    shown = [view for name in given.answers for view in question_views(visible, name, waiting[name])]
    if any(question["text"] == WITHHELD for question in shown):
        raise RefusedError("a question is about tools that you may not see: somebody else has to answer it")
    if refusal := inexact(given.answers):
        raise RefusedError(f"the answer cannot be used: {refusal}")
    return {name: with_values(waiting[name], answer) for name, answer in given.answers.items()}


def with_values(asked: Any, answer: Any) -> Any:
    """Returns the answer to a question for missing values, from the texts that a person wrote.

    Any other answer as it is.
    """
    wanted = flat(asked)
    match answer:
        case {"values": Mapping() as texts} if wanted.get("type") == NEEDS_INPUT:
            pass
        case _:
            return answer
    values: dict[str, Any] = {}
    for name in wanted["args"]:
        try:
            values[name] = typed_value(wanted["schema"], name, str(texts.get(name, "")))
        except AnswerError as error:
            raise RefusedError(f"{name}: {error}") from error
    return decided("edit", asked, args=values)


def _thread_of(request: Request) -> str:
    return _Thread.model_validate({"thread": request.query_params.get("id", "")}).thread


async def _events(visible: VisibleCatalog, snapshots: AsyncIterator[RunSnapshot]) -> AsyncIterator[str]:
    """Yields the latest state, at most ten times a second."""
    async for snapshot in snapshots:
        yield f"event: run\ndata: {json.dumps(await run_in_threadpool(run_of, visible, snapshot))}\n\n"
        await asyncio.sleep(_PAUSE)
    yield "event: end\ndata: {}\n\n"
