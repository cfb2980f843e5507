"""Fills the parameters of a tool with the values that stand in a step, and says which words were not used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Any

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.no_model.units_and_zones import total, unit_in, zone_of
from callsheet.agents.no_model.values import Kind, Value, values_in
from callsheet.agents.registry.assurance import asks
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.model import Agent, Tool
from callsheet.graphs.text.sanitizing import split_name
from callsheet.graphs.text.words import tokens

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
_WHO = frozenset("where who whom whose why".split())
"""Words of questions that only a text answers: no value stands for them."""
_FILLERS = re.compile(r"\b(?:it\s+is|is\s+it|it's)\b|\bhow\s+\w+\s+(?:is|are)\s+(?=\d)|(?<=\w)['’]s\b", re.IGNORECASE)
_PARTICLE = re.compile(r"\b(\w+)\s+(?:out|up)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?|[^\w\s.,;:!?()\"'’“”`-]")
_NAME = re.compile(r"[^\W\d_°]+(?:[/_-][^\W\d_]+)*|°[CF]?")
_ALSO = re.compile(r"(?:,|, and|and)(?: (?:in|of|to))?", re.IGNORECASE)
_LONGEST = 4  # words of a unit or a place


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a tool, and what it takes."""

    name: str
    kinds: frozenset[Kind]
    required: bool
    choices: tuple[str, ...]
    about: str
    spec: Mapping[str, Any]

    @property
    def side(self) -> int:
        """0 for what is given, 1 for what is wanted, -1 for neither."""
        words = set(split_name(self.name).split())
        return next((side for side, names in enumerate(_SIDES) if words & names), -1)

    def takes(self, value: Value) -> bool:
        """Whether a value is of the right kind and fits the schema."""
        if not self.kinds & value.kinds or (self.choices and value.value not in self.choices):
            return False
        return not fit_of({"properties": {self.name: dict(self.spec)}}, {self.name: value.value}).errors


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

    Verbs of asking name every harmless tool.
    """
    parameters = parameters_of(tool)
    values = values_in(text, results)
    values = _compounded(text, [*values, *_choices(text, values, parameters)])
    taken = _conversion(text, values, parameters)
    _match(values, parameters, taken)
    args: dict[str, Any] = {name: value.value for name, value in taken.items()}
    names = _names(tool, agent, [parameter for parameter in parameters if parameter.name in args])
    words = list(_content(text, [*taken.values()], harmless=harmless))
    naming = [word for word, _ in words if tokens(word) and names.issuperset(tokens(word))]
    unused = tuple(word for word, asking in words if not asking and word not in naming)
    question = next((parameter for parameter in parameters if parameter.kinds == {Kind.QUESTION}), None)
    if question and (naming or (harmless and _is_question(text))):
        asked, wanted = {**args, question.name: text.strip()}, unused if harmless else ()
        return Filled(asked, (), (), question=True, open=wanted, named=bool(naming))
    missing = tuple(parameter.name for parameter in parameters if parameter.required and parameter.name not in args)
    ordered = {parameter.name: args[parameter.name] for parameter in parameters if parameter.name in args}
    return Filled(ordered, missing, unused, named=len(unused) < len(words))


def _is_question(text: str) -> bool:
    """Whether a text ends with a question mark, or begins with a verb of asking."""
    return text.rstrip().endswith("?") or any(asks(word.lower()) for word in text.split(maxsplit=1)[:1])


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
    elif types <= {"string"}:
        found = [_FORMATS[str(spec.get("format"))]] if spec.get("format") in _FORMATS else []
        found = found or [kind for kind, names in _NAMED if words & names]
        kinds = frozenset(found[:1] or {Kind.TEXT})
    return Parameter(name, kinds, required, choices, f"{name} {spec.get('description') or ''}", {**shared, **spec})


def _types(spec: Any) -> set[str]:
    declared = spec.get("type") if isinstance(spec, Mapping) else None
    return set(map(str, declared)) if isinstance(declared, list) else {str(declared)} if declared else set()


def _choices(text: str, values: Sequence[Value], parameters: Sequence[Parameter]) -> Iterator[Value]:
    """The allowed values and the time zones that a text names, the longest names first."""
    lists = dict.fromkeys(parameter.choices for parameter in parameters if parameter.choices)
    zones = any(Kind.ZONE in parameter.kinds for parameter in parameters)
    words = list(_NAME.finditer(text))
    taken = [(value.start, value.end) for value in values]
    for length in range(_LONGEST, 0, -1):
        for first, last in zip(words, words[length - 1 :], strict=False):
            start, end, said = first.start(), last.end(), text[first.start() : last.end()]
            edges = {first.group().lower(), last.group().lower()}
            if edges & (_EMPTY | _ASKING) or any(a < end and start < b for a, b in taken):
                continue
            found = {(Kind.CHOICE, choice) for one in lists if (choice := unit_in(said, one))}
            found |= {(Kind.ZONE, zone) for zone in [zone_of(said)] if zones and zone}
            if len(found) == 1:
                ((kind, value),) = found
                taken.append((start, end))
                yield Value(frozenset({kind}), value, start, end)


def _compounded(text: str, values: list[Value]) -> list[Value]:
    """The values, those of a quantity in several units as one number with its last unit: "5 feet 11 inches"."""
    counts = [value for value in values if Kind.NUMBER in value.kinds]
    pairs = [(n, u) for n in counts for u in values if Kind.CHOICE in u.kinds and _is_beside(text, n, u)]
    joined = all(text[one.end : other.start].isspace() for (_, one), (other, _) in pairwise(pairs))
    if len(pairs) < 2 or not joined or (amount := total([(n.value, str(u.value)) for n, u in pairs])) is None:
        return values
    (first, _), (number, unit) = pairs[0], pairs[-1]
    rest = [value for value in values if value.end <= first.start or value.start >= unit.end]
    return [*rest, Value(number.kinds, amount, first.start, number.end), unit]


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
        return count.end <= value.start and text[count.end : value.start].strip() in ("", "-")
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
    texts = [tool.title, _sentence(tool.description), agent.name]
    texts += [split_name(tool.name), split_name(agent.id), *(split_name(parameter.name) for parameter in filled)]
    return set(tokens(" ".join([*texts, *(parameter.about for parameter in filled)])))


def _sentence(description: str) -> str:
    return description.strip().partition("\n")[0].partition(". ")[0]


def _content(text: str, covered: Sequence[Value], *, harmless: bool) -> Iterator[tuple[str, bool]]:
    """The words with content outside of the values, each with whether it only asks for something."""
    spans = [(value.start, value.end) for value in covered] + [match.span() for match in _FILLERS.finditer(text)]
    spans += [(match.end(1), match.end()) for match in _PARTICLE.finditer(text) if harmless and asks(match[1].lower())]
    empty = _EMPTY | _ASKING if harmless else _EMPTY
    left = list(text)
    for start, end in spans:
        left[start:end] = "\0" * (end - start)
    for match in _WORD.finditer("".join(left).replace("\0", " ")):
        word, attached = match.group(), left[match.start() - 1 : match.start()] == ["\0"]
        if attached or word.lower() not in empty:
            yield word, harmless and asks(word.lower())


def spread(tool: Tool, text: str) -> list[str]:
    """The text once for each of several values of one kind that stand side by side: "Convert 3, 5 and 8 miles"."""
    found = values_in(text)
    found += _choices(text, found, parameters_of(tool))
    found.sort(key=lambda value: value.start)
    between = {b: " ".join(text[a.end : b.start].replace(",", " ,").split()) for a, b in pairwise(found)}
    pairs = [(a, b) for a, b in pairwise(found) if a.kinds == b.kinds and _ALSO.fullmatch(between[b])]
    if not pairs or any(one[1] is not other[0] for one, other in pairwise(pairs)):
        return []
    run = [pairs[0][0], *(after for _, after in pairs)]
    return [f"{text[: run[0].start]}{text[one.start : one.end]}{text[run[-1].end :]}" for one in run]


def unanswered(filled: Filled, answer: str) -> tuple[str, ...]:
    """The words of a question that its answer does not contain; a word for a kind of value may be such a value."""
    said = set(tokens(answer))
    kinds = {kind for value in values_in(answer) for kind in value.kinds}
    named = _WHO.union(*(words for kind, words in _NAMED if kind in kinds))
    return tuple(word for word in filled.open if word.lower() not in named and not said.issuperset(tokens(word)))


@dataclass(frozen=True, slots=True)
class StepReading:
    """A step with the tool for it.

    Attributes:
        tool: The tool; without one that fits, the nearest.
        filled: What the step gives to it.
        harmless: Whether it is known to change nothing.
        others: Ids of other tools that the step fits as well, if no word of it names one.
    """

    text: str
    tool: Tool
    filled: Filled
    harmless: bool
    others: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the tool is clear, nothing is missing and nothing is left over."""
        return self.filled.complete and not self.others

    @property
    def certain(self) -> bool:
        """Whether it is complete by values and names, not as a question, which any words are."""
        return self.complete and not self.filled.question


def read_step(
    text: str, tools: Sequence[str], registry: ToolRegistry, results: Sequence[StepResult] = ()
) -> StepReading | None:
    """The reading of a step with the best of its tools, whose ids come best first; None without tools."""
    readings = [_reading(text, tool_id, registry, results) for tool_id in tools if tool_id in registry.catalog.tools]
    complete = [reading for reading in readings if reading.complete]
    named = [reading for reading in complete if reading.filled.named]
    if best := next((r for r in named if r.certain), next(iter(named), None)):
        return best
    if alone := [reading for reading in complete if reading.harmless and reading.certain]:
        first, *others = alone
        return StepReading(text, first.tool, first.filled, first.harmless, tuple(other.tool.id for other in others))
    if asked := [reading for reading in complete if reading.filled.question]:
        return asked[0]
    return min(
        readings, key=lambda r: len(r.filled.unused) + len(r.filled.missing) + (not r.filled.named), default=None
    )


def _reading(text: str, tool_id: str, registry: ToolRegistry, results: Sequence[StepResult]) -> StepReading:
    tool = registry.catalog.tool(tool_id)
    harmless = registry.assurance(tool_id).harm == "none"
    agent = registry.catalog.agent(tool.agent)
    return StepReading(text, tool, fill(tool, agent, text, results, harmless=harmless), harmless)
