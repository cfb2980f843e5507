"""Fills the parameters of a tool with values from the text of a step, and reports the words that were not used."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, permutations
from typing import Any

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.no_model.named_values import is_count, named_values
from callsheet.agents.no_model.parameters import NAMED, fits, side_of, value_kind
from callsheet.agents.no_model.values import Kind, StepValue, unit_in, values_in, zone_of
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.graphs.catalog.model import Agent, Parameter, Tool
from callsheet.graphs.text.words import Span, split_name, tokens

_EMPTY = frozenset("a an and as at by for from in into of on please the to with".split())
"""Words without content: they refer to nothing, limit nothing and negate nothing."""
_ASKING = frozenset("are be can could do does how i is many me much now want we what when which would you".split())
"""Further words without content, in a step for a harmless tool."""
_TELLING = frozenset(
    "answer check describe display fetch find get give list look lookup query read report retrieve return search show "
    "tell view".split()
)
"""Verbs of asking for information; in a step for a harmless tool, the tool's name need not have them."""
_WHO = frozenset("where who whom whose why".split())
"""Question words that ask for no kind of value: any text answers them."""
_FILLERS = re.compile(r"\b(?:it\s+is|is\s+it|it's)\b|\bhow\s+\w+\s+(?:is|are)\s+(?=\d)|(?<=\w)['’]s\b", re.IGNORECASE)
_PARTICLE = re.compile(r"\b(\w+)\s+(?:out|up)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?|[^\w\s.,;:!?()\"'’“”`-]")
_NAME = re.compile(r"[^\W\d_°]+(?:[/_-][^\W\d_]+)*|°[CF]?")
_ALSO = re.compile(r"(?:,|, and|and)(?: (?:in|of|to))?", re.IGNORECASE)
_LONGEST = 4  # words of a unit or a place


@dataclass(frozen=True, slots=True)
class StepReading:
    """The interpretation of a step: the tool for it, and the values that the step gives to the tool.

    Attributes:
        tool: The tool that fits the step; if none fits, the nearest one.
        harmless: Whether the tool is known to change nothing.
        missing: Required parameters without a value.
        values: The values that fill parameters, by the name of the parameter.
        rest: The other values of the step, in text order.
        places: The positions of the unused words, in text order.
        question: Whether the whole text of the step is one argument, a question.
        open: The words of such a question that do not name the tool; its answer must contain them.
        named: Whether a word of the step names the tool.
        others: Ids of other tools that fit the step equally well, if no word of the step names one.
    """

    text: str
    tool: Tool
    harmless: bool
    args: dict[str, Any]
    values: Mapping[str, StepValue] = field(default_factory=dict)
    rest: tuple[StepValue, ...] = ()
    missing: tuple[str, ...] = ()
    places: tuple[Span, ...] = ()
    question: bool = False
    open: tuple[str, ...] = ()
    named: bool = False
    others: tuple[str, ...] = ()

    @property
    def unused(self) -> tuple[str, ...]:
        """Returns the words of the step that neither name the tool nor fill a parameter, in text order."""
        return tuple(self.text[start:end] for start, end in self.places)

    @property
    def complete(self) -> bool:
        """Returns whether the tool is clear, no value is missing, and no word is left over."""
        return not (self.missing or self.unused or self.others)

    @property
    def understood(self) -> bool:
        """Returns whether a word names the tool and no word is left over; values may be missing."""
        return self.named and not (self.unused or self.others)

    @property
    def certain(self) -> bool:
        """Returns whether the step is complete and was not passed on whole as a question."""
        return self.complete and not self.question


def read_step(
    text: str, tools: Sequence[str], registry: ToolRegistry, results: Sequence[StepResult] = ()
) -> StepReading | None:
    """Interprets a step with the tool that fits it best; ``tools`` has ids, the best first. None without tools."""
    known = [registry.catalog.tool(tool_id) for tool_id in tools if tool_id in registry.catalog.tools]
    harmless = {tool.id: registry.assurance(tool.id).harm == "none" for tool in known}
    owners = registry.catalog.agent
    readings = [fill(tool, owners(tool.agent), text, results, harmless=harmless[tool.id]) for tool in known]
    best = _best_complete([reading for reading in readings if reading.complete])
    if best is not None:
        return best
    return min(readings, key=_distance, default=None)


def lacking_words(reading: StepReading) -> set[str]:
    """Returns the stems of the words of the tool's name that the step lacks."""
    return set(tokens(split_name(reading.tool.name))).difference(tokens(reading.text))


def _distance(reading: StepReading) -> tuple[float, int, int]:
    """Returns how badly a step fits its tool: by missing words of the tool's name, then by unused words and values."""
    own = set(tokens(split_name(reading.tool.name)))
    lacking = len(lacking_words(reading))
    unfit = len(reading.unused) + len(reading.missing) + (not reading.named)
    return lacking / max(1, len(own)), lacking - len(own), unfit


def _best_complete(complete: Sequence[StepReading]) -> StepReading | None:
    """Returns the best of the complete readings; None if none of them can be chosen.

    A reading whose tool the step names comes first. Next come readings of harmless tools; if there are several, the
    result lists the other tools in ``others``. Last comes a reading that passes the step on as a question. Among tools
    that the step names, the tool comes first whose name has the fewest words that the step lacks, then the tool that
    does not take a file, a date or a number as mere text.
    """
    named = [reading for reading in complete if reading.named]
    if named:
        return min(named, key=_looseness)
    alone = [reading for reading in complete if reading.harmless and reading.certain]
    if alone:
        return replace(alone[0], others=tuple(other.tool.id for other in alone[1:]))
    return next((reading for reading in complete if reading.question), None)


def _looseness(reading: StepReading) -> tuple[bool, int, int]:
    return not reading.certain, len(lacking_words(reading)), _values_as_text(reading)


def _values_as_text(reading: StepReading) -> int:
    """Returns the number of values that are no texts but fill a parameter for texts."""
    by_name = {parameter.name: parameter for parameter in reading.tool.parameters}
    return sum(
        value_kind(by_name[name]) == Kind.TEXT and Kind.TEXT not in value.kinds
        for name, value in reading.values.items()
    )


def fill(
    tool: Tool, agent: Agent, text: str, results: Sequence[StepResult] = (), *, harmless: bool = False
) -> StepReading:
    """Fills the parameters of a tool; a value that fits two free parameters fills neither."""
    values = _values_of(tool, text, results)
    taken = _assignment(tool, text, values, harmless=harmless)
    args = {name: value.value for name, value in taken.items()}
    words = list(_content(text, [*taken.values()], harmless=harmless))
    naming = _naming([word for word, _ in words], tool, agent, list(args))
    left = [word for word, asking in words if not asking and word not in naming]
    places = tuple(word.span() for word in left)
    rest = tuple(_without(values, taken.values()))
    reading = StepReading(text, tool, harmless, args, values=taken, rest=rest, places=places)
    question = _question_of(tool)
    if question and (naming or (harmless and _asks_to_be_told(text))):
        args[question] = text.strip()
        words_to_answer = reading.unused if harmless else ()
        return replace(reading, places=(), question=True, open=words_to_answer, named=bool(naming))
    missing = tuple(one.name for one in tool.parameters if one.required and one.name not in args)
    return replace(reading, missing=missing, named=len(left) < len(words))


def _question_of(tool: Tool) -> str | None:
    """Returns the parameter that takes a whole question; None if there is none."""
    return next((parameter.name for parameter in tool.parameters if value_kind(parameter) == Kind.QUESTION), None)


def _values_of(tool: Tool, text: str, results: Sequence[StepResult]) -> list[StepValue]:
    """Returns the values in a step, including the choices and time zones that parameters of this tool take."""
    values = values_in(text, results)
    values += _choices(text, values, tool.parameters)
    return sorted(values, key=lambda value: value.start)


def _without(values: Iterable[StepValue], taken: Collection[StepValue]) -> list[StepValue]:
    """Returns the values that do not overlap with those that are taken."""
    return [value for value in values if not any(one.start < value.end and value.start < one.end for one in taken)]


def _assignment(tool: Tool, text: str, values: Sequence[StepValue], *, harmless: bool) -> dict[str, StepValue]:
    """Returns the values of a step by the names of the parameters that they fill, in the order of the parameters."""
    taken = named_values(tool, text, values, harmless=harmless)
    values = _without(values, taken.values())
    fitting: dict[str, list[StepValue]] = {}
    for parameter in tool.parameters:
        free = parameter.name not in taken
        fitting[parameter.name] = [value for value in values if free and _takes(tool, parameter, value)]
    taken |= _conversion(text, values, fitting)
    taken |= _only_required(tool, text, values, taken)
    _match(values, fitting, taken)
    if harmless:
        taken |= _in_a_row(tool, text, values, taken)
    return {parameter.name: taken[parameter.name] for parameter in tool.parameters if parameter.name in taken}


def _in_a_row(
    tool: Tool, text: str, values: Sequence[StepValue], taken: Mapping[str, StepValue]
) -> dict[str, StepValue]:
    """Fills the free required parameters in order from a list of values such as "2 and 3".

    There must be as many values as parameters, all of one kind; otherwise nothing is filled. It is done for harmless
    tools only, because the order of the parameters may not be the order that the user means.
    """
    free = [one for one in tool.parameters if one.required and one.name not in taken]
    left = [value for value in values if value not in taken.values()]
    if len(free) < 2 or len(free) != len(left) or not _are_listed(text, left):
        return {}
    if (
        len({value_kind(parameter) for parameter in free}) > 1
        or max(side_of(parameter.name) for parameter in free) >= 0
    ):
        return {}
    filled: dict[str, StepValue] = {}
    for parameter, value in zip(free, left, strict=True):
        if not _takes(tool, parameter, value):
            return {}
        filled[parameter.name] = value
    return filled


def _are_listed(text: str, values: Sequence[StepValue]) -> bool:
    """Returns whether the values are a list, with only a comma or "and" between one and the next."""
    return all(_ALSO.fullmatch(text[one.end : other.start].strip()) for one, other in pairwise(values))


def _only_required(
    tool: Tool, text: str, values: Sequence[StepValue], taken: Mapping[str, StepValue]
) -> dict[str, StepValue]:
    """Fills the only required parameter with the only value that is left: "get invoice 1001".

    The parameter must take any text. A number or a date is given as it is written. A number in front of a word counts
    things ("3 invoices"), so it is not used.
    """
    required = [one for one in tool.parameters if one.required]
    left = [value for value in values if value not in taken.values()]
    if len(required) != 1 or required[0].name in taken or len(left) != 1:
        return {}
    (parameter,) = required
    (value,) = left
    said = value.value if Kind.TEXT in value.kinds else text[value.start : value.end]
    if value_kind(parameter) != Kind.TEXT or is_count(value, text) or not fits(tool, parameter, said):
        return {}
    return {parameter.name: replace(value, value=said)}


def _naming(words: Sequence[re.Match[str]], tool: Tool, agent: Agent, used: Collection[str]) -> list[re.Match[str]]:
    """Returns the words of a step that name the tool or one of the parameters in ``used``."""
    names = _names(tool, agent, [parameter for parameter in tool.parameters if parameter.name in used])
    # A word of the tool's own name counts even if it has no content elsewhere: "get", "or".
    own = split_name(tool.name).split()
    naming: list[re.Match[str]] = []
    for word in words:
        stems = tokens(word.group())
        if word.group().lower() in own or (stems and names.issuperset(stems)):
            naming.append(word)
    return naming


def _asks_to_be_told(text: str) -> bool:
    """Returns whether a step is a question, or begins with a verb such as "tell" or "find"."""
    first = text.split(maxsplit=1)[:1]
    return text.rstrip().endswith("?") or any(word.lower() in _TELLING for word in first)


def _takes(tool: Tool, parameter: Parameter, value: StepValue) -> bool:
    """Returns whether a value is of the right kind and fits the schema."""
    if value_kind(parameter) not in value.kinds or (parameter.enum and value.value not in parameter.enum):
        return False
    return fits(tool, parameter, value.value)


def _choices(text: str, values: Sequence[StepValue], parameters: Sequence[Parameter]) -> Iterator[StepValue]:
    """Yields the parameters' allowed values and the time zones that a text names, the longest names first."""
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
    """Returns the allowed values that a phrase names, and with ``zones`` also the time zone."""
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
    text: str, values: Sequence[StepValue], fitting: Mapping[str, Sequence[StepValue]]
) -> dict[str, StepValue]:
    """Fills source and target of a conversion; the source is the unit or time zone beside the number or time."""
    counts = [value for value in values if value.kinds & {Kind.NUMBER, Kind.CLOCK}]
    for given, wanted in permutations(fitting, 2):
        if (side_of(given), side_of(wanted)) != (0, 1):
            continue
        sides = [value for value in fitting[given] if value in fitting[wanted]]
        beside = [value for value in sides if any(_is_beside(text, count, value) for count in counts)]
        if len(sides) == 2 and len(beside) == 1:
            return {given: beside[0], wanted: next(value for value in sides if value is not beside[0])}
    return {}


def _is_beside(text: str, count: StepValue, value: StepValue) -> bool:
    """Returns whether a unit follows its number directly, or at most one word without content parts time and zone."""
    if Kind.NUMBER in count.kinds:
        return count.end <= value.start and text[count.end : value.start].strip() in ("", "-")
    between = text[min(count.end, value.end) : max(count.start, value.start)].split()
    return len(between) <= 1 and all(word.lower() in _EMPTY | _ASKING for word in between)


def _match(
    values: Sequence[StepValue], fitting: Mapping[str, Sequence[StepValue]], taken: dict[str, StepValue]
) -> None:
    """Assigns each value that fits only one free parameter, if no other such value fits it; repeats while it can."""
    while True:
        left = [value for value in values if value not in taken.values()]
        free = {id(value): [name for name in fitting if name not in taken and value in fitting[name]] for value in left}
        only = [(value, free[id(value)][0]) for value in left if len(free[id(value)]) == 1]
        found = {name: value for value, name in only if sum(other == name for _, other in only) == 1}
        if not found:
            return
        taken |= found


def _names(tool: Tool, agent: Agent, filled: Sequence[Parameter]) -> set[str]:
    """Returns the stems of words that name a tool: of its names and description, its agent, and used parameters."""
    sentence = tool.description.strip().partition("\n")[0].partition(". ")[0]
    texts = [tool.title, sentence, agent.name]
    texts += [split_name(tool.name), split_name(agent.id), *(split_name(parameter.name) for parameter in filled)]
    return set(tokens(" ".join([*texts, *(f"{parameter.name} {parameter.description}" for parameter in filled)])))


def _content(text: str, covered: Sequence[StepValue], *, harmless: bool) -> Iterator[tuple[re.Match[str], bool]]:
    """Yields the words with content outside of the values; with each, whether it is only a verb of asking ("show")."""
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
            yield match, harmless and word.lower() in _TELLING


def spread(tool: Tool, text: str) -> list[str]:
    """Returns the text once for each value of a list in it, as in "Convert 3, 5 and 8 miles"; empty without a list."""
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

    A word that names a kind of value, such as "date", counts as contained if the answer has a value of that kind.
    """
    said = set(tokens(answer))
    kinds = {kind for value in values_in(answer) for kind in value.kinds}
    named = _WHO.union(*(words for kind, words in NAMED if kind in kinds))
    return tuple(word for word in reading.open if word.lower() not in named and not said.issuperset(tokens(word)))
