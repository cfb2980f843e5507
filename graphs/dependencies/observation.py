"""Records what runs show: which calls use results of others, and how calls end. Values of calls are not stored."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from pydantic import NonNegativeInt, PositiveInt, TypeAdapter

from callsheet.graphs.catalog.model import Catalog, DependencyKind, Tool
from callsheet.graphs.dependencies.dependency_files import Proposal
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.storage import StoredFile, StoreError, file_named, state_file

Seen = tuple[str, str, str]
"""A use of a result: the source tool, the target tool, and the parameter of the source that took a value from the
target."""
_Key = tuple[str, str, str]
"""Id of a tool, digest of its definition (a changed tool starts anew), and digest of the user; empty for no user."""
_SHORTEST = 3
_LONGEST = 500
"""Characters of a value of which it is believed that it came from a result."""
_MOST_ENTRIES = 20_000
_MOST_CALLS = 100
"""Calls of a tool from which on earlier ones count half."""
_FAILURES = frozenset(("start", "timeout", "crash", "protocol", "too_large"))
_LOG = logging.getLogger(__name__)

Call: TypeAlias = Any
"""A call of ``agents``, which this package must not import: its ``tool``, ``args`` and ``output`` (empty if it failed),
``error`` (empty if nothing went wrong), ``kind`` of error, and ``effect``: whether it ran."""


def observed(calls: Sequence[Call], *, before: Sequence[Call] = (), said: str = "") -> Counter[Seen]:
    """Counts the arguments that the calls of a step took from results of earlier calls, including those ``before`` it.

    An argument counts if one of its values, of at least three characters, is a whole word of an earlier result but not
    of the user's words (``said``). It counts once per call. The source is the latest call that returned the value
    without having received it.
    """
    counts: Counter[Seen] = Counter()
    earlier = list(before)
    for call in calls:
        seen = set[Seen]()  # once per call, however many values of a parameter came from a tool
        for parameter, value in set(_values(call.args)):
            if not _SHORTEST <= len(value) <= _LONGEST or _within(value, said):
                continue
            tool = _origin(value, earlier)
            if tool is not None and tool != call.tool:
                seen.add((call.tool, tool, parameter))
        counts.update(seen)
        earlier.append(call)
    return counts


def observed_proposals(seen: Mapping[Seen, int], catalog: Catalog) -> tuple[Proposal, ...]:
    """Converts observations to proposals, most frequent first; tools that are not in the catalog are skipped.

    The confidence after n observations is ``n / (n + 1)``.
    """
    proposals = []
    for (source, target, parameter), count in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        if source not in catalog.tools or target not in catalog.tools:
            continue
        name = parameter.split(".")[0]
        required = {one.name for one in catalog.tools[source].parameters if one.required}
        kind = DependencyKind.PARAMETER_DIRECTLY if name in required else DependencyKind.PARAMETER_INDIRECTLY
        times = "once" if count == 1 else f"{count} times"
        proposals.append(
            Proposal(
                source=source,
                target=target,
                kind=kind,
                parameter=parameter,
                confidence=round(count / (count + 1), 3),
                evidence=f"seen {times} while running: {parameter} came from its result",
                count=count,
            )
        )
    return tuple(proposals)


def _values(args: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yields the values in a call's arguments, each with its path of names."""
    match args:
        case Mapping():
            for name, value in args.items():
                yield from _values(value, (*path, str(name)))
        case list() | tuple():
            for value in args:
                yield from _values(value, path)
        case bool() | None:
            return
        case str() | int() | float():
            yield ".".join(path), str(args).strip()


def _origin(value: str, calls: Sequence[Call]) -> str | None:
    """Returns the tool of the latest call that returned a value and was not given it; None if there is none."""
    for call in reversed(calls):
        if _within(value, call.output) and not any(_within(value, text) for _, text in _values(call.args)):
            return str(call.tool)
    return None


def _within(value: str, text: str) -> bool:
    """Returns whether a value occurs in a text as a whole word or number."""
    return value in text and re.search(rf"(?<![\w]){re.escape(value)}(?![\w])", text) is not None


@dataclass(frozen=True, slots=True)
class Outcomes:
    """The numbers of calls of a tool that were ``done`` and that ``failed``.

    A call failed if its server did not carry it out: it did not start, was too late, crashed, or broke the protocol.
    """

    done: int = 0
    failed: int = 0

    @property
    def sent(self) -> int:
        """Returns the number of calls that reached the tool or its server."""
        return self.done + self.failed

    def __add__(self, other: Outcomes) -> Outcomes:
        """Returns the sum; from 100 calls on, earlier ones count half, so that new ones count more than old ones."""
        done = self.done
        failed = self.failed
        if self.sent >= _MOST_CALLS:
            done = (done + 1) // 2
            failed = (failed + 1) // 2
        return Outcomes(done + other.done, failed + other.failed)


def outcomes_of(calls: Iterable[Call]) -> dict[str, Outcomes]:
    """Counts the outcomes of these calls by tool id.

    Calls that a person answered or refused do not count, nor do errors that the tool itself reports, nor calls that
    were not sent.
    """
    counts: dict[str, Outcomes] = {}
    for call in calls:
        if not call.error and call.effect != "none":
            outcome = Outcomes(done=1)
        elif call.error and call.kind in _FAILURES:
            outcome = Outcomes(failed=1)
        else:
            continue
        counts[call.tool] = counts.get(call.tool, Outcomes()) + outcome
    return counts


class CountFile:
    """A file of rows of names and counts, which is created by the first count.

    By default, it is the file ``name`` in the shared store, otherwise in the user's data folder. Methods raise a
    ``CatalogError`` if it cannot be read or has another format, and a ``TrustError`` if it cannot be written.
    """

    name: ClassVar[str]
    mark: ClassVar[str]
    field: ClassVar[str]
    row: ClassVar[TypeAdapter[list[tuple[Any, ...]]]]
    tools: ClassVar[int]
    """The number of columns at the beginning of a row that are ids of tools."""

    def __init__(self, file: str | Path | StoredFile | None = None) -> None:
        self.file = state_file(self.name) if file is None else file_named(file)

    def forget(self, pattern: str = "*") -> int:
        """Removes the counts of tools whose ids match a pattern (``files/*``); returns the number of entries."""
        with self.file.locked():
            rows = self._rows()
            remaining = [row for row in rows if not any(fnmatchcase(tool, pattern) for tool in row[: self.tools])]
            if len(remaining) < len(rows):
                self._replace(remaining)
        return self._entries(rows) - self._entries(remaining)

    def _entries(self, rows: Iterable[Sequence[Any]]) -> int:
        """Returns the number of entries, not counted by parameter or user."""
        return len({tuple(row[: 2 * self.tools - 1]) for row in rows})

    def _rows(self) -> list[tuple[Any, ...]]:
        """Returns the rows of the file; none if there is no file yet."""
        try:
            document = json.loads(self.file.text())
            if document[self.mark] != 1:
                raise ValueError(f"unknown format {document[self.mark]!r}")
            return self.row.validate_python(list(map(tuple, document[self.field])), strict=True)
        except FileNotFoundError:
            return []
        except StoreError as error:
            raise CatalogError(f"the counts in {self.file} cannot be read: {error}") from error
        except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
            message = f"{self.file}: not a file of {self.field} that can be read: remove it to start counting again"
            raise CatalogError(message) from error

    def _replace(self, rows: Iterable[Sequence[Any]]) -> None:
        document = {self.mark: 1, self.field: sorted(map(list, rows))}
        self.file.replace(json.dumps(document, ensure_ascii=False, indent=0).encode())


class ObservationLog(CountFile):
    """Stores counts of observations in a file, without values of calls."""

    name = "observed.json"
    mark = "callsheet_observed"
    field = "edges"
    tools = 2
    row = TypeAdapter(list[tuple[str, str, str, PositiveInt]])

    def read(self) -> Counter[Seen]:
        """Returns all stored counts; empty if there is no file yet."""
        return Counter({(source, target, parameter): count for source, target, parameter, count in self._rows()})

    def add(self, seen: Mapping[Seen, int]) -> None:
        """Adds counts; safe for several processes. Beyond 20,000 edges, those with the lowest counts are dropped."""
        if seen:
            with self.file.locked():
                counts = self.read() + Counter(seen)
                self._replace((*key, count) for key, count in counts.most_common(_MOST_ENTRIES))


class OutcomeLog(CountFile):
    """Stores the outcomes of calls in a file, by user."""

    name = "outcomes.json"
    mark = "callsheet_outcomes"
    field = "tools"
    tools = 1
    row = TypeAdapter(list[tuple[str, str, str, NonNegativeInt, NonNegativeInt]])

    def of(self, catalog: Catalog) -> dict[str, Outcomes]:
        """Returns the outcomes of the tools of a catalog by tool id, if their definitions have not changed since.

        All calls of one user count as one call, which failed if most of them failed. Calls without a user count
        separately.
        """
        sums: dict[str, Counter[str]] = {}
        digests: dict[str, str] = {}
        for (tool, digest, user), counts in self.read().items():
            if tool not in catalog.tools:
                continue
            if tool not in digests:
                digests[tool] = _digest(catalog.tools[tool])
            if digest != digests[tool]:
                continue
            vote = counts
            if user:
                most_failed = counts.failed > counts.done
                vote = Outcomes(failed=1) if most_failed else Outcomes(done=min(1, counts.done))
            sums.setdefault(tool, Counter()).update(asdict(vote))
        return {tool: Outcomes(**counts) for tool, counts in sums.items()}

    def read(self) -> dict[_Key, Outcomes]:
        """Returns all outcomes; empty if there is no file yet."""
        return {(tool, digest, user): Outcomes(*counts) for tool, digest, user, *counts in self._rows()}

    def add(self, outcomes: Mapping[str, Outcomes], catalog: Catalog, user: str = "") -> None:
        """Adds the outcomes of one user's calls; safe for several processes.

        The id of the user is stored as a hash only. Beyond 20,000 entries, those with the fewest calls are dropped.
        """
        user_digest = hashlib.sha256(user.encode()).hexdigest()[:16] if user else ""
        new = dict[_Key, Outcomes]()
        for tool, outcome in outcomes.items():
            if tool in catalog.tools:
                new[tool, _digest(catalog.tools[tool]), user_digest] = outcome
        if not new:
            return
        with self.file.locked():
            counts = self.read()
            for key, outcome in new.items():
                counts[key] = counts.get(key, Outcomes()) + outcome
            most_first = sorted(counts, key=lambda key: (key not in new, -counts[key].sent))
            self._replace((*key, *astuple(counts[key])) for key in most_first[:_MOST_ENTRIES])


def following(log: OutcomeLog, catalog: Catalog) -> Callable[[], Mapping[str, Outcomes]]:
    """Returns a function that returns the outcomes of a catalog's tools, and reads the file again after a change.

    A file that cannot be read counts as empty, and a warning is logged.
    """

    @lru_cache(maxsize=1)
    def at(_: Hashable) -> Mapping[str, Outcomes]:
        try:
            return log.of(catalog)
        except CatalogError as error:
            _LOG.warning("outcomes of earlier calls are not used: %s", error)
            return {}

    def current() -> Mapping[str, Outcomes]:
        version = log.file.version()
        return {} if version is None else at(version)

    return current


def _digest(tool: Tool) -> str:
    definition = json.dumps([tool.description, tool.input_schema], sort_keys=True, default=repr)
    return hashlib.sha256(definition.encode()).hexdigest()[:16]
