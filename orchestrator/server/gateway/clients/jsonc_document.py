"""JSON with comments and trailing commas, edited in place.

No library on PyPI for this edits without a runtime of its own, or reads large files fast. So comments are located by
the lexer of Pygments and blanked out, which keeps all positions, and ``json`` does the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.orchestrator.server.gateway.clients.config_document import check_exchanged, newline_of, servers_of

_SPACE = re.compile(r"[ \t\r\n]*")
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\r\n]*)?")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object, as positions in the text; ``comma`` is -1 where none follows."""

    name: str
    start: int
    value: int
    end: int
    comma: int


@dataclass(frozen=True, slots=True)
class _Object:
    """An object, as positions of its braces and members."""

    start: int
    end: int
    members: tuple[_Member, ...]

    def member(self, name: str) -> _Member | None:
        return next((member for member in self.members if member.name == name), None)


class JsoncDocument:
    """A configuration in JSON, with or without comments.

    Raises:
        SettingsError: It is not valid, not an object, or names a server twice.
    """

    def __init__(self, text: str, key: str, file: Path) -> None:
        self.text, self.key, self._file = text if text.strip() else "{}\n", key, file
        self._plain, self.value = self._parsed()
        self.servers = servers_of(self.value, key, file)
        self._root = self._object(_after_space(self._plain, 0))
        found = self._root.member(key)
        self._held = self._object(found.value) if found else None
        self._newline = newline_of(self.text)

    def source_of(self, name: str) -> str:
        """As in ``ConfigDocument``."""
        member = self._held.member(name) if self._held else None
        if member is None:
            raise KeyError(name)
        return self.text[member.start : member.end]

    def source(self, name: str, entry: Mapping[str, Any]) -> str:
        """As in ``ConfigDocument``."""
        indent = self._inner_indent() if self._held else self._unit() * 2
        return self._member(name, entry, indent)

    def exchanged(self, remove: Collection[str], add: Mapping[str, str]) -> str:
        """As in ``ConfigDocument``."""
        if self._held is not None:
            text = self._edited(self._held, remove, list(add.values()), self._inner_indent())
        elif add:
            unit, held = self._unit(), f",{self._newline}{self._unit() * 2}".join(add.values())
            member = f"{json.dumps(self.key)}: {{{self._newline}{unit * 2}{held}{self._newline}{unit}}}"
            text = self._edited(self._root, (), [member], unit)
        else:
            return self.text
        check_exchanged(self, JsoncDocument(text, self.key, self._file), remove, add, self._file)
        return text

    def without_servers(self) -> str:
        """As in ``ConfigDocument``."""
        return self._edited(self._root, (self.key,), (), self._unit())

    def _parsed(self) -> tuple[str, dict[str, Any]]:
        plain = self.text
        try:
            try:
                value = json.loads(plain)
            except json.JSONDecodeError:
                value = json.loads(plain := _without_comments(plain))
        except json.JSONDecodeError as error:
            where = f"line {error.lineno} column {error.colno}"
            raise SettingsError(f"{self._file}: not valid JSON: {error.msg}, {where}. Nothing was written") from error
        except (ValueError, RecursionError) as error:
            raise SettingsError(
                f"{self._file}: nested too deeply, or with a number too long, to be read. Nothing was written"
            ) from error
        if not isinstance(value, dict):
            raise SettingsError(f"{self._file}: must hold a JSON object. Nothing was written")
        return plain, value

    def _object(self, start: int) -> _Object:
        members = tuple(self._members(start))
        names = [member.name for member in members]
        if twice := {name for name in names if names.count(name) > 1}:
            raise SettingsError(f"{self._file}: {min(twice)!r} occurs twice in one object. Nothing was written")
        end = _after_space(self._plain, (members[-1].comma + 1 or members[-1].end) if members else start + 1)
        return _Object(start, end, members)

    def _members(self, start: int) -> Iterator[_Member]:
        at = _after_space(self._plain, start + 1)
        while self._plain[at] != "}":
            name, end_of_name = _DECODER.raw_decode(self._plain, at)
            value = _after_space(self._plain, _after_space(self._plain, end_of_name) + 1)
            _, end = _DECODER.raw_decode(self._plain, value)
            following = _after_space(self._plain, end)
            comma = following if self._plain[following] == "," else self._last_comma(end, following)
            yield _Member(name, at, value, end, comma)
            at = following if self._plain[following] == "}" else _after_space(self._plain, following + 1)

    def _last_comma(self, start: int, end: int) -> int:
        """Position of a trailing comma, which is blanked out in the plain text; -1 if there is none."""
        if self._plain is self.text:
            return -1
        gap = _without_comments(self.text[start:end], keep_commas=True).find(",")
        return start + gap if gap >= 0 else -1

    def _unit(self) -> str:
        """One step of indentation."""
        first = self._root.members[0].start if self._root.members else 0
        return _indent(self.text, first) or "  "

    def _inner_indent(self) -> str:
        """Indentation of a server."""
        held = self._held
        if held and held.members and "\n" in self.text[held.start : held.members[0].start]:
            return _indent(self.text, held.members[0].start)
        return self._unit() * 2

    def _member(self, name: str, entry: Any, indent: str) -> str:
        written = json.dumps(entry, ensure_ascii=False, indent=self._unit())
        return f"{json.dumps(name, ensure_ascii=False)}: " + written.replace("\n", f"{self._newline}{indent}")

    def _edited(self, held: _Object, remove: Collection[str], add: Sequence[str], indent: str) -> str:
        kept = [member for member in held.members if member.name not in remove]
        gone = [member for member in held.members if member.name in remove]
        edits = [(*self._widened(start, end), "") for start, end in self._cuts(gone)]
        trailing = bool(held.members) and held.members[-1].comma >= 0
        if add:
            edits += self._insertion(held, kept, add, indent, trailing=trailing)
        elif kept and kept[-1].comma >= 0 and not trailing:
            edits.append((kept[-1].comma, kept[-1].comma + 1, ""))
        text = self.text
        for start, end, new in sorted(edits, key=lambda edit: edit[:2], reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _cuts(self, gone: Sequence[_Member]) -> Iterator[tuple[int, int]]:
        for member in gone:
            if member.comma < 0:
                yield member.start, member.end
            elif self.text[member.end : member.comma].strip():  # a comment between stays
                yield from ((member.start, member.end), (member.comma, member.comma + 1))
            else:
                yield member.start, member.comma + 1

    def _widened(self, start: int, end: int) -> tuple[int, int]:
        """A cut with the line that it leaves empty, or with the blanks after it."""
        left, right = start - len(_indent(self.text, start)), end
        while self.text[right] in " \t":
            right += 1
        newline = next((one for one in ("\r\n", "\n") if self.text.startswith(one, right)), "")
        alone = left == 0 or self.text[left - 1] == "\n"
        return (left, right + len(newline)) if newline and alone else (start, right if not newline else end)

    def _insertion(
        self, held: _Object, kept: Sequence[_Member], add: Sequence[str], indent: str, *, trailing: bool
    ) -> list[tuple[int, int, str]]:
        inner = self.text[held.start + 1 : held.end]
        lines = f"{self._newline}{indent}"
        if not inner.strip():  # nothing in it, not even a comment
            outer = _line_indent(self.text, held.start)
            written = f",{lines}".join(add)
            return [(held.start + 1, held.end, f"{lines}{written}{self._newline}{outer}")]
        if "\n" not in inner and kept:
            lines = " "
        written = ("," + lines).join(add) + ("," if trailing else "")
        if not kept:
            at = self._end_of_line(held.start + 1)
            tail = "" if "\n" in self.text[at : held.end] else self._newline + _line_indent(self.text, held.start)
            return [(at, at, f"{lines}{written}{tail}")]
        last = kept[-1]
        at = self._end_of_line(last.comma + 1 if last.comma >= 0 else last.end)
        if last.comma < 0 and at == last.end:
            return [(at, at, f",{lines}{written}")]
        comma = [] if last.comma >= 0 else [(last.end, last.end, ",")]
        return [*comma, (at, at, f"{lines}{written}")]

    def _end_of_line(self, start: int) -> int:
        """The end of the line after comments that follow; ``start`` itself if something else follows."""
        found = _REST_OF_LINE.match(self.text, start)
        end = found.end() if found else start
        return end if self.text.startswith(("\n", "\r\n"), end) else start


def _after_space(text: str, start: int) -> int:
    found = _SPACE.match(text, start)
    return found.end() if found else start


def _indent(text: str, at: int) -> str:
    """The blanks between the start of the line and a position; empty if there is something else."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "" if line.strip() else line


def _line_indent(text: str, at: int) -> str:
    """The blanks at the start of the line of a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _without_comments(text: str, *, keep_commas: bool = False) -> str:
    """The text with comments and trailing commas replaced by blanks; of the same length."""
    from pygments.lexers.data import JsonLexer
    from pygments.token import Comment, Punctuation, Whitespace

    plain, before, comma = list(text), "", -1
    for start, kind, value in JsonLexer().get_tokens_unprocessed(text):
        if kind in Comment:
            plain[start : start + len(value)] = ["\n" if letter == "\n" else " " for letter in value]
        elif kind not in Whitespace:
            for at, letter in enumerate(value if kind in Punctuation else "-", start):
                if letter in "}]" and comma >= 0 and not keep_commas:
                    plain[comma] = " "
                comma = at if letter == "," and before not in ("", "{", "[", ",") else -1
                before = letter
    return "".join(plain)
