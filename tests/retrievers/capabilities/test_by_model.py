"""Capabilities by a chat model: what it may say, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.capabilities import Assigned, AssignmentError, Assignments, assign_by_model
from known import taxonomy_of
from scripted_model import ScriptedModel, calls

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
