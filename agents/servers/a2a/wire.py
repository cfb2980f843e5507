"""An exchange with an A2A endpoint: its card, a message, the replies up to an answer or a question, and its errors."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain, repeat
from typing import Any, cast

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.tool_result import Effect, Fault
from callsheet.agents.safety.secrets import Redaction, hide_in_logs, named_in, of_server
from callsheet.graphs.catalog.errors import needs_extra
from callsheet.graphs.catalog.formats.server_config import ServerConfig

try:
    import httpx
    from a2a.client import A2AClientError, A2AClientTimeoutError, Client, ClientConfig, ClientFactory
    from a2a.client.card_resolver import parse_agent_card
    from a2a.helpers import get_data_parts
    from a2a.types import (
        AgentCard,
        Artifact,
        CancelTaskRequest,
        GetTaskRequest,
        Message,
        Part,
        SendMessageRequest,
        StreamResponse,
        Task,
        TaskState,
        TaskStatus,
    )
    from a2a.utils.errors import A2AError
except ImportError as error:
    raise ImportError(f"an A2A agent {needs_extra('a2a')}") from error

_CARD = "/.well-known/agent-card.json"
_LARGEST_CARD = 262_144  # bytes
_LAST_WORD = 2.0  # seconds for cancelling a task
_LONGEST = 2_000
_PAUSES = (0.2, 0.5, 1.0, 2.0)
_UNKNOWN = "; whether the call took effect is unknown"
_WAITING, _OVER = ("input-required", "auth-required"), ("completed", "failed", "canceled", "rejected")


@dataclass(slots=True)
class Exchange:
    """The task of an exchange, as the replies tell it so far; a message without a task is one that is completed.

    Attributes:
        most: Maximum bytes of artifacts.
    """

    most: int
    task: Task = field(default_factory=Task)
    size: int = 0

    @property
    def word(self) -> str:
        """The state as the protocol spells it: ``working``, ``input-required``."""
        return str(TaskState.Name(self.task.status.state)).removeprefix("TASK_STATE_").replace("_", "-").lower()

    @property
    def waits(self) -> bool:
        """Whether the agent waits for input."""
        return self.word in _WAITING

    @property
    def settled(self) -> bool:
        """Whether the task is over, or waits for input."""
        return self.word in (*_WAITING, *_OVER)

    @property
    def made(self) -> list[Part]:
        """The parts of all artifacts."""
        return [part for artifact in self.task.artifacts for part in artifact.parts]

    @property
    def said(self) -> Sequence[Part]:
        """The parts of the last message."""
        return list(self.task.status.message.parts)

    def take(self, piece: StreamResponse) -> str:
        """Adds one piece of the reply, and returns the new text in it."""
        match kind := piece.WhichOneof("payload"):
            case "task":
                if piece.task.artifacts:
                    del self.task.artifacts[:]
                    self.size = 0
                for artifact in piece.task.artifacts:
                    self._add(artifact, more=False)
                self._name(piece.task.id, piece.task.context_id)
                self.task.status.CopyFrom(piece.task.status)
            case "message":
                self._name("", piece.message.context_id)
                self.task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_COMPLETED, message=piece.message))
            case "status_update" | "artifact_update":
                update = getattr(piece, kind)
                self._name(update.task_id, update.context_id)
                if kind == "artifact_update":
                    self._add(update.artifact, more=update.append)
                    return text_of(update.artifact.parts)
                self.task.status.CopyFrom(update.status)
            case _:
                return ""
        return text_of(self.said)

    def _name(self, task: str, context: str) -> None:
        self.task.id, self.task.context_id = task or self.task.id, context or self.task.context_id

    def _add(self, artifact: Artifact, *, more: bool) -> None:
        self.size += artifact.ByteSize()
        if self.size > self.most:
            raise Fault("too_large", f"it sent artifacts of more than {self.most:,} bytes")
        known = next((each for each in self.task.artifacts if each.artifact_id == artifact.artifact_id), None)
        if known is None:
            known = self.task.artifacts.add(artifact_id=artifact.artifact_id)
        if not more:
            del known.parts[:]
        for part in artifact.parts:
            # Chunks of a streamed text are not separate lines.
            if more and known.parts and known.parts[-1].HasField("text") and part.HasField("text"):
                known.parts[-1].text += part.text
            else:
                known.parts.append(part)


@dataclass(frozen=True, slots=True)
class Wire:
    """A connection to one endpoint, for one exchange.

    Attributes:
        card: The agent card, with only those addresses that are on the configured host.
        client: The client library.
        limits: ``start`` bounds the connection and the card, ``call`` each wait for a message, ``message`` its bytes.
        redaction: Hides the secrets of the endpoint's entry.
        faults: Turns errors into faults.
    """

    card: AgentCard
    client: Client
    limits: Limits
    redaction: Redaction
    faults: Callable[[float, Effect], AbstractContextManager[None]]

    async def exchange(self, message: Message, tell: Callable[[str, Exchange], object]) -> Exchange:
        """Sends a message and hears the agent out; if that is interrupted, its task is cancelled."""
        exchange, seconds = Exchange(self.limits.message), self.limits.call
        try:
            with self.faults(seconds, "unknown"):
                async with asyncio.timeout(seconds) as clock:
                    async with aclosing(self.client.send_message(SendMessageRequest(message=message))) as pieces:  # type: ignore[type-var]
                        async for piece in pieces:
                            clock.reschedule(asyncio.get_running_loop().time() + seconds)
                            tell(exchange.take(piece), exchange)
                            if exchange.settled:
                                return exchange
                    if not exchange.task.id or not exchange.task.status.state:
                        raise Fault("protocol", "its answer has neither a message nor the state of a task")
                    pauses = chain(_PAUSES, repeat(_PAUSES[-1]))
                    while not exchange.settled:
                        await asyncio.sleep(next(pauses))
                        task = await self.client.get_task(GetTaskRequest(id=exchange.task.id))
                        tell(exchange.take(StreamResponse(task=task)), exchange)
        except BaseException:
            if exchange.task.id and not exchange.settled:
                with suppress(Exception):
                    async with asyncio.timeout(_LAST_WORD):
                        await self.client.cancel_task(CancelTaskRequest(id=exchange.task.id))
            raise
        return exchange


@asynccontextmanager
async def wired(server: ServerConfig, limits: Limits, environ: Mapping[str, str] | None = None) -> AsyncIterator[Wire]:
    """Opens a connection and reads the card."""
    environ, limits = os.environ if environ is None else environ, limits.own(server.callsheet.limits)
    full, named = server.expanded(environ), named_in(server, environ)
    errors = of_server(full, named, everything=True)
    hide_in_logs(errors)
    faults = partial(_faults, errors)
    with faults(limits.start, "none"):
        http = httpx.AsyncClient(
            # A compressed body could grow without bound after it was counted.
            headers={**full.headers, "accept-encoding": "identity"},
            timeout=httpx.Timeout(limits.call, connect=limits.start),
            verify=_certificates(),
            follow_redirects=False,
            event_hooks={"response": [partial(_cap, _LARGEST_CARD)]},
        )
    async with http:
        with faults(limits.start, "none"):
            async with asyncio.timeout(limits.start):
                card = await _read(http, full.url or "")
        http.event_hooks = {"response": [partial(_cap, limits.message)]}
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
        yield Wire(card, client, limits, of_server(full, named), faults)


@cache
def _certificates() -> ssl.SSLContext:
    """Cached: reading them takes longer than many calls."""
    return httpx.create_ssl_context()


async def _read(http: httpx.AsyncClient, url: str) -> AgentCard:
    address = httpx.URL(url)
    if not address.path.endswith(".json"):
        address = address.copy_with(path=address.path.rstrip("/") + _CARD)
    response = await http.get(address)
    response.raise_for_status()
    document = json.loads(response.content)
    if isinstance(document, dict) and "url" in document:
        # A card in both formats: LangGraph's server streams correctly only with the older one.
        document.pop("supportedInterfaces", None)
    card = parse_agent_card(document)
    spoken = [way for way in card.supported_interfaces if way.protocol_binding.upper() == "JSONRPC"]
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


@contextmanager
def _faults(redaction: Redaction, seconds: float, effect: Effect) -> Iterator[None]:
    """Any error of the client library becomes a fault; with effect ``none`` if nothing was sent before it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        fault = _fault(error, seconds, effect)
        raise Fault(fault.kind, redaction.text(str(fault)), effect=fault.effect) from None


def _fault(error: Exception, seconds: float, effect: Effect) -> Fault:
    doubt = _UNKNOWN if effect == "unknown" else ""
    cause = error.__cause__  # the client library wraps the original error
    wraps = isinstance(error, A2AClientError) and isinstance(cause, Fault | httpx.HTTPError | httpx.InvalidURL)
    match leaf := cast("Exception", cause) if wraps else error:
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


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


async def _cap(most: int, response: httpx.Response) -> None:
    response.stream = _CappedBody(response, most)


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


def text_of(parts: Iterable[Part]) -> str:
    """The texts of the parts, with a note for each file; files are not downloaded."""
    lines = []
    for part in parts:
        file = " ".join(filter(None, ("file", part.filename, part.media_type)))
        match part.WhichOneof("content"):
            case "text":
                lines.append(part.text)
            case "url":
                lines.append(f"[{file}: {part.url}]")
            case "raw":
                lines.append(f"[{file}, {len(part.raw):,} bytes]")
    return "\n".join(filter(None, lines))


def data_of(parts: Sequence[Part]) -> list[Any]:
    """The structured parts, as plain values."""
    return [_whole(value) for value in get_data_parts(parts)]


def _whole(value: Any) -> Any:
    """The protocol's library has floats only: a float without a fraction becomes an integer."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
