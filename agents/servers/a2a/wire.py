"""Exchanges messages with an A2A endpoint: its card, a request, the replies up to an answer or a question."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat
from typing import Any, cast

import httpx2

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Effect, Fault
from callsheet.agents.safety.secrets import Redaction, hide_in_logs, named_in, of_server, origin
from callsheet.agents.servers.transport.http import BoundedHttpClient
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import needs_extra

try:
    from a2a import types
    from a2a.client import A2AClientError, Client, ClientConfig, ClientFactory
    from a2a.client.card_resolver import parse_agent_card
    from a2a.helpers import get_data_parts
    from a2a.utils.errors import A2AError
except ImportError as error:
    raise ImportError(f"an A2A agent {needs_extra('a2a')}") from error

_CARD = "/.well-known/agent-card.json"
_LARGEST_CARD = 262_144  # bytes
_LAST_WORD = 2.0  # seconds for cancelling a task
_LONGEST = 2_000
_PAUSES = (0.2, 0.5, 1.0, 2.0)
_UNKNOWN = "; whether the call took effect is unknown"
WAITING = ("input-required", "auth-required")
_OVER = ("completed", "failed", "canceled", "rejected")


@dataclass(slots=True)
class Exchange:
    """The state of an exchange as the replies describe it; a message without a task is a completed task.

    ``most`` is the maximum number of bytes of its artifacts, ``taken`` is the number of replies so far.
    """

    most: int
    task: types.Task = field(default_factory=types.Task)
    size: int = 0
    taken: int = 0

    @property
    def word(self) -> str:
        """Returns the name of the state in the protocol, such as ``working`` or ``input-required``."""
        return str(types.TaskState.Name(self.task.status.state)).removeprefix("TASK_STATE_").replace("_", "-").lower()

    @property
    def settled(self) -> bool:
        """Returns whether the task is over or waits for input."""
        return self.word in (*WAITING, *_OVER)

    @property
    def made(self) -> list[types.Part]:
        """Returns the parts of all artifacts."""
        return [part for artifact in self.task.artifacts for part in artifact.parts]

    @property
    def said(self) -> Sequence[types.Part]:
        """Returns the parts of the last message."""
        return list(self.task.status.message.parts)

    def take(self, piece: types.StreamResponse) -> str:
        """Adds one part of the reply and returns its new text."""
        self.taken += 1
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
                self.task.status.CopyFrom(
                    types.TaskStatus(state=types.TaskState.TASK_STATE_COMPLETED, message=piece.message)
                )
            case "status_update" | "artifact_update":
                update = getattr(piece, kind)
                self._name(update.task_id, update.context_id)
                if kind == "artifact_update":
                    self._add(update.artifact, more=update.append)
                    return parts_text(update.artifact.parts)
                self.task.status.CopyFrom(update.status)
            case _:
                return ""
        return parts_text(self.said)

    def _name(self, task: str, context: str) -> None:
        self.task.id = task or self.task.id
        self.task.context_id = context or self.task.context_id

    def _add(self, artifact: types.Artifact, *, more: bool) -> None:
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
        limits: ``start`` bounds the connection and the card, ``call`` each wait for a message, ``message`` its bytes.
        redaction: Hides the secrets of the endpoint's entry.
        faults: Turns errors into faults.
    """

    card: types.AgentCard
    client: Client
    http: BoundedHttpClient
    limits: Limits
    redaction: Redaction
    faults: Callable[[float, Effect], AbstractContextManager[None]]

    async def exchange(self, message: types.Message, tell: Callable[[str, Exchange], object]) -> Exchange:
        """Sends a message and reads all replies; if this is interrupted, cancels the task."""
        exchange = Exchange(self.limits.message)
        seconds = self.limits.call
        self.http.answers = lambda: exchange.taken
        try:
            with self.faults(seconds, "unknown"):
                async with asyncio.timeout(seconds) as clock:
                    async with aclosing(self.client.send_message(types.SendMessageRequest(message=message))) as pieces:  # type: ignore[type-var]
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
                        task = await self.client.get_task(types.GetTaskRequest(id=exchange.task.id))
                        tell(exchange.take(types.StreamResponse(task=task)), exchange)
        except BaseException:
            if exchange.task.id and not exchange.settled:
                with suppress(Exception):
                    async with asyncio.timeout(_LAST_WORD):
                        await self.client.cancel_task(types.CancelTaskRequest(id=exchange.task.id))
            raise
        return exchange


@asynccontextmanager
async def open_wire(server: ServerConfig, limits: Limits) -> AsyncIterator[Wire]:
    """Opens a connection to an endpoint and reads its card."""
    limits = limits.own(server.callsheet.limits)
    full = server.expanded(os.environ)
    named = named_in(server, os.environ)
    errors = of_server(full, named, everything=True)
    hide_in_logs(errors)
    faults = partial(_faults, errors)
    more: dict[str, Any] = {"headers": full.headers, "timeout": httpx2.Timeout(limits.call, connect=limits.start)}
    with faults(limits.start, "none"):
        http = BoundedHttpClient("a2a", _LARGEST_CARD, **more)
    async with http:
        with faults(limits.start, "none"):
            async with asyncio.timeout(limits.start):
                card = await _read(http, full.url or "")
        http.most = limits.message
        # The SDK is written for httpx, and uses nothing in which httpx2 differs but its errors.
        client = ClientFactory(ClientConfig(httpx_client=cast("Any", http))).create(card)
        yield Wire(card, client, http, limits, of_server(full, named), faults)


async def _read(http: httpx2.AsyncClient, url: str) -> types.AgentCard:
    address = httpx2.URL(url)
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
        raise Fault("protocol", "its agent card names no address for JSON-RPC", effect="none")
    here = [way for way in spoken if origin(way.url) == origin(url)]
    if not here:
        told = f"its card names another host, {spoken[0].url}: configure that address if you trust it"
        raise Fault("refused", told[:_LONGEST], effect="none")
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(here)
    return card


@contextmanager
def _faults(redaction: Redaction, seconds: float, effect: Effect) -> Iterator[None]:
    """Turns any error of the client library into a fault; with effect ``none`` if nothing was sent before it."""
    try:
        yield
    except Exception as error:  # noqa: BLE001
        fault = _fault(error, seconds, effect)
        raise Fault(fault.kind, redaction.text(str(fault)), effect=fault.effect) from None


def _fault(error: Exception, seconds: float, effect: Effect) -> Fault:
    doubt = _UNKNOWN if effect == "unknown" else ""
    match error:
        case Fault():
            return error
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return Fault("start", f"it cannot be reached: {_named(error)}", effect="none")
        case TimeoutError() | httpx2.TimeoutException():
            return Fault("timeout", f"no answer within {seconds:g} s{doubt}", effect=effect)
        case httpx2.HTTPStatusError():
            sure = error.response.status_code < 500
            return Fault("protocol", _named(error) + ("" if sure else doubt), effect="none" if sure else effect)
        case httpx2.RequestError():
            return Fault("crash", f"the connection broke: {_named(error)}{doubt}", effect=effect)
        case A2AError() if not isinstance(error, A2AClientError):
            said: Effect = "reported" if effect == "unknown" else effect
            return Fault("protocol", f"it answered with an error: {_named(error)}", effect=said)
        case _:
            return Fault("protocol", f"its answer cannot be read: {_named(error)}{doubt}", effect=effect)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST]


def parts_text(parts: Iterable[types.Part]) -> str:
    """Returns the texts of the parts, with a note for each file; files are not downloaded."""
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


def data_of(parts: Sequence[types.Part]) -> list[Any]:
    """Returns the structured parts as plain values."""
    return [_whole(value) for value in get_data_parts(parts)]


def _whole(value: object) -> Any:
    """Makes integers of floats without a fraction: the protocol's library has floats only."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return value
