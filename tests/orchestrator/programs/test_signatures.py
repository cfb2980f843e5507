"""Tools as typed Python functions."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from callsheet.agents.programs.functions import functions_of, stubs, without_functions
from callsheet.agents.registry.binding import BoundTool, bound_tool
from callsheet.graphs import Tool


def bound(name: str, properties: Any = None, required: Any = (), **more: Any) -> BoundTool:
    schema = {"type": "object", "properties": properties or {}, "required": list(required), **more}
    tool = Tool(agent="a", name=name, description='Does """it""".', input_schema=schema)
    return bound_tool(name, tool, lambda *_: pytest.fail("called"))


def signature(properties: Any = None, required: Any = (), **more: Any) -> str:
    text = stubs(functions_of({"f": bound("f", properties, required, **more)}))
    ast.parse(text)
    return text.splitlines()[-1].removeprefix("def f(").removesuffix(") -> Any: ...")


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["integer", "null"]}, "int | None"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array", "items": {"type": "number"}}, "list[Any]"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "str | float"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/x"}]}, "Any"),
        ({"type": "string", "enum": ["a", "b"]}, "str"),
        ({"enum": [1, "a"]}, "Any"),
        ({"type": "a type that there is not"}, "Any"),
        (True, "Any"),
    ],
)
def test_types_are_never_narrower_than_the_schema(schema: Any, written: str) -> None:
    assert signature({"x": schema}, ["x"]) == f"*, x: {written}"
    assert signature({"x": schema}) == f"*, x: {written} = ..."


def test_arguments_that_are_no_python_names_are_passed_by_unpacking() -> None:
    assert signature({"from": {"type": "string"}, "x-y": {}, "to": {"type": "string"}}, ["from"]) == (
        "*, x_y: Any = ..., to: str = ..., **more: Any"
    )


def test_functions_have_names_of_their_own() -> None:
    names = ["list", "get-rate", "get_rate", "1st", "results", "class"]
    assert list(functions_of({name: bound(name) for name in names})) == [
        "list_",
        "get_rate",
        "get_rate_",
        "_1st",
        "results_",
        "class_",
    ]


SIGNS: dict[str, Any] = {"password": {"type": "string"}, "text": {"type": "string"}}


def test_a_tool_that_requires_a_secret_is_no_function_and_says_why() -> None:
    tools = {"sign": bound("sign", SIGNS, ["password"]), "rate": bound("rate")}
    assert list(functions_of(tools)) == ["rate"]
    assert list(without_functions(tools)) == ["sign"]
    assert "sign takes a secret" in without_functions(tools)["sign"]


def test_an_optional_secret_is_left_out_of_the_signature() -> None:
    assert signature(SIGNS, ["text"]) == "*, text: str"


def test_a_secret_within_a_parameter_counts_as_one() -> None:
    inner = {"type": "object", "properties": {"token": {"type": "string", "format": "password"}}}
    assert signature({"login": inner, "text": {"type": "string"}}) == "*, text: str = ..."
    assert list(functions_of({"f": bound("f", {"login": inner}, ["login"])})) == []
