"""The connection to an A2A endpoint: its card, messages and errors, and the replies of one exchange."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self, cast

from a2a.helpers import get_data_parts
from a2a.types import Artifact, Message, Part, StreamResponse, Task, TaskState, TaskStatus

from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Effect, Fault
from callsheet.agents.safety.secrets import hide_in_logs, named_in, of_server
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


_WAITING = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
_OVER = (
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
)


@dataclass(slots=True)
class Exchange:
    """State of an exchange.

    Attributes:
        most: Maximum bytes of artifacts.
        task: Id of the task; empty if the agent answers without a task, or has not answered yet.
        said: Parts of the last message.
        made: Parts of each artifact, by id.
        size: Bytes of artifacts so far.
    """

    most: int
    task: str = ""
    context: str = ""
    state: TaskState = TaskState.TASK_STATE_UNSPECIFIED
    said: Sequence[Part] = ()
    made: dict[str, list[Part]] = field(default_factory=dict)
    size: int = 0

    @property
    def settled(self) -> bool:
        """Whether the task is over, or waits for input."""
        return self.state in (*_WAITING, *_OVER)

    @property
    def begun(self) -> bool:
        """Whether there is a task that can be polled."""
        return bool(self.task) and self.state != TaskState.TASK_STATE_UNSPECIFIED

    @property
    def waits(self) -> bool:
        """Whether the agent waits for input."""
        return self.state in _WAITING

    @property
    def done(self) -> bool:
        """Whether the task is completed."""
        return self.state == TaskState.TASK_STATE_COMPLETED

    @property
    def word(self) -> str:
        """The state as the protocol spells it: ``working``, ``input-required``."""
        return str(TaskState.Name(self.state)).removeprefix("TASK_STATE_").replace("_", "-").lower()

    @property
    def parts(self) -> list[Part]:
        """The answer: all artifacts, or the last message if there are none."""
        return [part for parts in self.made.values() for part in parts] or list(self.said)

    def take(self, piece: StreamResponse) -> str:
        """Adds one piece of the reply, and returns the new text in it.

        Raises:
            Fault: The artifacts are too large.
        """
        match piece.WhichOneof("payload"):
            case "task":
                return self._of_task(piece.task)
            case "message":
                return self._of_message(piece.message)
            case "status_update":
                self._named(piece.status_update.task_id, piece.status_update.context_id)
                return self._of_status(piece.status_update.status)
            case "artifact_update":
                self._named(piece.artifact_update.task_id, piece.artifact_update.context_id)
                return self._of_artifact(piece.artifact_update.artifact, more=piece.artifact_update.append)
        return ""

    def _named(self, task: str, context: str) -> None:
        self.task, self.context = task or self.task, context or self.context

    def _of_message(self, message: Message) -> str:
        self._named("", message.context_id)
        self.state, self.said = TaskState.TASK_STATE_COMPLETED, tuple(message.parts)
        return text_of(self.said)

    def _of_task(self, task: Task) -> str:
        self._named(task.id, task.context_id)
        if task.artifacts:
            self.made, self.size = {}, 0
        for artifact in task.artifacts:
            self._of_artifact(artifact, more=False)
        return self._of_status(task.status)

    def _of_status(self, status: TaskStatus) -> str:
        self.state, self.said = status.state, tuple(status.message.parts)
        return text_of(self.said)

    def _of_artifact(self, artifact: Artifact, *, more: bool) -> str:
        self.size += artifact.ByteSize()
        if self.size > self.most:
            raise Fault("too_large", f"it sent artifacts of more than {self.most:,} bytes")
        parts = self.made.setdefault(artifact.artifact_id, []) if more else []
        self.made[artifact.artifact_id] = parts
        for part in artifact.parts:
            # Chunks of a streamed text are not separate lines.
            if more and parts and parts[-1].HasField("text") and part.HasField("text"):
                parts[-1] = Part(text=parts[-1].text + part.text)
            else:
                parts.append(part)
        return text_of(artifact.parts)


def text_of(parts: Iterable[Part]) -> str:
    """The texts of the parts, with a note for each file; files are not downloaded."""
    return "\n".join(filter(None, map(_text_of_part, parts)))


def data_of(parts: Sequence[Part]) -> list[Any]:
    """The structured parts, as plain values."""
    return [_whole(value) for value in get_data_parts(parts)]


def _text_of_part(part: Part) -> str:
    match part.WhichOneof("content"):
        case "text":
            return part.text
        case "url":
            return f"[{_file(part)}: {part.url}]"
        case "raw":
            return f"[{_file(part)}, {len(part.raw):,} bytes]"
    return ""


def _file(part: Part) -> str:
    return " ".join(filter(None, ("file", part.filename, part.media_type)))


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
