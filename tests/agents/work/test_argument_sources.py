"""Tools that may give an argument, named for the worker."""

from __future__ import annotations

import pytest

from callsheet.agents.work.argument_sources import argument_sources
from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool
from callsheet.graphs.catalog.model import Provenance


def edge(
    tool: str, parameter: str | None, confidence: float, provenance: Provenance = Provenance.PROPOSED
) -> Dependency:
    kind = DependencyKind.PARAMETER_DIRECTLY if parameter else DependencyKind.TOOL_INDIRECTLY
    return Dependency(tool=tool, kind=kind, parameter=parameter, confidence=confidence, provenance=provenance)


def catalog(*edges: Dependency) -> Catalog:
    names = ("book", "get_user_id", "find_user", "list_rooms")
    tools = [Tool(agent="crm", name=name, depends_on=edges if name == "book" else ()) for name in names]
    return Catalog(agents=(Agent(id="crm", tools=tuple(tools)),))


def test_the_likeliest_source_of_an_argument_is_named() -> None:
    found = argument_sources(
        catalog(edge("crm/find_user", "user_id", 0.6), edge("crm/get_user_id", "user_id", 0.9)), ["crm/book"]
    )
    assert found.splitlines()[1:] == ["- crm/get_user_id gives user_id of book"]


@pytest.mark.parametrize(
    "unnamed",
    [
        edge("crm/get_user_id", "user_id", 0.9, Provenance.DECLARED),
        edge("crm/get_user_id", None, 0.9),
        edge("crm/list_rooms", "room", 0.9),
    ],
    ids=["declared", "of the whole call", "given already"],
)
def test_what_has_a_place_of_its_own_or_gives_no_argument_is_not_named(unnamed: Dependency) -> None:
    assert argument_sources(catalog(unnamed), ["crm/book", "crm/list_rooms"]) == ""


def test_tools_without_inferred_dependencies_and_unknown_ones_have_no_text() -> None:
    assert argument_sources(catalog(), ["crm/book", "crm/gone"]) == ""
