"""Checks requests to the LangGraph server for runs and assistants.

A LangGraph server ignores options that a graph does not know, and an answer to a question that does not wait sets its
thread to ``error``. Both are usage errors, and get status 422 with the correction.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from langgraph.types import Interrupt
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.answers import by_id, is_by_id
from callsheet.orchestrator.run.settings import unknown_setting
from callsheet.orchestrator.server.runs.server_backend import ask_server

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_RUNS = re.compile(r"(?:/threads/(?P<thread>[^/]+))?/runs(?:/(?:stream|wait|batch|crons))?/?")
_ASSISTANTS = re.compile(r"/assistants(?:/(?P<assistant>[^/]+))?/?")
_UUID = re.compile(r"[0-9a-fA-F-]{36}")
_MOST_BYTES = 16_000_000  # of a body that is checked


class RunChecks:
    """Checks requests that create runs and assistants, and passes all others on."""

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
            problem = await _problem(Request(scope), found.groupdict(), payload)
            if problem:
                await JSONResponse({"detail": problem}, 422)(scope, receive, send)
                return

        async def again() -> Message:
            return messages.pop(0) if messages else await receive()

        await self._app(scope, again, send)


async def _read(receive: Receive) -> list[Message]:
    """Returns the parts of a body; only the first ones if it is very long."""
    messages: list[Message] = []
    size = 0
    more = True
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

    told = await ask_server(request, schema)
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

    found = await ask_server(request, interrupts)
    try:
        by_id(resume, [Interrupt(one.get("value"), id=str(one["id"])) for one in found or ()])
    except SettingsError as error:
        return str(error)
    return ""
