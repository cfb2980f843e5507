"""What servers changed since it was accepted, told to people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.text.line_diff import difference
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.pins import Change

_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_MOST_NAMES = 8
_FIRST = ("name", "title", "description")
_SAID = {
    "new": "is new since its server was accepted",
    "suspect": "is new, and a text of it gives a model orders or hides something",
    "changed": "is not what was accepted",
    "removed": "is gone from its server",
    "command": "is reached by another command or address than was accepted",
    "about": "says something else of itself than was accepted, and the accepted words are used",
}
REORDERED = "the same words in another order: PYTHONHASHSEED=0 in its env keeps a server in Python still"
"""What to do about a server whose texts are shuffled at every start."""
_SEVERITY = {"removed": Severity.INFO, "about": Severity.WARNING, "new": Severity.WARNING}


def told(change: Change) -> str:
    """One line for a person."""
    return f"{one_line(change.id)} {_said(change)}"


def _said(change: Change) -> str:
    return _SAID[change.kind] + (f" ({REORDERED})" if reordered(change) else "")


def diff_of(change: Change) -> str:
    """A unified diff of what was accepted and what there is now, hidden characters written out."""
    before, after = list(_lines(change.before)), list(_lines(change.after))
    if change.before is None and change.kind not in ("new", "suspect"):
        before = ["(the accepted definition was too long to be kept)"]
    return "\n".join(difference(before, after))


def reordered(change: Change) -> bool:
    """Whether all that changed is the order of words, as of a server that puts a set into its texts."""
    if change.kind != "changed" or change.before is None:
        return False
    before, after = (sorted(re.findall(r"\w+|[^\w\s]", json.dumps(side))) for side in (change.before, change.after))
    return before == after


def problems_of(changes: Sequence[Change]) -> tuple[Problem, ...]:
    """What was left out because of them, a line for each server and kind."""
    grouped: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if change.kind != "removed":
            grouped.setdefault((change.agent, change.kind), []).append(change)
    return tuple(Problem(agent, "quarantined", _told(group)) for (agent, _), group in grouped.items())


def findings_of(changes: Sequence[Change]) -> tuple[Finding, ...]:
    """The same for ``callsheet check``, one for each tool or server."""
    return tuple(
        Finding(
            _SEVERITY.get(change.kind, Severity.ERROR),
            f"pin-{change.kind}",
            f"{_said(change)}: {_cure(change.agent)}",
            change.agent,
            change.id if change.tool else "",
        )
        for change in changes
    )


def _told(group: Sequence[Change]) -> str:
    change, names = group[0], [one_line(item.tool) for item in group[:_MOST_NAMES] if item.tool]
    if len(group) > _MOST_NAMES:
        names.append(f"and {len(group) - _MOST_NAMES} more")
    said = _said(change)
    who = ", ".join(names) or "it"
    return f"{who} {said if len(group) == 1 else said.replace('is ', 'are ', 1)}: {_cure(change.agent)}"


def _cure(agent: str) -> str:
    return f"look at it with `callsheet approve {one_line(agent)}`"


def _lines(value: Mapping[str, Any] | None) -> Iterator[str]:
    for key in sorted(value or {}, key=lambda key: (key not in _FIRST, _FIRST.index(key) if key in _FIRST else 0, key)):
        item = (value or {})[key]
        text = "\n".join(_SENTENCE.split(item)) if isinstance(item, str) else _as_json(item)
        first, *rest = escaped(text).split("\n")
        yield f"{one_line(key)}: {first}"
        yield from (f"  {line}" for line in rest)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)
