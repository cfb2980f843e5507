"""The connection to an A2A endpoint: its card, messages and errors."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from functools import cache
from typing import Self, cast

from callsheet.agents.safety.faults import named_in
from callsheet.agents.safety.secrets import hide_in_logs, of_server
from callsheet.agents.servers.limits import Limits
from callsheet.agents.tools.tool_result import Effect, Fault
from callsheet.graphs.catalog.formats.server_config import ServerConfig

try:
    import httpx
    from a2a.client import A2AClientError, A2AClientTimeoutError, Client, ClientConfig, ClientFactory
    from a2a.client.card_resolver import parse_agent_card
    from a2a.types import AgentCard, CancelTaskRequest, GetTaskRequest, Message, SendMessageRequest, StreamResponse
    from a2a.utils.errors import A2AError
except ImportError as error:
    raise ImportError("an A2A agent needs the extra a2a, which is not installed: pip install a2a-sdk") from error

_CARD = "/.well-known/agent-card.json"
_LARGEST_CARD = 262_144  # bytes
_LAST_WORD = 2.0  # seconds for cancelling a task
_LONGEST = 2_000
_JSON_RPC = "JSONRPC"
_UNKNOWN = "; whether the call took effect is unknown"


class Wire:
    """A connection to one endpoint, for one exchange.

    Args:
        server: Address and headers, variables not expanded.
        limits: ``start`` bounds the connection and the card, ``call`` each wait for a message, ``message`` its bytes.
        environ: Variables for ``${VAR}``.

    Raises:
        CatalogError: A variable is not set.
        Fault: A header is invalid.
    """

    def __init__(self, server: ServerConfig, limits: Limits, environ: Mapping[str, str]) -> None:
        full = server.expanded(environ)
        named = named_in(server, environ)
        self.limits, self._url = limits, full.url or ""
        self.redaction = of_server(full, named)
        self._errors = of_server(full, named, everything=True)
        hide_in_logs(self._errors)
        self._most = _LARGEST_CARD
        self._client: Client | None = None
        with self._faults(limits.start, "none"):
            self._http = httpx.AsyncClient(
                # A compressed body could grow without bound after it was counted.
                headers={**full.headers, "accept-encoding": "identity"},
                timeout=httpx.Timeout(limits.call, connect=limits.start),
                verify=_certificates(),
                follow_redirects=False,
                event_hooks={"response": [self._cap]},
            )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def card(self) -> AgentCard:
        """The agent card, with only those addresses that are on the configured host.

        Raises:
            Fault: The card cannot be fetched or parsed, or names another host; nothing else was sent.
        """
        with self._faults(self.limits.start, "none"):
            async with asyncio.timeout(self.limits.start):
                address = httpx.URL(self._url)
                if not address.path.endswith(".json"):
                    address = address.copy_with(path=address.path.rstrip("/") + _CARD)
                response = await self._http.get(address)
                response.raise_for_status()
                card = _same_place(_parsed(response.content), self._url)
        self._most = self.limits.message
        self._client = ClientFactory(ClientConfig(httpx_client=self._http)).create(card)
        return card

    async def send(self, message: Message) -> AsyncGenerator[StreamResponse, None]:
        """Sends a message, and yields the replies.

        Raises:
            Fault: Timeout, unreadable reply, or an error of the agent.
        """
        with self._faults(self.limits.call, "unknown"):
            async with aclosing(self._open.send_message(SendMessageRequest(message=message))) as pieces:  # type: ignore[type-var]
                while True:
                    try:
                        async with asyncio.timeout(self.limits.call):
                            piece = await anext(pieces)
                    except StopAsyncIteration:
                        return
                    yield piece

    async def look(self, task: str) -> StreamResponse:
        """The current state of a task.

        Raises:
            Fault: As for ``send``.
        """
        with self._faults(self.limits.call, "unknown"):
            return StreamResponse(task=await self._open.get_task(GetTaskRequest(id=task)))

    async def cancel(self, task: str) -> None:
        """Cancels a task; errors are ignored."""
        with suppress(Exception):
            async with asyncio.timeout(_LAST_WORD):
                await self._open.cancel_task(CancelTaskRequest(id=task))

    @property
    def _open(self) -> Client:
        if self._client is None:
            raise Fault("protocol", "its card was not read", effect="none")
        return self._client

    async def _cap(self, response: httpx.Response) -> None:
        response.stream = _CappedBody(response, self._most)

    @contextmanager
    def _faults(self, seconds: float, effect: Effect) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 (any error of the client library becomes a Fault)
            fault = _fault(error, seconds, effect)
            raise Fault(fault.kind, self._errors.text(str(fault)), effect=fault.effect) from None


@asynccontextmanager
async def wired(
    server: ServerConfig, limits: Limits, environ: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Wire, AgentCard]]:
    """Opens a connection and reads the card.

    Raises:
        CatalogError: A variable is not set.
        Fault: There is no usable card.
    """
    async with Wire(server, limits.own(server.callsheet.limits), os.environ if environ is None else environ) as wire:
        yield wire, await wire.card()


@cache
def _certificates() -> ssl.SSLContext:
    """Cached: reading them takes longer than many calls."""
    return httpx.create_ssl_context()


def _parsed(body: bytes) -> AgentCard:
    document = json.loads(body)
    if isinstance(document, dict) and "url" in document:
        # A card in both formats: LangGraph's server streams correctly only with the older one.
        document.pop("supportedInterfaces", None)
    return parse_agent_card(document)


def _same_place(card: AgentCard, url: str) -> AgentCard:
    spoken = [way for way in card.supported_interfaces if way.protocol_binding.upper() == _JSON_RPC]
    if not spoken:
        raise Fault("protocol", "its card names no address that speaks JSON-RPC", effect="none")
    here = [way for way in spoken if _origin(way.url) == _origin(url)]
    if not here:
        told = f"its card names another host, {spoken[0].url}: configure that address if you trust it"
        raise Fault("refused", told[:_LONGEST], effect="none")
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(here)
    return card


def _origin(url: str) -> tuple[str, str, int | None]:
    """As ``safety.origins.origin``, but as the client of this module (httpx, not httpx2) reads the address."""
    address = httpx.URL(url)
    return address.scheme, address.host, address.port


def _fault(error: Exception, seconds: float, effect: Effect) -> Fault:
    """The fault for an exception; with effect ``none`` if nothing was sent before it."""
    doubt = _UNKNOWN if effect == "unknown" else ""
    leaf = _leaf(error)
    match leaf:
        case Fault():
            return leaf
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.UnsupportedProtocol() | httpx.InvalidURL():
            return Fault("start", f"it cannot be reached: {_named(leaf)}", effect="none")
        case TimeoutError() | httpx.TimeoutException() | A2AClientTimeoutError():
            return Fault("timeout", f"no answer within {seconds:g} s{doubt}", effect=effect)
        case httpx.HTTPStatusError():
            sure = leaf.response.status_code < 500
            return Fault("protocol", _named(leaf) + ("" if sure else doubt), effect="none" if sure else effect)
        case httpx.RequestError():
            return Fault("crash", f"the connection broke: {_named(leaf)}{doubt}", effect=effect)
        case A2AError() if not isinstance(leaf, A2AClientError):
            said: Effect = "reported" if effect == "unknown" else effect
            return Fault("protocol", f"it answered with an error: {_named(leaf)}", effect=said)
        case _:
            return Fault("protocol", f"its answer cannot be read: {_named(leaf)}{doubt}", effect=effect)


def _leaf(error: Exception) -> Exception:
    """The original error, where the client library wraps it."""
    cause = error.__cause__
    known = isinstance(cause, Fault | httpx.HTTPError | httpx.InvalidURL)
    return cast("Exception", cause) if known and isinstance(error, A2AClientError) else error


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


class _CappedBody(httpx.AsyncByteStream):
    """A response body with a maximum message size; in an event stream each event is one message."""

    def __init__(self, response: httpx.Response, most: int) -> None:
        self._inner, self._most = cast("httpx.AsyncByteStream", response.stream), most
        self._events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        self._compressed = response.headers.get("content-encoding", "identity") != "identity"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, end = 0, b""
        async for chunk in self._inner:
            last = max((end + chunk).rfind(mark) for mark in (b"\n\n", b"\r\n\r\n")) if self._events else -1
            size = size + len(chunk) if last < 0 else len(end) + len(chunk) - last
            end = chunk[-3:]
            if size > self._most or self._compressed:
                what = "a compressed message unasked" if self._compressed else f"more than {self._most:,} bytes"
                raise Fault("too_large", f"it sent {what}")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()
