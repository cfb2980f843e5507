"""Fills the parameters of a tool with the values that stand in a step, and says which words were not used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from callsheet.agents.no_model.units_and_zones import unit_in, zone_of
from callsheet.agents.no_model.values import Kind, Value, values_in
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.arguments import misfits
from callsheet.agents.safety.tool_effects import asks
from callsheet.graphs.catalog.model import Agent, Tool
from callsheet.graphs.text.sanitizing import split_name
from callsheet.graphs.text.words import tokens

_NAMED = (
    (Kind.QUESTION, frozenset({"question"})),
    (Kind.EXPRESSION, frozenset({"expression", "formula"})),
    (Kind.ZONE, frozenset({"timezone", "zone", "tz"})),
    (Kind.FILE, frozenset({"file", "filename", "path"})),
    (Kind.FOLDER, frozenset({"dir", "directory", "folder", "path"})),
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
_ASKING = frozenset("are be can do does how i is many me much want we what when which would you".split())
"""Further such words in a step that only asks for something."""
_WHO = frozenset("where who whom whose why".split())
"""Words of questions that only a text answers: no value stands for them."""
_FILLERS = re.compile(r"\b(?:it\s+is|is\s+it|it's)\b|(?<=\w)['’]s\b", re.IGNORECASE)
_PARTICLE = re.compile(r"\b(\w+)\s+(?:out|up)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?|[^\w\s.,;:!?()\"'’“”`-]")
_NAME = re.compile(r"[^\W\d_°]+(?:[/_-][^\W\d_]+)*|°[CF]?")
_BESIDE = re.compile(r"\s*(?:-\s*)?")
_LONGEST = 4  # words of a unit or a place


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool, and what it takes."""

    name: str
    kinds: frozenset[Kind]
    required: bool
    choices: tuple[str, ...] = ()
    about: str = ""
    spec: Mapping[str, Any] | None = None

    @property
    def side(self) -> int:
        """0 for what is given, 1 for what is wanted, -1 for neither."""
        words = set(split_name(self.name).split())
        return next((side for side, names in enumerate(_SIDES) if words & names), -1)

    def takes(self, value: Value) -> bool:
        """Whether a value is of the right kind and fits the schema."""
        if not self.kinds & value.kinds or (self.choices and value.value not in self.choices):
            return False
        inner = [value.value] if Kind.NUMBERS in self.kinds else value.value
        return not misfits({"properties": {self.name: dict(self.spec or {})}}, {self.name: inner})


@dataclass(frozen=True, slots=True)
class Filled:
    """What a step gives to a tool.

    Attributes:
        args: The arguments.
        missing: Required parameters without a value.
        unused: The words of the step that went nowhere, in text order.
        question: Whether the whole step is an argument.
        open: The words of such a step that do not name the tool: its answer must contain them.
        named: Whether a word of the step names the tool.
    """

    args: dict[str, Any]
    missing: tuple[str, ...]
    unused: tuple[str, ...]
    question: bool = False
    open: tuple[str, ...] = ()
    named: bool = False

    @property
    def complete(self) -> bool:
        """Whether nothing is missing and nothing is left over."""
        return not self.missing and not self.unused


def fill(tool: Tool, agent: Agent, text: str, results: Sequence[StepResult] = (), *, harmless: bool = False) -> Filled:
    """Fills the parameters of a tool; a value that fits two free parameters fills none.

    Args:
        tool: The tool.
        agent: Its agent.
        text: The text of the step.
        results: The results of earlier steps.
        harmless: Whether the tool changes nothing, so that verbs of asking name it.
    """
    parameters = parameters_of(tool)
    values = values_in(text, results)
    values += _choices(text, values, parameters)
    taken = _conversion(text, values, parameters)
    _match(values, parameters, taken)
    args: dict[str, Any] = {name: value.value for name, value in taken.items()}
    covered = list(taken.values())
    lists = [parameter for parameter in parameters if parameter.kinds == {Kind.NUMBERS}]
    if len(lists) == 1 and (numbers := [v for v in values if Kind.NUMBERS in v.kinds and v not in covered]):
        args[lists[0].name] = [value.value for value in numbers]
        covered += numbers
    names = _names(tool, agent, [parameter for parameter in parameters if parameter.name in args])
    words = list(_content(text, covered, harmless=harmless))
    naming = [word for word, _ in words if tokens(word) and names.issuperset(tokens(word))]
    unused = tuple(word for word, asking in words if not asking and word not in naming)
    question = next((parameter for parameter in parameters if parameter.kinds == {Kind.QUESTION}), None)
    if question and harmless and (naming or text.rstrip().endswith("?")):
        asked = {**args, question.name: text.strip()}
        return Filled(asked, (), (), question=True, open=unused, named=bool(naming))
    missing = tuple(parameter.name for parameter in parameters if parameter.required and parameter.name not in args)
    ordered = {parameter.name: args[parameter.name] for parameter in parameters if parameter.name in args}
    return Filled(ordered, missing, unused, named=len(unused) < len(words))


def parameters_of(tool: Tool) -> tuple[Parameter, ...]:
    """The parameters of a tool, in the order of its schema."""
    schema = tool.input_schema
    properties, required = schema.get("properties"), schema.get("required")
    needed = set(map(str, required)) if isinstance(required, list) else set()
    specs = properties.items() if isinstance(properties, Mapping) else ()
    return tuple(_parameter(str(name), spec, schema, name in needed) for name, spec in specs if isinstance(spec, dict))


def _parameter(name: str, spec: Mapping[str, Any], schema: Mapping[str, Any], required: bool) -> Parameter:
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    options = [spec, *(one for key in ("anyOf", "oneOf") for one in spec.get(key) or () if isinstance(one, dict))]
    choices = tuple(choice for one in options for choice in one.get("enum") or () if isinstance(choice, str))
    types = {kind for one in options for kind in _types(one)} - {"null"}
    words = set(split_name(name).split())
    kinds: frozenset[Kind] = frozenset()
    if choices:
        kinds = frozenset({Kind.CHOICE})
    elif types & {"number", "integer"}:
        kinds = frozenset({Kind.NUMBER})
    elif types == {"array"} and _types(spec.get("items") or {}) & {"number", "integer"}:
        kinds = frozenset({Kind.NUMBERS})
    elif types <= {"string"}:
        found = [_FORMATS[str(spec.get("format"))]] if spec.get("format") in _FORMATS else []
        found = found or [kind for kind, names in _NAMED if words & names]
        alone = {Kind.QUESTION, Kind.ZONE} & {*found}
        kinds = frozenset(alone or found or {Kind.TEXT})
    return Parameter(name, kinds, required, choices, f"{name} {spec.get('description') or ''}", {**shared, **spec})


def _types(spec: Any) -> set[str]:
    declared = spec.get("type") if isinstance(spec, Mapping) else None
    return set(map(str, declared)) if isinstance(declared, list) else {str(declared)} if declared else set()


def _choices(text: str, values: Sequence[Value], parameters: Sequence[Parameter]) -> Iterator[Value]:
    """The allowed values and the time zones that a text names, the longest names first."""
    lists = dict.fromkeys(parameter.choices for parameter in parameters if parameter.choices)
    zones = any(Kind.ZONE in parameter.kinds for parameter in parameters)
    words = list(_NAME.finditer(text)) if lists or zones else []
    taken = [(value.start, value.end) for value in values]
    for length in range(_LONGEST, 0, -1):
        for first, last in zip(words, words[length - 1 :], strict=False):
            start, end, said = first.start(), last.end(), text[first.start() : last.end()]
            if said.lower() in _EMPTY | _ASKING or any(a < end and start < b for a, b in taken):
                continue
            found = {(Kind.CHOICE, choice) for one in lists if (choice := unit_in(said, one))}
            found |= {(Kind.ZONE, zone) for zone in [zone_of(said)] if zones and zone and said[0].isupper()}
            if len(found) == 1:
                ((kind, value),) = found
                taken.append((start, end))
                yield Value(frozenset({kind}), value, start, end)


def _conversion(text: str, values: Sequence[Value], parameters: Sequence[Parameter]) -> dict[str, Value]:
    """The two sides of a conversion: the unit beside the number, or the zone beside the time, is the given one."""
    counts = [value for value in values if value.kinds & {Kind.NUMBER, Kind.CLOCK}]
    for given, wanted in permutations(parameters, 2):
        if (given.side, wanted.side) != (0, 1):
            continue
        sides = [value for value in values if given.takes(value) and wanted.takes(value)]
        beside = [value for value in sides if any(_is_beside(text, count, value) for count in counts)]
        if len(sides) == 2 and len(beside) == 1:
            return {given.name: beside[0], wanted.name: next(value for value in sides if value is not beside[0])}
    return {}


def _is_beside(text: str, count: Value, value: Value) -> bool:
    """Whether nothing but one word without content is between a number or a time and the value that belongs to it."""
    if Kind.NUMBER in count.kinds:
        return count.end <= value.start and _BESIDE.fullmatch(text[count.end : value.start]) is not None
    between = text[min(count.end, value.end) : max(count.start, value.start)].split()
    return len(between) <= 1 and all(word.lower() in _EMPTY | _ASKING for word in between)


def _match(values: Sequence[Value], parameters: Sequence[Parameter], taken: dict[str, Value]) -> None:
    """Fills each parameter that is the only free one for a value, and for one value only, until there is none."""
    while True:
        free = [parameter for parameter in parameters if parameter.name not in taken]
        left = [value for value in values if value not in taken.values()]
        only = [(value, fits[0]) for value in left if len(fits := [p for p in free if p.takes(value)]) == 1]
        found = {p.name: value for value, p in only if sum(other is p for _, other in only) == 1}
        if not found:
            return
        taken |= found


def _names(tool: Tool, agent: Agent, filled: Sequence[Parameter]) -> set[str]:
    """The words that name a tool: those of its names, its descriptions, its agent's, and the parameters in use."""
    texts = [tool.title, _sentence(tool.description), agent.name, _sentence(agent.description)]
    texts += [split_name(tool.name), split_name(agent.id), *(split_name(parameter.name) for parameter in filled)]
    return set(tokens(" ".join([*texts, *(parameter.about for parameter in filled)])))


def _sentence(description: str) -> str:
    return description.strip().partition("\n")[0].partition(". ")[0]


def _content(text: str, covered: Sequence[Value], *, harmless: bool) -> Iterator[tuple[str, bool]]:
    """The words with content outside of the values, each with whether it only asks for something."""
    spans = [(value.start, value.end) for value in covered] + [match.span() for match in _FILLERS.finditer(text)]
    spans += [(match.end(1), match.end()) for match in _PARTICLE.finditer(text) if harmless and asks(match[1].lower())]
    empty = _EMPTY | _ASKING if harmless else _EMPTY
    for match in _WORD.finditer(text):
        inside = any(start <= match.start() < end for start, end in spans)
        if not inside and match.group().lower() not in empty:
            yield match.group(), harmless and asks(match.group().lower())


def unanswered(filled: Filled, answer: str) -> tuple[str, ...]:
    """The words of a question that its answer does not contain; a word for a kind of value may be such a value."""
    said = set(tokens(answer))
    kinds = {kind for value in values_in(answer) for kind in value.kinds}
    named = {word for kind, words in _NAMED if kind in kinds for word in words}
    return tuple(
        word
        for word in filled.open
        if word.lower() not in named | _WHO and not (tokens(word) and said.issuperset(tokens(word)))
    )
