"""Runs on the LangGraph server of the page, requested with the viewer's credentials."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.types import Interrupt
from starlette.requests import Request

from callsheet.orchestrator.run.threads import without_failed
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.runs.run_history import (
    MODES,
    MOST_RUNS,
    MOST_SNAPSHOTS,
    LiveRun,
    RunSnapshot,
    Thread,
    with_finished,
)
from callsheet.orchestrator.server.visible_catalog import shown_line

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

T = TypeVar("T")
_GRAPH = "supervisor"
_GOING = ("pending", "running")
_MOST_WAITING = 1000
_HOW: Mapping[str, Any] = {
    "stream_mode": [*MODES[:-1], "messages-tuple"],
    "stream_subgraphs": True,
    "stream_resumable": True,
    "multitask_strategy": "reject",
    "context": {"questions": "all"},
}
_NOT_THERE = frozenset({401, 403, 404, 422})
_OF_THE_CONNECTION = frozenset(
    {"host", "connection", "content-length", "content-type", "accept", "accept-encoding", "transfer-encoding"}
    # The request of the page was checked already; requests on its behalf do not come from a page.
    | {"origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"}
)


class ServerRuns:
    """Threads and runs of the server's ``supervisor``; the methods are those of ``LocalRuns``.

    Requests go to the server's own routes with the viewer's headers, so its authentication and authorization apply.
    """

    async def recent(self, request: Request) -> Sequence[Thread]:
        """Returns the last threads."""
        found = await allowed(
            request,
            lambda client: client.threads.search(
                metadata={"graph_id": _GRAPH},
                limit=MOST_RUNS,
                sort_by="updated_at",
                sort_order="desc",
                select=["thread_id", "updated_at", "status"],
                extract={"request": "values.request", "ended": "values.ended"},
            ),
        )
        return [
            Thread(
                id=str(one["thread_id"]),
                request=shown_line(str((told := one.get("extracted") or {}).get("request") or "")),
                status=str((one["status"] == "idle" and told.get("ended")) or one["status"]),
                at=str(one["updated_at"]),
            )
            for one in found or ()
        ]

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        """Returns the history of a thread."""
        found = await allowed(request, lambda client: client.threads.get_history(thread, limit=MOST_SNAPSHOTS))
        return [snapshot_of(state) for state in found or ()]

    async def waiting(self, request: Request) -> int | None:
        """Returns number of pending questions in all threads; None if the viewer may not know."""
        found = await allowed(
            request,
            lambda client: client.threads.search(
                metadata={"graph_id": _GRAPH}, status="interrupted", limit=_MOST_WAITING, select=["interrupts"]
            ),
        )
        if found is None:
            return None
        return sum(len(questions) for thread in found for questions in (thread["interrupts"] or {}).values())

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request."""

        async def begin(client: LangGraphClient) -> str:
            chosen = thread or str((await client.threads.create(graph_id=_GRAPH))["thread_id"])
            given: Any = {"messages": [{"role": "user", "content": text}]}
            await client.runs.create(chosen, _GRAPH, input=given, **_HOW)
            return chosen

        return await _done(request, begin)

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions, or continues a run: where it stopped, or with the steps that failed."""

        async def go_on(client: LangGraphClient) -> None:
            state: Any = {} if answers else await client.threads.get_state(thread)
            results = (state.get("values") or {}).get("results") or {}
            if not state.get("next") and (kept := without_failed(results)) != results:
                repeated = {"results": {"__overwrite__": kept}}  # LangGraph's Overwrite, as JSON
                await client.threads.update_state(thread, repeated, as_node="plan")
            command: Any = {"resume": dict(answers)} if answers else None
            await client.runs.create(thread, _GRAPH, input=None, command=command, **_HOW)

        await _done(request, go_on)

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops the runs of a thread."""

        async def stop(client: LangGraphClient) -> None:
            for run in await client.runs.list(thread, limit=10):
                if run["status"] in _GOING:
                    await client.runs.cancel(thread, run["run_id"], wait=True)

        await _done(request, stop)

    async def watch(self, request: Request, thread: str) -> AsyncIterator[RunSnapshot]:
        """Yields the run of a thread as it goes."""
        runs: Any = await allowed(request, lambda client: client.runs.list(thread, limit=1))
        if not runs or runs[0]["status"] not in _GOING:
            return
        async with client_of(request) as client:
            live = LiveRun(await self._before(client, thread, runs[0]))
            following = asyncio.create_task(self._follow(client, thread, runs[0]["run_id"], live))
            try:
                async for snapshot in live.states():
                    yield snapshot
            finally:
                following.cancel()

    async def _follow(self, client: LangGraphClient, thread: str, run: str, live: LiveRun) -> None:
        try:
            async for part in client.runs.join_stream(thread, run, last_event_id="0"):
                mode, _, namespace = part.event.partition("|")
                live.take([namespace] if namespace else [], mode, part.data)
            state: Any = await client.threads.get_state(thread)
            live.end(snapshot_of(state))
        except Exception as error:  # noqa: BLE001 whatever the stream raises is told on the page
            live.fail(f"{type(error).__name__}: {error}")

    async def _before(self, client: LangGraphClient, thread: str, run: Mapping[str, Any]) -> RunSnapshot:
        """Returns the state at which a run continues, or its request."""
        given = (run.get("kwargs") or {}).get("input")
        if isinstance(given, Mapping) and given.get("messages"):
            return RunSnapshot({"request": str(given["messages"][-1].get("content", ""))}, "")
        state: Any = await client.threads.get_state(thread)
        return snapshot_of(state)


def snapshot_of(state: Mapping[str, Any]) -> RunSnapshot:
    """Returns a state of a thread, with the results of the steps that ended while others wait."""
    values = dict(state["values"]) if isinstance(state["values"], Mapping) else {}
    asked = list[Interrupt]()
    for task in state.get("tasks") or ():
        asked += [Interrupt(one.get("value"), id=str(one["id"])) for one in task.get("interrupts") or ()]
        for channel, written in (task.get("result") or {}).items():
            with_finished(values, channel, written)
    return RunSnapshot(values, str(state.get("created_at") or ""), tuple(asked))


async def _done(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T:
    """Returns what the server answers.

    Raises:
        RefusedError: It refuses; the message is the server's own.
    """
    import httpx

    async with client_of(request) as client:
        try:
            return await ask(client)
        except httpx.HTTPStatusError as error:
            raise RefusedError(_why(error.response)) from error


def _why(response: Any) -> str:
    with suppress(ValueError):
        told = response.json().get("detail")
        if told:
            return str(told)
    return f"the server answered {response.status_code}"


async def allowed(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T | None:
    """Returns the server's answer to this user; None if the user may not see it."""
    import httpx

    async with client_of(request) as client:
        try:
            return await ask(client)
        except httpx.HTTPStatusError as error:
            if error.response.status_code in _NOT_THERE:
                return None
            raise


@asynccontextmanager
async def client_of(request: Request) -> AsyncIterator[LangGraphClient]:
    """A client for the server itself, with the credentials of a request."""
    import httpx
    from langgraph_api.asgi_transport import ASGITransport  # type: ignore[import-untyped]
    from langgraph_sdk.client import LangGraphClient

    headers = [(name, value) for name, value in request.headers.items() if name not in _OF_THE_CONNECTION]
    transport = ASGITransport(app=request.app)  # httpx's own gives a stream only when it has ended
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
        yield LangGraphClient(http)
