from __future__ import annotations

from dataclasses import replace

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers import Selection, SelectSettings, explain_tool
from callsheet.retrievers.selection.result import DecisionReport
from callsheet.retrievers.selection.select_settings import IMPLIED
from scripted import catalog_of, selector


def picked(selection: Selection) -> dict[str, list[str]]:
    return {agent: list(tools) for agent, tools in selection.tools_of.items()}


def test_tools_are_ordered_by_use_across_agents() -> None:
    made = selector(catalog_of(a_x="", b_x="", a_y=""), {"a/x": 0.9, "b/x": 0.88, "a/y": 0.86})
    selection = made.select("q")
    assert [tool.id for tool in selection.tools] == ["a/x", "b/x", "a/y"]
    assert picked(selection) == {"a": ["a/x", "a/y"], "b": ["b/x"]}
    uses = [tool.use for tool in selection.tools]
    assert uses == sorted(uses, reverse=True)
    assert sum(uses) == pytest.approx(0.9, abs=1e-5)
    assert {node.id: node.use for node in selection.trace.nodes if node.kind == "tool"} == {
        tool.id: tool.use for tool in selection.tools
    }


def test_each_clause_brings_its_own_tools() -> None:
    catalog = catalog_of(a_x="", a_y="", a_z="", b_x="")
    made = selector(catalog, {"a/x": 0.9, "a/y": 0.8, "a/z": 0.7}, parts={"book hotel rooms": {"b/x": 0.9}})
    query = "find cheap flights; book hotel rooms"
    selection = made.select(query, tools=2, agents=2)
    assert picked(selection) == {"a": ["a/x"], "b": ["b/x"]}
    assert [unit.text for unit in selection.trace.units] == [query, "find cheap flights", "book hotel rooms"]
    assert "b" not in picked(made.select("find cheap flights, hotel rooms", tools=2, agents=1))


def test_agents_that_stand_in_another_order_than_their_scores_say_what_orders_them() -> None:
    query = "find cheap flights; book hotel rooms"
    known = {"a/x": 0.9, "b/x": 0.5, "c/x": 0.6}
    made = selector(catalog_of(a_x="", b_x="", c_x=""), known, parts={"book hotel rooms": {"b/x": 0.95}})
    selection = made.select(query)
    scores = [agent.score for agent in selection.agents]
    assert scores != sorted(scores, reverse=True)
    assert selection.order_note.startswith("Order: how likely a part of the request needs the agent; the score ")
    judged = replace(selection, decision=DecisionReport(by="a model", tools=3, fits=0.9))
    assert judged.order_note.startswith("Order: the judgement by a model; ")
    assert made.select("find cheap flights").order_note == ""


def test_an_implied_step_brings_its_tool_unless_told_not_to() -> None:
    implied = {IMPLIED["write"]: {"b/x": 0.9}}
    made = selector(catalog_of(a_x="", a_y="", b_x=""), {"a/x": 0.9, "a/y": 0.7}, parts=implied)
    query = "save it to /tmp/x.md"
    assert [tool.id for tool in made.select(query, tools=2).tools] == ["a/x", "b/x"]
    assert [tool.id for tool in made.select(query, tools=2, implied=False).tools] == ["a/x", "a/y"]
    assert made.select(query).trace.units[-1].text == IMPLIED["write"]


@pytest.mark.parametrize("named", ["z_send_mail", "z/z_send_mail", "`z_send_mail`", '"z_send_mail"', "Z_Send_Mail."])
def test_a_tool_named_exactly_is_picked_however_close_others_are(named: str) -> None:
    agents = [Agent(id=a, tools=tuple(Tool(agent=a, name=f"t{i}") for i in range(4))) for a in "abcdefgh"]
    agents.append(Agent(id="z", tools=(Tool(agent="z", name="z_send_mail"),)))
    made = selector(Catalog(agents=tuple(agents)), {f"{a}/t{i}": 0.9 for a in "abcdefgh" for i in range(4)})
    selection = made.select(f"please use {named}", agents=1, tools=1)
    assert picked(selection) == {"z": ["z/z_send_mail"]}
    assert "z" not in picked(made.select("please use it"))
    assert "z" not in picked(made.select(f"please use {named}", without=("z",)))


def test_the_nearest_of_several_tools_with_the_given_name_is_guaranteed() -> None:
    agents = [Agent(id=a, tools=(Tool(agent=a, name="send_mail"),)) for a in "abcdef"]
    agents.append(Agent(id="z", tools=(Tool(agent="z", name="t"),)))
    made = selector(Catalog(agents=tuple(agents)), {"z/t": 0.9, "d/send_mail": 0.2})
    assert picked(made.select("use send_mail", agents=2, tools=2)) == {"d": ["d/send_mail"], "z": ["z/t"]}


def test_an_agent_named_exactly_is_picked() -> None:
    agents = (Agent(id="a", tools=(Tool(agent="a", name="t"),)), Agent(id="the-mailer", description="Mail."))
    made = selector(Catalog(agents=agents), {"a/t": 0.9, "a": 0.9})
    assert list(picked(made.select("ask the-mailer", agents=1))) == ["the-mailer"]
    assert list(picked(made.select("ask the mailer", agents=1))) == ["a"]


def test_a_dependency_does_not_come_without_the_tools_in_between() -> None:
    made = selector(catalog_of(a_x="b_y?", b_y="c_z? d_u d_v", d_v=""), {"a/x": 0.9})
    assert picked(made.select("q", agents=1, tools=3)) == {"a": ["a/x"]}
    assert set(picked(made.select("q", agents=1, tools=5))["a"]) == {"a/x", "b/y", "c/z", "d/u", "d/v"}


def test_a_dependency_comes_along_with_the_agent_that_needs_it_and_says_so() -> None:
    made = selector(catalog_of(a_x="b_y", b_y="c_z", c_z=""), {"a/x": 0.9, "a": 0.8})
    selection = made.select("q", agents=1)
    assert picked(selection) == {"a": ["a/x", "b/y", "c/z"]}
    x, y, z = selection.agents[0].tools
    assert (x.via, x.required, x.use) == (("a/x",), False, pytest.approx(0.9, abs=1e-5))
    assert (y.via, y.required, y.use) == (("a/x", "b/y"), True, pytest.approx(0.9 * 0.8, abs=1e-5))
    assert (z.via, z.required) == (("a/x", "b/y", "c/z"), True)
    assert z.use == pytest.approx(0.9 * 0.64, abs=1e-5)
    assert explain_tool("c/z", selection) == "required by a/x > b/y"


def test_an_indirect_dependency_comes_along_unless_nothing_is_passed_on() -> None:
    made = selector(catalog_of(a_x="b_y?"), {"a/x": 0.9})
    selection = made.select("q", agents=1)
    assert picked(selection) == {"a": ["a/x", "b/y"]}
    assert explain_tool("b/y", selection) == "used by a/x"
    assert picked(made.select("q", agents=1, tool_dependency=0.0)) == {"a": ["a/x"]}


def test_a_tool_that_does_not_fit_with_its_requirements_is_cut_and_gives_way_to_one_that_fits() -> None:
    made = selector(catalog_of(a_v="", a_x="b_y c_z", a_w=""), {"a/v": 0.95, "a/x": 0.9, "a/w": 0.8})
    selection = made.select("q", agents=1, tools=2)
    assert picked(selection) == {"a": ["a/v", "a/w"]}
    assert {cut.id: cut.reason for cut in selection.trace.cut} == dict.fromkeys(
        ("a/x", "b/y", "c/z"), "only 1 left, with its requirements 3"
    )


def test_agents_left_out_give_way_to_the_next_and_leaving_all_out_finds_nothing() -> None:
    made = selector(catalog_of(a_x="", b_x="", c_x=""), {"a/x": 0.9, "b/x": 0.8, "c/x": 0.7})
    assert list(picked(made.select("q", agents=2, without=("a",)))) == ["b", "c"]
    selection = made.select("q", without=["a", "b", "c", "unknown"])
    assert (selection.agents, selection.verdict) == ((), "nothing_fits")


def test_words_raise_a_tool_over_a_closer_one() -> None:
    scores, words = {"a/x": 0.6, "b/x": 0.5}, {"a/x": "unlike", "b/x": "invoice total"}
    made = selector(catalog_of(a_x="", b_x=""), scores, words)
    selection = made.select("invoice total")
    assert next(iter(picked(selection))) == "b"
    assert next(iter(picked(made.select("invoice total", lexical_weight=0.0)))) == "a"
    first, second = (node for node in selection.trace.nodes if node.kind == "tool")
    assert (first.id, first.kind, first.cosine, first.cosine_rank, first.words_rank) == ("b/x", "tool", 0.5, 2, 1)
    assert first.score == pytest.approx((0.5 + 0.3) + 0.2 * (0.5 + 0.3))
    assert (second.words, second.words_rank) == (None, None)
    assert selection.trace.coverage == pytest.approx(1.0)


def test_a_lone_surrogate_in_the_query_does_no_harm() -> None:
    selection = selector(catalog_of(a_x=""), {"a/x": 0.9}).select("find \ud800 it")
    assert selection.query == "find ? it"


def test_the_trace_says_every_setting_and_every_tool_that_was_taken() -> None:
    scores = {f"a/t{i}": 0.9 - i / 1000 for i in range(80)}
    made = selector(catalog_of(**{f"a_t{i}": "" for i in range(80)}), scores)
    selection = made.select("q", tools=70)
    assert selection.trace.settings["tools"] == 70
    assert {tool.id for tool in selection.tools} <= {node.id for node in selection.trace.nodes}
    tool = next(tool for tool in selection.tools if tool.id == "a/t69")
    assert explain_tool("a/t69", selection) == f"score {tool.score:.2f}, meaning 0.83 (#70)"


def test_settings_of_the_selector_hold_unless_a_call_says_otherwise() -> None:
    catalog = catalog_of(a_x="", b_x="")
    made = selector(catalog, {"a/x": 0.9, "b/x": 0.8}, made=SelectSettings(agents=1))
    assert len(made.select("q").agents) == 1
    assert len(made.select("q", agents=2).agents) == 2
    assert len(made.select("q").agents) == 1
