"""Callsheet's tools in an agent made by deepagents, whose messages have no ids."""

from __future__ import annotations

from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet.orchestrator import CallsheetTools

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"


def ours(shown: dict[str, Any]) -> list[str]:
    return [name for name in shown["tools"] if name in ("exchange_rate", "write_note")]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_deep_agent_gets_the_tools_of_each_request(
    catalog: Any, shop: Any, scripted: Any, say: Any, *, blocking: bool
) -> None:
    model = scripted(replies=[say["calls"]("exchange_rate", currency="USD"), AIMessage("0.9"), AIMessage("Hm.")])
    equipped = CallsheetTools(catalog, agents=1, tools=1)
    app: Any = create_deep_agent(model, middleware=[equipped], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    for request in (RATE, NOTE):
        given: Any = {"messages": [("user", request)]}
        _ = app.invoke(given, config) if blocking else await app.ainvoke(given, config)
    assert [ours(shown) for shown in model.shown] == [["exchange_rate"]] * 2 + [["exchange_rate", "write_note"]]
    assert shop.called == ["exchange_rate"]
