"""Tools as typed Python functions: what a model is shown, and what its program is checked against."""

from __future__ import annotations

import builtins
import keyword
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from callsheet.agents.safety.secrets import has_secrets
from callsheet.agents.tools.binding import RUN_PROGRAM, BoundTool

RESULTS = "results"
"""The variable with the values of earlier steps, by their ids."""
_TAKEN = {RESULTS, *keyword.kwlist, *dir(builtins)}
_LONGEST_DOC = 1_000
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_ABOUT = """\
Run one Python program that calls your tools as functions, and get what it prints and the value of its last line. Use \
it to call several tools, to loop, and to pass on values without repeating them. Only the functions below are there; \
{results} holds the values of earlier steps by id. Call them directly, and name every argument. A function returns \
parsed JSON if the tool gives JSON, otherwise text, and raises RuntimeError if the call fails. Much of the standard \
library is missing; there are no files and no network. Variables do not last until the next program.

{stubs}"""


def functions_of(tools: Mapping[str, BoundTool]) -> dict[str, BoundTool]:
    """The tools that programs may call, by the names of their functions.

    A tool that takes secrets is not among them: a program and its variables are stored as they are.
    """
    functions: dict[str, BoundTool] = {}
    for name, tool in tools.items():
        if not has_secrets(tool.args_schema):
            function = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
            while function in functions or function in _TAKEN:
                function += "_"
            functions[function] = tool
    return functions


def definition(functions: Mapping[str, BoundTool]) -> dict[str, Any]:
    """The definition of ``run_program`` for a model."""
    shown = "\n\n".join(_function(name, tool, documented=True) for name, tool in functions.items())
    code = {"type": "string", "description": "The program."}
    return {
        "type": "function",
        "function": {
            "name": RUN_PROGRAM,
            "description": _ABOUT.format(results=RESULTS, stubs=shown),
            "parameters": {"type": "object", "properties": {"code": code}, "required": ["code"]},
        },
    }


def stubs(functions: Mapping[str, BoundTool]) -> str:
    """The same functions as stubs for a type checker."""
    written = (_function(name, tool) for name, tool in functions.items())
    return "\n".join(["from typing import Any", f"{RESULTS}: dict[str, Any]", *written, ""])


def _function(name: str, tool: BoundTool, *, documented: bool = False) -> str:
    schema = tool.args_schema if isinstance(tool.args_schema, dict) else {}
    properties: Mapping[str, Any] = schema.get("properties", {})
    named = {key: value for key, value in properties.items() if key.isidentifier() and not keyword.iskeyword(key)}
    required = set(schema.get("required", ()))
    parameters = [f"{key}: {_type(value)}{'' if key in required else ' = ...'}" for key, value in named.items()]
    if len(named) < len(properties) or schema.get("additionalProperties"):
        parameters.append("**more: Any")
    listed = ", ".join(["*", *parameters] if named else parameters)
    head = f"def {name}({listed}) -> Any:"
    if not documented:
        return f"{head} ..."
    lines = [tool.description, *filter(None, (_about(key, value) for key, value in properties.items()))]
    doc = textwrap.shorten(" ".join(lines), _LONGEST_DOC, placeholder=" ...").replace('"""', "'''")
    return f'{head}\n    """{doc}"""'


def _about(name: str, schema: Any) -> str:
    """What is known of a parameter beside its type."""
    if not isinstance(schema, Mapping):
        return ""
    passed = "" if name.isidentifier() and not keyword.iskeyword(name) else f"passed as **{{{name!r}: ...}}"
    choices = f"one of {schema['enum']!r}" if isinstance(schema.get("enum"), list) else ""
    told = ", ".join(filter(None, (str(schema.get("description", "")), choices, passed)))
    return f"{name}: {told}." if told else ""


def _type(schema: Any) -> str:
    """The Python type of a parameter: never narrower than what the tool accepts."""
    if not isinstance(schema, Mapping):
        return "Any"
    match schema.get("anyOf", schema.get("oneOf", schema.get("type"))):
        case "array":
            inside = _type(schema.get("items"))
            return f"list[{inside}]" if inside in ("str", "int", "bool") else "list[Any]"
        case "object":
            return "dict[str, Any]"
        case str() as named:
            return _TYPES.get(named, "Any")
        case list() as several:
            types = [_type(one if isinstance(one, Mapping) else {"type": one}) for one in several]
            return "Any" if "Any" in types or not types else " | ".join(dict.fromkeys(types))
        case _:
            return "Any"
