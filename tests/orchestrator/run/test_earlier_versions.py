"""Threads that an earlier version of Callsheet has left."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import create_supervisor
from callsheet.graphs import Loaded, PlanError
from scripted_model import ScriptedModel, calls

THREAD: Any = {"configurable": {"thread_id": "1"}}
STEP = {
    "id": "1",
    "text": "look up the rate of USD",
    "depends_on": [],
    "for_each": "",
    "item": "",
    "tools": [],
    "uses": [],
}
RESULT = {
    "id": "1", "text": STEP["text"], "status": "done", "agents": ["bank"], "tools": ["bank/exchange_rate"], "calls": [],
    "result": "0.9", "attempts": 2, "exhausted": True,
}  # fmt: skip


def thread(catalog: Any, mode: str, *, finished: bool) -> Any:
    """An app whose thread has a request of an earlier version."""
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = create_supervisor(catalog, worker_model=model).compile(checkpointer=InMemorySaver())
    values: dict[str, Any] = {
        "messages": [HumanMessage("look up the rate of USD")], "run": "r", "request": "look up the rate of USD",
        "plan": {"steps": [STEP], "mode": mode, "note": ""}, "waves": [["1"]],
        "results": {"1": RESULT} if finished else {},
    }  # fmt: skip
    app.update_state(THREAD, values, as_node="worker")
    return app


@pytest.mark.parametrize("mode", ["once", "adaptive", "none"])
def test_a_request_that_stopped_in_the_middle_is_refused_with_a_clear_word(catalog: Loaded, mode: str) -> None:
    with pytest.raises(PlanError, match="begun by an earlier version of Callsheet, and cannot be continued: send it"):
        thread(catalog, mode, finished=False).invoke(None, THREAD)


def test_the_next_request_of_such_a_thread_works_and_sees_the_old_results(catalog: Loaded) -> None:
    app = thread(catalog, "adaptive", finished=True)
    state = app.invoke({"messages": [HumanMessage("look up the rate of USD")]}, THREAD)
    assert state["results"]["1"]["status"] == "done"
    (turn,) = app.get_state(THREAD).values["turns"]
    assert turn["results"]["1"]["result"] == "0.9"
