"""Fills the parameters of a tool with the values that stand in a step, and says which words were not used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import Any

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.no_model.values import Kind, StepValue, unit_in, values_in, zone_of
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.model import Agent, Parameter, Tool
from callsheet.graphs.text.words import split_name, tokens

_NAMED = (
    (Kind.QUESTION, frozenset({"question", "request"})),
    (Kind.EXPRESSION, frozenset({"expression", "formula"})),
    (Kind.ZONE, frozenset({"timezone", "zone", "tz"})),
    (Kind.FOLDER, frozenset({"dir", "directory", "folder"})),
    (Kind.FILE, frozenset({"file", "filename", "path"})),
    (Kind.URL, frozenset({"url", "uri", "link"})),
    (Kind.EMAIL, frozenset({"email"})),
    (Kind.DATE, frozenset({"date"})),
    (Kind.CLOCK, frozenset({"time"})),
)
"""Words in the name of a string parameter that say what it takes; a text if there is none of them."""
_FORMATS = {"uri": Kind.URL, "email": Kind.EMAIL, "date": Kind.DATE, "time": Kind.CLOCK}
_SIDES = (frozenset({"from", "source", "src"}), frozenset({"to", "target", "dest", "destination"}))
"""Words in the names of two parameters of a conversion: what is given, and what is wanted."""
_EMPTY = frozenset("a an and as at by for from in into of on please the to with".split())
"""Words without content: they refer to nothing, limit nothing and negate nothing."""
_ASKING = frozenset("are be can could do does how i is many me much now want we what when which would you".split())
"""Further such words in a step that only asks for something."""
_TELLING = frozenset(
    "answer check describe display fetch find get give list look lookup query read report retrieve return search show "
    "tell view".split()
)
"""Verbs with which a request asks to be told something: of a harmless tool, they need not be a word of its name."""
_WHO = frozenset("where who whom whose why".split())
"""Words of questions that only a text answers: no value stands for them."""
_FILLERS = re.compile(r"\b(?:it\s+is|is\s+it|it's)\b|\bhow\s+\w+\s+(?:is|are)\s+(?=\d)|(?<=\w)['’]s\b", re.IGNORECASE)
_PARTICLE = re.compile(r"\b(\w+)\s+(?:out|up)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?|[^\w\s.,;:!?()\"'’“”`-]")
_NAME = re.compile(r"[^\W\d_°]+(?:[/_-][^\W\d_]+)*|°[CF]?")
_ALSO = re.compile(r"(?:,|, and|and)(?: (?:in|of|to))?", re.IGNORECASE)
_LONGEST = 4  # words of a unit or a place


@dataclass(frozen=True, slots=True)
class StepReading:
    """A step with the tool for it, and what the step gives to it.

    Attributes:
        tool: The tool; without one that fits, the nearest.
        harmless: Whether it is known to change nothing.
        missing: Required parameters without a value.
        unused: The words of the step that went nowhere, in text order.
        question: Whether the whole step is an argument.
        open: The words of such a step that do not name the tool: its answer must contain them.
        named: Whether a word of the step names the tool.
        others: Ids of other tools that the step fits as well, if no word of it names one.
    """

    text: str
    tool: Tool
    harmless: bool
    args: dict[str, Any]
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    question: bool = False
    open: tuple[str, ...] = ()
    named: bool = False
    others: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the tool is clear, nothing is missing and nothing is left over."""
        return not (self.missing or self.unused or self.others)

    @property
    def understood(self) -> bool:
        """Whether a word names the tool, and nothing is left over; values may be missing."""
        return self.named and not (self.unused or self.others)

    @property
    def certain(self) -> bool:
        """Whether it is complete by values and names, not as a question, which any words are."""
        return self.complete and not self.question


def read_step(
    text: str, tools: Sequence[str], registry: ToolRegistry, results: Sequence[StepResult] = ()
) -> StepReading | None:
    """Returns the reading of a step with the best of its tools, whose ids come best first; None without tools."""
    known = [registry.catalog.tool(tool_id) for tool_id in tools if tool_id in registry.catalog.tools]
    harmless = {tool.id: registry.assurance(tool.id).harm == "none" for tool in known}
    owners = registry.catalog.agent
    readings = [fill(tool, owners(tool.agent), text, results, harmless=harmless[tool.id]) for tool in known]
    best = _best_complete([reading for reading in readings if reading.complete])
    if best is not None:
        return best
    return min(readings, key=lambda r: len(r.unused) + len(r.missing) + (not r.named), default=None)


def _best_complete(complete: Sequence[StepReading]) -> StepReading | None:
    """Returns the best of readings that leave nothing of the step over; None if none of them can be chosen.

    One whose tool the step names comes first; then those of harmless tools, which must be told apart; then one that
    passes the step on as a question.
    """
    named = [reading for reading in complete if reading.named]
    if named:
        return next((reading for reading in named if reading.certain), named[0])
    alone = [reading for reading in complete if reading.harmless and reading.certain]
    if alone:
        return replace(alone[0], others=tuple(other.tool.id for other in alone[1:]))
    return next((reading for reading in complete if reading.question), None)


def fill(
    tool: Tool, agent: Agent, text: str, results: Sequence[StepResult] = (), *, harmless: bool = False
) -> StepReading:
    """Fills the parameters of a tool; a value that fits two free parameters fills none."""
    taken = _assignment(tool, text, results)
    args = {name: value.value for name, value in taken.items()}
    words = list(_content(text, [*taken.values()], harmless=harmless))
    naming = _naming(words, tool, agent, [parameter for parameter in tool.parameters if parameter.name in args])
    unused = tuple(word for word, asking in words if not asking and word not in naming)
    question = _question_of(tool)
    if question and (naming or (harmless and _asks_to_be_told(text))):
        args[question] = text.strip()
        left = unused if harmless else ()
        return StepReading(text, tool, harmless, args, question=True, open=left, named=bool(naming))
    missing = tuple(one.name for one in tool.parameters if one.required and one.name not in args)
    return StepReading(text, tool, harmless, args, missing, unused, named=len(unused) < len(words))


def _question_of(tool: Tool) -> str | None:
    """Returns the parameter that takes a whole question; None if there is none."""
    return next((parameter.name for parameter in tool.parameters if value_kind(parameter) == Kind.QUESTION), None)


def _assignment(tool: Tool, text: str, results: Sequence[StepResult]) -> dict[str, StepValue]:
    """Returns the values of a step by the names of the parameters that they fill, in the order of the parameters."""
    values = values_in(text, results)
    values += _choices(text, values, tool.parameters)
    fits: dict[str, list[StepValue]] = {}
    for parameter in tool.parameters:
        fits[parameter.name] = [value for value in values if _takes(tool, parameter, value)]
    taken = _conversion(text, values, fits)
    _match(values, fits, taken)
    return {name: taken[name] for name in fits if name in taken}


def _naming(words: Iterable[tuple[str, bool]], tool: Tool, agent: Agent, filled: Sequence[Parameter]) -> list[str]:
    """Returns the words of a step that name a tool, with these parameters in use."""
    names = _names(tool, agent, filled)
    # A word of the tool's own name counts even if it has no content elsewhere: "get", "or".
    own = split_name(tool.name).split()
    naming: list[str] = []
    for word, _ in words:
        stems = tokens(word)
        if word.lower() in own or (stems and names.issuperset(stems)):
            naming.append(word)
    return naming


def _asks_to_be_told(text: str) -> bool:
    """Returns whether a step is a question, or begins with a verb such as "tell" or "find"."""
    first = text.split(maxsplit=1)[:1]
    return text.rstrip().endswith("?") or any(word.lower() in _TELLING for word in first)


def value_kind(parameter: Parameter) -> Kind | None:
    """Returns what a parameter takes; None for lists, objects and flags, which no words fill."""
    types = set(parameter.type.split("|")) - {"null", "any"}
    if any(isinstance(choice, str) for choice in parameter.enum):
        return Kind.CHOICE
    if types & {"number", "integer"}:
        return Kind.NUMBER
    if types - {"string"}:
        return None
    words = set(split_name(parameter.name).split())
    return _FORMATS.get(parameter.format) or next((kind for kind, names in _NAMED if words & names), Kind.TEXT)


def side_of(name: str) -> int:
    """0 for a parameter of what is given, 1 for one of what is wanted, -1 for others."""
    words = set(split_name(name).split())
    return next((side for side, names in enumerate(_SIDES) if words & names), -1)


def _takes(tool: Tool, parameter: Parameter, value: StepValue) -> bool:
    """Returns whether a value is of the right kind and fits the schema."""
    if value_kind(parameter) not in value.kinds or (parameter.enum and value.value not in parameter.enum):
        return False
    only = {parameter.name: tool.input_schema["properties"][parameter.name]}
    return not fit_of({**tool.input_schema, "properties": only, "required": []}, {parameter.name: value.value}).errors


def _choices(text: str, values: Sequence[StepValue], parameters: Sequence[Parameter]) -> Iterator[StepValue]:
    """Yields the allowed values and the time zones that a text names, the longest names first."""
    lists = {tuple(one for one in p.enum if isinstance(one, str)) for p in parameters if value_kind(p) == Kind.CHOICE}
    zones = any(value_kind(parameter) == Kind.ZONE for parameter in parameters)
    words = list(_NAME.finditer(text))
    taken = [(value.start, value.end) for value in values]
    for length in range(_LONGEST, 0, -1):
        for first, last in zip(words, words[length - 1 :], strict=False):
            start, end, said = first.start(), last.end(), text[first.start() : last.end()]
            edges = {first.group().lower(), last.group().lower()}
            if edges & (_EMPTY | _ASKING) or any(a < end and start < b for a, b in taken):
                continue
            found = _values_named(said, lists, zones=zones)
            if len(found) == 1:
                ((kind, value),) = found
                taken.append((start, end))
                yield StepValue(frozenset({kind}), value, start, end)


def _values_named(said: str, lists: Iterable[tuple[str, ...]], *, zones: bool) -> set[tuple[Kind, str]]:
    """Returns the allowed values, and with ``zones`` the time zone, that words may name."""
    found: set[tuple[Kind, str]] = set()
    for one in lists:
        choice = unit_in(said, one)
        if choice:
            found.add((Kind.CHOICE, choice))
    zone = zone_of(said) if zones else None
    if zone:
        found.add((Kind.ZONE, zone))
    return found


def _conversion(
    text: str, values: Sequence[StepValue], fits: Mapping[str, Sequence[StepValue]]
) -> dict[str, StepValue]:
    """The two sides of a conversion: the unit beside the number, or the zone beside the time, is the given one."""
    counts = [value for value in values if value.kinds & {Kind.NUMBER, Kind.CLOCK}]
    for given, wanted in permutations(fits, 2):
        if (side_of(given), side_of(wanted)) != (0, 1):
            continue
        sides = [value for value in fits[given] if value in fits[wanted]]
        beside = [value for value in sides if any(_is_beside(text, count, value) for count in counts)]
        if len(sides) == 2 and len(beside) == 1:
            return {given: beside[0], wanted: next(value for value in sides if value is not beside[0])}
    return {}


def _is_beside(text: str, count: StepValue, value: StepValue) -> bool:
    """Whether nothing but one word without content is between a number or a time and the value that belongs to it."""
    if Kind.NUMBER in count.kinds:
        return count.end <= value.start and text[count.end : value.start].strip() in ("", "-")
    between = text[min(count.end, value.end) : max(count.start, value.start)].split()
    return len(between) <= 1 and all(word.lower() in _EMPTY | _ASKING for word in between)


def _match(values: Sequence[StepValue], fits: Mapping[str, Sequence[StepValue]], taken: dict[str, StepValue]) -> None:
    """Fills each parameter that is the only free one for a value, and for one value only, until there is none."""
    while True:
        left = [value for value in values if value not in taken.values()]
        free = {id(value): [name for name in fits if name not in taken and value in fits[name]] for value in left}
        only = [(value, free[id(value)][0]) for value in left if len(free[id(value)]) == 1]
        found = {name: value for value, name in only if sum(other == name for _, other in only) == 1}
        if not found:
            return
        taken |= found


def _names(tool: Tool, agent: Agent, filled: Sequence[Parameter]) -> set[str]:
    """The words that name a tool: those of its names, its descriptions, its agent's, and the parameters in use."""
    sentence = tool.description.strip().partition("\n")[0].partition(". ")[0]
    texts = [tool.title, sentence, agent.name]
    texts += [split_name(tool.name), split_name(agent.id), *(split_name(parameter.name) for parameter in filled)]
    return set(tokens(" ".join([*texts, *(f"{parameter.name} {parameter.description}" for parameter in filled)])))


def _content(text: str, covered: Sequence[StepValue], *, harmless: bool) -> Iterator[tuple[str, bool]]:
    """Yields the words with content outside of the values, each with whether it only asks for something."""
    spans = [(value.start, value.end) for value in covered] + [match.span() for match in _FILLERS.finditer(text)]
    if harmless:
        asked = (match for match in _PARTICLE.finditer(text) if match[1].lower() in _TELLING)
        spans += [(match.end(1), match.end()) for match in asked]
    empty = _EMPTY | _ASKING if harmless else _EMPTY
    left = list(text)
    for start, end in spans:
        left[start:end] = "\0" * (end - start)
    for match in _WORD.finditer("".join(left).replace("\0", " ")):
        word = match.group()
        attached = left[match.start() - 1 : match.start()] == ["\0"]
        if attached or word.lower() not in empty:
            yield word, harmless and word.lower() in _TELLING


def spread(tool: Tool, text: str) -> list[str]:
    """The text once for each of several values of one kind that stand side by side: "Convert 3, 5 and 8 miles"."""
    found = values_in(text)
    found = sorted([*found, *_choices(text, found, tool.parameters)], key=lambda value: value.start)
    between = {b: " ".join(text[a.end : b.start].replace(",", " ,").split()) for a, b in pairwise(found)}
    pairs = [(a, b) for a, b in pairwise(found) if a.kinds == b.kinds and _ALSO.fullmatch(between[b])]
    if not pairs or any(one[1] is not other[0] for one, other in pairwise(pairs)):
        return []
    run = [pairs[0][0], *(after for _, after in pairs)]
    return [f"{text[: run[0].start]}{text[one.start : one.end]}{text[run[-1].end :]}" for one in run]


def unanswered_words(reading: StepReading, answer: str) -> tuple[str, ...]:
    """Returns the words of a question that its answer does not contain.

    A word for a kind of value may be such a value.
    """
    said = set(tokens(answer))
    kinds = {kind for value in values_in(answer) for kind in value.kinds}
    named = _WHO.union(*(words for kind, words in _NAMED if kind in kinds))
    return tuple(word for word in reading.open if word.lower() not in named and not said.issuperset(tokens(word)))
