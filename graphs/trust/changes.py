"""Changes of tool definitions in words and as lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, takewhile, zip_longest
from typing import Any

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.pins import Change

_SENTENCE = re.compile(r"(?<=[.!?。])\s+")
_CONTEXT, _MOST_NAMES = 3, 8
_MOST_LINES, _MOST_PAIRS = 10_000, 100_000
"""Of more changed lines, or more pairs of equal ones among them, only those at equal places are compared."""


def sides_of(change: Change) -> list[tuple[str | None, str | None]]:
    """The accepted definition and the present one side by side, with hidden characters escaped.

    Each pair is a line of both, equal or changed; None where one has no line. Equal lines far from a change are left
    out; a pair of two None is in their place.
    """
    before, after = list(_lines(change.before)), list(_lines(change.after))
    if change.before is None and change.kind not in ("new", "suspect"):
        before = ["(the accepted definition was too long to store)"]
    pairs, i, j = list[tuple[str | None, str | None]](), 0, 0
    for x, y, size in _matches(before, after):
        pairs += zip_longest(before[i:x], after[j:y])
        i, j = x + size, y + size
        pairs += zip(before[x:i], after[y:j], strict=True)
    changed = [n for n, (old, new) in enumerate(pairs) if old != new]
    near = {m for n in changed for m in range(n - _CONTEXT, n + _CONTEXT + 1)}
    shown = ((n, pair if n in near else (None, None)) for n, pair in enumerate(pairs))
    return [pair for n, pair in shown if n in near or n == 0 or n - 1 in near]


def diff_of(change: Change) -> str:
    """The same as a diff: ``-`` accepted, ``+`` now, ``@@`` for equal lines that are left out."""
    lines = ["--- accepted", "+++ now"]
    for changed, pairs in groupby(sides_of(change), lambda pair: pair[0] != pair[1]):
        left, right = zip(*pairs, strict=True)
        if changed:
            lines += [f"-{line}" for line in left if line is not None]
            lines += [f"+{line}" for line in right if line is not None]
        else:
            lines += ["@@" if line is None else f" {line}" for line in left]
    return "\n".join(lines)


def _lines(value: Mapping[str, Any] | None) -> Iterator[str]:
    for key, item in sorted((value or {}).items(), key=lambda one: (one[0] != "name", one[0])):
        if isinstance(item, str):
            text = "\n".join(_SENTENCE.split(item))
        else:
            text = json.dumps(item, ensure_ascii=False, indent=2, sort_keys=True)
        first, *rest = escaped(text).split("\n")
        yield f"{one_line(key)}: {first}"
        yield from (f"  {line}" for line in rest)


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Equal sections: what both begin and end with, and what is equal between these."""
    start = _alike(a, b)
    end = _alike(a[start:][::-1], b[start:][::-1])
    left, right = a[start : len(a) - end], b[start : len(b) - end]
    yield 0, 0, start
    count = Counter(right)
    if len(left) + len(right) <= _MOST_LINES and sum(count[line] for line in left) <= _MOST_PAIRS:
        blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
        yield from ((start + x, start + y, size) for x, y, size in blocks)
    else:
        yield from ((n, n, 1) for n, (one, other) in enumerate(zip(left, right, strict=False), start) if one == other)
    yield len(a) - end, len(b) - end, end


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many lines both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))


_DESCRIPTIONS = {
    "new": "is new since its server was accepted",
    "suspect": "is new, and its name or a text of it hides characters",
    "changed": "is not what was accepted",
    "removed": "is gone from its server",
    "command": "is reached by another command or address than was accepted",
    "about": "describes itself otherwise than was accepted, and the accepted description is used",
}
_LATER = {
    "new": "appeared in a run, and is new since its server was accepted",
    "suspect": "appeared in a run, and its name or a text of it hides characters",
    "changed": "was not what was accepted when a run had gone on for a while",
}
"""The same of tools that a server lists in the middle of a run."""
_SEVERITY = {"removed": Severity.INFO, "about": Severity.WARNING, "new": Severity.WARNING}


def told(change: Change) -> str:
    """A change in one line."""
    return f"{one_line(change.id)} {_described(change)}"


def _described(change: Change) -> str:
    return _LATER.get(change.kind, _DESCRIPTIONS[change.kind]) if change.later else _DESCRIPTIONS[change.kind]


def news_of(changes: Sequence[Change]) -> str:
    """What servers listed in the middle of a run and nobody has accepted, in words, with the command that shows it."""
    lines = list[str]()
    for agent, group in groupby(sorted(changes, key=lambda one: one.agent), lambda one: one.agent):
        kinds = dict[str, list[str]]()
        for change in group:
            kinds.setdefault("changed" if change.kind == "changed" else "new", []).append(one_line(change.tool))
        named = "; ".join(f"{kind}: {_names(tools)}" for kind, tools in sorted(kinds.items()))
        lines.append(f"{one_line(agent)} listed other tools than were accepted ({named}): {_cure(agent)}")
    return "\n".join(lines)


def _names(tools: Sequence[str]) -> str:
    more = [f"and {len(tools) - _MOST_NAMES} more"] if len(tools) > _MOST_NAMES else []
    return ", ".join([*tools[:_MOST_NAMES], *more])


def problems_of(changes: Sequence[Change]) -> tuple[Problem, ...]:
    """The quarantined tools, one problem per server and kind."""
    grouped: dict[tuple[str, str, bool], list[Change]] = {}
    for change in changes:
        if change.kind != "removed":
            grouped.setdefault((change.agent, change.kind, change.later), []).append(change)
    return tuple(Problem(agent, "quarantined", _group_summary(group)) for (agent, *_), group in grouped.items())


def findings_of(changes: Sequence[Change]) -> tuple[Finding, ...]:
    """The changes as findings of ``callsheet check``, one per tool or server."""
    return tuple(
        Finding(
            _SEVERITY.get(change.kind, Severity.ERROR),
            f"pin-{change.kind}",
            f"{_described(change)}: {_cure(change.agent)}",
            change.agent,
            change.id if change.tool else "",
        )
        for change in changes
    )


def _group_summary(group: Sequence[Change]) -> str:
    change, named = group[0], _names([one_line(item.tool) for item in group if item.tool])
    description = _described(change)
    if len(group) > 1:
        description = description.replace("is ", "are ", 1).replace("was ", "were ", 1)
    return f"{named or 'it'} {description}: {_cure(change.agent)}"


def _cure(agent: str) -> str:
    return f"review it with `callsheet approve {one_line(agent)}`"
