from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from callsheet.graphs import Agent, Catalog, CatalogError, Dependency, DependencyKind, Tool, UnknownNameError


def test_a_tool_is_known_by_its_agent_and_name() -> None:
    twins = Catalog(agents=tuple(Agent(id=a, tools=(Tool(agent=a, name="read"),)) for a in ("files", "mail")))
    assert list(twins.tools) == ["files/read", "mail/read"]


def test_an_unknown_name_is_a_key_error_that_reads_well_and_gives_near_ones(catalog: Catalog) -> None:
    with pytest.raises(UnknownNameError, match=r"no agent 'wether' .*did you mean 'weather'"):
        catalog.agent("wether")
    with pytest.raises(UnknownNameError, match=r"did you mean 'units/convert_mass' or 'units/convert_length'"):
        catalog.tool("units/convert_mas")
    with pytest.raises(KeyError) as caught:
        catalog.tool("zzzz")
    assert str(caught.value) == "no tool 'zzzz' in the catalog"


def test_an_agent_has_each_tool_once_and_none_of_another() -> None:
    twice = (Tool(agent="a", name="x"), Tool(agent="a", name="x"))
    with pytest.raises(CatalogError, match=r"agent 'a' has two tools named 'x': rename or remove one"):
        Agent(id="a", tools=twice)
    with pytest.raises(CatalogError, match=r"agent 'a' holds tool 'x' of agent 'b': give the tool its owner's id"):
        Agent(id="a", tools=(Tool(agent="b", name="x"),))


def test_slashes_in_names_cannot_make_two_nodes_one() -> None:
    one, other = (
        Agent(id="a", tools=(Tool(agent="a", name="b/c"),)),
        Agent(id="a/b", tools=(Tool(agent="a/b", name="c"),)),
    )
    with pytest.raises(CatalogError, match=r"id 'a/b/c': rename one of them"):
        Catalog(agents=(one, other))


def test_a_dependency_cannot_point_nowhere() -> None:
    edge = Dependency(tool="a/yy", kind=DependencyKind.TOOL_DIRECTLY)
    tools = (Tool(agent="a", name="x", depends_on=(edge,)), Tool(agent="a", name="y"))
    with pytest.raises(CatalogError, match=r"'a/x' depends on 'a/yy'.*did you mean 'a/y'.*remove the dependency"):
        Catalog(agents=(Agent(id="a", tools=tools),))


def test_what_comes_from_outside_cannot_be_changed(catalog: Catalog) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        catalog.agents[0].id = "other"  # type: ignore[misc]


def test_fields_that_are_blank_misspelt_or_missing_are_named() -> None:
    for name in ("", " ", "\t\n"):
        with pytest.raises(CatalogError, match="name"):
            Tool(agent="a", name=name)
    fields: dict[str, Any] = {
        "agents": [{"id": "a", "tools": [{"agent": "a", "name": "x"}, {"agent": "a", "nam": "y"}]}]
    }
    with pytest.raises(CatalogError, match=r"agents\.0.*tools\.1.*name: Field required; nam: Extra inputs"):
        Catalog(**fields)
    fields = {"agent": "a", "name": "x", "self": 1}
    with pytest.raises(CatalogError, match="self: Extra inputs"):
        Tool(**fields)


def test_only_the_two_direct_kinds_are_direct() -> None:
    assert {kind.value for kind in DependencyKind if kind.direct} == {"tool_directly", "parameter_directly"}


def test_parameters_are_read_off_the_schema() -> None:
    schema = {
        "properties": {
            "to": {"type": "string", "enum": ["m", "km"], "description": "Unit."},
            "n": {"type": ["integer", "null"], "default": 3},
            "when": {"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}], "format": "date"},
            "odd": {},
            "broken": "not a schema",
        },
        "required": ["to", "absent"],
    }
    to, n, when, odd = Tool(agent="a", name="x", input_schema=schema).parameters
    assert (to.name, to.required, to.enum, to.description) == ("to", True, ("m", "km"), "Unit.")
    assert (n.type, n.default, n.required) == ("integer|null", 3, False)
    assert (when.type, when.format) == ("string|null", "date")
    assert odd.type == "any"
    for without in ({}, {"properties": []}, {"properties": None}, {"type": "string"}):
        assert Tool(agent="a", name="x", input_schema=without).parameters == ()


def test_outputs_are_the_fields_of_the_output_schema() -> None:
    with_output = Tool(agent="a", name="x", output_schema={"properties": {"km": {"type": "number"}}})
    assert [field.name for field in with_output.outputs] == ["km"]
    assert Tool(agent="a", name="x").outputs == ()
