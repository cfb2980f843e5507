"""The LangGraph server that we are a part of, asked in the name of whoever asks us."""

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
    # The page's own question was let in; what is asked on its behalf is not a page's.
    | {"origin", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"}
)


async def allowed(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T | None:
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
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as http:
        yield LangGraphClient(http)
