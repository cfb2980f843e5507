"""Records calls whose outcome is unknown, from before a call is sent until its outcome is known.

A call is recorded for its user and catalog, not for its run, so that any later run can ask before it repeats the call.
"""

from __future__ import annotations

import json
import shlex
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Literal

from callsheet.graphs.catalog.labels import source_keys
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.errors import TrustError, UnknownNameError
from callsheet.graphs.process_identity import ProcessIdentity
from callsheet.graphs.storage import StoredFile, state_file

Verdict = Literal["done", "not-done"]
"""The decision of a person about an open call: it took effect, or it did not."""
_State = Literal["running", "stopped", "unanswered", "done", "not-done"]
_VERDICTS = ("done", "not-done")
_TELLS_FOR = timedelta(days=1)
"""How long a verdict waits for the run that needs it: after that, the same call is a new one."""
_WRITING = threading.Lock()
"""Threads of this process wait here, and not at the lock of the file, which is looked at again and again."""


class OpenCall(Record):
    """A call of a tool that may change something; its arguments are not stored.

    Attributes:
        digest: SHA-256 of the tool and the arguments, of which secret ones are left out.
        call: Identifies the call within its run: a run that is resumed makes the same call.
        run: The thread of the run, or the process of a run without one.
        since: The time when the call was sent, or when a person settled it; UTC, ISO 8601.
        sources: Keys of the sources of the catalog (``source_keys``); none for a catalog in memory.
        user: As in ``StandingApproval``.
        state: ``stopped`` if its run was stopped during the call; ``unanswered`` if it failed and its effect is
            unknown.
        task: The server's id of the task as which it works on the call; empty if it has named none.
    """

    id: str
    agent: str
    tool: str
    digest: str
    call: str
    run: str
    since: str
    owner: ProcessIdentity
    sources: tuple[str, ...]
    user: str | None = ""
    state: _State = "running"
    task: str = ""

    @property
    def tool_id(self) -> str:
        """Returns the id of the tool, ``agent/tool``."""
        return f"{self.agent}/{self.tool}"

    @property
    def is_settled(self) -> bool:
        """Returns whether a person has decided what became of the call."""
        return self.state in _VERDICTS

    @property
    def is_unsettled(self) -> bool:
        """Returns whether the outcome is unknown; False while a running process of this machine makes the call."""
        return not (self.is_settled or (self.state == "running" and self.owner.runs))

    @property
    def stopped(self) -> OpenCall:
        """Returns the call in the state ``stopped`` if its process has ended by now."""
        return _with(self, "stopped") if self.state == "running" else self

    @property
    def seen(self) -> OpenCall:
        """Returns the call as this machine sees it: a call whose process has ended while it ran is ``stopped``."""
        return self.stopped if self.owner.runs is False else self

    @property
    def told(self) -> str:
        """Describes what is known about a call, as a phrase that continues "a call"."""
        match self.state:
            case "running":
                what = f"was running in {self.run} on {self.owner.host}, which cannot be looked at from here"
            case "unanswered":
                what = f"got no answer in {self.run}"
            case _:
                what = f"was running when {self.run} stopped"
        asked = ". The server is asked about its task before a call like this is sent" if self.task else ""
        return f"{what} (sent {self.since}); whether it took effect is unknown{asked}"


class _File(Record):
    calls: tuple[OpenCall, ...]
    callsheet_calls: Literal[1] = 1


@dataclass(frozen=True)
class CallLedger:
    """The open calls of one user over one catalog, in a file with those of all users and catalogs.

    Catalogs that have a source in common share their open calls, because one more ``--catalog`` makes no other server.
    The methods read and write the file, in the shared store if there is one, and may wait. They raise a ``TrustError``
    if that cannot be done.

    Attributes:
        label: The label of the catalog (``Loaded``); all catalogs in memory share one ledger.
    """

    label: str
    user: str | None = ""

    @cached_property
    def file(self) -> StoredFile:
        """Returns the file of the ledger, in the shared store or else in the user's data folder."""
        return state_file("calls/open.json")

    @cached_property
    def sources(self) -> frozenset[str]:
        """Returns the keys of the sources of the catalog."""
        return source_keys(self.label)

    def entries(self) -> tuple[OpenCall, ...]:
        """Returns the calls of all users, including running and settled ones, in the order in which they were sent."""
        return tuple(one for one in self._stored() if self._shares(one))

    def _stored(self) -> tuple[OpenCall, ...]:
        """Returns the calls of all users and catalogs."""
        try:
            return _File(**json.loads(self.file.text())).calls
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise TrustError(f"the open calls in {self.file} cannot be read: {error}") from error

    def unsettled(self, *, everybody: bool = False) -> list[OpenCall]:
        """Returns the calls of the user, or of everybody, whose outcome is unknown."""
        return [one.seen for one in self.entries() if one.is_unsettled and (everybody or one.user == self.user)]

    def earlier(self, digest: str, call: str) -> OpenCall | None:
        """Returns an earlier call of the same tool with the same arguments that must not be repeated blindly.

        Its outcome is unknown, or a person has settled it as done. ``call`` itself does not count. None if there is no
        such call.
        """
        return _earlier(self._own(self.entries(), digest), call)

    def begin(self, tool_id: str, digest: str, call: str, run: str) -> tuple[OpenCall, bool]:
        """Records that a call is being sent now; if ``earlier`` finds a call, returns that and records nothing.

        Returns:
            The call, and whether it is recorded.
        """
        agent, _, tool = tool_id.partition("/")
        new = OpenCall(
            id=uuid.uuid4().hex[:8],
            agent=agent,
            tool=tool,
            digest=digest,
            call=call,
            run=run,
            since=_now(),
            owner=ProcessIdentity.here(),
            sources=tuple(sorted(self.sources)),
            user=self.user,
        )
        found: list[OpenCall] = []

        def changed(entries: Sequence[OpenCall]) -> list[OpenCall]:
            alike = self._own(entries, digest)
            earlier = _earlier(alike, call)
            if earlier is not None:
                found.append(earlier)
                return [*entries]
            # An earlier attempt at this very call is over, and so is a verdict that the same call may be sent.
            over = [one.id for one in self._own(entries) if one.call == call]
            over += [one.id for one in alike if one.state == "not-done"]
            return [*(one for one in entries if one.id not in over), new]

        self._change(changed)
        return (found[0], False) if found else (new, True)

    def end(self, entry_id: str) -> None:
        """Removes a call whose outcome is known."""
        self._change(lambda entries: [one for one in entries if one.id != entry_id])

    def leave_open(self, entry_id: str, state: Literal["stopped", "unanswered"]) -> None:
        """Records that the outcome of a call is unknown, unless a person has settled it meanwhile."""

        def changed(entries: Sequence[OpenCall]) -> list[OpenCall]:
            return [_with(one, state) if one.id == entry_id and not one.is_settled else one for one in entries]

        self._change(changed)

    def note_task(self, entry_id: str, task: str) -> None:
        """Records the task as which the server works on a call, so that a later run can ask about it."""
        noted = {"task": task}
        self._change(lambda entries: [one.model_copy(update=noted) if one.id == entry_id else one for one in entries])

    def verdict(self, entry_id: str, call: str) -> Verdict | None:
        """Returns the decision of a person about an entry, or about the call itself.

        The decision is returned once; then the entry is removed.
        """
        said: list[Verdict] = []
        for one in self._own(self.entries()):
            if one.is_settled and (one.id == entry_id or one.call == call):
                said.append("done" if one.state == "done" else "not-done")
                self.end(one.id)
        return said[0] if said else None

    def settle(self, entry_id: str, verdict: Verdict) -> OpenCall:
        """Records the decision of a person about an open call of any user.

        If the call was done, the same call is not sent the next time. The decision is kept for a day, for a run that
        waits for it.

        Raises:
            UnknownNameError: There is no open call with this id; the message names all.
        """
        known = {one.id: one for one in self.unsettled(everybody=True)}
        if entry_id not in known:
            names = ", ".join(f"{one.id} ({one.tool_id})" for one in known.values()) or "none"
            raise UnknownNameError(f"no open call {entry_id!r}; the open calls are: {names}")
        settled = _with(known[entry_id], verdict).model_copy(update={"since": _now()})
        self._change(lambda entries: [settled if one.id == entry_id else one for one in entries])
        return settled

    def how_to_settle(self, entry_id: str) -> str:
        """Returns the command, or the code, that settles a call.

        Users of a server do not see where its catalog is.
        """
        if not self.label:
            return f'`callsheet.graphs.CallLedger("", {self.user!r}).settle("{entry_id}", "done")`, or "not-done"'
        named = self.label.splitlines() if self.user == "" else []
        catalogs = "".join(f" --catalog {shlex.quote(name)}" for name in named)
        return f"`callsheet trust settle {entry_id} done{catalogs}` (or not-done)"

    def _own(self, entries: Sequence[OpenCall], digest: str | None = None) -> list[OpenCall]:
        mine = [one for one in entries if one.user == self.user and self._shares(one)]
        return [one for one in mine if digest in (None, one.digest)]

    def _shares(self, one: OpenCall) -> bool:
        """Returns whether a call was made over this catalog, or over one that has a source in common with it."""
        return not self.sources.isdisjoint(one.sources) or not (self.sources or one.sources)

    def _change(self, change: Callable[[Sequence[OpenCall]], Sequence[OpenCall]]) -> None:
        with _WRITING, self.file.locked():
            before = self._stored()
            oldest = (datetime.now(UTC) - _TELLS_FOR).isoformat(timespec="seconds")
            after = [one for one in change(before) if not one.is_settled or one.since > oldest]
            if [*before] != after:
                content: Mapping[str, object] = _File(calls=tuple(after)).model_dump()
                self.file.replace(json.dumps(content, indent=1).encode("ascii"))


def _earlier(alike: Sequence[OpenCall], call: str) -> OpenCall | None:
    others = [one for one in alike if one.call != call]
    unsettled = [one for one in others if one.is_unsettled]
    done = [one for one in others if one.state == "done"]
    return next((one.seen for one in [*unsettled, *done]), None)


def _with(one: OpenCall, state: _State) -> OpenCall:
    return one.model_copy(update={"state": state})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
