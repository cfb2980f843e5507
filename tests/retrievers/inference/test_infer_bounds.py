"""Large, empty and hostile catalogs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies
from callsheet.retrievers.inference.dependency_proposals import embedding
from callsheet.retrievers.inference.matching import Ends, matches


class Hashed(Embeddings):
    """Vectors by chance, the same for the same text; remembers how many texts came, and how many at a time."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.largest = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts.extend(texts)
        self.largest = max(self.largest, len(texts))
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return np.random.default_rng(seed).normal(size=16).tolist()


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


def test_thousands_of_tools_in_bounded_blocks_each_text_once() -> None:
    embeddings, seen = Hashed(), []
    edges = infer_dependencies(shops(1500), embeddings, progress=lambda done, total: seen.append((done, total)))
    right = {(f"shop{i}/cancel_order{i}", f"shop{i}/find_orders{i}") for i in range(1500)}
    found = {(edge.source, edge.target) for edge in edges}
    assert right <= found
    assert len(found) < 1.01 * len(right), "vectors by chance are hardly ever alike"
    assert len(embeddings.texts) == len(set(embeddings.texts))
    assert embeddings.largest <= 256
    assert seen[-1][0] == seen[-1][1] == len(embeddings.texts)


def test_the_arithmetic_of_one_match() -> None:
    """score = 1 (the same vector) + .5 * 1 (the same words) + 0; even at 1.05, .12 wide."""
    tools = [
        Tool(agent="a", name="give", output_schema={"properties": {"red_id": {}}}),
        Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]}),
    ]
    (hint,) = matches(Ends.of(tools), lambda texts: np.ones((len(texts), 1), np.float32), least=0.5)
    assert (hint.source, hint.target, hint.parameter) == (1, 0, "red_id")
    assert hint.confidence == pytest.approx(1 / (1 + np.exp((1.05 - 1.5) / 0.12)), abs=1e-4)


def test_at_most_twenty_sources_an_argument() -> None:
    output = {"properties": {"results": {"items": {"properties": {"red_id": {}}}}}}
    givers = tuple(Tool(agent="a", name=f"give{i}", output_schema=output) for i in range(50))
    taker = Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]})
    edges = infer_dependencies(Catalog(agents=(Agent(id="a", tools=(*givers, taker)),)), Hashed())
    assert 0 < len(edges) <= 20
    assert sum(edge.kind.direct for edge in edges) == 1


@pytest.mark.parametrize(
    "catalog", [Catalog(), Catalog(agents=(Agent(id="empty"),)), shops(1)], ids=["", "agent", "two"]
)
def test_catalogs_with_little_in_them(catalog: Catalog) -> None:
    assert len(infer_dependencies(catalog, Hashed())) == max(0, len(catalog.tools) - 1)


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
    embeddings = Hashed()
    found = infer_dependencies(Catalog(agents=(Agent(id="a", tools=tools),)), embeddings)
    assert [(edge.source, edge.target) for edge in found] == [("a/" + "x" * 10_000, "a/get_b")]
    assert len(found[0].evidence) < 200
    assert max(map(len, embeddings.texts)) < 20_000


def test_vectors_of_any_length_are_scaled_and_a_zero_stays() -> None:
    class Odd(Hashed):
        def embed_query(self, text: str) -> list[float]:
            return [0.0, 0.0] if text == "zero" else [3.0, 4.0]

    found = embedding(Odd())(["zero", "other"])
    assert found == pytest.approx(np.array([[0, 0], [0.6, 0.8]]))
    assert embedding(Odd())([]).shape == (0, 0)
