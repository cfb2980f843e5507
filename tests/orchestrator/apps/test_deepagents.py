"""Callsheet's tools in agents made by deepagents, with 5,000 tools behind them."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from deepagents import create_deep_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet.agents.calls.review import flat
from callsheet.graphs import Agent, Catalog, Loaded, Tool, load
from callsheet.orchestrator import CallsheetTools
from callsheet.retrievers import AgentGraphRetriever
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls
from servers import FIXTURES, Servers
from small import outside

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
OURS = ("need_tool", "bank_exchange_rate", "notebook_write_note", "mill_work")
DOES = ("reads", "lists", "counts", "archives", "restores", "renames", "prints", "exports", "merges", "audits")
WHAT = ("invoices", "tickets", "parcels", "branches", "tables", "photos", "leads", "shifts", "sensors", "recipes")
WHERE = ("Berlin", "Lima", "Oslo", "Quito", "Rome")
MADE: dict[tuple[str, ...], AgentGraphRetriever] = {}
"""Retrievers by the tools of their catalog: each indexes 5,000 tools, and is made once for all tests."""


def about(state: Any) -> str:
    """The description of the first question."""
    return str(flat(state["__interrupt__"][0].value)["description"])


class Words(Embeddings):
    """A text as a bag of its words."""

    def embed_query(self, text: str) -> list[float]:
        vector = np.zeros(1024)
        for word, times in Counter(re.findall(r"[a-z]+", text.lower())).items():
            vector[crc32(word.encode()) % len(vector)] += times
        unit: list[float] = (vector / max(float(np.linalg.norm(vector)), 1.0)).tolist()
        return unit

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


def many() -> Catalog:
    """500 agents with ten tools each."""
    agents = []
    for n in range(500):
        what, where, id_ = WHAT[n % 10], WHERE[n // 10 % 5], f"office{n}"
        tools = (Tool(agent=id_, name=f"{do}_{what}", description=f"{do} {what} in {where} ({n}).") for do in DOES)
        agents.append(Agent(id=id_, tools=tuple(tools)))
    return Catalog(agents=tuple(agents))


@pytest.fixture
def behind(shop: FakeAgents) -> Loaded:
    """The shop and 5,000 tools more; a person is asked before each call."""
    shop.approval = None
    return load([outside(shop.agents()), many()])


def equipped(loaded: Any, **more: Any) -> CallsheetTools:
    if (ids := tuple(loaded.catalog.tools)) not in MADE:
        MADE[ids] = AgentGraphRetriever.from_catalog(loaded, embeddings=Words(), index=":memory:")
    narrow: dict[str, Any] = {"agents": 1, "tools": 1, **more}
    return CallsheetTools(loaded, retriever=MADE[ids], **narrow)


class Run:
    """One thread of an agent, blocking or not."""

    def __init__(self, app: Any, *, blocking: bool = True) -> None:
        self._app, self._blocking = app, blocking
        self._config = {"configurable": {"thread_id": "1"}}

    async def __call__(self, given: Any) -> Any:
        given = {"messages": [("user", given)]} if isinstance(given, str) else given
        return self._app.invoke(given, self._config) if self._blocking else await self._app.ainvoke(given, self._config)

    async def approved(self, state: Any) -> Any:
        (question,) = state["__interrupt__"]
        return await self(Command(resume={question.id: {"type": "approve"}}))


def ours(model: Any) -> list[list[str]]:
    return [[name for name in shown["tools"] if name in OURS] for shown in model.shown]


def to_do(*items: str) -> AIMessage:
    message: AIMessage = calls("write_todos", todos=[{"content": item, "status": "pending"} for item in items])
    return message


@pytest.mark.parametrize("blocking", [True, False])
async def test_tools_are_picked_called_approved_and_added_by_name(
    behind: Loaded, shop: FakeAgents, *, blocking: bool
) -> None:
    assert len(behind.catalog.tools) > 5_000
    model = ScriptedModel(
        replies=[
            calls("bank_exchange_rate", currency="USD"),
            calls("need_tool", tools=["notebook/write_note"]),
            calls("notebook_write_note", text="0.9"),
            AIMessage("Noted."),
        ]
    )
    middleware = [TodoListMiddleware(), equipped(behind)]
    run = Run(create_deep_agent(model, middleware=middleware, checkpointer=InMemorySaver()), blocking=blocking)
    state = await run(RATE)
    assert about(state).startswith("The agent wants to call bank/exchange_rate")
    assert shop.called == []
    state = await run.approved(state)
    assert about(state).startswith("The agent wants to call notebook/write_note")
    assert shop.called == ["exchange_rate"]
    state = await run.approved(state)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate", "write_note"], "Noted.")
    first = ["need_tool", "bank_exchange_rate"]
    assert ours(model) == [first, first, *[[*first, "notebook_write_note"]] * 2]
    tools = [shown["tools"] for shown in model.shown]
    assert all(later[: len(before)] == before for before, later in pairwise(tools))
    assert len(tools[-1]) < 20
    systems = {shown["messages"][0].text for shown in model.shown}
    assert len(systems) == 1
    assert "notebook (2 tools)" in systems.pop()


@pytest.mark.parametrize(("name", "blocking"), [("clerk", True), ("general-purpose", False)])
async def test_a_subagent_has_tools_of_its_own(behind: Loaded, shop: FakeAgents, name: str, *, blocking: bool) -> None:
    task = calls("task", description=NOTE, subagent_type=name)
    model = ScriptedModel(replies=[task, calls("bank_exchange_rate", currency="USD"), AIMessage("Done.")])
    clerk = ScriptedModel(replies=[calls("notebook_write_note", text="hello"), AIMessage("Noted.")])
    shared = equipped(behind)
    spec: Any = {"name": name, "description": "Notes.", "system_prompt": "", "model": clerk, "middleware": [shared]}
    app = create_deep_agent(model, middleware=[shared], subagents=[spec], checkpointer=InMemorySaver())
    run = Run(app, blocking=blocking)
    state = await run(RATE)
    assert about(state).startswith("The agent wants to call notebook/write_note")
    state = await run.approved(state)
    assert shop.called == ["write_note"]
    state = await run.approved(state)
    assert (shop.called, state["messages"][-1].text) == (["write_note", "exchange_rate"], "Done.")
    assert ours(clerk) == [["need_tool", "notebook_write_note"]] * 2
    assert ours(model) == [["need_tool", "bank_exchange_rate"]] * 3


async def test_a_subagent_asks_for_tools_by_name_and_keeps_a_list_too(behind: Loaded, shop: FakeAgents) -> None:
    task = calls("task", description=NOTE, subagent_type="clerk")
    need = calls("need_tool", tools=["skywatch/city_weather", "bank/exchange_rate"])
    model = ScriptedModel(replies=[task, AIMessage("Done.")])
    clerk = ScriptedModel(replies=[to_do(RATE), need, calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    middleware: list[Any] = [TodoListMiddleware(), equipped(behind, approval="never")]
    spec: Any = {"name": "clerk", "description": "", "system_prompt": "", "model": clerk, "middleware": middleware}
    await Run(create_deep_agent(model, subagents=[spec], checkpointer=InMemorySaver()))("Have a note written.")
    first = ["need_tool", "notebook_write_note"]
    assert ours(clerk) == [first, first, *[[*first, "bank_exchange_rate"]] * 2]
    assert "skywatch_city_weather" in clerk.shown[-1]["tools"]
    assert shop.called == ["exchange_rate"]


async def test_interrupt_on_of_deepagents_asks_about_the_tools_of_callsheet(behind: Loaded, shop: FakeAgents) -> None:
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    asked: dict[str, Any] = {"bank_exchange_rate": True}
    middleware = [equipped(behind, approval="never")]
    run = Run(create_deep_agent(model, middleware=middleware, interrupt_on=asked, checkpointer=InMemorySaver()))
    state = await run(RATE)
    assert state["__interrupt__"][0].value["action_requests"][0]["name"] == "bank_exchange_rate"
    assert shop.called == []
    state = await run(Command(resume={"decisions": [{"type": "approve"}]}))
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")


@pytest.mark.server
async def test_a_server_is_called_from_a_subagent_and_ends_with_it(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    args = [str(FIXTURES / "fault_server.py"), "ok", "400000", servers.tag]
    entry = {"command": sys.executable, "args": args, "callsheet": {"approval": "never", "session": "run"}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"mill": entry}}), encoding="utf-8")
    model = ScriptedModel(replies=[calls("task", description="Does work.", subagent_type="clerk"), AIMessage("Done.")])
    clerk = ScriptedModel(replies=[calls("mill_work", x=1), lambda told: AIMessage(told[-1].text)])
    narrow = equipped(load(tmp_path / "mcp.json", yes=True), approval="never")
    spec: Any = {"name": "clerk", "description": "", "system_prompt": "", "model": clerk, "middleware": [narrow]}
    state = await Run(create_deep_agent(model, subagents=[spec]))("Have the work done.")
    assert "mill_work" in ours(clerk)[0]
    assert state["messages"][-2].text.endswith('{"x": 1}')
    assert servers.processes() == []
