"""Every regular expression of the code, the texts that are worst for it, and how its time grows with their length."""

from __future__ import annotations

import ast
import gc
import importlib
import pkgutil
import re
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import callsheet

_PARSER = importlib.import_module("re._parser")
_ROOT = Path(callsheet.__file__).resolve().parents[1]
_CODED = ("LITERAL", "RANGE")
_METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")
_EVERYWHERE = ("", " ", "a", "1", "A", "-", "_", ".", ",", "/", "\n", "é", "a ", "a.", "a-", "A.", "a/", '"', "(", "<")
_WHOLE = "\0"
_SIZES = (24, 32, 40, 48, 100, 400, 1_600)  # small steps: what grows exponentially is met early
_LONG_ENOUGH, _SHORTEST, _COSTLY = 0.01, 2e-5, 150
SUPERLINEAR = 9.0
"""Times four in length; linear takes four times as long, quadratic sixteen."""


@dataclass(frozen=True)
class Found:
    """A pattern, where it stands, and the ways in which it is used."""

    where: str
    pattern: Any
    methods: tuple[str, ...]


@cache
def all_patterns() -> tuple[Found, ...]:
    """The compiled patterns of all modules, and those in calls of ``re``."""
    found = {(item.pattern.pattern, item.methods): item for item in (*_of_calls(), *_of_modules())}
    return tuple(found.values())


def growth(item: Found) -> tuple[float, str]:
    """How often longer a text takes when it is four times as long, and its beginning: of the first that is bad.

    It is infinite where a text takes more than 150 times what it takes to cut it into words.
    """
    use, worst = used(item), (0.0, "")
    for text in texts(item.pattern):
        worst = max(worst, (_ratio(use, text), text(60)))
        if worst[0] >= SUPERLINEAR:
            break
    return worst


def texts(pattern: Any) -> Iterator[Callable[[int], str]]:
    """Texts of any length that make an engine try much: what the pattern repeats, repeated, and then an end."""
    seen = set()
    written = pattern.pattern.replace(r"\pM", "[\u0300-\u036f]")  # which only RE2 knows
    tree = _PARSER.parse(written, pattern.flags if isinstance(pattern, re.Pattern) else 0)
    for lead, pump in (*(("", pump) for pump in _EVERYWHERE if pump), *_pumps(list(tree))):
        for tail in ("", _WHOLE, _WHOLE * 200):
            if pump and len(pump) < 200 and (lead, pump, tail) not in seen:
                seen.add((lead, pump, tail))
                yield lambda size, lead=lead, pump=pump, tail=tail: lead + pump * (size // len(pump)) + tail


def _ratio(use: Callable[[str], object], text: Callable[[int], str]) -> float:
    """Time for a text by time for one of a quarter; infinite if it takes much longer than to cut it into words."""
    *steps, size = _SIZES
    # Twice: what disturbs the clock once is longer than most texts take.
    size = next((step for step in steps if all(_seconds(use, text(step)) > _LONG_ENOUGH for _ in range(2))), size)
    ratio, seconds = _grown(use, text, size)
    # A short time may jump once, where the engine takes more memory: what grows too fast does so further on too.
    while SUPERLINEAR <= ratio < float("inf") and seconds < _LONG_ENOUGH:
        size *= 4
        ratio, seconds = _grown(use, text, size)
    return ratio


def _grown(use: Callable[[str], object], text: Callable[[int], str], size: int) -> tuple[float, float]:
    """The time for a text of this size by the time for one of a quarter, and its seconds."""
    ratio = 0.0
    # What disturbs a clock only makes a time longer, so the shortest of several is the nearest to the truth.
    long = short = cut = float("inf")
    for attempt in range(12):
        time.sleep(attempt / 50)  # what disturbs the clock of a thread may go on for a while
        long = min(long, _seconds(use, text(size)))
        if long < SUPERLINEAR * _SHORTEST:
            return 0.0, long
        short = min(short, _seconds(use, text(size // 4)))
        ratio = long / max(short, _SHORTEST)
        if long > _LONG_ENOUGH:
            cut = min(cut, _seconds(_cut, text(size)))
            if long > _COSTLY * cut:
                ratio = float("inf")
        if ratio < SUPERLINEAR:
            break
    return ratio, long


def _cut(text: str) -> None:
    re.findall(r"\w+|.", text, re.DOTALL)


def _seconds(use: Callable[[str], object], text: str) -> float:
    # As ``timeit`` does: a collection looks at all objects of the process, which is no time of the pattern.
    gc.disable()
    try:
        began = time.thread_time()
        use(text)
        return time.thread_time() - began
    finally:
        gc.enable()


def used(item: Found) -> Callable[[str], object]:
    def use(text: str) -> None:
        for method in methods:
            if method in ("finditer", "findall"):
                for _ in item.pattern.finditer(text):
                    pass
            elif method == "sub":
                item.pattern.sub("", text)
            else:
                getattr(item.pattern, method)(text)

    # These look for all matches in the same way, and the first of them does the most with each.
    scans = [method for method in ("sub", "split", "finditer", "findall") if method in item.methods]
    methods = [*scans[:1], *(method for method in item.methods if method not in scans)]
    return use


def _of_modules() -> Iterator[Found]:
    modules = [*pkgutil.walk_packages(callsheet.__path__, "callsheet.")]
    for info in modules:
        if not info.name.endswith(("orchestrator.app", "__main__")):  # these load a catalog, or run
            importlib.import_module(info.name)
    for name, module in sorted(sys.modules.items()):
        if name.startswith("callsheet."):
            for key, value in vars(module).items():
                for pattern in _in(value):
                    yield Found(f"{name}.{key}", pattern, _methods(key, module))


def _in(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, re.Pattern) or type(value).__module__ == "re2":
        yield value
    elif depth < 4 and isinstance(value, dict):
        for item in (*value, *value.values()):
            yield from _in(item, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _in(item, depth + 1)
    elif depth < 4 and is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _in(getattr(value, field.name, None), depth + 1)


@cache
def _sources() -> dict[Path, str]:
    rooms = ("graphs", "retrievers", "agents", "orchestrator")
    return {path: path.read_text(encoding="utf-8") for room in rooms for path in (_ROOT / room).rglob("*.py")}


@cache
def _used_methods() -> dict[tuple[Path | None, str], set[str]]:
    """By file and name of a pattern, and by name for those that several files may use."""
    calls = re.compile(rf"\b(\w+)\.({'|'.join(_METHODS)})\b")
    methods = defaultdict[tuple[Path | None, str], set[str]](set)
    for path, source in _sources().items():
        for name, method in calls.findall(source):
            methods[path if name.startswith("_") else None, name].add(method)
    return methods


def _methods(name: str, module: ModuleType) -> tuple[str, ...]:
    path = Path(module.__file__ or "").resolve() if name.startswith("_") else None
    return tuple(sorted(_used_methods().get((path, name), ()))) or ("finditer",)


def _of_calls() -> Iterator[Found]:
    called = re.compile(rf"\bre\.({'|'.join(_METHODS)})\(")
    for path, source in _sources().items():
        for node in ast.walk(ast.parse(source)) if called.search(source) else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=method), args=[first, *rest]):
                    if method in _METHODS and (text := _literal(first)) is not None:
                        flags = re.IGNORECASE if "IGNORECASE" in "".join(map(ast.unparse, rest)) else 0
                        yield Found(f"{path.relative_to(_ROOT)}:{node.lineno}", re.compile(text, flags), (method,))


def _literal(node: ast.expr) -> str | None:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "word" for part in parts)
    return None


def _pumps(nodes: list[Any]) -> Iterator[tuple[str, str]]:
    """Pairs of a lead and what is repeated after it: each part alone, and every run of parts from the first."""
    lead = ""
    for position, node in enumerate(nodes):
        word = _sample([node])
        for joint in ("", " ", "."):
            yield lead, word + joint
            yield "", lead + word + joint
        for inner in _inner(node):
            yield from ((lead + before, pump) for before, pump in _pumps(inner))
        lead = (lead + word)[-80:]
        if position > 40:
            return


def _inner(node: Any) -> Iterator[list[Any]]:
    kind, value = str(node[0]), node[1]
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        yield list(value[2])
    elif kind == "SUBPATTERN":
        yield list(value[3])
    elif kind == "BRANCH":
        yield from (list(branch) for branch in value[1][:6])
    elif kind in ("ATOMIC_GROUP",):
        yield list(value)


def _sample(nodes: list[Any]) -> str:
    """A text that the parts match, more or less."""
    return "".join(map(_sampled, nodes))


def _sampled(node: Any) -> str:
    kind, value = str(node[0]), node[1]
    match kind:
        case "LITERAL":
            return chr(value)
        case "NOT_LITERAL":
            return "a" if value != ord("a") else "b"
        case "ANY":
            return " "
        case "IN":
            return _member(value)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _sample(list(value[2])) * max(1, min(value[0], 10))
        case "SUBPATTERN":
            return _sample(list(value[3]))
        case "BRANCH":
            return _sample(list(value[1][0]))
        case "ATOMIC_GROUP":
            return _sample(list(value))
        case _:
            return ""


def _member(items: list[Any]) -> str:
    negated = any(str(item[0]) == "NEGATE" for item in items)
    for one in "a1 A_-.,/;:é<(\"'\n@#&":
        inside = any(_holds(item, one) for item in items)
        if inside != negated:
            return one
    codes = (item[1] if str(item[0]) == "LITERAL" else item[1][0] for item in items if str(item[0]) in _CODED)
    return next(map(chr, codes), "x")


def _holds(item: Any, one: str) -> bool:
    match str(item[0]), item[1]:
        case "LITERAL", code:
            return ord(one) == code
        case "RANGE", (low, high):
            return low <= ord(one) <= high
        case "CATEGORY", category:
            word = str(category).rsplit("_", 1)[-1].lower()
            has = {"digit": one.isdigit(), "space": one.isspace(), "word": one.isalnum() or one == "_"}[word]
            return has != ("NOT" in str(category))
    return False
