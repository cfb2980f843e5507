"""Which tool has which capability, by its text, by hand, and in the catalog."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool, dump, load
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings
from callsheet.retrievers.capabilities import (
    Assigned,
    AssignmentError,
    Assignments,
    assign_by_model,
    assign_capabilities,
    with_capabilities,
)
from known import Known, taxonomy_of
from scripted import catalog_of
from scripted_model import ScriptedModel, calls

CATALOG = catalog_of(a_x="", a_y="", b_z="")


def test_the_likely_ones_at_most_three_or_the_best_if_it_is_possible_or_none() -> None:
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


def test_what_the_author_declares_holds_alone_and_unknown_ids_are_told() -> None:
    tools = (Tool(agent="a", name="x", capabilities=("do", "dance")), Tool(agent="a", name="y"))
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    found = assign_capabilities(catalog, Known(catalog, {"a/x": {"one": 0.9}, "a/y": {"one": 0.9}}, {}, "one"))
    assert found.of["a/x"] == (Assigned("do", 1.0, "declared"),)
    assert found.unknown == {"a/x": ("dance",)}
    plain = found.to_dict()
    assert plain["tools"][0] == {
        "id": "a/x",
        "capabilities": [{"id": "do", "confidence": 1.0, "by": "declared"}],
        "unknown": ["dance"],
    }
    assert [(c["id"], c["tools"]) for c in plain["capabilities"]][-1] == ("one", ["a/y"])


def test_an_empty_catalog_is_covered() -> None:
    assert assign_capabilities(Catalog(), Known(catalog_of(), {}, {}, "one")).coverage == 1.0


def test_accepted_ones_go_into_the_catalog_and_through_its_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    sure = {"a/x": {"one": 0.9}, "a/y": {"one": 0.4}}
    index = Known(CATALOG, sure, {}, "one")
    catalog = with_capabilities(CATALOG, assign_capabilities(CATALOG, index))
    assert {tool.id: tool.capabilities for tool in catalog.tools.values()} == {"a/x": ("one",), "a/y": (), "b/z": ()}
    file = tmp_path_factory.mktemp("catalog") / "callsheet.json"
    file.write_text(dump(catalog), encoding="utf-8")
    assert load(file).catalog == catalog


def test_a_tool_may_have_lost_its_text(minilm: MiniLMEmbeddings) -> None:
    tools = (
        Tool(agent="a", name="x"),
        Tool(agent="a", name="天気", description="東京の天気"),
        Tool(agent="a", name="y" * 5_000, description="\u202e\x00" + "z" * 100_000),
    )
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    found = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm).capabilities()
    assert set(found.of) == set(catalog.tools)
    assert all(0 < a.confidence <= 1 for entries in found.of.values() for a in entries)


def test_plain_tools_with_the_embedded_model(minilm: MiniLMEmbeddings) -> None:
    said = {
        "read_file": ("Reads the content of a file.", "file-reading"),
        "send_email": ("Sends an e-mail to people.", "messaging"),
        "delete_note": ("Deletes a note.", "delete"),
        "get_weather": ("Weather forecast for a city.", "weather-data"),
        "run_sql": ("Executes an SQL query.", "database-query"),
        "git_push": ("Pushes commits to a remote repository.", "version-control"),
    }
    tools = tuple(Tool(agent="a", name=name, description=text) for name, (text, _) in said.items())
    catalog = Catalog(agents=(Agent(id="a", tools=tools),))
    found = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm).capabilities()
    assert {tool: entries[0].capability for tool, entries in found.of.items()} == {
        f"a/{name}": wanted for name, (_, wanted) in said.items()
    }


TAXONOMY = taxonomy_of("fly", "swim")


def catalog_with(count: int, **more: Any) -> Catalog:
    tools = tuple(Tool(agent="a", name=f"t{i}", **more) for i in range(count))
    return Catalog(agents=(Agent(id="a", tools=tools),))


def answer(*tools: tuple[int, list[str]]) -> Any:
    return calls("Answer", tools=[{"number": number, "capabilities": names} for number, names in tools])


def test_it_says_what_each_tool_has_by_number() -> None:
    model = ScriptedModel(replies=[answer((1, ["swim", "fly", "swim"]), (2, []))])
    found = assign_by_model(catalog_with(2), model, TAXONOMY)
    assert found.of == {"a/t0": (Assigned("swim", 1.0, "model"), Assigned("fly", 1.0, "model")), "a/t1": ()}
    said = "\n".join(str(message.content) for message in model.shown[0]["messages"])
    assert "fly: fly one" in said
    assert '"tool": "t0"' in said


def test_it_cannot_add_tools_or_capabilities_and_says_at_most_three() -> None:
    taxonomy = taxonomy_of("a", "b", "c", "d")
    model = ScriptedModel(replies=[answer((1, ["a", "dance", "b", "c", "d"]), (0, ["a"]), (7, ["a"]), (-1, ["b"]))])
    found = assign_by_model(catalog_with(1), model, taxonomy)
    assert [entry.capability for entry in found.of["a/t0"]] == ["a", "b", "c"]
    assert set(found.of) == {"a/t0"}
    assert found.unknown == {"a/t0": ("dance",)}


def test_twenty_tools_a_call_and_none_where_the_author_said_it() -> None:
    model = ScriptedModel(replies=[answer((1, ["fly"])), answer((1, ["swim"]))])
    told: list[tuple[int, int]] = []
    found = assign_by_model(catalog_with(21), model, TAXONOMY, progress=lambda done, total: told.append((done, total)))
    assert [found.of[f"a/t{i}"] for i in (0, 1, 20)] == [
        (Assigned("fly", 1.0, "model"),),
        (),
        (Assigned("swim", 1.0, "model"),),
    ]
    assert told == [(20, 21), (21, 21)]
    asked = ScriptedModel(replies=[answer()])
    declared = assign_by_model(catalog_with(3, capabilities=("fly",)), asked, TAXONOMY)
    assert {entries[0].by for entries in declared.of.values()} == {"declared"}
    assert asked.shown == []


def test_where_it_says_nothing_the_other_assignment_holds() -> None:
    by_text = Assignments(TAXONOMY, {"a/t0": (Assigned("fly", 0.7, "text"),), "a/t1": (Assigned("fly", 0.6, "text"),)})
    model = ScriptedModel(replies=[answer((2, ["swim"]))])
    found = assign_by_model(catalog_with(2), model, TAXONOMY, otherwise=by_text)
    assert [found.of[f"a/t{i}"][0].by for i in (0, 1)] == ["text", "model"]


def test_what_is_hidden_in_a_tool_does_not_reach_it() -> None:
    model = ScriptedModel(replies=[answer()])
    text = "Flies.\u202e\x1b[31m\U000e0041 " + "x" * 100_000
    assign_by_model(catalog_with(1, description=text), model, TAXONOMY)
    shown = str(model.shown[0]["messages"][-1].content)
    assert "Flies." in shown
    assert not {"\u202e", "\x1b", "\U000e0041"} & set(shown)
    assert len(shown) < 2_000


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (RuntimeError("no key"), "the model failed: RuntimeError: no key"),
        (calls("Answer", tools="all of them"), "not have the requested form"),
    ],
)
def test_a_model_that_fails_is_one_clear_error(reply: Any, said: str) -> None:
    with pytest.raises(AssignmentError, match=said) as caught:
        assign_by_model(catalog_with(1), ScriptedModel(replies=[reply]), TAXONOMY)
    assert len(str(caught.value)) <= 200
