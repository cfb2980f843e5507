"""Standing approvals: tools whose calls a person has approved for good, as they were defined then."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from callsheet.graphs.catalog.errors import TrustError
from callsheet.graphs.catalog.model import Record, Tool
from callsheet.graphs.storage import StoredFile, state_file

if TYPE_CHECKING:
    from callsheet.graphs.catalog.loaded import Loaded

_LOG = logging.getLogger("callsheet")


class StandingApproval(Record):
    """One tool that one user has approved for good.

    Attributes:
        digest: SHA-256 of its definition and of how its server is reached, at that time.
        since: When, UTC, ISO 8601.
        user: Id of the user; empty for the user of this machine, None for clients of a server without authentication.
    """

    agent: str
    tool: str
    digest: str
    since: str
    user: str | None = ""

    @property
    def id(self) -> str:
        """``agent/tool``."""
        return f"{self.agent}/{self.tool}"


class _File(Record):
    allowed: tuple[StandingApproval, ...]
    callsheet_standing: Literal[1] = 1


@dataclass(frozen=True)
class StandingApprovals:
    """The standing approvals of one user (as in ``StandingApproval``) in one catalog; each look reads the file."""

    loaded: Loaded
    user: str | None = ""

    @classmethod
    def of(cls, loaded: Loaded, user: str | None = "") -> StandingApprovals | None:
        """Those of a catalog; None for a catalog in memory. All else reads files, and may wait."""
        return cls(loaded, user) if loaded.label else None

    @cached_property
    def file(self) -> StoredFile:
        """Their file, in the shared store or else in the user's data folder."""
        from callsheet.graphs.catalog.loaded import key_of  # which imports policies

        return state_file(f"allowed/{key_of(self.loaded.label)}.json")

    def entries(self) -> tuple[StandingApproval, ...]:
        """Those of all users, in the order in which they were given.

        Raises:
            TrustError: The file cannot be read, or is damaged.
        """
        try:
            return _File(**json.loads(self.file.text())).allowed
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise TrustError(f"the allowed tools in {self.file} cannot be read, so none is allowed: {error}") from error

    def own(self) -> list[StandingApproval]:
        """Those of the user; raises as ``entries``."""
        return [one for one in self.entries() if one.user == self.user]

    def holds(self, tool_id: str, digest: str) -> bool:
        """Whether the user has allowed the tool as it is now; not if the file cannot be read, which is logged."""
        try:
            return any((one.id, one.digest) == (tool_id, digest) for one in self.own())
        except TrustError as error:
            _LOG.warning("%s", error)
            return False

    def add(self, tool: Tool, digest: str) -> None:
        """Allows a tool, in the place of an earlier definition of it.

        Raises:
            TrustError: The file cannot be read or written.
        """
        since = datetime.now(UTC).isoformat(timespec="seconds")
        new = StandingApproval(agent=tool.agent, tool=tool.name, digest=digest, since=since, user=self.user)
        self._change(lambda entries: [*(one for one in entries if (one.id, one.user) != (new.id, new.user)), new])

    def revoke(self, tool_ids: Collection[str], *, everybody: bool = False) -> int:
        """Revokes what the user, or everybody, has allowed of these tools; returns how many; raises as ``add``."""

        def left(entries: Sequence[StandingApproval]) -> list[StandingApproval]:
            return [one for one in entries if one.id not in tool_ids or not (everybody or one.user == self.user)]

        return -self._change(left)

    def _change(self, change: Callable[[Sequence[StandingApproval]], Sequence[StandingApproval]]) -> int:
        """Replaces the entries; returns how many there are more."""
        with self.file.locked():
            before = self.entries()
            after = change(before)
            if [*before] != [*after]:
                self.file.replace(json.dumps(_File(allowed=tuple(after)).model_dump(), indent=1).encode("ascii"))
            return len(after) - len(before)
