"""Routes that show the runs of the page, start one, stream it, answer its questions and stop it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.server.page_requests import HEADERS, Body, Endpoint, RefusedError, body_of
from callsheet.orchestrator.server.runs.run_history import Runs, RunSnapshot
from callsheet.orchestrator.server.runs.shown_runs import WITHHELD, question_view, run_of, runs_of
from callsheet.orchestrator.server.visible_catalog import VisibleCatalog

_PAUSE = 0.1
_Id = Annotated[str, Field(min_length=1, max_length=200)]


class _Start(Body):
    text: Annotated[str, Field(min_length=1, max_length=100_000, pattern=r"\S")]
    thread: _Id | None = None


class _Resume(Body):
    thread: _Id
    answers: Annotated[dict[str, Any], Field(max_length=100)] = Field(default_factory=dict)


class _Thread(Body):
    thread: _Id


class RunRoutes:
    """The endpoints of runs."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    def gets(self) -> Mapping[str, Endpoint]:
        """Endpoints that only read, by the last part of their address."""
        return {"runs": self.threads, "run": self.thread, "watch": self.watch}

    def posts(self) -> Mapping[str, Endpoint]:
        """Endpoints with a body, by the last part of their address."""
        return {"start": self.start, "resume": self.resume, "cancel": self.cancel}

    async def threads(self, visible: VisibleCatalog, request: Request) -> object:
        """The last threads."""
        return [*await self._runs.recent(request)]

    async def thread(self, visible: VisibleCatalog, request: Request) -> object:
        """The requests of the thread ``id``, the latest first."""
        name = _thread_of(request)
        if not (history := await self._runs.history(request, name)):
            raise UnknownNameError(f"there is no thread {name!r} that you may see")
        return await run_in_threadpool(runs_of, visible, history)

    async def start(self, visible: VisibleCatalog, request: Request) -> object:
        """Starts ``text`` in ``thread``, or in a new one."""
        given = await body_of(request, _Start)
        return {"thread": await self._runs.start(request, given.thread, given.text.strip())}

    async def resume(self, visible: VisibleCatalog, request: Request) -> object:
        """Answers questions of ``thread`` by id, or continues what stopped."""
        given = await body_of(request, _Resume)
        if not (history := await self._runs.history(request, given.thread)):
            raise RefusedError(f"there is no thread {given.thread!r} that you may see")
        waiting = {question.id: question for question in history[0].questions}
        if strange := sorted(set(given.answers) - set(waiting)):
            raise RefusedError(f"no question {', '.join(strange)} waits in this thread: it was answered meanwhile")
        if waiting and not given.answers:
            raise RefusedError("the run waits for answers to its questions")
        shown = [question_view(visible, name, waiting[name].value) for name in given.answers]
        if any(question["text"] == WITHHELD for question in shown):
            raise RefusedError("a question is about tools that you may not see: somebody else has to answer it")
        await self._runs.resume(request, given.thread, given.answers)
        return {"thread": given.thread}

    async def cancel(self, visible: VisibleCatalog, request: Request) -> object:
        """Stops the run of ``thread``."""
        given = await body_of(request, _Thread)
        await self._runs.cancel(request, given.thread)
        return {"thread": given.thread}

    async def watch(self, visible: VisibleCatalog, request: Request) -> StreamingResponse:
        """Server-sent events: the run of the thread ``id`` as it goes, each time as a whole."""
        events = _events(visible, self._runs.watch(request, _thread_of(request)))
        headers = {**HEADERS, "cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def _thread_of(request: Request) -> str:
    return _Thread.model_validate({"thread": request.query_params.get("id", "")}).thread


async def _events(visible: VisibleCatalog, snapshots: AsyncIterator[RunSnapshot]) -> AsyncIterator[str]:
    """The latest state, at most ten times a second; a slow reader misses those between."""
    latest: list[RunSnapshot] = []
    changed = asyncio.Event()

    async def follow() -> None:
        try:
            async for snapshot in snapshots:
                latest[:] = [snapshot]
                changed.set()
        finally:
            changed.set()

    following = asyncio.create_task(follow())
    try:
        while not (following.done() and not latest):
            await changed.wait()
            changed.clear()
            if latest:
                told = await run_in_threadpool(run_of, visible, latest.pop())
                yield f"event: run\ndata: {json.dumps(told)}\n\n"
                await asyncio.sleep(_PAUSE)
            if following.done():
                changed.set()
        following.result()
        yield "event: end\ndata: {}\n\n"
    finally:
        following.cancel()
