"""Large, empty and hostile catalogs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.text.json_schema import fields_of
from callsheet.retrievers.inference import candidates, infer_dependencies
from callsheet.retrievers.inference.candidates import Candidates, Ends, value_words
from callsheet.retrievers.inference.edge_model import NEED, PAIR, PLACE, EdgeModel


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


def test_inference_over_none_two_and_a_thousand_tools() -> None:
    for count in (0, 1, 500):
        edges = infer_dependencies(shops(count))
        right = {(f"shop{i}/cancel_order{i}", f"shop{i}/find_orders{i}") for i in range(count)}
        assert {(edge.source, edge.target) for edge in edges} == right


COUNTS = {"id": 99, "item": 99}
MODEL = EdgeModel(
    weights={**dict.fromkeys((*NEED, *PAIR), 0.0), "required": 0.5, "field": 2.0, "echo": -3.0, "name": 1.0},
    words={"n:red": 0.25, "t:give": 0.75},
    bias=-1.0,
    place={**dict.fromkeys(PLACE, 0.0), "score": 2.0, "rank": -0.5, "rivals": 1.0},
    place_bias=0.1,
    catalogs=99,
    counts=COUNTS,
)
TAKE = Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]})


def test_the_edge_model_computes_its_confidence_as_written() -> None:
    """The field fits wholly, the name not at all: score = -1 + .5 + 2 * 1 + .25 + .75; one candidate, rank 0."""
    give = Tool(agent="a", name="give", output_schema={"properties": {"red_id": {}}})
    ends = Ends.of([give, TAKE], {}, None, MODEL)
    finder = Candidates(ends, MODEL)
    (need,) = ends.needs
    (found,) = finder.of(need)
    scores = finder.scores(need, finder.need_features(need), [found])
    assert scores == pytest.approx([2.5])
    (edge,) = infer_dependencies(Catalog(agents=(Agent(id="a", tools=(give, TAKE)),)), model=MODEL)
    assert edge.confidence == pytest.approx(1 / (1 + np.exp(-(2 * 2.5 + np.log(2) + 0.1))), abs=1e-3)
    assert edge.evidence == "its result holds red_id, which fits red_id"


def test_common_names_borrow_the_words_of_their_parents_and_of_the_tool() -> None:
    """Every API has "id" and "item", none has "album" and "artist": what "id" and "items" leave is all of 1."""
    (plain,) = fields_of({"properties": {"id": {}}})
    (told,) = fields_of({"properties": {"id": {"description": "That of the artist."}}})
    (held,) = fields_of({"properties": {"albums": {"properties": {"id": {}}}}})
    assert value_words(plain, "get_artists_albums", MODEL) == {"id": 0.0, "artist": 1.0, "album": 1.0}
    assert value_words(told, "get_artists_albums", MODEL) == {"id": 0.0, "artist": 1.0}
    assert value_words(held, "get_artists", MODEL) == {"id": 0.0, "album": 1.0}


def test_an_argument_gets_at_most_three_sources() -> None:
    output = {"properties": {"results": {"items": {"properties": {"red_id": {}}}}}}
    givers = tuple(Tool(agent="a", name=f"give{i}", output_schema=output) for i in range(50))
    taker = Tool(agent="a", name="take", input_schema={"properties": {"red_id": {}}, "required": ["red_id"]})
    edges = infer_dependencies(Catalog(agents=(Agent(id="a", tools=(*givers, taker)),)))
    assert len(edges) == 3
    assert sum(edge.kind.direct for edge in edges) == 1


def test_the_budget_of_inputs_is_shared_by_the_agents_and_said(
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
    monkeypatch.setattr(candidates, "MOST_NEEDS", 100)
    found = [infer_dependencies(whole) for _ in range(2)]
    assert found[0] == found[1]
    assert {edge.source.partition("/")[0] for edge in found[0]} == {f"shop{i}" for i in range(30)}
    assert "for 100 of " in caplog.text


def test_texts_that_name_every_tool_give_a_bounded_number_of_dependencies() -> None:
    told = " ".join(f"Call do_{i} first." for i in range(300))
    named = tuple(Tool(agent="a", name=f"do_{i}", description=told) for i in range(300))
    assert len(infer_dependencies(Catalog(agents=(Agent(id="a", tools=named),)))) <= 20 * len(named)


def test_hostile_texts_and_schemas_do_not_stop_inference() -> None:
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
