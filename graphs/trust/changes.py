"""Changes of tool definitions in words and as lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile, zip_longest
from typing import Any

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.text.sanitizing import escaped, one_line
from callsheet.graphs.trust.pins import Change, suspicions

_CONTEXT = 3
# Maximum number of pairs of lines to compare between two anchors.
_MOST_PAIRS = 400_000


class _Lines(SequenceMatcher[str]):
    """Matches equal lines at both ends, then lines that occur once on each side, then the lines between them.

    Sections that are too long to compare count as replaced, so that the diff always shows them.
    """

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, "", "", autojunk=False)
        self.a, self.b = before, after
        self._matches: list[tuple[int, int, int]] = []
        for i, j, size in _matches(before, after):
            x, y, known = self._matches.pop() if self._matches else (0, 0, 0)
            if (x + known, y + known) == (i, j):
                self._matches.append((x, y, known + size))
            else:
                self._matches += [(x, y, known)] * bool(known) + [(i, j, size)] * bool(size)
        self._matches.append((len(before), len(after), 0))

    def get_matching_blocks(self) -> list[tuple[int, int, int]]:  # type: ignore[override]
        """The common sections: position in each text, and number of lines."""
        return self._matches


def difference(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """A complete unified diff."""
    if list(before) != list(after):
        yield from ("--- accepted", "+++ now")
    for group in _Lines(before, after).get_grouped_opcodes(_CONTEXT):
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{i1 + 1},{i2 - i1} +{j1 + 1},{j2 - j1} @@"
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in before[a1:a2])
            else:
                yield from (f"-{line}" for line in before[a1:a2])
                yield from (f"+{line}" for line in after[b1:b2])


def aligned(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Both texts side by side: a line of each, equal or changed; None where one has no line.

    Equal lines far from a change are left out; a pair of two None is in their place.
    """
    end = 0
    for group in _Lines(before, after).get_grouped_opcodes(_CONTEXT):
        if group[0][1] > end:
            yield None, None
        for tag, a1, a2, b1, b2 in group:
            end = a2
            yield from (zip if tag == "equal" else _pairs)(before[a1:a2], after[b1:b2])
    if end < len(before):
        yield None, None


def _pairs(left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Lines that replace each other, from the first or from the last on, where they begin more alike."""
    forwards = [*zip_longest(left, right)]
    backwards = [*zip_longest(reversed(left), reversed(right))][::-1]
    yield from max(forwards, backwards, key=_alike)


def _alike(pairs: Sequence[tuple[str | None, str | None]]) -> int:
    """How many characters the lines of each pair have in common from the beginning."""
    characters = (zip(old or "", new or "", strict=False) for old, new in pairs)
    return sum(1 for both in characters for _ in takewhile(lambda two: two[0] == two[1], both))


def _matches(a: Sequence[str], b: Sequence[str]) -> Iterator[tuple[int, int, int]]:
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
