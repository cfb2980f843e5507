"""Shows and starts runs on the page's own LangGraph server, with the viewer's credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Command
from starlette.requests import Request

from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.run.threads import take_up
from callsheet.orchestrator.run_events import MODES, RunEvent, event_of
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.runs.runs import MOST_RUNS, Thread, config_of, no_thread
from callsheet.orchestrator.server.visible_catalog import shown_line

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

T = TypeVar("T")
_GRAPH = "supervisor"
_GOING = ("pending", "running")
_MOST_WAITING = 1000
_STATUS = {"busy": "running", "interrupted": "waiting"}
"""LangGraph's words for the states of a thread, where the page has others."""
_HOW: Mapping[str, Any] = {
    "stream_mode": ["messages-tuple" if mode == "messages" else mode for mode in MODES],
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


class ServerBackend:
    """Uses the server's own routes with the viewer's headers, so its authentication and authorization apply.

    A run belongs to the server and not to this process, so every replica can show and cancel it.
    """

    async def recent(self, request: Request) -> Sequence[Thread]:
        """Returns the latest threads of the supervisor."""
        found = await ask_server(
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
        return [_thread(one) for one in found or ()]

    async def waiting(self, request: Request) -> int | None:
        """Returns the number of pending questions in the threads that the viewer may see."""
        found = await ask_server(
            request,
            lambda client: client.threads.search(
                metadata={"graph_id": _GRAPH}, status="interrupted", limit=_MOST_WAITING, select=["interrupts"]
            ),
        )
        if found is None:
            return None
        return sum(len(questions) for thread in found for questions in (thread["interrupts"] or {}).values())

    @asynccontextmanager
    async def app(self, request: Request, thread: str) -> AsyncIterator[PregelProtocol[Any, Any, Any, Any]]:
        """Opens the server's graph as a remote app."""
        import httpx
        from langgraph.pregel.remote import RemoteGraph

        async with client_of(request) as client:
            try:
                yield RemoteGraph(_GRAPH, client=client)
            except httpx.HTTPStatusError as error:
                if error.response.status_code in _NOT_THERE:
                    raise UnknownNameError(no_thread(thread)) from error
                raise RefusedError(_why(error.response)) from error

    async def begin(self, request: Request, thread: str | None, given: Any) -> str:
        """Queues a run on the server."""
        from langgraph.pregel.remote import RemoteGraph

        async def create(client: LangGraphClient) -> str:
            chosen = thread or str((await client.threads.create(graph_id=_GRAPH))["thread_id"])
            if given is None and not await take_up(RemoteGraph(_GRAPH, client=client), config_of(chosen)):
                return chosen
            command: Any = {"resume": given.resume} if isinstance(given, Command) else None
            await client.runs.create(chosen, _GRAPH, input=None if command else given, command=command, **_HOW)
            return chosen

        return await _done(request, create)

    async def events(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        """Yields the events that the server has streamed of the thread's run, and further ones as they come."""
        runs: Any = await ask_server(request, lambda client: client.runs.list(thread, limit=1))
        if not runs or runs[0]["status"] not in _GOING:
            return
        yield _first_event(runs[0])
        async with client_of(request) as client:
            try:
                async for part in client.runs.join_stream(thread, runs[0]["run_id"], last_event_id="0"):
                    mode, _, namespace = part.event.partition("|")
                    event = event_of([namespace] if namespace else [], mode, part.data)
                    if event:
                        yield event
            except Exception as error:  # noqa: BLE001 whatever the stream raises is told on the page
                yield {"event": "trouble", "text": f"{type(error).__name__}: {error}"}

    async def cancel(self, request: Request, thread: str) -> None:
        """Cancels the thread's runs on the server."""

        async def stop(client: LangGraphClient) -> None:
            for run in await client.runs.list(thread, limit=10):
                if run["status"] in _GOING:
                    await client.runs.cancel(thread, run["run_id"], wait=True)

        await _done(request, stop)


def _thread(found: Mapping[str, Any]) -> Thread:
    values = found.get("extracted") or {}
    status = str(found["status"])
    if status == "idle":
        status = values.get("ended") or "stopped"
    text = shown_line(str(values.get("request") or ""))
    return Thread(
        id=str(found["thread_id"]), request=text, status=_STATUS.get(status, status), at=str(found["updated_at"])
    )


def _first_event(run: Mapping[str, Any]) -> RunEvent:
    """Returns the request of a run, or that it continues one."""
    given = (run.get("kwargs") or {}).get("input")
    if isinstance(given, Mapping) and given.get("messages"):
        return {"event": "request", "request": str(given["messages"][-1].get("content", ""))}
    return {"event": "running"}


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


async def ask_server(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T | None:
    """Sends a request for this user to the server and returns the answer; None if the user may not see it."""
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
    """Returns a client for the server itself, with the credentials of a request."""
    import httpx
    from langgraph_api.asgi_transport import ASGITransport  # type: ignore[import-untyped]
    from langgraph_sdk.client import LangGraphClient

    headers = [(name, value) for name, value in request.headers.items() if name not in _OF_THE_CONNECTION]
    transport = ASGITransport(app=request.app)  # httpx's own gives a stream only when it has ended
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
        yield LangGraphClient(http)
