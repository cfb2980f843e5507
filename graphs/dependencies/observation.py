"""What runs teach: dependencies between calls, and outcomes of calls by tool; no value of a call is stored."""

from __future__ import annotations

import hashlib
import json
import logging
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog, DependencyKind, Tool
from callsheet.graphs.dependencies.dependency_files import Proposal
from callsheet.graphs.storage import StoredFile, StoreError, file_named, state_file


class CountFile(ABC):
    """Base class of files of counts.

    Args:
        file: The file or its path; by default ``name`` in the shared store, or else in the user's data folder. The
            first count creates it.
    """

    name: str
    tools: int
    """How many ids of tools a key begins with."""

    def __init__(self, file: str | Path | StoredFile | None = None) -> None:
        self.file = state_file(self.name) if file is None else file_named(file)

    @abstractmethod
    def read(self) -> Mapping[Any, Any]:
        """The counts so far; empty if there is no file yet.

        Raises:
            CatalogError: The file cannot be read, or has another format.
        """

    def forget(self, pattern: str = "*") -> int:
        """Removes the counts of tools whose ids match a pattern (``files/*``); returns the number of entries.

        Raises:
            CatalogError: As for ``read``.
            TrustError: The file cannot be written.
        """
        with self.file.locked():
            counts = self.read()
            kept = {
                key: count
                for key, count in counts.items()
                if not any(fnmatchcase(tool, pattern) for tool in key[: self.tools])
            }
            if len(kept) < len(counts):
                self._write(kept)
        return self._entries(counts) - self._entries(kept)

    def remove(self) -> int:
        """Removes the file, also one that cannot be read; returns the number of entries that it had."""
        try:
            known = self._entries(self.read())
        except CatalogError:
            known = 0
        self.file.remove()
        return known

    def _entries(self, counts: Mapping[Any, Any]) -> int:
        return len(counts)

    @abstractmethod
    def _write(self, counts: Mapping[Any, Any]) -> None: ...

    def _document(self) -> Any:
        """The parsed file; None if there is none yet."""
        try:
            return json.loads(self.file.text())
        except FileNotFoundError:
            return None
        except StoreError as error:
            raise CatalogError(f"the counts in {self.file} cannot be read: {error}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise CatalogError(
                f"{self.file}: cannot be read: {error}: remove the file to start counting again"
            ) from error

    def _replace(self, document: dict[str, Any]) -> None:
        self.file.replace(json.dumps(document, ensure_ascii=False, indent=0).encode())


Seen = tuple[str, str, str]
"""Source, target, and the parameter of the source whose value came from a result of the target."""
FORMAT = 1
_SHORTEST, _LONGEST = 3, 500
_MOST_EDGES = 20_000
_OBSERVED = "callsheet_observed"


class CallRecord(Protocol):
    """One tool call."""

    @property
    def tool(self) -> str:
        """Id of the tool."""
        ...

    @property
    def args(self) -> Mapping[str, Any]:
        """The arguments."""
        ...

    @property
    def output(self) -> str:
        """The result as text; empty if the call failed."""
        ...


def observed(calls: Sequence[CallRecord], *, before: Sequence[CallRecord] = (), said: str = "") -> Counter[Seen]:
    """Counts the arguments that calls took from the results of earlier calls.

    An argument counts if one of its values, of at least three characters, occurs as a whole word in an earlier result,
    but not in the request. It counts once per call, however many of its values occur there. The source is the latest
    call that returned the value without having it in its own arguments.

    Args:
        calls: The calls of one step, in order.
        before: The calls of the steps that it depends on, in order.
        said: The request of the user.

    Returns:
        In how many calls each argument was observed.
    """
    counts: Counter[Seen] = Counter()
    earlier = list(before)
    for call in calls:
        values = {(parameter, value) for parameter, value in _values(call.args) if _SHORTEST <= len(value) <= _LONGEST}
        origins = {(parameter, _origin(value, earlier)) for parameter, value in values if not _within(value, said)}
        counts.update((call.tool, tool, parameter) for parameter, tool in origins if tool and tool != call.tool)
        earlier.append(call)
    return counts


def observed_proposals(seen: Mapping[Seen, int], catalog: Catalog) -> tuple[Proposal, ...]:
    """Observations as proposals, most frequent first; tools that are not in the catalog are skipped.

    The confidence after n observations is ``n / (n + 1)``.
    """
    proposals = []
    for (source, target, parameter), count in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        if source not in catalog.tools or target not in catalog.tools:
            continue
        required = any(p.name == parameter.split(".")[0] and p.required for p in catalog.tools[source].parameters)
        kind = DependencyKind.PARAMETER_DIRECTLY if required else DependencyKind.PARAMETER_INDIRECTLY
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


class ObservationLog(CountFile):
    """Counts of observations in a file, without values of calls.

    Args:
        file: As in ``CountFile``; ``observed.json`` by default.
    """

    name, tools = "observed.json", 2

    def read(self) -> Counter[Seen]:
        """The counts so far; empty if there is no file yet.

        Raises:
            CatalogError: The file has another format.
        """
        if (document := self._document()) is None:
            return Counter()
        return _counts(document, self.file)

    def add(self, seen: Mapping[Seen, int]) -> None:
        """Adds to the counts; safe for several processes. Beyond 20,000 edges, those seen least are dropped.

        Raises:
            CatalogError: The file has another format.
            TrustError: The file cannot be written.
        """
        if not seen:
            return
        with self.file.locked():
            counts = self.read()
            counts.update(seen)
            self._write(dict(counts.most_common(_MOST_EDGES)))

    def _write(self, counts: Mapping[Seen, int]) -> None:
        edges = [[*key, count] for key, count in sorted(counts.items())]
        self._replace({_OBSERVED: FORMAT, "edges": edges})


def _counts(document: Any, file: StoredFile) -> Counter[Seen]:
    edges = document.get("edges") if isinstance(document, dict) and document.get(_OBSERVED) == FORMAT else None
    match edges:
        case list() if all(_is_count(edge) for edge in edges):
            return Counter({(source, target, parameter): count for source, target, parameter, count in edges})
        case _:
            raise CatalogError(f"{file}: not a file of observed dependencies: remove it to start counting again")


def _is_count(edge: Any) -> bool:
    match edge:
        case [str(), str(), str(), int() as count]:
            return count > 0
        case _:
            return False


def _values(args: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The values in a call's arguments, each with its path of names."""
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


def _origin(value: str, calls: Sequence[CallRecord]) -> str | None:
    """The tool of the latest call that returned a value and was not given it."""
    for call in reversed(calls):
        if _within(value, call.output) and not any(_within(value, text) for _, text in _values(call.args)):
            return call.tool
    return None


def _within(value: str, text: str) -> bool:
    """Whether a value occurs in a text as a whole word or number."""
    return value in text and re.search(rf"(?<![\w]){re.escape(value)}(?![\w])", text) is not None


_OUTCOMES = "callsheet_outcomes"
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
        rows = document.get("tools") if isinstance(document, dict) and document.get(_OUTCOMES) == FORMAT else None
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
        self._replace({_OUTCOMES: FORMAT, "tools": rows})


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
