"""Determines which kind of value a parameter takes, by its schema and its name, and whether a value fits it."""

from __future__ import annotations

from callsheet.agents.no_model.values import Kind
from callsheet.agents.safety.arguments import fit_of
from callsheet.graphs.catalog.model import Parameter, Tool
from callsheet.graphs.text.words import split_name

NAMED = (
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
"""The words in the name of a string parameter that indicate its kind; without any of them, it takes a text."""
_FORMATS = {"uri": Kind.URL, "email": Kind.EMAIL, "date": Kind.DATE, "time": Kind.CLOCK}
_SIDES = (frozenset({"from", "source", "src"}), frozenset({"to", "target", "dest", "destination"}))
"""Words in the names of two parameters of a conversion: what is given, and what is wanted."""


def value_kind(parameter: Parameter) -> Kind | None:
    """Returns the kind of value that a parameter takes; None for lists, objects and flags, which need a name."""
    types = set(parameter.type.split("|")) - {"null", "any"}
    if any(isinstance(choice, str) for choice in parameter.enum):
        return Kind.CHOICE
    if types & {"number", "integer"}:
        return Kind.NUMBER
    if types - {"string"}:
        return None
    words = set(split_name(parameter.name).split())
    return _FORMATS.get(parameter.format) or next((kind for kind, names in NAMED if words & names), Kind.TEXT)


def side_of(name: str) -> int:
    """Returns 0 for a parameter of the given quantity, 1 for one of the wanted quantity, and -1 for any other."""
    words = set(split_name(name).split())
    return next((side for side, names in enumerate(_SIDES) if words & names), -1)


def fits(tool: Tool, parameter: Parameter, value: object) -> bool:
    """Returns whether the schema of a parameter allows a value."""
    only = {parameter.name: tool.input_schema["properties"][parameter.name]}
    return not fit_of({**tool.input_schema, "properties": only, "required": []}, {parameter.name: value}).errors
