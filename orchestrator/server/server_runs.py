"""Past runs of the LangGraph server that serves the page, asked for in the name of whoever looks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request

from callsheet.orchestrator.server.answers import shown_line
from callsheet.orchestrator.server.runs import MOST_RUNS, Moment, Thread

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_GRAPH = {"graph_id": "supervisor"}
_MOST_MOMENTS, _MOST_WAITING = 100, 1000
_NOT_THERE = frozenset({401, 403, 404, 422})
T = TypeVar("T")
_OF_THE_CONNECTION = frozenset(
    {"host", "connection", "content-length", "content-type", "accept", "accept-encoding", "transfer-encoding"}
)


class ServerRuns:
    """Threads of the server's ``supervisor``.

    A request goes to the server's own routes with the headers of whoever looks, so that its authentication and
    authorization decide what is given.
    """

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads."""
        found = await _allowed(
            request,
            lambda client: client.threads.search(
                metadata=_GRAPH,
                limit=MOST_RUNS,
                sort_by="updated_at",
                sort_order="desc",
                select=["thread_id", "updated_at", "status"],
                extract={"request": "values.request"},
            ),
        )
        return [
            Thread(str(thread["thread_id"]), _request(thread), str(thread["status"]), str(thread["updated_at"]))
            for thread in found or ()
        ]

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """What a thread went through."""
        found = await _allowed(request, lambda client: client.threads.get_history(thread, limit=_MOST_MOMENTS))
        return [_moment(state) for state in found or ()]

    async def waiting(self, request: Request) -> int | None:
        """How many questions wait for a person, in all threads; None where whoever asks may not know."""
        found = await _allowed(
            request,
            lambda client: client.threads.search(
                metadata=_GRAPH, status="interrupted", limit=_MOST_WAITING, select=["interrupts"]
            ),
        )
        if found is None:
            return None
        return sum(len(questions) for thread in found for questions in (thread["interrupts"] or {}).values())


async def _allowed(request: Request, ask: Callable[[LangGraphClient], Awaitable[list[T]]]) -> list[T] | None:
    """What the server gives to whoever looks; None where it is not there for that one."""
    import httpx

    async with _client(request) as client:
        try:
            return await ask(client)
        except httpx.HTTPStatusError as error:
            if error.response.status_code in _NOT_THERE:
                return None
            raise


@asynccontextmanager
async def _client(request: Request) -> AsyncIterator[LangGraphClient]:
    import httpx
    from langgraph_sdk.client import LangGraphClient

    headers = [(name, value) for name, value in request.headers.items() if name not in _OF_THE_CONNECTION]
    transport = httpx.ASGITransport(app=request.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://callsheet", headers=headers) as http:
        yield LangGraphClient(http)


def _request(thread: Mapping[str, Any]) -> str:
    asked = (thread.get("extracted") or {}).get("request")
    return shown_line(asked) if isinstance(asked, str) else ""


def _moment(state: Mapping[str, Any]) -> Moment:
    values = state["values"] if isinstance(state["values"], Mapping) else {}
    waiting = sum(len(task.get("interrupts") or ()) for task in state.get("tasks") or ())
    return Moment(values, str(state.get("created_at") or ""), waiting)
