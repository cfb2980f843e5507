"""Describes changes of servers for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.text.line_diff import aligned, difference
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.pins import Change, suspicions

_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_MOST_NAMES = 8
_FIRST = ("name", "title", "description")
_DESCRIPTIONS = {
    "new": "is new since its server was accepted",
    "suspect": "is new, and a text of it gives a model orders or hides something",
    "changed": "is not what was accepted",
    "removed": "is gone from its server",
    "command": "is reached by another command or address than was accepted",
    "about": "describes itself otherwise than was accepted, and the accepted description is used",
}
REORDERED = "the same words in another order: PYTHONHASHSEED=0 in its env keeps the order of a server in Python"
"""Hint for a server whose texts change their order at every start."""
_SEVERITY = {"removed": Severity.INFO, "about": Severity.WARNING, "new": Severity.WARNING}


def told(change: Change) -> str:
    """A change in one line."""
    return f"{one_line(change.id)} {_in_detail(change)}"


def _in_detail(change: Change) -> str:
    """The description, for a suspect tool with the words that are suspected."""
    why = "; it ".join(suspicions(change.after)) if change.kind == "suspect" else ""
    return f"is new, and a text of it {why}" if why else _description(change)


def _description(change: Change) -> str:
    return _DESCRIPTIONS[change.kind] + (f" ({REORDERED})" if reordered(change) else "")


def diff_of(change: Change) -> str:
    """A unified diff of the accepted definition and the present one, with hidden characters escaped."""
    return "\n".join(difference(*_both(change)))


def sides_of(change: Change) -> tuple[tuple[str | None, str | None], ...]:
    """The same as pairs of lines, the accepted one and the present one; as ``line_diff.aligned``."""
    return tuple(aligned(*_both(change)))


def _both(change: Change) -> tuple[list[str], list[str]]:
    before, after = list(_lines(change.before)), list(_lines(change.after))
    if change.before is None and change.kind not in ("new", "suspect"):
        before = ["(the accepted definition was too long to store)"]
    return before, after


def reordered(change: Change) -> bool:
    """Whether only the order of words changed, as when a server prints a set."""
    if change.kind != "changed" or change.before is None:
        return False
    before, after = (sorted(re.findall(r"\w+|[^\w\s]", json.dumps(side))) for side in (change.before, change.after))
    return before == after


def problems_of(changes: Sequence[Change]) -> tuple[Problem, ...]:
    """The quarantined tools, one problem per server and kind."""
    grouped: dict[tuple[str, str], list[Change]] = {}
    for change in changes:
        if change.kind != "removed":
            grouped.setdefault((change.agent, change.kind), []).append(change)
    return tuple(Problem(agent, "quarantined", _group_summary(group)) for (agent, _), group in grouped.items())


def findings_of(changes: Sequence[Change]) -> tuple[Finding, ...]:
    """The changes as findings of ``callsheet check``, one per tool or server."""
    return tuple(
        Finding(
            _SEVERITY.get(change.kind, Severity.ERROR),
            f"pin-{change.kind}",
            f"{_in_detail(change)}: {_cure(change.agent)}",
            change.agent,
            change.id if change.tool else "",
        )
        for change in changes
    )


def _group_summary(group: Sequence[Change]) -> str:
    change, names = group[0], [one_line(item.tool) for item in group[:_MOST_NAMES] if item.tool]
    if len(group) > _MOST_NAMES:
        names.append(f"and {len(group) - _MOST_NAMES} more")
    description = _description(change) if len(group) == 1 else _description(change).replace("is ", "are ", 1)
    return f"{', '.join(names) or 'it'} {description}: {_cure(change.agent)}"


def _cure(agent: str) -> str:
    return f"review it with `callsheet approve {one_line(agent)}`"


def _lines(value: Mapping[str, Any] | None) -> Iterator[str]:
    definition = value or {}
    for key in (*(key for key in _FIRST if key in definition), *sorted(definition.keys() - set(_FIRST))):
        item = definition[key]
        is_text = isinstance(item, str)
        text = (
            "\n".join(_SENTENCE.split(item))
            if is_text
            else json.dumps(item, ensure_ascii=False, indent=2, sort_keys=True)
        )
        first, *rest = escaped(text).split("\n")
        yield f"{one_line(key)}: {first}"
        yield from (f"  {line}" for line in rest)
