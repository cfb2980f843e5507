"""A graph on another LangGraph server: asked, and resumed when it asks a person."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

# The remote run streams into ours under these keys; all others (who asks, above all) are none of its business.
_PASSED = ("checkpoint_ns", "__pregel_stream")


@dataclass(frozen=True, slots=True)
class _Partner:
    """What no checkpoint can hold."""

    graph: RemoteGraph


class _Talk(TypedDict):
    thread: str
    given: dict[str, Any]
    asked: list[dict[str, Any]]
    answers: NotRequired[dict[str, Any]]
    answer: NotRequired[Any]


async def talk(remote: RemoteGraph, given: Mapping[str, Any]) -> Any:
    """Runs a remote graph as a part of the run that calls it.

    Its tokens are streamed with ours. What it asks a person is asked by our run, and the answer resumes the remote run
    where it stopped: its thread and its questions are in our checkpoints.

    Args:
        remote: The graph.
        given: Its input.

    Returns:
        Its output.

    Raises:
        GraphInterrupt: A person is asked.
    """
    begin: _Talk = {"thread": str(uuid.uuid4()), "given": dict(given), "asked": []}
    done = await _TALK.ainvoke(begin, context=_Partner(remote))
    return done if "__interrupt__" in done else done["answer"]


async def _send(state: _Talk) -> dict[str, Any]:
    remote = get_runtime(_Partner).context.graph
    what: Any = Command(resume=state["answers"]) if "answers" in state else state["given"]
    try:
        return {"answer": await remote.ainvoke(what, _config(state["thread"])), "asked": []}
    except GraphInterrupt as stopped:
        return {"asked": [{"id": one.id, "value": one.value} for one in stopped.args[0]]}


def _config(thread: str) -> RunnableConfig:
    ours = get_config()
    passed = {key: value for key, value in ours.get("configurable", {}).items() if key in _PASSED}
    return {"configurable": {**passed, "thread_id": thread}, "callbacks": ours.get("callbacks")}


def _ask(state: _Talk) -> dict[str, Any]:
    return {"answers": {one["id"]: interrupt(one["value"]) for one in state["asked"]}}


def _after_send(state: _Talk) -> str:
    return "ask" if state["asked"] else END


def _talk_app() -> Any:
    app = StateGraph(_Talk, context_schema=_Partner)
    app.add_node("send", _send)
    app.add_node("ask", _ask)
    app.add_edge(START, "send")
    app.add_conditional_edges("send", _after_send, ["ask", END])
    app.add_edge("ask", "send")
    return app.compile(name="remote")


_TALK = _talk_app()
