"""Which tools a rule is for, and circles among what programs propose."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool
from callsheet.graphs.dependencies import Proposal, Rule, Selector, without_cycles

SEND = Tool(
    agent="mail",
    name="sendMessage",
    description="Sends e-mail over the Internet.",
    annotations={"openWorldHint": True, "title": "Send"},
)


@pytest.mark.parametrize(
    ("selector", "meant"),
    [
        ({}, True),
        ({"ids": ["mail/*"]}, True),
        ({"ids": ["send*"]}, True),
        ({"ids": ["Send*"]}, False),
        ({"ids": ["web/*", "mail/send?essage"]}, True),
        ({"ids": ["sendMessage/*"]}, False),
        ({"words": ["INTERNET"]}, True),
        ({"words": ["over the internet"]}, True),
        ({"words": ["inter"]}, False),
        ({"words": ["message"]}, True),
        ({"words": ["e-mail"]}, True),
        ({"words": ["...", "intranet"]}, False),
        ({"core": False}, True),
        ({"core": True}, False),
        ({"annotations": {"openWorldHint": True}}, True),
        ({"annotations": {"readOnlyHint": None}}, False),
        ({"annotations": {"openWorldHint": True, "title": "x"}}, False),
        ({"ids": ["mail/*"], "words": ["carrier pigeon"]}, False),
    ],
)
def test_all_that_is_given_must_hold_and_one_of_a_list(selector: dict[str, Any], meant: bool) -> None:
    assert Selector(**selector).selects(SEND) is meant


def test_a_rule_without_some() -> None:
    rule = Rule(depends_on=("net/status",), without=Selector(words=("e-mail",)))
    assert not rule.selects(SEND)
    assert rule.selects(SEND.model_copy(update={"name": "x", "description": "Sends a letter."}))


def proposal(source: str, target: str, confidence: float) -> Proposal:
    return Proposal(source=source, target=target, kind=DependencyKind.TOOL_DIRECTLY, confidence=confidence)


def catalog_of(*names: str, **needs: str) -> Catalog:
    def tool(name: str) -> Tool:
        edges = [Dependency(tool=f"a/{needs[name]}", kind=DependencyKind.TOOL_DIRECTLY)] if name in needs else []
        return Tool(agent="a", name=name, depends_on=tuple(edges))

    return Catalog(agents=(Agent(id="a", tools=tuple(map(tool, names))),))


def test_in_a_circle_the_least_sure_proposal_becomes_indirect() -> None:
    edges = [proposal("a/x", "a/y", 0.9), proposal("a/y", "a/z", 0.6), proposal("a/z", "a/x", 0.7)]
    found = without_cycles(edges, catalog_of("x", "y", "z"))
    assert [edge.kind.direct for edge in found] == [True, False, True]
    assert [edge.confidence for edge in found] == [0.9, 0.6, 0.7]


def test_what_the_catalog_holds_never_gives_way() -> None:
    (found,) = without_cycles([proposal("a/y", "a/x", 1.0)], catalog_of("x", "y", x="y"))
    assert found.kind is DependencyKind.TOOL_INDIRECTLY


def test_two_circles_and_an_edge_beside_them() -> None:
    edges = [
        proposal("a/x", "a/y", 0.5),
        proposal("a/y", "a/x", 0.6),
        proposal("a/z", "a/x", 0.1),
        proposal("a/v", "a/w", 0.8),
        proposal("a/w", "a/v", 0.7),
    ]
    found = without_cycles(edges, catalog_of("v", "w", "x", "y", "z"))
    assert [edge.kind.direct for edge in found] == [False, True, True, True, False]
