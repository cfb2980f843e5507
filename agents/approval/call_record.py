"""Records calls that may change something, so that no later run repeats one blindly while its outcome is unknown."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command

from callsheet.agents.calls.outcome import Effect, Kind, outcome_in
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import TOOK_EFFECT
from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool
from callsheet.agents.registry.checked_call import CheckedCall
from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.trust.open_calls import CallLedger, OpenCall, Verdict

Answer = ToolMessage | Command[Any]
T = TypeVar("T")
_LOG = logging.getLogger("callsheet")
_HEADING = (
    "The outcome of earlier calls of these tools is unknown, and their arguments are not stored. If your task may need "
    "the same once more in other words, do not call the tool: say so, and end."
)


class Said(Protocol):
    """The protocol of a function that makes a message about a call, when the message is not the tool's own answer."""

    def __call__(self, text: str, *, kind: Kind, effect: Effect, error: bool = True) -> ToolMessage:
        """Makes the message; ``kind`` and ``effect`` are those of ``Outcome``."""
        ...


class CallPlace(NamedTuple):
    """Identifies where a call is made; the fields are those of ``OpenCall``."""

    call: str
    run: str

    @classmethod
    def here(cls, call_id: str) -> CallPlace:
        """Returns the place of a call in the current task, which stays the same when its run is resumed.

        Outside of a task, each call has a new place.
        """
        try:
            configurable: Mapping[str, Any] = get_config().get("configurable") or {}
        except RuntimeError:  # outside of a run
            configurable = {}
        thread = str(configurable.get("thread_id") or "")
        if thread:
            return cls(f"{thread} {configurable.get('checkpoint_ns') or ''} {call_id}", thread)
        return cls(uuid.uuid4().hex, f"process {os.getpid()} on {socket.gethostname()}")


NOWHERE = CallPlace("", "")
"""The place of a call that is examined but not made."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """Records one call while it is being made, and finds earlier calls like it.

    Attributes:
        ledger: The open calls of the user; None for a call that needs no record, because it changes nothing or may be
            repeated.
        said: Makes messages about the call; messages that are errors begin with ``named``.
        digest: As in ``OpenCall``, and so are ``call`` and ``run``.
    """

    ledger: CallLedger | None
    tool_id: str
    named: str
    said: Said
    digest: str = ""
    call: str = ""
    run: str = ""

    @classmethod
    def of(
        cls, ledger: CallLedger | None, checked: CheckedCall, place: CallPlace, named: str, said: Said
    ) -> CallRecord:
        """Makes the record of a call."""
        if ledger is None or checked.assurance.repeatable:
            return cls(None, checked.tool_id, named, said)
        return cls(ledger, checked.tool_id, named, said, checked.open_digest, place.call, place.run)

    async def is_repeated(self) -> bool:
        """Returns whether there is an earlier call like this one about which a person must be asked."""
        if self.ledger is None:
            return False
        found = await self._tried(lambda ledger: ledger.earlier(self.digest, self.call), "read")
        return found is not None and not found.is_settled

    async def earlier(self) -> OpenCall | ToolMessage | None:
        """Returns an earlier call like this one whose outcome is unknown; or the answer, if this call must not be sent.

        It must not be sent if a person has said that the earlier one was done, or if the ledger cannot be read.
        """
        if self.ledger is None:
            return None
        try:
            found = await asyncio.to_thread(self.ledger.earlier, self.digest, self.call)
        except CallsheetError as error:
            return self._unrecorded(error)
        return found if found is None else await self._seen(found)

    async def begin(self) -> str | OpenCall | ToolMessage | None:
        """Records that the call is being sent; returns the id of the entry, or None for a call that needs no record.

        If the call must not be sent, it returns what ``earlier`` returns.
        """
        if self.ledger is None:
            return None
        begin = self.ledger.begin
        try:
            entry, is_new = await asyncio.to_thread(begin, self.tool_id, self.digest, self.call, self.run)
        except CallsheetError as error:
            return self._unrecorded(error)
        return entry.id if is_new else await self._seen(entry)

    @asynccontextmanager
    async def under_way(self, entry_id: str | None) -> AsyncIterator[None]:
        """Records, if the block is interrupted, that the outcome of the call is unknown."""
        try:
            yield
        except GraphBubbleUp:
            # The tool itself asks a person: LangGraph runs it again from its start.
            await self.settled(entry_id)
            raise
        except (Exception, asyncio.CancelledError):
            if entry_id is not None:
                await asyncio.shield(self._tried(lambda ledger: ledger.leave_open(entry_id, "stopped"), "changed"))
            raise

    async def end(self, entry_id: str | None, answer: Answer) -> None:
        """Removes the entry of a call that was answered, unless the answer leaves its outcome unknown."""
        failed = isinstance(answer, ToolMessage) and answer.status == "error"
        if entry_id is not None and failed and outcome_in(answer).effect == "unknown":
            await self._tried(lambda ledger: ledger.leave_open(entry_id, "unanswered"), "changed")
        else:
            await self.settled(entry_id)

    async def own(self) -> OpenCall | None:
        """Returns the entry of this call; None if there is none, or if the ledger cannot be read."""
        entries = await self._tried(lambda ledger: ledger.entries(), "read") or ()
        return next((one for one in entries if one.call == self.call), None)

    async def note_task(self, entry_id: str | None, task: str) -> None:
        """Records the task as which the server works on the call, before it is asked about the task."""
        if entry_id is not None:
            await self._tried(lambda ledger: ledger.note_task(entry_id, task), "changed")

    async def verdict(self, entry_id: str | None) -> Verdict | None:
        """Returns the decision of a person about an entry, made outside of this run; None if there is none."""
        if entry_id is None:
            return None

        def said(ledger: CallLedger) -> Verdict | None:
            return ledger.verdict(entry_id, self.call)

        return await self._tried(said, "read")

    async def settled(self, entry_id: str | None) -> None:
        """Removes an entry whose outcome is known, if there is one."""
        if entry_id is not None:
            await self._tried(lambda ledger: ledger.end(entry_id), "changed")

    def repeats(self, earlier: OpenCall) -> ToolMessage:
        """Returns the message for a call that was not sent, because an earlier one like it has an unknown outcome."""
        return self.said(f"{self.named}: a call like this {earlier.told}", kind="refused", effect="unknown")

    def of_earlier(self, answer: ToolMessage) -> ToolMessage:
        """Returns the answer to an earlier call like this one as that of this call, with a note that says so."""
        note = "This is the result of an earlier call like this one, whose outcome was unknown. Nothing was sent again."
        return answer.model_copy(update={"content": f"{answer.text}\n\n({note})"})

    def left_open(self, answer: ToolMessage, entry_id: str | None) -> ToolMessage:
        """Returns the message about an unknown outcome, with the command by which a person settles it."""
        if entry_id is None or self.ledger is None:
            return answer
        how = self.ledger.how_to_settle(entry_id)
        text = f"{answer.text}. Nothing more was sent. Look whether it took effect, and say so with {how}"
        return answer.model_copy(update={"content": text})

    async def _seen(self, found: OpenCall) -> OpenCall | ToolMessage:
        """Returns an open call as it is; one of which a person has said that it was done is the answer, once."""
        if not found.is_settled:
            return found
        await self.settled(found.id)
        told = f"{TOOK_EFFECT} It was sent in {found.run}, and was not sent again."
        return self.said(told, kind="", effect="reported", error=False)

    def _unrecorded(self, error: CallsheetError) -> ToolMessage:
        why = f"nothing was sent, because the record of open calls cannot be written: {error}"
        return self.said(f"{self.named}: {why}", kind="refused", effect="none")

    async def _tried(self, work: Callable[[CallLedger], T], what: str) -> T | None:
        """The result of work on the ledger after which the call goes on in any case: what stays in it only asks."""
        if self.ledger is None:
            return None
        try:
            return await asyncio.to_thread(work, self.ledger)
        except CallsheetError as error:
            _LOG.warning("the open calls could not be %s: %s", what, error)
            return None


def open_calls_told(ledger: CallLedger | None, tool_ids: Collection[str]) -> str:
    """Describes the open calls of these tools for a model; empty if there are none. Reads a file."""
    if ledger is None:
        return ""
    try:
        found = [one for one in ledger.unsettled() if one.tool_id in tool_ids]
    except CallsheetError as error:
        _LOG.warning("a model is not told of open calls: %s", error)
        return ""
    lines = [f"- {one.tool_id}: a call {one.told}." for one in found]
    return "\n".join([_HEADING, *lines]) if lines else ""


def in_doubt(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool]) -> Refusal | None:
    """Returns why a worker makes no further call: the outcome of one is unknown. None if all are known."""
    unrepeatable = {RUN_PROGRAM, *(name for name, tool in tools.items() if not tool.repeatable)}
    said = [m.text for m in messages if outcome_in(m).effect == "unknown" and m.name in unrepeatable]
    why = "The outcome is unknown: the call is not repeated until a person has checked whether it took effect."
    return Refusal("\n".join((*said, why))) if said else None
