from __future__ import annotations

from collections.abc import Sequence

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers import PickedTool
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer
from callsheet.retrievers.selection.budget import Budget, SchemaTokens

NAMES = "uvwxyz"
CATALOG = Catalog(
    agents=(Agent(id="a", tools=tuple(Tool(agent="a", name=n, description="word " * 20) for n in NAMES)),)
)
COUNT = SchemaTokens(CATALOG)
ONE = COUNT.count(["a/u"])


def budget_of(tools: int = 9, schema_tokens: int | None = None) -> Budget:
    return Budget(tools, schema_tokens, COUNT)


def group(names: str, score: float = 0.5) -> Sequence[PickedTool]:
    return [PickedTool(f"a/{name}", score, (f"a/{name}",)) for name in names]


def taken(budget: Budget) -> str:
    return "".join(tool.removeprefix("a/") for tool in budget.taken)


def told(budget: Budget) -> dict[str, str]:
    return {cut.id.removeprefix("a/"): cut.reason for cut in budget.cut.values()}


def test_all_of_these_tools_cost_the_same() -> None:
    assert {COUNT.count([f"a/{name}"]) for name in NAMES} == {ONE}


def test_the_tokenizer_is_made_once() -> None:
    assert shared_tokenizer() is shared_tokenizer()


def test_groups_are_taken_in_order_while_they_fit() -> None:
    budget = budget_of(3)
    for names in ("u", "vw", "x"):
        assert not budget.full
        budget.offer("a", group(names))
        if taken(budget) == "uvw":
            break
    assert (taken(budget), budget.full, told(budget)) == ("uvw", True, {})
    budget.offer("a", group("x"))
    assert (taken(budget), told(budget)) == ("uvw", {"x": "the budget is spent"})


def test_a_later_group_comes_whole_or_not_at_all() -> None:
    budget = budget_of(3)
    budget.offer("a", group("u"))
    budget.offer("a", group("vwx"))
    assert taken(budget) == "u"
    assert told(budget) == dict.fromkeys("vwx", "only 2 left, with its requirements 3")
    budget.offer("a", group("yz"))
    assert taken(budget) == "uyz"
    budget.offer("a", group("vw"))
    assert told(budget) == dict.fromkeys("vwx", "only 2 left, with its requirements 3")


def test_the_first_group_is_taken_as_far_as_it_fits() -> None:
    budget = budget_of(2)
    budget.offer("a", group("uvwx"))
    assert (taken(budget), list(told(budget))) == ("uv", ["x", "w"])


def test_a_group_needs_room_only_for_what_is_not_taken_yet() -> None:
    budget = budget_of(2)
    budget.offer("a", group("u"))
    budget.offer("b", group("vuv"))
    assert taken(budget) == "uv"
    assert [agent for agent, _ in budget.taken.values()] == ["a", "b"]
    budget.offer("c", group("uv"))
    assert [agent for agent, _ in budget.taken.values()] == ["a", "b"]


def test_what_was_cut_and_fits_later_is_no_longer_told_as_cut() -> None:
    budget = budget_of(2)
    budget.offer("a", group("u"))
    budget.offer("a", group("vwx"))
    budget.offer("a", group("v"))
    assert (taken(budget), list(told(budget))) == ("uv", ["w", "x"])


def test_schema_tokens_are_obeyed_and_named() -> None:
    budget = budget_of(schema_tokens=2 * ONE)
    for name in "uvw":
        budget.offer("a", group(name))
    assert (taken(budget), budget.full) == ("uv", False)
    assert told(budget) == {"w": f"{3 * ONE} tokens of schemas, {2 * ONE} are allowed"}
    assert COUNT.count(budget.taken) == 2 * ONE


def test_with_schema_tokens_too_a_group_comes_whole_or_not_at_all_but_the_first() -> None:
    budget = budget_of(schema_tokens=3 * ONE)
    budget.offer("a", group("u"))
    budget.offer("a", group("vwx"))
    assert taken(budget) == "u"
    assert told(budget) == dict.fromkeys("vwx", f"{4 * ONE} tokens of schemas, {3 * ONE} are allowed")
    first = budget_of(schema_tokens=2 * ONE)
    first.offer("a", group("uvwx"))
    assert taken(first) == "uv"
    assert told(first)["x"] == f"{4 * ONE} tokens of schemas, {2 * ONE} are allowed"


@pytest.mark.parametrize("names", ["u", "uv"])
def test_what_alone_costs_too_much_is_left_out(names: str) -> None:
    budget = budget_of(schema_tokens=ONE - 1)
    budget.offer("a", group(names))
    assert (taken(budget), told(budget)["u"]) == ("", f"{ONE} tokens of schemas, {ONE - 1} are allowed")
