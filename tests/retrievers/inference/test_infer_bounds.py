"""Large, empty and hostile catalogs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies, matching
from callsheet.retrievers.inference.endpoints import Ends
from callsheet.retrievers.inference.matching import matches


def shop(number: int) -> Sequence[Tool]:
    agent = f"shop{number}"
    order = {"type": "object", "properties": {f"order{number}_id": {"type": "string"}}}
    return (
        Tool(agent=agent, name=f"find_orders{number}", description="Finds.", output_schema=order),
        Tool(
            agent=agent,
            name=f"cancel_order{number}",
            description="Cancels.",
            input_schema={**order, "required": [f"order{number}_id"]},
        ),
    )


def shops(count: int) -> Catalog:
    return Catalog(agents=tuple(Agent(id=f"shop{i}", tools=tuple(shop(i))) for i in range(count)))


def test_thousands_of_tools() -> None:
    edges = infer_dependencies(shops(1500))
    right = {(f"shop{i}/cancel_order{i}", f"shop{i}/find_orders{i}") for i in range(1500)}
    assert {(edge.source, edge.target) for edge in edges} == right


def test_the_arithmetic_of_one_match() -> None:
    """score = 1 (the same text) + .5 * 1 (the same words) + 0; even at .9, .12 wide; .9 as a list."""
    tools = [
        Tool(agent="a", name="red", output_schema={"properties": {"red_id": {}}}),
        Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]}),
    ]
    (hint,) = matches(Ends.of(tools), least=0.5)
    assert (hint.source, hint.target, hint.parameter) == (1, 0, "red_id")
    assert hint.confidence == pytest.approx(0.9 / (1 + np.exp((0.9 - 1.5) / 0.12)), abs=1e-4)


def test_at_most_three_sources_an_argument() -> None:
    output = {"properties": {"results": {"items": {"properties": {"red_id": {}}}}}}
    givers = tuple(Tool(agent="a", name=f"give{i}", output_schema=output) for i in range(50))
    taker = Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]})
    edges = infer_dependencies(Catalog(agents=(Agent(id="a", tools=(*givers, taker)),)))
    assert len(edges) == 3
    assert sum(edge.kind.direct for edge in edges) == 1


def test_the_budget_of_comparisons_is_shared_by_the_agents_and_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    needs = {"properties": {f"red{i}_id": {"type": "string"} for i in range(40)}}
    greedy = tuple(
        Tool(agent="z", name=f"use_{i}", input_schema={**needs, "required": list(needs["properties"])})
        for i in range(20)
    )
    whole = Catalog(agents=(Agent(id="z", tools=greedy), *shops(30).agents))
    assert len(infer_dependencies(whole)) == 30
    assert not caplog.records
    monkeypatch.setattr(matching, "_COMPARISONS", 50_000)
    found = [infer_dependencies(whole) for _ in range(2)]
    assert found[0] == found[1]
    assert {edge.source.partition("/")[0] for edge in found[0]} == {f"shop{i}" for i in range(30)}
    assert "arguments only" in caplog.text
    assert caplog.text.split("left out are arguments of ")[1].splitlines()[0] == "z"


def test_of_a_crowd_of_outputs_the_best_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_CANDIDATES", 5)
    output = {"properties": {"red_id": {"type": "string"}, "red_ids_of_others": {"type": "string"}}}
    crowd = tuple(Tool(agent="a", name=f"give_red_{i}", output_schema=output) for i in range(50))
    read = Tool(agent="a", name="read_red", output_schema={"properties": {"red_id": {"type": "string"}}})
    take = Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]})
    edges = infer_dependencies(Catalog(agents=(Agent(id="a", tools=(*crowd, read, take)),)))
    assert len([edge for edge in edges if edge.source == take.id]) == 3


def test_a_text_that_names_everybody_and_a_value_that_everybody_checks() -> None:
    told = " ".join(f"Call do_{i} first." for i in range(300))
    named = tuple(Tool(agent="a", name=f"do_{i}", description=told) for i in range(300))
    assert len(infer_dependencies(Catalog(agents=(Agent(id="a", tools=named),)))) <= 20 * len(named)
    checks = tuple(Agent(id=f"c{i}", tools=(Tool(agent=f"c{i}", name="validate_email"),)) for i in range(300))
    needs = {"properties": {"email": {"type": "string"}}, "required": ["email"]}
    send = Agent(id="mail", tools=(Tool(agent="mail", name="send", input_schema=needs),))
    assert len(infer_dependencies(Catalog(agents=(*checks, send)))) <= 20


@pytest.mark.parametrize(
    "catalog", [Catalog(), Catalog(agents=(Agent(id="empty"),)), shops(1)], ids=["", "agent", "two"]
)
def test_catalogs_with_little_in_them(catalog: Catalog) -> None:
    assert len(infer_dependencies(catalog)) == max(0, len(catalog.tools) - 1)


def test_texts_and_schemas_that_mean_harm() -> None:
    deep: dict[str, object] = {"type": "string"}
    for _ in range(90):
        deep = {"type": "object", "properties": {"id": deep}}
    tools = (
        Tool(agent="a", name="x" * 10_000, description="get_b first. " * 400_000, input_schema=deep),
        Tool(
            agent="a", name="get_b", description="\x00\u202e", input_schema={"properties": {"": {}, "__": {}, "🙂": {}}}
        ),
        Tool(agent="a", name="🙂", input_schema={"properties": {"a": {"$ref": "#"}}}, output_schema={"$ref": "#"}),
        Tool(agent="a", name="list", annotations={"readOnlyHint": "yes"}, input_schema={"required": {"a": 1}}),
    )
    found = infer_dependencies(Catalog(agents=(Agent(id="a", tools=tools),)))
    assert [(edge.source, edge.target) for edge in found] == [("a/" + "x" * 10_000, "a/get_b")]
    assert len(found[0].evidence) < 200
