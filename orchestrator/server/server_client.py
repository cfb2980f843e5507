"""A client for the LangGraph server that hosts this application, with the credentials of the current request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import Request

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_NOT_THERE = frozenset({401, 403, 404, 422})
T = TypeVar("T")
_OF_THE_CONNECTION = frozenset(
    {"host", "connection", "content-length", "content-type", "accept", "accept-encoding", "transfer-encoding"}
    # The request of the page was checked already; requests on its behalf do not come from a page.
    | {"origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"}
)


async def allowed(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T | None:
    """The server's answer to this user; None if the user may not see it."""
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
