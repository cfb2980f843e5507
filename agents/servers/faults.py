"""The errors of one server, as the ``Fault`` that a caller is told."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from callsheet.agents.calls.tool_result import Effect, Fault
from callsheet.agents.safety.secrets import Redaction
from callsheet.graphs.text.sanitizing import shown

if TYPE_CHECKING:
    from mcp import MCPError

    from callsheet.agents.servers.transport.stdio import ChildProcess

START = "initialize"
# Messages of the client library in place of an answer: the connection broke, none came, it cannot be parsed.
CLOSED, _NO_ANSWER = "Connection closed", "SSE stream"
_UNREADABLE = (
    *("its answer is not", "Server returned an error response", "Unexpected content type", "Redirect to"),
    "server answered a request with 202",
)
_NOT_SENT = ("ConnectError", "ConnectTimeout")
_LONGEST, _LONGEST_DATA, _LONGEST_URL = 4_000, 2_000, 2_000


class Faults:
    """The errors of one server; ``cause`` is the error that broke the connection, if known."""

    def __init__(self, redaction: Redaction) -> None:
        self.redaction, self.hidden = redaction, redaction.text
        self.child: ChildProcess | None = None
        self.cause: BaseException | None = None
        # Faults of single requests, by a key that no server knows.
        self._kept: dict[str, Fault] = {}

    def keep(self, fault: Fault) -> str:
        """Keeps the fault of one request; returns the key that stands for it in the data of the request's error."""
        key = uuid.uuid4().hex
        self._kept[key] = fault
        return key

    def late(self, doing: str, within: str) -> Fault:
        """The fault for a timeout; ``within`` says what has passed, as ``4 s``."""
        if doing == START:
            return Fault("timeout", self._said(f"it did not start within {within}"), effect="none")
        return Fault("timeout", self.hidden(f"no answer to {doing} within {within}{_doubt(doing)}"))

    async def broken(self, what: str, doing: str) -> Fault:
        """The fault for a lost connection."""
        if self.child is not None and self.child.ended:
            await self.child.settled()
            status = self.child.status
            what = "the server closed its output" if status is None else f"the server ended with status {status}"
        elif self.cause is not None and doing != START:
            what = _named(_leaf(self.cause))
        if doing == START:
            return Fault("start", self._said(f"it did not start: {what}"), effect="none")
        effect: Effect = "none" if what.startswith(_NOT_SENT) else "unknown"
        return Fault("crash", self._said(f"{what} during {doing}{_doubt(doing, effect)}"), effect=effect)

    async def of(self, error: BaseException, doing: str) -> Fault:
        """The fault for an exception during an exchange."""
        from mcp import MCPError
        from mcp.types import INVALID_PARAMS, URL_ELICITATION_REQUIRED

        leaf = _leaf(error)
        if isinstance(leaf, MCPError) and isinstance(leaf.data, str) and leaf.data in self._kept:
            error = self._kept.pop(leaf.data)
        elif not isinstance(error, Fault) and self.child is not None and self.child.fault is not None:
            error = self.child.fault
        if isinstance(error, Fault):
            said = f"the server does not take {doing}: {error}" if error.kind in ("busy", "refused") else str(error)
            said += "" if leaf is error else _doubt(doing, error.effect)
            return Fault(error.kind, self.hidden(said), effect=error.effect, wait=error.wait)
        if not isinstance(leaf, MCPError):
            return await self.broken(_named(leaf), doing)
        unparsed = leaf.message.startswith("Failed to parse")  # what follows is of the library that parses
        said = "its answer is not a JSON-RPC response" if unparsed else leaf.message
        if "exceeded the" in said and said.startswith(_NO_ANSWER):
            return Fault("too_large", f"{said}{_doubt(doing)}")
        if (self.child is not None and self.child.ended) or said == CLOSED or said.startswith(_NO_ANSWER):
            return await self.broken("the connection was closed", doing)
        if said == "Session terminated":
            return Fault("crash", "the server has forgotten this session", effect="none")
        # Secrets are looked for in whole texts: half of one would not be recognized.
        told = self.hidden(f"the server answered {doing} with error {leaf.code}: {said}")[:_LONGEST]
        told += _details(leaf, self.hidden)
        if doing == START:
            return Fault("protocol", f"{told} (unsupported protocol)", effect="none")
        if said.startswith(_UNREADABLE):
            return Fault("protocol", told + _doubt(doing))
        # A tool that refuses its arguments, or needs a person's consent at another address: its server works.
        refuses = doing == "tools/call" and leaf.code in (INVALID_PARAMS, URL_ELICITATION_REQUIRED)
        return Fault("tool" if refuses else "protocol", told, effect="reported")

    def _said(self, what: str) -> str:
        if self.child is None:
            return self.hidden(what)
        words = [("Not of the protocol, it printed", self.child.printed), ("Its last words", self.child.last_words)]
        return self.hidden("\n".join((what, *(f"{about}: {said}" for about, said in words if said))))


def _details(error: MCPError, hidden: Callable[[str], str]) -> str:
    """What an error says beside its message: the addresses that a person must open first, or its data."""
    from mcp.types import URL_ELICITATION_REQUIRED

    data = error.data
    if data in (None, "", error.message, {}, []):
        return ""
    asked = data.get("elicitations") if isinstance(data, dict) and error.code == URL_ELICITATION_REQUIRED else None
    pages = [_page(one, hidden) for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []
    if any(pages):
        opened = " and ".join(filter(None, pages))
        return f"; before this call can succeed, a person must open {opened}, and then it can be made again"
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return f"; data: {shown(hidden(text), most=_LONGEST_DATA)}"


def _page(elicitation: Mapping[str, Any], hidden: Callable[[str], str]) -> str:
    """An address that a server asks to open, and why."""
    address, why = elicitation.get("url"), elicitation.get("message")
    if not isinstance(address, str):
        return ""
    said = f" ({shown(hidden(why), most=_LONGEST_DATA)})" if isinstance(why, str) and why else ""
    return f"{shown(hidden(address), most=_LONGEST_URL)}{said}"


def _doubt(method: str, effect: Effect = "unknown") -> str:
    return "; whether the call took effect is unknown" if method == "tools/call" and effect == "unknown" else ""


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").split("\n")[0][:_LONGEST]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
