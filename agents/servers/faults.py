"""Turns exceptions of the MCP client library into ``Fault``s with readable messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from callsheet.agents.calls.tool_result import Effect, Fault
from callsheet.agents.safety.secrets import Redaction
from callsheet.graphs.catalog.formats.server_config import ServerConfig

if TYPE_CHECKING:
    from callsheet.agents.servers.transport.stdio import ChildProcess

CLOSED = "Connection closed"
"""The client library's message for a broken connection."""
START = "initialize"
"""The first exchange of a session."""
_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_]\w*)")
# Messages of the client library in place of an answer that did not come or cannot be parsed.
_NO_ANSWER = ("SSE stream",)
_UNREADABLE = (
    *("its answer is not", "Server returned an error response", "Unexpected content type", "Redirect to"),
    "server answered a request with 202",
)
_NOT_SENT = ("ConnectError", "ConnectTimeout")
_LONGEST = 4_000


class Faults:
    """The errors of one server; ``cause`` is the error that broke the connection, if known."""

    def __init__(self, redaction: Redaction) -> None:
        self.redaction, self.hidden = redaction, redaction.text
        self.child: ChildProcess | None = None
        self.cause: BaseException | None = None

    def late(self, doing: str, seconds: float) -> Fault:
        """The fault for a timeout."""
        if doing == START:
            return Fault("timeout", self._said(f"it did not start within {seconds:.3g} s"), effect="none")
        return Fault("timeout", f"no answer to {doing} within {seconds:.3g} s{_doubt(doing)}")

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
        doubt = "" if effect == "none" else _doubt(doing)
        return Fault("crash", self._said(f"{what} during {doing}{doubt}"), effect=effect)

    async def of(self, error: BaseException, doing: str) -> Fault:
        """The fault for an exception during an exchange."""
        from mcp import MCPError
        from mcp.types import INVALID_PARAMS

        if isinstance(error, Fault):
            return Fault(error.kind, self.hidden(str(error)), effect=error.effect)
        if self.child is not None and (fault := self.child.fault) is not None:
            doubt = "" if fault.effect == "none" else _doubt(doing)
            return Fault(fault.kind, self.hidden(f"{fault}{doubt}"), effect=fault.effect)
        leaf = _leaf(error)
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
        told = self.hidden(f"the server answered {doing} with error {leaf.code}: {said}"[:_LONGEST])
        if doing == START:
            return Fault("protocol", f"{told} (unsupported protocol)", effect="none")
        if said.startswith(_UNREADABLE):
            return Fault("protocol", told + _doubt(doing))
        refuses = (
            doing == "tools/call" and leaf.code == INVALID_PARAMS
        )  # the tool refuses its arguments: its server works
        return Fault("tool" if refuses else "protocol", told, effect="reported")

    def _said(self, what: str) -> str:
        if self.child is None:
            return self.hidden(what)
        words = [("Not of the protocol, it printed", self.child.printed), ("Its last words", self.child.last_words)]
        return self.hidden("\n".join((what, *(f"{about}: {said}" for about, said in words if said))))


def _doubt(method: str) -> str:
    return "; whether the call took effect is unknown" if method == "tools/call" else ""


def named_in(raw: ServerConfig, environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """The environment variables that a server's entry refers to, with their values."""
    return [(name, environ[name]) for name in _VARIABLE.findall(raw.model_dump_json()) if name in environ]


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").split("\n")[0][:_LONGEST]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
