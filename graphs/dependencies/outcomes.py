"""Outcomes of calls by tool, counted in runs without any value of a call."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.dependencies.observation import CountFile

FORMAT = 1
_KEY = "callsheet_outcomes"
_LOG = logging.getLogger(__name__)
_MOST_CALLS, _MOST_TOOLS = 100, 20_000
_Key = tuple[str, str]
"""Id of a tool, and digest of its definition: a changed tool starts anew."""


class CallEnd(Protocol):
    """The end of one tool call."""

    @property
    def tool(self) -> str:
        """Id of the tool."""
        ...

    @property
    def error(self) -> str:
        """What went wrong; empty if nothing did."""
        ...

    @property
    def kind(self) -> str:
        """The kind of error."""
        ...

    @property
    def effect(self) -> str:
        """Whether the tool ran: ``none``, ``reported`` or ``unknown``."""
        ...


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How the calls of a tool ended.

    Attributes:
        done: Calls with a result.
        failed: Calls that the tool or its server did not carry out.
        misused: Calls that were never sent, because their arguments did not fit the schema.
    """

    done: int = 0
    failed: int = 0
    misused: int = 0

    @property
    def sent(self) -> int:
        """Calls that reached the tool, or its server."""
        return self.done + self.failed

    def __add__(self, other: Outcomes) -> Outcomes:
        """The sum; from 100 calls on, earlier ones count half, so that new ones count more than old ones."""
        by = 2 if self.sent >= _MOST_CALLS else 1
        done, failed, misused = ((count + by - 1) // by for count in (self.done, self.failed, self.misused))
        return Outcomes(done + other.done, failed + other.failed, misused + other.misused)


def outcomes_of(calls: Iterable[CallEnd]) -> dict[str, Outcomes]:
    """Tool id -> the outcomes of these calls, without those that a person answered or that were refused."""
    counts: dict[str, Outcomes] = {}
    for call in calls:
        if call.kind in ("rejected", "refused") or (not call.error and call.effect == "none"):
            continue
        misused = bool(call.error) and call.effect == "none" and not call.kind
        one = Outcomes(misused=1) if misused else Outcomes(failed=1) if call.error else Outcomes(done=1)
        counts[call.tool] = counts.get(call.tool, Outcomes()) + one
    return counts


class OutcomeLog(CountFile):
    """Outcomes in a file.

    Args:
        file: As in ``CountFile``; ``outcomes.json`` by default.
    """

    name, tools = "outcomes.json", 1

    def read(self) -> dict[_Key, Outcomes]:
        """The outcomes so far; empty if there is no file yet.

        Raises:
            CatalogError: The file cannot be read, or has another format.
        """
        if (document := self._document()) is None:
            return {}
        rows = document.get("tools") if isinstance(document, dict) and document.get(_KEY) == FORMAT else None
        if not isinstance(rows, list) or not all(map(_is_row, rows)):
            raise CatalogError(f"{self.file}: not a file of outcomes: remove it to start counting again")
        return {(tool, digest): Outcomes(*counts) for tool, digest, *counts in rows}

    def of(self, catalog: Catalog) -> dict[str, Outcomes]:
        """Tool id -> the outcomes of the tools of a catalog, as far as they have the same definition.

        Raises:
            CatalogError: As for ``read``.
        """
        known = ((key, counts) for key, counts in self.read().items() if key[0] in catalog.tools)
        return {tool: counts for (tool, digest), counts in known if digest == _digest(catalog.tools[tool])}

    def add(self, outcomes: Mapping[str, Outcomes], catalog: Catalog) -> None:
        """Adds outcomes of tools of a catalog; safe for several processes.

        Beyond 20,000 tools, those with the fewest calls are dropped.

        Raises:
            CatalogError: As for ``read``.
            TrustError: The file cannot be written.
        """
        new = {(tool, _digest(catalog.tools[tool])): o for tool, o in outcomes.items() if tool in catalog.tools}
        if not new:
            return
        with self.file.locked():
            counts = self.read()
            for key, counted in new.items():
                counts[key] = counts.get(key, Outcomes()) + counted
            kept = sorted(counts, key=lambda key: (key not in new, -counts[key].sent))[:_MOST_TOOLS]
            self._write({key: counts[key] for key in kept})

    def _entries(self, counts: Mapping[_Key, Outcomes]) -> int:
        return len({tool for tool, _ in counts})

    def _write(self, counts: Mapping[_Key, Outcomes]) -> None:
        rows = [[*key, o.done, o.failed, o.misused] for key, o in sorted(counts.items())]
        self._replace({_KEY: FORMAT, "tools": rows})


def following(log: OutcomeLog, catalog: Catalog) -> Callable[[], Mapping[str, Outcomes]]:
    """A function that returns the outcomes of a catalog's tools, and reads the file again when it has changed.

    A file that cannot be read counts as empty, with a warning in the log.
    """
    last: tuple[Hashable, Mapping[str, Outcomes]] = (None, {})

    def current() -> Mapping[str, Outcomes]:
        nonlocal last
        key, (before, known) = log.file.version(), last
        if key is None:
            return {}
        if before != key:
            try:
                known = log.of(catalog)
            except CatalogError as error:
                _LOG.warning("outcomes of earlier calls are not used: %s", error)
                known = {}
            last = key, known  # at once: other threads search meanwhile
        return known

    return current


def _digest(tool: Tool) -> str:
    definition = json.dumps([tool.description, tool.input_schema], sort_keys=True, default=repr)
    return hashlib.sha256(definition.encode()).hexdigest()[:16]


def _is_row(row: Any) -> bool:
    match row:
        case [str(), str(), int() as done, int() as failed, int() as misused]:
            return min(done, failed, misused) >= 0
        case _:
            return False
