"""Which tool has which capability, by its text, by hand, and in the catalog."""

from __future__ import annotations

import pytest

from callsheet.graphs import Agent, Catalog, Tool, dump, load
from callsheet.graphs.capabilities.taxonomy import SHIPPED
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings
from callsheet.retrievers.capabilities import (
    Assigned,
    assign_capabilities,
    with_capabilities,
)
from known import Known
from scripted import catalog_of

CATALOG = catalog_of(a_x="", a_y="", b_z="")


def test_a_tool_gets_up_to_three_likely_capabilities_or_one_possible_or_none() -> None:
    sure = {
        "a/x": {"one": 0.9, "two": 0.8, "three": 0.7, "four": 0.6},
        "a/y": {"one": 0.3, "two": 0.4},
        "b/z": {"one": 0.09},
    }
    found = assign_capabilities(CATALOG, Known(CATALOG, sure, {}, "one", "two", "three", "four"))
    assert {tool: [a.capability for a in entries] for tool, entries in found.of.items()} == {
        "a/x": ["one", "two", "three"],
        "a/y": ["two"],
        "b/z": [],
    }
    assert found.coverage == pytest.approx(2 / 3)
    assert found.tools_of["one"] == ("a/x",)
    assert found.tools_of["do"] == found.tools_of["all"] == ("a/x", "a/y")


def test_declared_capabilities_replace_assigned_ones() -> None:
    tools = (Tool(agent="a", name="x", capabilities=("do", "dance")), Tool(agent="a", name="y"))
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    found = assign_capabilities(catalog, Known(catalog, {"a/x": {"one": 0.9}, "a/y": {"one": 0.9}}, {}, "one"))
    assert found.of["a/x"] == (Assigned("do", 1.0, "declared"),)
    plain = found.to_dict()
    assert plain["tools"][0] == {
        "id": "a/x",
        "capabilities": [{"id": "do", "confidence": 1.0, "by": "declared"}],
    }
    assert [(c["id"], c["tools"]) for c in plain["capabilities"]][-1] == ("one", ["a/y"])


def test_capability_coverage_of_an_empty_catalog_is_complete() -> None:
    assert assign_capabilities(Catalog(), Known(catalog_of(), {}, {}, "one")).coverage == 1.0


def test_accepted_capabilities_are_in_the_catalog_and_its_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    sure = {"a/x": {"one": 0.9}, "a/y": {"one": 0.4}}
    index = Known(CATALOG, sure, {}, "one")
    catalog = with_capabilities(CATALOG, assign_capabilities(CATALOG, index))
    assert {tool.id: tool.capabilities for tool in catalog.tools.values()} == {"a/x": ("one",), "a/y": (), "b/z": ()}
    file = tmp_path_factory.mktemp("catalog") / "callsheet.json"
    file.write_text(dump(catalog), encoding="utf-8")
    assert load(file).catalog == catalog


def test_tools_without_text_or_with_hostile_text_are_assigned_too(minilm: MiniLMEmbeddings) -> None:
    tools = (
        Tool(agent="a", name="x"),
        Tool(agent="a", name="天気", description="東京の天気"),
        Tool(agent="a", name="y" * 5_000, description="\u202e\x00" + "z" * 100_000),
    )
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    found = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm).capabilities()
    assert set(found.of) == set(catalog.tools)
    assert all(0 < a.confidence <= 1 for entries in found.of.values() for a in entries)


def test_the_embedded_model_assigns_the_right_capability_to_plain_tools(minilm: MiniLMEmbeddings) -> None:
    said = {
        "read_file": ("Reads the content of a file.", "file-management file-reading"),
        "send_email": ("Sends an e-mail to people.", "external-api-access messaging"),
        "get_weather": ("Weather forecast for a city.", "external-api-access weather-data"),
        "run_sql": ("Executes an SQL query.", "database-querying database-query"),
        "git_push": ("Pushes commits to a remote repository.", "shell-execution version-control"),
    }
    tools = tuple(Tool(agent="a", name=name, description=text) for name, (text, _) in said.items())
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    for place, taxonomy in enumerate(SHIPPED):
        retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm, taxonomy=taxonomy)
        assert {tool: entries[0].capability for tool, entries in retriever.capabilities().of.items()} == {
            f"a/{name}": wanted.split()[place] for name, (_, wanted) in said.items()
        }
