"""Refuses invalid requests for runs: unknown options, or one answer for several questions.

A LangGraph server ignores options that a graph does not know, and an answer without a question id sets its thread to
``error``. Both are usage errors, and get status 422 with the correction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callsheet.orchestrator.run.settings import unknown_setting
from callsheet.orchestrator.server.runs.server_runs import allowed

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_RUNS = re.compile(r"(?:/threads/(?P<thread>[^/]+))?/runs(?:/(?:stream|wait|batch|crons))?/?")
_ASSISTANTS = re.compile(r"/assistants(?:/(?P<assistant>[^/]+))?/?")
_UUID = re.compile(r"[0-9a-fA-F-]{36}")
_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")
_MOST_BYTES = 16_000_000  # of a body that is checked


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
        if problem := await _problem(Request(scope), found.groupdict(), _payloads(messages)):
            await JSONResponse({"detail": problem}, 422)(scope, receive, send)
            return

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)


async def _read(receive: Receive) -> list[Message]:
    """The parts of a body; only the first ones if it is very long."""
    messages: list[Message] = []
    size, more = 0, True
    while more and size <= _MOST_BYTES:
        messages.append(message := await receive())
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    return messages


def _payloads(messages: list[Message]) -> list[Mapping[str, Any]]:
    """The parsed requests; empty if the server itself will refuse the body."""
    try:
        given = json.loads(b"".join(message.get("body", b"") for message in messages))
    except ValueError:
        return []
    return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, Mapping)]


async def _problem(request: Request, named: Mapping[str, str | None], payloads: list[Mapping[str, Any]]) -> str:
    for payload in payloads:
        assistant = payload.get("assistant_id") or payload.get("graph_id") or named.get("assistant")
        context, command = payload.get("context"), payload.get("command")
        wrong = ""
        if isinstance(context, Mapping) and context and assistant:
            wrong = await _unknown_settings(request, str(assistant), context)
        if isinstance(command, Mapping) and command.get("resume") is not None and named.get("thread"):
            wrong = wrong or await _ambiguous(request, str(named["thread"]), command["resume"])
        if wrong:
            return wrong
    return ""


async def _unknown_settings(request: Request, assistant: str, context: Mapping[str, Any]) -> str:
    """Options that the graph does not know, if its schema allows no others."""

    async def schema(client: LangGraphClient) -> Any:
        named = [] if _UUID.fullmatch(assistant) else await client.assistants.search(graph_id=assistant, limit=1)
        schemas: Any = await client.assistants.get_schemas(named[0]["assistant_id"] if named else assistant)
        return schemas["context_schema"]

    told = await allowed(request, schema)
    if not isinstance(told, Mapping) or told.get("additionalProperties") is not False:
        return ""
    known = told.get("properties", {})
    return "; ".join(unknown_setting(name, known) for name in context if name not in known)


async def _ambiguous(request: Request, thread: str, resume: Any) -> str:
    """The pending questions, if an answer without an id could be for any of them."""
    if isinstance(resume, Mapping) and resume and all(map(_INTERRUPT_ID.fullmatch, resume)):
        return ""

    async def interrupts(client: LangGraphClient) -> Any:
        state: Any = await client.threads.get_state(thread)
        return state.get("interrupts")

    waiting = [(str(one["id"]), one.get("value")) for one in await allowed(request, interrupts) or ()]
    if len(waiting) < 2:
        return ""
    questions = "; ".join(f"{key} ({_told(value)})" for key, value in waiting)
    form = json.dumps({"resume": {key: "..." for key, _ in waiting}})
    many = f"{len(waiting)} questions wait in this thread, and an answer is for one of them"
    return f"{many}: answer by id, {form}. {questions}"


def _told(value: Any) -> str:
    told = value.get("description") if isinstance(value, Mapping) else value
    return str(told or value)[:200]
