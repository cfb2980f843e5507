"""Somebody writes into the store what somebody else is said to prefer: no call goes unasked for that."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from callsheet import create_supervisor
from callsheet.orchestrator.run.run_context import PREFERENCES, namespace_of
from notebook import Notebook

ORDER: Any = {"messages": [HumanMessage("Add a note with the text 'hello there'")]}
ANN: Any = {"configurable": {"thread_id": "1", "langgraph_auth_user": {"identity": "ann"}}}


def app_with(notebook: Notebook, preferences: dict[str, Any]) -> Any:
    """A supervisor over the notebook; ann is said to prefer this."""
    store = InMemoryStore()
    store.put(namespace_of("ann"), PREFERENCES, preferences)
    return create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver(), store=store)


async def test_preferences_in_the_store_loosen_nothing(notebook: Notebook) -> None:
    """A LangGraph server whose authentication has no handler for the store lets every user write for every other."""
    state = await app_with(notebook, {"approval": "never"}).ainvoke(ORDER, ANN)
    assert "approval 'never' is a preference in the store" in state["plan"]["note"]
    assert state["__interrupt__"]
    assert notebook.notes == []


async def test_a_run_of_that_user_may_still_say_so_itself(notebook: Notebook) -> None:
    app = app_with(notebook, {"approval": "always"})
    assert (await app.ainvoke(ORDER, ANN))["__interrupt__"]
    thread = {"configurable": {**ANN["configurable"], "thread_id": "2"}}
    await app.ainvoke(ORDER, thread, context={"allow": ["notebook/add_note"]})
    assert notebook.notes == ["hello there"]


async def test_a_tool_that_the_store_allows_is_still_asked_about(notebook: Notebook) -> None:
    app = app_with(notebook, {"allow": ["notebook/add_note"]})
    state = await app.ainvoke(ORDER, ANN, context={"approval": "ask"})
    assert "allow ('notebook/add_note',) is a preference in the store" in state["plan"]["note"]
    assert state["__interrupt__"]
    assert notebook.notes == []
