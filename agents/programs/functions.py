"""Offers the tools of a worker as functions of its programs, and describes them to the model."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Mapping
from typing import Any

from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool
from callsheet.agents.safety.secrets import has_secrets

RESULTS = "results"
"""The name of the variable that holds the values of earlier steps, by their ids."""
_TAKEN = {RESULTS, *keyword.kwlist, *dir(builtins)}
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TYPES |= {"object": "dict[str, Any]"}
_ABOUT = f"""\
Run one Python program in a sandbox that calls your tools as functions: the same names, every argument named, without \
await. First do one of several items by calls of your own, then the others in one program. A function returns parsed \
JSON, else text, and raises RuntimeError if its call fails; an argument that is no Python name is passed as \
**{{"from": ...}}. You get what is printed and the value of the last line. {RESULTS} holds values of earlier steps by \
id. Import re, json, math, datetime before use; no files, no network, nothing from earlier programs."""


def functions_of(tools: Mapping[str, BoundTool]) -> dict[str, BoundTool]:
    """Returns the tools that programs may call, by the names of their functions.

    A program and its variables are stored in plain text, so no function takes a secret: an optional secret is left out,
    and a tool that requires one cannot be called.
    """
    functions: dict[str, BoundTool] = {}
    for name, tool in tools.items():
        if not _secret_parameters(tool).intersection(tool.form.plain.get("required") or ()):
            functions[_function_name(name, functions)] = tool
    return functions


def _function_name(name: str, taken: Collection[str]) -> str:
    function = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
    while function in taken or function in _TAKEN:
        function += "_"
    return function


def _secret_parameters(tool: BoundTool) -> set[str]:
    """Returns the names of the parameters that take a secret, at the top or within."""
    properties: Mapping[str, Any] = tool.form.plain.get("properties") or {}
    return {name for name, schema in properties.items() if has_secrets({"properties": {name: schema}})}


def without_functions(tools: Mapping[str, BoundTool]) -> dict[str, str]:
    """Returns the names of the tools that programs may not call, each with the reason."""
    inside = {tool.id for tool in functions_of(tools).values()}
    return {
        _function_name(name, ()): f"{name} takes a secret, which no program may hold: call the tool itself"
        for name, tool in tools.items()
        if tool.id not in inside
    }


DEFINITION: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": RUN_PROGRAM,
        "description": _ABOUT,
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
        },
    },
}
"""The definition of ``run_program`` for a model; it is the same for all tools, which are described separately."""


def stubs(functions: Mapping[str, BoundTool], barred: Collection[str] = ()) -> str:
    """Returns the functions as stubs for a type checker.

    A call of a name in ``barred`` passes the check; when it is made, its error says why it is not allowed.
    """
    written = [*(_function(name, tool) for name, tool in functions.items())]
    written += [f"def {name}(**more: Any) -> Any: ..." for name in barred]
    return "\n".join(["from typing import Any", f"{RESULTS}: dict[str, Any]", *written, ""])


def _function(name: str, tool: BoundTool) -> str:
    """Returns a tool as a stub. An optional parameter that takes a secret is left out."""
    schema = tool.form.schema
    hidden = {key for key, own in _own_names(tool).items() if own in _secret_parameters(tool)}
    properties = {key: value for key, value in schema["properties"].items() if key not in hidden}
    required = schema.get("required", ())
    named = [key for key in properties if not keyword.iskeyword(key)]
    parameters = [f"{key}: {_type(properties[key])}{'' if key in required else ' = ...'}" for key in named]
    if len(named) < len(properties) or schema.get("additionalProperties"):
        parameters.append("**more: Any")
    listed = ", ".join(["*", *parameters] if named else parameters)
    return f"def {name}({listed}) -> Any: ..."


def _own_names(tool: BoundTool) -> dict[str, str]:
    """Returns the parameters' names for a model -> the tool's own."""
    return {key: next(iter(tool.form.own({key: None}))) for key in tool.form.schema["properties"]}


def _type(schema: Mapping[str, Any]) -> str:
    """Returns the Python type of a parameter: never narrower than what the tool accepts."""
    match schema.get("anyOf", schema.get("oneOf", schema.get("type"))):
        case "array":
            inside = _type(schema["items"])
            return f"list[{inside}]" if inside in ("str", "int", "bool") else "list[Any]"
        case list() as several:
            types = list(map(_type, several))
            return "Any" if "Any" in types else " | ".join(dict.fromkeys(types))
        case named:
            return _TYPES.get(str(named), "Any")
