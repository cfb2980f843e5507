"""Agents that speak A2A, served on loopback: one made with the protocol's own library, one that answers as it likes."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import uvicorn
from a2a.helpers import new_data_part, new_raw_part, new_text_part, new_url_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Task, TaskState, TaskStatus
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

CARD = "/.well-known/agent-card.json"


class Clerk(AgentExecutor):
    """Does what the request's words ask for, and remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.cancelled = threading.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """One message."""
        said = context.get_user_input()
        self.heard.append(said or "(no text)")
        task, thread = context.task_id or "", context.context_id or ""
        if context.current_task is None:
            submitted = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
            await event_queue.enqueue_event(Task(id=task, context_id=thread, status=submitted))
        updater = TaskUpdater(event_queue, task, thread)
        if context.current_task is not None:
            await self._resumed(said, updater)
            return
        await updater.start_work(updater.new_agent_message([new_text_part("looking for the form")]))
        words = said.split()
        act = next((act for word, act in self._acts().items() if word in words), self._file)
        await act(updater)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nobody waits any more."""
        self.cancelled.set()
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()

    def _acts(self) -> Mapping[str, Callable[[TaskUpdater], Any]]:
        return {
            "lose": lambda updater: updater.failed(updater.new_agent_message([new_text_part("the form is lost")])),
            "forge": lambda updater: updater.reject(
                updater.new_agent_message([new_text_part("that is not done here")])
            ),
            "sign": lambda updater: updater.requires_input(updater.new_agent_message([new_text_part("which form?")])),
            "unlock": lambda updater: updater.requires_auth(updater.new_agent_message([new_text_part("log in at x")])),
            "wait": lambda updater: asyncio.sleep(60),
            "write": self._write,
        }

    async def _file(self, updater: TaskUpdater) -> None:
        form = new_data_part({"form": 12, "filed": True})
        copies = [new_raw_part(b"copy", filename="copy.txt"), new_url_part("http://127.0.0.1:9/form", filename="f")]
        await updater.add_artifact([new_text_part("filed form 12"), form, *copies], name="form")
        await updater.complete()

    async def _write(self, updater: TaskUpdater) -> None:
        for number, word in enumerate(("Dear ", "all, ", "bye")):
            await updater.add_artifact([new_text_part(word)], artifact_id="letter", append=number > 0)
        await updater.complete()

    async def _resumed(self, said: str, updater: TaskUpdater) -> None:
        if said == "another":
            await updater.requires_input(updater.new_agent_message([new_text_part("which other?")]))
            return
        await updater.complete(updater.new_agent_message([new_text_part(f"signed {said}")]))


def card_of(url: str, *, streaming: bool = True, **more: Any) -> AgentCard:
    """A clerk's card."""
    skill = AgentSkill(id="forms", name="Forms", description="Files, signs and loses forms.", tags=["office"])
    modes = {"default_input_modes": ["text/plain"], "default_output_modes": ["text/plain"]}
    about = {"name": "The Clerk", "description": "Works in an office.", "skills": [skill], **modes, **more}
    way = AgentInterface(url=url, protocol_binding="JSONRPC", protocol_version="1.0")
    can = AgentCapabilities(streaming=streaming)
    return AgentCard(version="1", supported_interfaces=[way], capabilities=can, **about)


@contextmanager
def clerk(*, streaming: bool = True, old: bool = False) -> Iterator[tuple[str, Clerk]]:
    """Serves a clerk; by the protocol's version 0.3 too, and first, where ``old``."""
    agent, port = Clerk(), free_port()
    url = f"http://127.0.0.1:{port}/"
    card = card_of(url, streaming=streaming)
    if old:
        card.supported_interfaces[0].protocol_version = "0.3"
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    routes = create_jsonrpc_routes(handler, "/", enable_v0_3_compat=old)
    with serving(Starlette(routes=[*create_agent_card_routes(card), *routes]), port):
        yield url, agent


@contextmanager
def answering(card: Any, answer: Callable[[Request], Any]) -> Iterator[tuple[str, list[Any]]]:
    """Serves a card (``{here}`` in it is its address) and gives whatever ``answer`` does; with all that it was sent."""
    key, sent = uuid.uuid4().hex, []
    host = _host()
    _SERVED[key] = (card, answer, sent)
    try:
        yield f"{host}/{key}", sent
    finally:
        del _SERVED[key]


_SERVED: dict[str, tuple[Any, Callable[[Request], Any], list[Any]]] = {}


@cache
def _host() -> str:
    """One server for all of them, which lives as long as the tests."""
    port = free_port()
    routes = [Route("/{key}", _take, methods=["POST"]), Route("/{key}/{rest:path}", _show)]
    _started(Starlette(routes=routes), port)
    return f"http://127.0.0.1:{port}"


async def _show(request: Request) -> Response:
    if request.path_params["key"] not in _SERVED:
        return Response("gone", 404)
    card, _, sent = _SERVED[request.path_params["key"]]
    sent.append(("card", dict(request.headers)))
    if isinstance(card, Response):
        return card
    text = card if isinstance(card, str) else json.dumps(card)
    here = f"{_host()}/{request.path_params['key']}"
    return Response(text.replace("{here}", here), media_type="application/json")


async def _take(request: Request) -> Response:
    _, answer, sent = _SERVED[request.path_params["key"]]
    sent.append((await request.json(), dict(request.headers)))
    given = answer(request)
    return given if isinstance(given, Response) else JSONResponse(given)


@contextmanager
def serving(app: Starlette, port: int) -> Iterator[None]:
    """Serves an app in a thread."""
    server, thread = _started(app, port)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(10)


def _started(app: Starlette, port: int) -> tuple[uvicorn.Server, threading.Thread]:
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    return server, thread


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
