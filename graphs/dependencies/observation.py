"""Dependencies observed in runs: a call takes an argument from the result of another call."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog, DependencyKind
from callsheet.graphs.dependencies.proposals import Proposal
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
_MOST = 20_000
_KEY = "callsheet_observed"


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
            self._write(dict(counts.most_common(_MOST)))

    def _write(self, counts: Mapping[Seen, int]) -> None:
        edges = [[*key, count] for key, count in sorted(counts.items())]
        self._replace({_KEY: FORMAT, "edges": edges})


def _counts(document: Any, file: StoredFile) -> Counter[Seen]:
    edges = document.get("edges") if isinstance(document, dict) and document.get(_KEY) == FORMAT else None
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
