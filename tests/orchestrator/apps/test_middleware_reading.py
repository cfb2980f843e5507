"""What a worker of the supervisor has, in an agent of somebody's own: skills, long results, programs."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet.agents.work.equipment import skill_definition
from callsheet.graphs import Policy, Skill, SourceCatalog, load
from callsheet.orchestrator import CallsheetTools

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
FIRST = ["need_tool", "bank_exchange_rate"]
SKILL = Skill(name="rates", description="Look up the exchange rate of a currency.", text="Ask\u200b twice. " * 50)
CONFIG: Any = {"configurable": {"thread_id": "1"}}
NEVER = {"callsheet/approval": "never"}


def agent(model: Any, catalog: Any, **more: Any) -> Any:
    own, narrow = more.pop("own", ()), {"agents": 1, "tools": 1, **more}
    return create_agent(model, list(own), middleware=[CallsheetTools(catalog, **narrow)], checkpointer=InMemorySaver())


def ask(app: Any, text: str = RATE) -> list[Any]:
    messages: list[Any] = app.invoke({"messages": [HumanMessage(text)]}, CONFIG)["messages"]
    return messages


def with_skill(catalog: Any, **more: Any) -> Any:
    return load(catalog, SourceCatalog(skills=(SKILL,)), **more)


def test_a_skill_that_fits_is_named_and_read_on_demand(catalog: Any, scripted: Any, say: Any) -> None:
    reads = [say["calls"]("read_skill", name=name) for name in ("rates", "others")]
    model = scripted(replies=[*reads, AIMessage("Done."), AIMessage("Done.")])
    app = agent(model, with_skill(catalog))
    _, _, text, _, unknown, _ = ask(app)
    assert text.text == "Ask twice. " * 50
    assert (unknown.status, unknown.text) == ("error", "there is no skill 'others'; there are: rates")
    ask(app, NOTE)
    assert [one["tools"] for one in model.shown] == [
        *[[*FIRST, "read_skill"]] * 3,
        [*FIRST, "notebook_write_note", "read_skill"],
    ]
    assert not [told for one in model.shown for told in one["messages"][:1] if "Ask twice" in told.text]
    told = skill_definition([SKILL])["function"]["description"]
    assert told.splitlines()[1] == "- rates: Look up the exchange rate of a currency."


@pytest.mark.parametrize("how", ["none", "unfit", "hidden", "own"])
def test_no_skill_is_named_without_need(catalog: Any, scripted: Any, how: str) -> None:
    @tool
    def read_skill(name: str) -> str:
        """Read."""
        return name

    more: dict[str, Any] = {"skill_tokens": 0} if how == "none" else {}
    policy = Policy(default="allow", deny=("skills/*",)) if how == "hidden" else None
    model = scripted(replies=[AIMessage("Hm.")])
    app = agent(model, with_skill(catalog, policy=policy), own=[read_skill] if how == "own" else (), **more)
    ask(app, NOTE if how == "unfit" else RATE)
    (shown,) = model.shown
    assert shown["tools"].count("read_skill") == (1 if how == "own" else 0)


def test_of_a_long_result_the_model_sees_the_beginning_and_reads_on(scripted: Any, say: Any) -> None:
    @tool
    def exchange_rates() -> str:
        """Looks up all exchange rates."""
        return "".join(f"{number:09d}\n" for number in range(5_000))

    exchange_rates.metadata = dict(NEVER)
    rates, reads = say["calls"]("bank_exchange_rates"), [
        say["calls"]("read_result", id=name, start=start) for name, start in (("c1", 40_000), ("c9", 0))
    ]  # fmt: skip
    model = scripted(replies=[rates, *reads, AIMessage("Done.")])
    state = ask(agent(model, load({"bank": [exchange_rates]})), "look up all exchange rates")
    assert [one["tools"] for one in model.shown] == [
        ["need_tool", "bank_exchange_rates"],
        *[["need_tool", "bank_exchange_rates", "read_result"]] * 3,
    ]
    seen = model.shown[1]["messages"][-1].text
    assert (len(seen) < 8_200, "50,000 characters in all" in seen, "id 'c1'" in seen) == (True, True, True)
    assert state[4].text.startswith("000004000\n")
    assert (state[6].status, state[6].text) == ("error", "there is no earlier result 'c9'; there are: c1")
    assert len(state[2].text) == 50_000


async def test_in_code_mode_tools_are_called_by_programs(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    code = "a, b = (bank_exchange_rate(currency=c) for c in ('USD', 'GBP'))\nf'{a} and {b}'"
    model = scripted(replies=[say["calls"]("run_program", code=code), AIMessage("Both.")])
    app, given = agent(model, catalog, code_mode=True), {"messages": [HumanMessage(RATE)]}
    state = await app.ainvoke(given, CONFIG)
    assert [one["tools"] for one in model.shown] == [["run_program", "need_tool"]] * 2
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert shop.called == ["exchange_rate"] * 2


def test_a_program_waits_for_a_person_and_repeats_nothing(
    shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any
) -> None:
    code = "a = bank_exchange_rate(currency='USD')\nb = bank_exchange_rate(currency='GBP')\nf'{a} and {b}'"
    model = scripted(replies=[say["calls"]("run_program", code=code), AIMessage("Both.")])
    app = agent(model, shop.loaded(monkeypatch), code_mode=True, approval="always")
    state = app.invoke({"messages": [HumanMessage(RATE)]}, CONFIG)
    for called in (1, 2):
        (question,) = state["__interrupt__"]
        state = app.invoke(Command(resume={question.id: {"type": "approve"}}), CONFIG)
        assert shop.called == ["exchange_rate"] * called
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert state["messages"][-1].text == "Both."
