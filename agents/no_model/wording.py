"""The messages of the mode without a model: requests that work, and a working wording for a refused request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import Any

from callsheet.agents.no_model.filling import StepReading, fill, lacking_words, read_step
from callsheet.agents.no_model.named_values import is_count, named_values, texts_by_name
from callsheet.agents.no_model.parameters import fits, side_of, value_kind
from callsheet.agents.no_model.values import Kind, StepValue, values_in
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.graphs.catalog.model import Catalog, Parameter, Tool
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.words import split_name

_EXAMPLES = 3
_AGENTS = 20
_LONGEST = 200
_VALUES = {
    Kind.NUMBER: ("5",),
    Kind.CLOCK: ("9:30",),
    Kind.ZONE: ("Berlin", "Tokyo"),
    Kind.DATE: (date.today().isoformat(),),
    Kind.FILE: ("notes.txt",),
    Kind.FOLDER: ("notes/",),
    Kind.URL: ("https://example.org",),
    Kind.EMAIL: ("ann@example.org",),
    Kind.TEXT: ('"text"',),
    Kind.EXPRESSION: ("2 + 3",),
}
_THERE = {Kind.TEXT, Kind.FILE, Kind.FOLDER, Kind.URL, Kind.EMAIL}
"""What must be there, or mean something to a tool, so that a value of ours is no request that works."""
_OTHERS = {"boolean": "true", "array": '["text"]', "object": "{}"}
"""Values of parameters that only their name fills, by type."""
_ABOUT = (
    "Without a model, a step must name a tool and all of its values, and nothing else. For other steps, use --model"
)

Find = Callable[[str], Sequence[str]]
"""A function that returns the ids of the tools for a text, best first."""


def example(tool: Tool, registry: ToolRegistry, find: Find, texts: Mapping[str, str] | None = None) -> str:
    """Returns a request that is understood as a call of this tool among the tools of ``find``.

    Values in ``texts``, by parameter, are used; other required parameters get example values. Names of parameters are
    left out if the request means the same without them. Empty if no wording works.
    """
    given = texts or {}
    written: dict[str, str] = {}
    for parameter in sorted(tool.parameters, key=_place):
        text = given.get(parameter.name)
        if text is None and parameter.required:
            text = _value(parameter)
            if not text:
                return ""
        if text is not None:
            written[parameter.name] = text
    said = split_name(tool.name)
    said = f"{said[:1].upper()}{said[1:]}"
    named = " ".join([said, ", ".join(f"{name}: {text}" for name, text in written.items())]).strip()
    plain = " ".join([said, *(f"to {text}" if side_of(name) == 1 else text for name, text in written.items())])
    in_order = _args(plain, tool, registry, find)
    by_name = _args(named, tool, registry, find)
    if in_order is not None and in_order.keys() == written.keys() and by_name in (None, in_order):
        return plain
    return named if by_name is not None and by_name.keys() == written.keys() else ""


def _place(parameter: Parameter) -> tuple[bool, bool, bool]:
    """Sorts parameters as a sentence has them: numbers and times first, what is wanted at the end."""
    kind = value_kind(parameter)
    return (not parameter.required, side_of(parameter.name) == 1, kind not in (Kind.NUMBER, Kind.CLOCK))


def _args(said: str, tool: Tool, registry: ToolRegistry, find: Find) -> dict[str, Any] | None:
    """Returns the arguments of the call of a tool as which a request is read; None if it is read otherwise."""
    reading = read_step(said, find(said), registry)
    return reading.args if reading is not None and reading.complete and reading.tool.id == tool.id else None


def _value(parameter: Parameter) -> str:
    """Returns a value of ours for a parameter; empty if there is none."""
    kind = value_kind(parameter)
    if kind is None:
        return next((_OTHERS[one] for one in parameter.type.split("|") if one in _OTHERS), "")
    some = parameter.enum if kind == Kind.CHOICE else _VALUES.get(kind, ())
    return str(some[max(0, side_of(parameter.name)) % len(some)]) if some else ""


def examples(catalog: Catalog, registry: ToolRegistry, find: Find) -> list[str]:
    """Returns requests that work, for harmless tools of different agents for which any value of the right form does.

    ``find`` searches the whole catalog.
    """

    def works(tool: Tool) -> bool:
        harmless = tool.id in registry.catalog.tools and registry.assurance(tool.id).harm == "none"
        return harmless and not any(p.required and value_kind(p) in _THERE for p in tool.parameters)

    firsts = (
        next(filter(None, (example(tool, registry, find) for tool in filter(works, agent.tools))), "")
        for agent in catalog.agents
    )
    return list(islice(filter(None, firsts), _EXAMPLES))


def nearest(catalog: Catalog, ids: Sequence[str]) -> str:
    """Returns a text that names the first of these tools with their required parameters, and how one is called."""
    lines = [f"- {_call_by_name(one, _required(catalog.tool(one)))}" for one in ids[:_EXAMPLES]]
    return "\n".join(["The nearest tools, to be called by name:", *lines]) if lines else ""


def introduction(catalog: Catalog, registry: ToolRegistry, find: Find) -> str:
    """Returns a text that names the agents and some requests that work."""
    lines = ["The agents are:"]
    for agent in catalog.agents[:_AGENTS]:
        about = agent.description or ", ".join(split_name(tool.name) for tool in agent.tools[:_EXAMPLES])
        lines.append(f"- {agent.id}: {shown(' '.join(about.split())[:_LONGEST])}")
    more = len(catalog.agents) - _AGENTS
    if more > 0:
        lines.append(f"- and {more} more")
    works = [f"- {said}" for said in examples(catalog, registry, find)]
    return "\n".join([*lines, *(["Requests that work:", *works] if works else []), _ABOUT])


def refusal(reading: StepReading, registry: ToolRegistry, find: Find) -> str:
    """Returns why the tool of a step is not called, with a wording of the step that works."""
    tool = reading.tool
    why = []
    if reading.unused:
        why.append(f"it would ignore {quoted(reading.unused)}{_if_harmless(reading, registry)}")
    if reading.missing:
        why.append(f"it needs {', '.join(_needed(_parameter(tool, name)) for name in reading.missing)}")
    if reading.others:
        why.append(f"{', '.join(reading.others)} would do as well: name one of them")
    hint = _hint(reading, registry, find)
    return f"the nearest tool, {tool.id}, was not called: {', and '.join(why)}. {shown(hint)}"


def _needed(parameter: Parameter) -> str:
    about = " ".join(parameter.description.split())[:_LONGEST].rstrip(". ")
    return f"{parameter.name} ({about})" if about else parameter.name


def _required(tool: Tool) -> list[str]:
    return [parameter.name for parameter in tool.parameters if parameter.required]


def _call_by_name(tool_id: str, names: Sequence[str]) -> str:
    """Returns the command that calls a tool, with a place for the value of each of these parameters."""
    return f"`{' '.join(['callsheet call', tool_id, *(f'{name}=...' for name in names)])}`"


def _hint(reading: StepReading, registry: ToolRegistry, find: Find) -> str:
    """Returns a wording of the step that works; without one, how its tool is called by the names of its parameters.

    The wording says which words of the step it leaves out: with them, more may be meant. If it needs values that the
    step does not have, it is an example, and only of a harmless tool: somebody may send it as it stands.
    """
    tool = reading.tool
    proposed = _proposed(reading)
    required = _required(tool)
    is_whole = set(proposed).issuperset(required)
    said = example(tool, registry, find, proposed) if is_whole or reading.harmless else ""
    if not said:
        return f"Name the values: {_call_by_name(tool.id, required or ['name'])}"
    if not is_whole:
        return f"For example, this works: {said}"
    kept = frozenset(split_name(said).split())
    dropped = [word for word in reading.unused if not kept.issuperset(split_name(word).split())]
    return f"Without {quoted(dropped)}, this works: {said}" if dropped else f"This works: {said}"


def _if_harmless(reading: StepReading, registry: ToolRegistry) -> str:
    """Returns a remark if the tool would have taken the step, had somebody said that it is harmless.

    Empty otherwise.
    """
    tool = reading.tool
    taken = fill(tool, registry.catalog.agent(tool.agent), reading.text, harmless=True).complete
    if reading.harmless or not taken:
        return ""
    return " (a question is understood only for a tool that is known to be harmless)"


def quoted(words: Sequence[str]) -> str:
    """Returns words in quotation marks, separated by commas."""
    return ", ".join(f'"{word}"' for word in words)


def _proposed(reading: StepReading) -> dict[str, str]:
    """Returns what the words of a step may be as values of its tool, as they are written in a request.

    Only a person can say whether that is meant, so nothing is called with them.
    """
    tool = reading.tool
    text = reading.text
    typed = sorted((*reading.values.values(), *reading.rest), key=lambda value: value.start)
    named = named_values(tool, text, typed, harmless=True)
    values = {**named, **reading.values}
    texts = {name: _written(value.value) for name, value in values.items()}
    for name, piece in texts_by_name(tool, text, typed).items():
        before = values[name].value if name in values else ""
        longer = isinstance(before, str) and piece.startswith(before) and len(piece) > len(before)
        if longer and fits(tool, _parameter(tool, name), piece):
            texts[name] = _written(piece)
    return texts | _without_names(reading, texts, [*values.values(), *reading.rest])


def _without_names(reading: StepReading, texts: Mapping[str, str], values: Sequence[StepValue]) -> dict[str, str]:
    """Returns what may be meant for the parameters that lack a value: the values that are left, in order, or the words.

    Words are a value only in a step that has all words of the tool's name; in another one, they are more likely to name
    something else. ``values`` are all of the step.
    """
    found: dict[str, str] = {}
    free = [_parameter(reading.tool, name) for name in reading.missing if name not in texts]
    for value in reading.rest:
        kinds = value.kinds if is_count(value, reading.text) else (*value.kinds, Kind.TEXT)
        parameter = next((one for one in free if value_kind(one) in kinds), None)
        if parameter is not None:
            found[parameter.name] = reading.text[value.start : value.end]
            free.remove(parameter)
    runs = list(_runs(reading, values))
    if len(free) == 1 and runs and value_kind(free[0]) == Kind.TEXT and not lacking_words(reading):
        found[free[0].name] = _written(runs[-1])
    return found


def _parameter(tool: Tool, name: str) -> Parameter:
    return next(parameter for parameter in tool.parameters if parameter.name == name)


def _runs(reading: StepReading, values: Sequence[StepValue]) -> Iterator[str]:
    """Yields the pieces of a step of which no word is used and that are none of these values, in text order."""
    text = reading.text
    places = [(a, b) for a, b in reading.places if not any(one.start < b and a < one.end for one in values)]
    start = None
    for number, (begin, end) in enumerate(places):
        start = begin if start is None else start
        after = places[number + 1][0] if number + 1 < len(places) else len(text)
        if text[end:after].strip() or number + 1 == len(places):
            yield text[start:end]
            start = None


def _written(value: object) -> str:
    """Returns a value as it is written in a request: texts in quotation marks, unless they are typed values."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    typed = values_in(value)
    if len(typed) == 1 and (typed[0].start, typed[0].end) == (0, len(value)) and Kind.TEXT not in typed[0].kinds:
        return value
    mark = next((one for one in "\"'`" if one not in value), '"')
    return f"{mark}{value}{mark}"
