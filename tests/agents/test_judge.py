"""A model's opinion of proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from callsheet.agents import judge_proposals
from callsheet.graphs import Catalog, DependencyKind
from callsheet.graphs.dependencies import Proposal
from scripted_model import ScriptedModel, calls


def proposals(count: int) -> list[Proposal]:
    return [
        Proposal(
            source="travel/plan_trip",
            target="weather/forecast",
            kind=DependencyKind.TOOL_INDIRECTLY,
            parameter=f"p{i}",
            confidence=0.6,
            evidence="names",
        )
        for i in range(count)
    ]


def verdicts(*said: tuple[int, bool, str]) -> AIMessage:
    return calls("Verdicts", verdicts=[{"edge": n, "right": right, "why": why} for n, right, why in said])


async def judged(catalog: Catalog, edges: Sequence[Proposal], *replies: Any) -> Any:
    model = ScriptedModel(replies=list(replies))
    return model, await judge_proposals(edges, catalog, model)


async def test_agreement_raises_and_disagreement_halves_and_nothing_is_decided(catalog: Catalog) -> None:
    model, done = await judged(catalog, proposals(3), verdicts((1, True, "it rains"), (2, False, ""), (9, True, "")))
    assert [edge.confidence for edge in done.proposals] == [0.8, 0.3, 0.6]
    assert [edge.evidence for edge in done.proposals] == [
        "names; a model agrees: it rains",
        "names; a model disagrees",
        "names",
    ]
    assert [edge.accept for edge in done.proposals] == [None] * 3
    assert (done.judged, done.failed) == (2, "")
    told = model.shown[0]["messages"][-1].text
    assert "1. travel/plan_trip needs weather/forecast for p0 (names)" in told
    assert "weather/forecast(place): Weather forecast for a place." in told


async def test_twenty_at_a_time(catalog: Catalog) -> None:
    told: list[tuple[int, int]] = []
    model = ScriptedModel(replies=[verdicts((1, True, "")), verdicts((20, False, "")), verdicts((5, True, ""))])
    done = await judge_proposals(proposals(45), catalog, model, progress=lambda n, of: told.append((n, of)))
    assert [i for i, edge in enumerate(done.proposals) if edge.confidence != 0.6] == [0, 39, 44]
    assert told == [(20, 45), (40, 45), (45, 45)]


@pytest.mark.parametrize("reply", [AIMessage("I would rather not."), RuntimeError("no credit"), calls("Verdicts", a=1)])
async def test_a_model_that_fails_leaves_the_rest_as_it_was(catalog: Catalog, reply: Any) -> None:
    _, done = await judged(catalog, proposals(50), verdicts((1, True, "")), reply)
    assert [edge.key for edge in done.proposals] == [edge.key for edge in proposals(50)]
    assert done.judged == 1
    assert done.failed
    assert {edge.confidence for edge in done.proposals[20:]} == {0.6}


async def test_what_a_model_or_a_server_hides_is_not_passed_on(catalog: Catalog) -> None:
    edges = [edge.model_copy(update={"evidence": "a\u202eb" + "x" * 9_000}) for edge in proposals(1)]
    model, done = await judged(catalog, edges, verdicts((1, False, "no\x1b[31m\n" + "y" * 9_000)))
    assert "\u202e" not in model.shown[0]["messages"][-1].text
    assert len(model.shown[0]["messages"][-1].text) < 2_000
    assert "\x1b" not in done.proposals[0].evidence
    assert len(done.proposals[0].evidence) < len(edges[0].evidence) + 200


async def test_nothing_to_judge(catalog: Catalog) -> None:
    model, done = await judged(catalog, [], verdicts())
    assert done.proposals == ()
    assert model.shown == []
