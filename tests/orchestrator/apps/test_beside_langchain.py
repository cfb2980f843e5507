"""Callsheet together with LangChain's own ways: MCPAdapter, tool search, tool selection, model router, auto mode."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AutoModeMiddleware,
    LLMToolSelectorMiddleware,
    ModelChoice,
    ModelRouterMiddleware,
    ProviderToolSearchMiddleware,
)
from langchain_core._api import suppress_langchain_beta_warning
from langchain_core.decisions import BaseDecisionModel, ChoiceAnswer, ClassifierResponse, NoulAnswer
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp.server.mcpserver import Elicit, ElicitationResult, MCPServer, Resolve
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from callsheet import create_supervisor
from callsheet.agents.calls.review import flat
from callsheet.graphs import Loaded
from callsheet.orchestrator import CallsheetTools
from fake_agents import FakeAgents
from provider_stub import MESSAGE, TEXT, anthropic, claude, function_call, gpt, openai, use
from scripted_model import ScriptedModel, calls

RATE = "look up the exchange rate of USD"
OURS = ["run_program", "need_tool", "read_result", "bank_exchange_rate"]
CONFIG: Any = {"configurable": {"thread_id": "1"}}


@tool
def find_memo(words: str) -> str:
    """Finds a memo by its words."""
    return f"memo about {words}"


@tool
def read_clock() -> str:
    """Reads the clock."""
    return "noon"


class Judge(BaseDecisionModel):
    """A decision model with one answer for every choice and every question of yes or no."""

    model: str = "stub"
    choice: str = ""
    risk: float = 0.0
    asked: list[Any] = Field(default_factory=list)

    @property
    def _provider(self) -> str:
        return "stub"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.asked.append(state)
        answers: dict[str, Any] = {}
        for name, question in questions.items():
            if question.type == "choice":
                shares = {label: float(label == self.choice) for label in question.criteria}
                answers[name] = ChoiceAnswer(type="choice", choice=self.choice, probabilities=shares, confidence=1.0)
            else:
                answers[name] = NoulAnswer(type="noul", noul=self.risk, confidence=1.0)
        return ClassifierResponse(model=self.model, answers=answers)


class Chooser(ScriptedModel):
    """A model that is asked for a choice of tools, and chooses these."""

    chosen: list[str] = Field(default_factory=list)
    offered: list[list[str]] = Field(default_factory=list)

    def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
        from langchain_core.runnables import RunnableLambda

        items = schema["properties"]["tools"]["items"]
        self.offered.append([one["const"] for one in items.get("anyOf", [items])])
        return RunnableLambda(lambda _: {"tools": self.chosen})


def equipped(catalog: Loaded) -> CallsheetTools:
    return CallsheetTools(catalog, agents=1, tools=1)


def agent(model: BaseChatModel, *middleware: Any, tools: Any = ()) -> Any:
    return create_agent(model, tools=list(tools), middleware=middleware, checkpointer=InMemorySaver())


async def ask(app: Any, given: Any = RATE) -> Any:
    return await app.ainvoke({"messages": [HumanMessage(given)]} if isinstance(given, str) else given, CONFIG)


def approved(state: Any) -> Command[Any]:
    return Command(resume={question.id: {"type": "approve"} for question in state["__interrupt__"]})


# ---------------------------------------------------------------------- MCPAdapter


class Size(BaseModel):
    size: str


async def size() -> Elicit[Size]:
    return Elicit("Which size?", Size)


def shirts() -> MCPServer:
    """A server with a tool that only reads, and asks for a size in the middle of its call."""
    server = MCPServer("shirts", log_level="ERROR")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def shirt_price(size: Annotated[ElicitationResult[Size], Resolve(size)]) -> str:
        """Tells the price of a shirt; its size is asked."""
        return f"{size.data.size} costs 20" if size.action == "accept" else f"no size: {size.action}"

    return server


async def adapted() -> list[Any]:
    with suppress_langchain_beta_warning():
        from langchain.mcp import MCPAdapter

    return await MCPAdapter(shirts()).list_tools()


def sized(question: Any) -> Command[Any]:
    (asked,) = question.value["requests"]
    answer = {"action": "accept", "content": {"size": "XL"}}
    return Command(resume={question.id: {"responses": {asked["key"]: answer}}})


async def test_a_tool_of_mcp_adapter_asks_in_its_form_and_ours_in_ours(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.approval = None
    replies = [calls("shirt_price"), calls("bank_exchange_rate", currency="USD"), AIMessage("done")]
    model = ScriptedModel(replies=replies)
    app = agent(model, equipped(shop.loaded(monkeypatch)), tools=await adapted())
    (question,) = (await ask(app))["__interrupt__"]
    assert (question.value["type"], question.value["tool_name"]) == ("mcp_elicitation", "shirt_price")
    state = await ask(app, sized(question))
    (question,) = state["__interrupt__"]
    assert flat(question.value)["description"].startswith("The agent wants to call bank/exchange_rate")
    assert shop.called == []
    state = await ask(app, approved(state))
    assert [message.text for message in state["messages"] if message.type == "tool"] == [
        "XL costs 20",
        "1 USD = 0.9 EUR",
    ]
    assert model.shown[0]["tools"] == ["shirt_price", *OURS]


async def test_a_worker_of_the_supervisor_calls_a_tool_of_mcp_adapter_and_the_run_waits_for_its_question() -> None:
    model = ScriptedModel(replies=[calls("shirts_shirt_price"), AIMessage("XL costs 20")])
    app: Any = create_supervisor({"shirts": await adapted()}, worker_model=model).compile(InMemorySaver())
    state = await ask(app, "tell the price of a shirt")
    (question,) = state["__interrupt__"]
    assert flat(question.value)["description"].startswith("Step 1 wants to call shirts/shirt_price")
    state = await ask(app, approved(state))
    (question,) = state["__interrupt__"]
    assert question.value["type"] == "mcp_elicitation"
    state = await ask(app, sized(question))
    assert state["messages"][-1].text == "XL costs 20"
    (result,) = state["results"].values()
    assert result["status"] == "done"


# ---------------------------------------------------------------------- ProviderToolSearchMiddleware


async def test_tool_search_of_anthropic_defers_own_tools_and_leaves_ours_in_sight(
    catalog: Loaded, shop: FakeAgents
) -> None:
    search = ProviderToolSearchMiddleware(searchable_tools=[find_memo])
    with anthropic(use("bank_exchange_rate", currency="USD"), TEXT) as (url, bodies, _):
        state = await ask(agent(claude(url), equipped(catalog), search, tools=[find_memo]))
    deferred = {one["name"]: one.get("defer_loading", False) for one in bodies[0]["tools"]}
    assert deferred == {"find_memo": True, **dict.fromkeys(OURS, False), "tool_search_tool_bm25": False}
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "done")


async def test_tool_search_of_openai_defers_own_tools_and_leaves_ours_in_sight(
    catalog: Loaded, shop: FakeAgents
) -> None:
    search = ProviderToolSearchMiddleware(searchable_tools=[find_memo])
    with openai(function_call("bank_exchange_rate", currency="USD"), MESSAGE) as (url, bodies):
        state = await ask(agent(gpt(url), equipped(catalog), search, tools=[find_memo]))
    deferred = {one.get("name", one["type"]): one.get("defer_loading", False) for one in bodies[0]["tools"]}
    assert deferred == {"find_memo": True, **dict.fromkeys(OURS, False), "tool_search": False}
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "done")


# ---------------------------------------------------------------------- LLMToolSelectorMiddleware


async def test_a_tool_selector_before_ours_chooses_among_the_agents_own_tools(
    catalog: Loaded, shop: FakeAgents
) -> None:
    chooser = Chooser(chosen=["read_clock"])
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = agent(model, LLMToolSelectorMiddleware(model=chooser), equipped(catalog), tools=[find_memo, read_clock])
    state = await ask(app)
    assert chooser.offered == [["find_memo", "read_clock"]] * 2
    assert [shown["tools"] for shown in model.shown] == [["read_clock", *OURS]] * 2
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")


async def test_a_tool_selector_after_ours_keeps_what_it_is_told_to_keep(catalog: Loaded, shop: FakeAgents) -> None:
    chooser = Chooser(chosen=["bank_exchange_rate"])
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = agent(model, equipped(catalog), LLMToolSelectorMiddleware(model=chooser), tools=[find_memo])
    await ask(app)
    assert chooser.offered == [["find_memo", "bank_exchange_rate"]] * 2
    assert [sorted(shown["tools"]) for shown in model.shown] == [sorted(OURS)] * 2
    assert shop.called == ["exchange_rate"]


# ---------------------------------------------------------------------- ModelRouterMiddleware


async def test_the_routed_model_sees_the_tools_that_ours_adds(catalog: Loaded, shop: FakeAgents) -> None:
    plain = ScriptedModel(replies=[AIMessage("never")])
    strong = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    judge = Judge(choice="strong")
    choices = {"plain": ModelChoice(plain, "Easy tasks."), "strong": ModelChoice(strong, "Hard tasks.")}
    with suppress_langchain_beta_warning():
        router = ModelRouterMiddleware(choices=choices, instructions="Choose.", classifier=judge)
    state = await ask(agent(plain, router, equipped(catalog)))
    assert (plain.shown, [shown["tools"] for shown in strong.shown]) == ([], [OURS] * 2)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert len(judge.asked) == 1


# ---------------------------------------------------------------------- AutoModeMiddleware


@pytest.mark.parametrize("ours_first", [True, False])
async def test_a_call_that_auto_mode_blocks_is_not_sent(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, *, ours_first: bool
) -> None:
    shop.approval = None
    judge = Judge(risk=0.9)
    auto = AutoModeMiddleware(tools=["bank_exchange_rate"], classifier=judge)
    ours = equipped(shop.loaded(monkeypatch))
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("It was blocked.")])
    app = agent(model, *([ours, auto] if ours_first else [auto, ours]))
    state = await ask(app)
    # Before ours, a blocked call is no question; behind it, a person has approved what is blocked then.
    assert ("__interrupt__" in state) is ours_first
    state = await ask(app, approved(state)) if ours_first else state
    assert "blocked because it was classified as risky" in state["messages"][-2].text
    assert shop.called == []
    assert judge.asked[0]["tool_call"]["args"] == {"currency": "USD"}
    assert ("tool_description" in judge.asked[0]) is ours_first


async def test_what_auto_mode_allows_still_needs_a_persons_approval(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.approval = None
    auto = AutoModeMiddleware(tools=["bank_exchange_rate"], classifier=Judge(risk=0.1))
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = agent(model, auto, equipped(shop.loaded(monkeypatch)))
    state = await ask(app)
    assert shop.called == []
    state = await ask(app, approved(state))
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
