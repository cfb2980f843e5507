"""The entries of a ``tools/list``, told apart once for whoever pins, compares or uses them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

LONGEST_NAME = 1_024
"""Characters of a tool's name."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What is a tool in a listing, and what is not.

    Attributes:
        tools: Name -> entry, of the names that occur once. Of a name that occurs more often nobody could say which
            entry a server means, so there is none.
        repeated: Name -> how often, of the others.
        nameless: Positions of entries without a name, or with a longer one than a name may be, from 1.
    """

    tools: Mapping[str, dict[str, Any]]
    repeated: Mapping[str, int]
    nameless: tuple[int, ...]

    @classmethod
    def of(cls, listing: Sequence[Any]) -> Self:
        """Those of a listing as a server sent it."""
        names = [name_of(entry) for entry in listing]
        times = Counter(name for name in names if name)
        return cls(
            {name: entry for name, entry in zip(names, listing, strict=True) if name and times[name] == 1},
            {name: count for name, count in times.items() if count > 1},
            tuple(position for position, name in enumerate(names, 1) if not name),
        )


def name_of(entry: Any) -> str:
    """The name of an entry, as it can be written in UTF-8; empty if it has none that can be used."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        return ""
    return name.encode("utf-8", "replace").decode("utf-8")
