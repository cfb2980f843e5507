"""Describes changes of tool definitions, in words and as a diff."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Any

from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.errors import Finding, Severity
from callsheet.graphs.text.hidden import escaped, escaped_line
from callsheet.graphs.trust.pins import Change

_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_CONTEXT = 3
"""Equal lines that are shown before and after a change."""
_MOST_NAMES = 8
_MOST_LINES = 10_000
_MOST_PAIRS = 100_000
"""Of more changed lines, or more pairs of equal ones among them, only those at equal places are compared."""


Side = tuple[str | None, str | None]
"""A pair of a line of the accepted definition and one of the present definition; None if one has no such line."""


def sides_of(change: Change) -> list[Side]:
    """Compares the accepted definition with the present one, line by line and side by side.

    Each pair has a line of both definitions, equal or changed; None where one definition has no such line. Equal lines
    far from a change are left out, and a pair of two None marks the place. Hidden characters are escaped.
    """
    before = list(_lines(change.before))
    after = list(_lines(change.after))
    if change.before is None and change.kind not in ("new", "suspect"):
        before = ["(the accepted definition was too long to store)"]
    pairs = list[Side]()
    left = right = 0
    for x, y, size in _matches(before, after):
        pairs += zip_longest(before[left:x], after[right:y])
        pairs += zip(before[x : x + size], after[y : y + size], strict=True)
        left = x + size
        right = y + size
    return _near_changes(pairs)


def _near_changes(pairs: Sequence[Side]) -> list[Side]:
    """Returns the changed lines with a few equal ones around; a pair of None is in place of each part left out."""
    near = set[int]()
    for n, (old, new) in enumerate(pairs):
        if old != new:
            near.update(range(n - _CONTEXT, n + _CONTEXT + 1))
    shown = list[Side]()
    for n, pair in enumerate(pairs):
        if n in near:
            shown.append(pair)
        elif n == 0 or n - 1 in near:
            shown.append((None, None))
    return shown


def diff_of(change: Change) -> str:
    """Returns the comparison of ``sides_of`` as a diff: ``-`` accepted, ``+`` present, ``@@`` for omitted lines."""
    lines = ["--- accepted", "+++ now"]
    for changed, pairs in groupby(sides_of(change), lambda pair: pair[0] != pair[1]):
        accepted, present = zip(*pairs, strict=True)
        if changed:
            lines += [f"-{line}" for line in accepted if line is not None]
            lines += [f"+{line}" for line in present if line is not None]
        else:
            lines += ["@@" if line is None else f" {line}" for line in accepted]
    return "\n".join(lines)


def _lines(value: Mapping[str, Any] | None) -> Iterator[str]:
    """Yields a definition as lines, its name first, a sentence of a text on each line."""
    fields = sorted((value or {}).items(), key=lambda field: (field[0] != "name", field[0]))
    for key, item in fields:
        if isinstance(item, str):
            text = "\n".join(_SENTENCE.split(item))
        else:
            text = json.dumps(item, ensure_ascii=False, indent=2, sort_keys=True)
        first, *rest = escaped(text).split("\n")
        yield f"{escaped_line(key)}: {first}"
        for line in rest:
            yield f"  {line}"


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yields the equal sections: what both begin and end with, and what is equal between these.

    A section is where it starts in ``a`` and in ``b``, and how many lines it has.
    """
    start = _common_beginning(a, b)
    end = _common_beginning(a[start:][::-1], b[start:][::-1])
    left = a[start : len(a) - end]
    right = b[start : len(b) - end]
    yield 0, 0, start
    count = Counter(right)
    pairs = sum(count[line] for line in left)
    if len(left) + len(right) <= _MOST_LINES and pairs <= _MOST_PAIRS:
        for x, y, size in SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
            yield start + x, start + y, size
    else:
        # SequenceMatcher would take quadratic time.
        for n, (one, other) in enumerate(zip(left, right, strict=False), start):
            if one == other:
                yield n, n, 1
    yield len(a) - end, len(b) - end, end


def _common_beginning(a: Sequence[str], b: Sequence[str]) -> int:
    """Returns how many lines both begin with."""
    length = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        length += 1
    return length


_DESCRIPTIONS = {
    "new": "is new since its server was accepted",
    "suspect": "is new, and its name or a text of it has hidden characters",
    "changed": "is not what was accepted",
    "removed": "is gone from its server",
    "command": "is reached by another command or address than was accepted",
    "about": "describes itself otherwise than was accepted, and the accepted description is used",
}
_LATER = {
    "new": "appeared in a run, and is new since its server was accepted",
    "suspect": "appeared in a run, and its name or a text of it has hidden characters",
    "changed": "was not what was accepted when a run had gone on for a while",
}
"""The same of tools that a server lists in the middle of a run."""
_SEVERITY = {"removed": Severity.INFO, "about": Severity.WARNING, "new": Severity.WARNING}


def describe_change(change: Change) -> str:
    """Describes a change in one line."""
    return f"{escaped_line(change.id)} {_described(change)}"


def _described(change: Change) -> str:
    description = _DESCRIPTIONS[change.kind]
    return _LATER.get(change.kind, description) if change.later else description


def news_of(changes: Sequence[Change]) -> str:
    """Describes what servers listed in the middle of a run, one line per agent, with the command that shows it."""
    lines = list[str]()
    for agent, group in groupby(sorted(changes, key=lambda change: change.agent), lambda change: change.agent):
        tools_by_kind = dict[str, list[str]]()
        for change in group:
            kind = "changed" if change.kind == "changed" else "new"
            tools_by_kind.setdefault(kind, []).append(escaped_line(change.tool))
        named = "; ".join(f"{kind}: {_names(tools)}" for kind, tools in sorted(tools_by_kind.items()))
        lines.append(f"{escaped_line(agent)} listed other tools than were accepted ({named}): {_cure(agent)}")
    return "\n".join(lines)


def _names(tools: Sequence[str]) -> str:
    names = list(tools[:_MOST_NAMES])
    if len(tools) > _MOST_NAMES:
        names.append(f"and {len(tools) - _MOST_NAMES} more")
    return ", ".join(names)


def problems_of(changes: Sequence[Change]) -> tuple[Problem, ...]:
    """Returns the quarantined tools, one problem per server and kind."""
    groups: dict[tuple[str, str, bool], list[Change]] = {}
    for change in changes:
        if change.kind != "removed":
            groups.setdefault((change.agent, change.kind, change.later), []).append(change)
    return tuple(Problem(agent, "quarantined", _group_summary(group)) for (agent, *_), group in groups.items())


def findings_of(changes: Sequence[Change]) -> tuple[Finding, ...]:
    """Returns the changes as findings of ``callsheet check``, one per tool or server."""
    findings = []
    for change in changes:
        severity = _SEVERITY.get(change.kind, Severity.ERROR)
        message = f"{_described(change)}: {_cure(change.agent)}"
        tool = change.id if change.tool else ""
        findings.append(Finding(severity, f"pin-{change.kind}", message, change.agent, tool))
    return tuple(findings)


def _group_summary(group: Sequence[Change]) -> str:
    change = group[0]  # all of one kind
    named = _names([escaped_line(item.tool) for item in group if item.tool])
    description = _described(change)
    if len(group) > 1:
        description = description.replace("is ", "are ", 1).replace("was ", "were ", 1)
    return f"{named or 'it'} {description}: {_cure(change.agent)}"


def _cure(agent: str) -> str:
    return f"review it with `callsheet approve {escaped_line(agent)}`"
