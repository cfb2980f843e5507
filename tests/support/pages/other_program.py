"""A program of somebody else that keeps its runs in a database of its own."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, StateGraph

from callsheet.graphs import Loaded
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.supervisor import create_supervisor
from explored import served

ASKED = "Look up the exchange rate of the currency 'USD' in euro."


class OtherState(TypedDict):
    messages: list[str]
    plan: str


class OtherProgram:
    """Runs supervisors, and graphs of another kind, with a checkpointer over one file.

    Attributes:
        file: The file.
        loaded: The catalog of its supervisors.
        connection: Is open until ``close``.
    """

    def __init__(self, file: Path, loaded: Loaded) -> None:
        self.file, self.loaded = file, loaded
        self.connection = sqlite3.connect(file, check_same_thread=False)
        self.saver = SqliteSaver(self.connection)

    def asks(self, thread: str, approval: Any = "never", saver: Any = None) -> dict[str, Any]:
        """Runs a supervisor in a thread."""
        found = served(self.loaded)
        workflow = create_supervisor(
            self.loaded, retriever=found.retriever, registry=found.registry, settings=Settings(approval=approval)
        )
        app: Any = workflow.compile(checkpointer=saver or self.saver)
        state: dict[str, Any] = app.invoke({"messages": [("user", ASKED)]}, {"configurable": {"thread_id": thread}})
        return state

    def runs_another_graph(self, thread: str) -> None:
        """Runs a graph that has nothing to do with Callsheet, though a channel of the same name."""
        graph = StateGraph(OtherState)
        graph.add_node("only", lambda state: {"plan": "to rest"})
        graph.add_edge(START, "only")
        app: Any = graph.compile(checkpointer=self.saver)
        app.invoke({"messages": ["hello"]}, {"configurable": {"thread_id": thread}})

    def close(self) -> None:
        """Ends the program."""
        self.connection.close()
