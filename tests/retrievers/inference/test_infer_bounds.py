"""Large, empty and hostile catalogs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies
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
