"""Dependencies seen while running: a call that took an argument from the result of another."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog, DependencyKind
from callsheet.graphs.dependencies.proposals import Proposal
from callsheet.graphs.storage import locked, replace_text, state_folder

Seen = tuple[str, str, str]
"""Source, target, and the parameter of the source that took its value from a result of the target."""
FORMAT = 1
_SHORTEST, _LONGEST = 3, 500
_KEY = "callsheet_observed"


class CallRecord(Protocol):
    """One tool call as it was made."""

    @property
    def tool(self) -> str:
        """Id of the tool."""
        ...

    @property
    def args(self) -> Mapping[str, Any]:
        """What it was called with."""
        ...

    @property
    def output(self) -> str:
        """What it answered, as text; empty when it failed."""
        ...


def observed(calls: Sequence[CallRecord], *, before: Sequence[CallRecord] = (), said: str = "") -> Counter[Seen]:
    """The arguments that calls took from the results of earlier ones.

    An argument counts if its value, of at least three characters, stands as a whole in an earlier result, and neither
    in what the user said nor in the arguments of that earlier call, for then it may have come from there. It counts
    for the first call that answered it.

    Args:
        calls: The calls of one step, in order.
        before: The calls of the steps that it builds on, in order.
        said: The request in the user's words.

    Returns:
        How often each was seen.
    """
    seen: Counter[Seen] = Counter()
    known = list(before)
    for call in calls:
        for parameter, value in _values(call.args):
            if not _within(value, said) and (giver := _giver(value, known)) and giver != call.tool:
                seen[call.tool, giver, parameter] += 1
        known.append(call)
    return seen


def observed_proposals(seen: Mapping[Seen, int], catalog: Catalog) -> tuple[Proposal, ...]:
    """What was seen as proposals, those with the most first; tools that the catalog does not hold are passed over.

    Having seen it n times gives the confidence ``n / (n + 1)``.
    """
    found = []
    for (source, target, parameter), count in sorted(seen.items(), key=lambda item: (-item[1], item[0])):
        if source not in catalog.tools or target not in catalog.tools:
            continue
        required = any(p.name == parameter.split(".")[0] and p.required for p in catalog.tools[source].parameters)
        kind = DependencyKind.PARAMETER_DIRECTLY if required else DependencyKind.PARAMETER_INDIRECTLY
        times = "once" if count == 1 else f"{count} times"
        found.append(
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
    return tuple(found)


class ObservationLog:
    """Counts of what was seen, kept in a file; no value of any call gets into it.

    Args:
        path: The file; ``observed.json`` in the state folder by default. It is made when something is first kept.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / "observed.json" if path is None else Path(path)

    def read(self) -> Counter[Seen]:
        """What was counted so far; nothing where there is no file yet.

        Raises:
            CatalogError: The file is not one of ours.
        """
        try:
            document = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Counter()
        except (OSError, ValueError, RecursionError) as error:
            raise CatalogError(f"{self.path}: cannot be read: {error}: remove the file to count anew") from error
        return _counts(document, self.path)

    def add(self, seen: Mapping[Seen, int]) -> None:
        """Adds to the counts; several processes may do so at once.

        Raises:
            CatalogError: The file is not one of ours.
            TrustError: It cannot be written.
        """
        if not seen:
            return
        with locked(self.path):
            counts = self.read()
            counts.update(seen)
            edges = [[*key, count] for key, count in sorted(counts.items())]
            replace_text(self.path, json.dumps({_KEY: FORMAT, "edges": edges}, ensure_ascii=False, indent=0))


def _counts(document: Any, path: Path) -> Counter[Seen]:
    edges = document.get("edges") if isinstance(document, dict) and document.get(_KEY) == FORMAT else None
    match edges:
        case list() if all(_is_count(edge) for edge in edges):
            return Counter({(source, target, parameter): count for source, target, parameter, count in edges})
        case _:
            raise CatalogError(f"{path}: not a file of observed dependencies: remove it to count anew")


def _is_count(edge: Any) -> bool:
    match edge:
        case [str(), str(), str(), int() as count]:
            return count > 0
        case _:
            return False


def _values(args: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """The leaves of a call's arguments that could be recognised again, each with the names that lead to it."""
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
            if path and _SHORTEST <= len(text := str(args).strip()) <= _LONGEST:
                yield ".".join(path), text


def _giver(value: str, known: Iterable[CallRecord]) -> str | None:
    for call in known:
        if call.output and _within(value, call.output):
            asked = any(_within(value, text) for _, text in _values(call.args))
            return None if asked else call.tool
    return None


def _within(value: str, text: str) -> bool:
    """Whether a value stands in a text as a whole, not as a part of a longer word or number."""
    return value in text and re.search(rf"(?<![\w]){re.escape(value)}(?![\w])", text) is not None
