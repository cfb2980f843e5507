"""Shows values that a person must judge: long texts are shortened, and every key is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from callsheet.graphs.text.sanitizing import escaped, one_line

_LONGEST, _LONGEST_TEXT, _LONGEST_KEY = 4_000, 600, 120
_MOST_ITEMS, _LAST_ITEMS = 500, 100
_WIDTH = 100
_NOTE = "({:,} characters in all: each text is shortened, every key is shown)"


def shown_value(value: Any) -> str:
    """The value as JSON; a long one with one line per key and item, and without the middle of long texts.

    Hidden characters are written out.
    """
    plain = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    lines = plain.split("\n") if len(plain) <= _LONGEST else [*_lines(value), _NOTE.format(len(plain))]
    return "\n".join(map(escaped, lines))


def shown_text(text: str) -> str:
    """A text with hidden characters written out, because a person agrees to it; a long one is cut, which is said."""
    kept = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text):,} characters in all)"
    return "\n".join(map(escaped, kept.split("\n")))


def shown_calls(calls: Sequence[Mapping[str, Any]]) -> str:
    """The arguments of several calls of one tool, to follow its name: those that differ, and those that are the same.

    A few short values of one parameter are in one line, otherwise each call has its own. No call is left out.
    """
    plain = [{name: json.dumps(value, ensure_ascii=False, default=str) for name, value in one.items()} for one in calls]
    same = {name: calls[0][name] for name, text in plain[0].items() if all(one.get(name) == text for one in plain)}
    differing = [{name: value for name, value in one.items() if name not in same} for one in calls]
    names = {name for one in differing for name in one}
    told = ":" + "".join(f"\n  {number}  {_call(one)}" for number, one in enumerate(differing, 1)) if names else ""
    if len(names) == 1 and all(differing):
        (name,) = names
        line = one_line(f", {_key(name)}: {', '.join(one[name] for one in plain)}")
        told = line if len(line) <= _WIDTH else told
    return f"{told}\nIn all of them: {shown_value(same)}" if same or not names else told


def _call(arguments: Mapping[str, Any]) -> str:
    pairs = [f"{_key(name)}: {json.dumps(value, ensure_ascii=False, default=str)}" for name, value in arguments.items()]
    text = ", ".join(pairs) or "(no other arguments)"
    lines = [text] if len(text) <= _LONGEST else [*_lines(arguments), _NOTE.format(len(text))]
    return "\n     ".join(map(one_line, lines))


def _lines(value: Any) -> Iterator[str]:
    waiting = [("", value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, dict) and found:
            inner = [(f"{path}.{_key(key)}".lstrip("."), item) for key, item in found.items()]
            waiting += reversed(inner)
        elif isinstance(found, list) and found:
            waiting += reversed(_items(path, found))
        else:
            yield f"{path}: {found.said if isinstance(found, _LeftOut) else _leaf(found)}"


class _LeftOut:
    """A note in place of items of a long list."""

    def __init__(self, said: str) -> None:
        self.said = said


def _items(path: str, found: list[Any]) -> list[tuple[str, Any]]:
    items = [(f"{path}[{n}]", item) for n, item in enumerate(found)]
    if len(items) <= _MOST_ITEMS or any(isinstance(item, dict | list) for item in found):
        return items
    left_out = len(items) - _MOST_ITEMS
    first = _MOST_ITEMS - _LAST_ITEMS
    note = _LeftOut(f"{left_out:,} of {len(items):,} items of this list are not shown here")
    return [*items[:first], (f"{path}[{first}]", note), *items[-_LAST_ITEMS:]]


def _leaf(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(_short(value, _LONGEST_TEXT), ensure_ascii=False)
    return _short(json.dumps(value, default=str), _LONGEST_TEXT)


def _key(key: str) -> str:
    short = _short(key, _LONGEST_KEY)
    return short if short.isidentifier() else json.dumps(short, ensure_ascii=False)


def _short(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    end = most // 4
    return f"{text[: most - end]} … {len(text) - most:,} characters … {text[-end:]}"
