"""Converts the errors of one server to ``Fault`` exceptions for its callers, and failed calls to outcomes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from callsheet.agents.calls.call_context import CallRequest
from callsheet.agents.calls.outcome import Effect, Fault, Outcome, failed_outcome
from callsheet.agents.safety.secrets import Redaction
from callsheet.agents.servers.oauth.addresses import page_hint
from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.unicode import clean

if TYPE_CHECKING:
    from mcp import MCPError

    from callsheet.agents.servers.transport.stdio import ChildProcess

START = "initialize"
# Messages of the client library in place of an answer: the connection broke, none came, it cannot be parsed.
CLOSED = "Connection closed"
_NO_ANSWER = "SSE stream"
_UNREADABLE = (
    *("its answer is not", "Server returned an error response", "Unexpected content type", "Redirect to"),
    "server answered a request with 202",
)
_NOT_SENT = ("ConnectError", "ConnectTimeout")
_LONGEST_WAIT = 10.0
_LEAST_WAIT = 0.5
"""Seconds for which a call waits at most, and at least, for a server that is busy."""
_LONGEST = 4_000
_LONGEST_DATA = 2_000
_LONGEST_URL = 2_000


class Faults:
    """Makes faults from the errors of one server.

    Args:
        redaction: Removes the secrets of the server from texts.
        url: The address of a server over HTTP; faults of the connection name it. Empty for a local server.

    Attributes:
        cause: The error that broke the connection; None if it is not known.
        child: The process of a local server; None for a server over HTTP.
    """

    def __init__(self, redaction: Redaction, url: str = "") -> None:
        self.redaction = redaction
        self._address = _plain(url)
        self.hidden = redaction.text
        self.child: ChildProcess | None = None
        self.cause: BaseException | None = None
        # Faults of single requests, by a key that no server knows.
        self._kept: dict[str, Fault] = {}

    def keep(self, fault: Fault) -> str:
        """Stores the fault of one request; returns a key, by which ``of`` finds it in the data of an error."""
        key = uuid.uuid4().hex
        self._kept[key] = fault
        return key

    def late(self, doing: str, within: str) -> Fault:
        """Makes the fault for a timeout; ``within`` is its duration as text, such as ``4 s``."""
        if doing == START:
            return Fault("timeout", self._said(f"it did not start within {within}"), effect="none")
        return Fault("timeout", self.hidden(f"no answer to {doing} within {within}{_doubt(doing)}"))

    async def broken(self, what: str, doing: str) -> Fault:
        """Makes the fault for a lost connection."""
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
        """Makes the fault for an exception during an exchange."""
        from mcp import MCPError

        leaf = _leaf(error)
        known: BaseException | None = error
        if isinstance(leaf, MCPError) and isinstance(leaf.data, str) and leaf.data in self._kept:
            known = self._kept.pop(leaf.data)
        elif not isinstance(error, Fault) and self.child is not None:
            known = self.child.fault
        if isinstance(known, Fault):
            return self._repeated(known, doing, is_own=leaf is known)
        if isinstance(leaf, MCPError):
            return await self._of_answer(leaf, doing)
        return await self.broken(_named(leaf), doing)

    def _repeated(self, fault: Fault, doing: str, *, is_own: bool) -> Fault:
        """Makes the fault of a request from a fault that is already known.

        ``is_own`` means that this request has caused the known fault, and not the connection or another request.
        """
        text = str(fault)
        if fault.kind in ("busy", "refused"):
            text = f"the server does not take {doing}: {text}"
        if not is_own:
            text += _doubt(doing, fault.effect)
        return Fault(fault.kind, self.hidden(text), effect=fault.effect, wait=fault.wait)

    async def _of_answer(self, error: MCPError, doing: str) -> Fault:
        """Makes the fault for an ``MCPError``, which the server has sent or the client library has raised itself."""
        from mcp.types import INVALID_PARAMS, URL_ELICITATION_REQUIRED

        message = error.message
        if message.startswith("Failed to parse"):  # what follows is of the library that parses
            message = "its answer is not a JSON-RPC response"
        is_missing = message.startswith(_NO_ANSWER)
        if is_missing and "exceeded the" in message:
            return Fault("too_large", f"{message}{_doubt(doing)}")
        if is_missing or message == CLOSED or (self.child is not None and self.child.ended):
            return await self.broken("the connection was closed", doing)
        if message == "Session terminated":
            return Fault("crash", "the server no longer knows this session", effect="none")
        # Secrets are looked for in whole texts: half of one would not be recognized.
        text = self.hidden(f"the server answered {doing} with error {error.code}: {message}")[:_LONGEST]
        text += _details(error, self.hidden)
        if doing == START:
            return Fault("protocol", f"{text} (unsupported protocol)", effect="none")
        if message.startswith(_UNREADABLE):
            return Fault("protocol", text + _doubt(doing))
        # A tool that refuses its arguments, or needs a person's consent at another address: its server works.
        is_of_tool = doing == "tools/call" and error.code in (INVALID_PARAMS, URL_ELICITATION_REQUIRED)
        return Fault("tool" if is_of_tool else "protocol", text, effect="reported")

    def _said(self, what: str) -> str:
        lines = [f"{what} ({self._address})" if self._address else what]
        if self.child is None:
            return self.hidden(lines[0])
        if self.child.printed:
            lines.append(f"Not of the protocol, it printed: {self.child.printed}")
        if self.child.last_words:
            lines.append(f"Its last words: {self.child.last_words}")
        return self.hidden("\n".join(lines))


def cleaned_request(request: CallRequest) -> CallRequest | Outcome:
    """Returns the call with arguments that JSON supports; or a refused outcome if JSON does not support them."""
    agent_id = request.agent_id
    tool = request.tool
    try:
        request = replace(request, args=clean(dict(request.args)))
        json.dumps(request.args, allow_nan=False, default=str)
    except CallsheetError as error:
        return failed_outcome(agent_id, tool, "refused", f"the arguments are {error}")
    except ValueError:  # it would be sent as null
        return failed_outcome(agent_id, tool, "refused", "the arguments contain a number that JSON does not support")
    return request


def failed_call(request: CallRequest, error: Fault | CallsheetError, *, sent: bool) -> tuple[Outcome, float | None]:
    """Returns the outcome of a failed call, and the seconds to wait before it may be sent again; None for never."""
    agent_id = request.agent_id
    tool = request.tool
    if isinstance(error, CallsheetError):
        return failed_outcome(agent_id, tool, "start", str(error)), None
    effect = error.effect if sent else "none"
    hint = page_hint(agent_id) if error.kind == "sign_in" else ""
    again = effect == "none" or request.repeatable or request.harmless
    return failed_outcome(agent_id, tool, error.kind, f"{error}{hint}", effect), _wait(error) if again else None


def _wait(fault: Fault) -> float | None:
    """Returns the seconds to wait before a harmless call may be sent again; None for never."""
    if fault.kind == "crash":  # the server crashed, or has restarted and lost the session
        return 0.0
    if fault.kind != "busy" or fault.wait is None or fault.wait > _LONGEST_WAIT:
        return None
    return max(fault.wait, _LEAST_WAIT)


def _details(error: MCPError, hidden: Callable[[str], str]) -> str:
    """Returns the rest of an error as text: the addresses that a person must open first, or the error's data."""
    from mcp.types import URL_ELICITATION_REQUIRED

    data = error.data
    if data in (None, "", error.message, {}, []):
        return ""
    if isinstance(data, dict) and error.code == URL_ELICITATION_REQUIRED:
        pages = _pages(data.get("elicitations"), hidden)
        if pages:
            return f"; before this call can succeed, a person must open {pages}, and then it can be made again"
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return f"; data: {shown(hidden(text), most=_LONGEST_DATA)}"


def _pages(elicitations: object, hidden: Callable[[str], str]) -> str:
    """Returns as text the addresses that a server wants a person to open, each with its reason; may be empty."""
    pages: list[str] = []
    for elicitation in elicitations if isinstance(elicitations, list) else ():
        address = elicitation.get("url") if isinstance(elicitation, dict) else None
        if not isinstance(address, str):
            continue
        page = shown(hidden(address), most=_LONGEST_URL)
        reason = elicitation.get("message")
        if isinstance(reason, str) and reason:
            page += f" ({shown(hidden(reason), most=_LONGEST_DATA)})"
        if page:
            pages.append(page)
    return " and ".join(pages)


def _plain(url: str) -> str:
    """Returns an address without user, query and fragment; empty if there is no address, or it is malformed."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _doubt(method: str, effect: Effect = "unknown") -> str:
    return "; whether the call took effect is unknown" if method == "tools/call" and effect == "unknown" else ""


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").split("\n")[0][:_LONGEST]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
