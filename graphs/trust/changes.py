"""Changes of tool definitions in words and as lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Any

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.pins import Change, suspicions

_CONTEXT = 3
# Maximum number of pairs of lines to compare between two anchors.
_MOST_PAIRS = 400_000


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """A complete diff: ``-`` before the accepted lines, ``+`` before those of now, ``@@`` for equal ones left out."""
    if list(before) != list(after):
        yield from ("--- accepted", "+++ now")
    for changed, pairs in groupby(aligned(before, after), lambda pair: pair[0] != pair[1]):
        left, right = zip(*pairs, strict=True)
        if changed:
            yield from (f"-{line}" for line in left if line is not None)
            yield from (f"+{line}" for line in right if line is not None)
        else:
            yield from ("@@" if line is None else f" {line}" for line in left)


def aligned(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Both texts side by side: a line of each, equal or changed; None where one has no line.

    Equal lines far from a change are left out; a pair of two None is in their place.
    """
    pairs, i, j = list[tuple[str | None, str | None]](), 0, 0
    for x, y, size in [*_matches(before, after), (len(before), len(after), 0)]:
        pairs += zip_longest(before[i:x], after[j:y])
        i, j = x + size, y + size
        pairs += zip(before[x:i], after[y:j], strict=True)
    changed = [n for n, (old, new) in enumerate(pairs) if old != new]
    near = {m for n in changed for m in range(n - _CONTEXT, n + _CONTEXT + 1)}
    for n, pair in enumerate(pairs):
        if n in near:
            yield pair
        elif n == 0 or n - 1 in near:
            yield None, None


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Equal sections: those between lines that occur once on each side, and these lines."""
    i = j = 0
    for x, y in [*_anchors(a, b), (len(a), len(b))]:
        yield from _between(a, b, (i, x), (j, y))
        if x < len(a):
            yield x, y, 1
        i, j = x + 1, y + 1


def _anchors(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that occur once on each side, by the longest increasing subsequence of their positions."""
    once_a, once_b = Counter(a), Counter(b)
    where = {line: j for j, line in enumerate(b) if once_b[line] == 1}
    pairs = [(i, where[line]) for i, line in enumerate(a) if once_a[line] == 1 and line in where]
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for n, (_, j) in enumerate(pairs):
        at = bisect_left(ends, j)
        previous.append(last[at - 1] if at else -1)
        ends[at : at + 1], last[at : at + 1] = [j], [n]
    sequence, n = [], last[-1] if last else -1
    while n >= 0:
        sequence.append(pairs[n])
        n = previous[n]
    return sequence[::-1]


def _between(
    a: Sequence[str], b: Sequence[str], of_a: tuple[int, int], of_b: tuple[int, int]
) -> Iterator[tuple[int, int, int]]:
    (i1, i2), (j1, j2) = of_a, of_b
    start = 0
    while i1 + start < i2 and j1 + start < j2 and a[i1 + start] == b[j1 + start]:
        start += 1
    end = 0
    while i2 - end > i1 + start and j2 - end > j1 + start and a[i2 - end - 1] == b[j2 - end - 1]:
        end += 1
    yield i1, j1, start
    x, y = i1 + start, j1 + start
    left, right = a[x : i2 - end], b[y : j2 - end]
    if 0 < len(left) * len(right) <= _MOST_PAIRS:
        blocks = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
        yield from ((x + i, y + j, size) for i, j, size in blocks if size)
    else:  # repeated lines: match equal lines at equal positions
        yield from ((x + n, y + n, 1) for n, (one, other) in enumerate(zip(left, right, strict=False)) if one == other)
    yield i2 - end, j2 - end, end


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
_SEVERITY = {"removed": Severity.INFO, "about": Severity.WARNING, "new": Severity.WARNING}


def told(change: Change) -> str:
    """A change in one line."""
    return f"{one_line(change.id)} {_description(change, in_detail=True)}"


def _description(change: Change, *, in_detail: bool) -> str:
    """In detail, a suspect tool is described with the words that are suspected."""
    if in_detail and change.kind == "suspect" and (why := "; it ".join(suspicions(change.after))):
        return f"is new, and a text of it {why}"
    return _DESCRIPTIONS[change.kind]


def diff_of(change: Change) -> str:
    """A diff of the accepted definition and the present one, with hidden characters escaped."""
    return "\n".join(difference(*_both(change)))


def sides_of(change: Change) -> tuple[tuple[str | None, str | None], ...]:
    """The same as pairs of lines, the accepted one and the present one; as ``line_diff.aligned``."""
    return tuple(aligned(*_both(change)))


def _both(change: Change) -> tuple[list[str], list[str]]:
    before, after = list(_lines(change.before)), list(_lines(change.after))
    if change.before is None and change.kind not in ("new", "suspect"):
        before = ["(the accepted definition was too long to store)"]
    return before, after


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
            f"{_description(change, in_detail=True)}: {_cure(change.agent)}",
            change.agent,
            change.id if change.tool else "",
        )
        for change in changes
    )


def _group_summary(group: Sequence[Change]) -> str:
    change, names = group[0], [one_line(item.tool) for item in group[:_MOST_NAMES] if item.tool]
    if len(group) > _MOST_NAMES:
        names.append(f"and {len(group) - _MOST_NAMES} more")
    description = _description(change, in_detail=False)
    description = description if len(group) == 1 else description.replace("is ", "are ", 1)
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
