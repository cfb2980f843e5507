"""A client changes the state of a thread as any node: it is taken, or it is told what is wrong; nothing breaks."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import InvalidUpdateError
from pydantic import ValidationError

from callsheet import create_supervisor
from notebook import Notebook

THREAD: Any = {"configurable": {"thread_id": "1"}}
ORDER: Any = {"messages": [HumanMessage("Add a note with the text 'hello there'")]}
# What LangGraph's server answers with status 422 or 400.
TOLD = (InvalidUpdateError, ValidationError)
VALUES: list[Any] = [
    None,
    {"messages": [("user", "x")]},
    {"plan": None},
    {"plan": {}},
    {"plan": {"steps": 3}},
    {"plan": {"steps": [{"id": "1"}]}},
    {"results": {"1": {"a": 1}}},
    {"run": "x"},
]


@pytest.mark.parametrize("node", ["plan", "dispatch", "retriever", "worker", "answer", "__start__", "nothing", None])
@pytest.mark.parametrize("begun", [False, True], ids=["an empty thread", "a thread that waits"])
async def test_a_state_update_in_the_name_of_any_node_calls_nothing(
    notebook: Notebook, node: str | None, *, begun: bool
) -> None:
    workflow = create_supervisor(notebook.agents)
    for values in VALUES:
        app: Any = workflow.compile(checkpointer=InMemorySaver())
        if begun:
            await app.ainvoke(ORDER, THREAD)
        with suppress(*TOLD):
            await app.aupdate_state(THREAD, values, as_node=node)
    assert notebook.notes == []


@pytest.mark.parametrize("begun", [False, True])
def test_as_it_was_made(notebook: Notebook, *, begun: bool) -> None:
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    if begun:
        app.invoke(ORDER, THREAD)
        app.update_state(THREAD, {"run": "x"}, as_node="dispatch")
        assert app.get_state(THREAD).next == ("retriever",)
    else:
        with pytest.raises(InvalidUpdateError, match="no plan with steps"):
            app.update_state(THREAD, {"run": "x"}, as_node="dispatch")
