"""A remote agent as a part of our run: called, and resumed after its questions to a person."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, NotRequired, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from callsheet.agents.tools.app_messages import answer_of, input_of

# The remote run streams into ours under these keys; it does not get the others, above all not the user.
_PASSED = ("checkpoint_ns", "__pregel_stream")


class Talk(TypedDict):
    """A conversation with a remote agent, as stored in our checkpoints.

    Attributes:
        given: The request.
        thread: The partner's ids of the conversation.
        asked: Its pending questions: ``id`` and ``value`` of each.
        answers: The person's answers by question id; missing before the first question.
        answer: Text and structured part of its final answer.
    """

    given: str
    thread: dict[str, str]
    asked: list[dict[str, Any]]
    answers: NotRequired[dict[str, Any]]
    answer: NotRequired[Any]


class Partner(Protocol):
    """A remote agent; it cannot be stored in a checkpoint."""

    async def send(self, talk: Talk) -> dict[str, Any]:
        """Sends the request, or the answers to its last questions.

        Returns:
            An update of the conversation: an ``answer``, or what is ``asked`` now.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Talking:
    partner: Partner


async def talk(partner: Partner, request: str) -> Any:
    """Has a conversation with a remote agent as a part of the calling run.

    Our run asks its questions to a person, and the answer resumes it at the same place: its thread and questions are
    stored in our checkpoints.

    Returns:
        Text and structured part of its answer.

    Raises:
        GraphInterrupt: A person is asked.
    """
    begin: Talk = {"given": request, "thread": {"id": str(uuid.uuid4())}, "asked": []}
    done = await _TALK.ainvoke(begin, context=_Talking(partner))
    if "__interrupt__" in done:
        raise GraphInterrupt(done["__interrupt__"])
    return done["answer"]


@dataclass(frozen=True, slots=True)
class RemotePartner:
    """A graph on another LangGraph server; its tokens are streamed in our run."""

    graph: RemoteGraph

    async def send(self, talk: Talk) -> dict[str, Any]:
        """As in ``Partner``."""
        what: Any = Command(resume=talk["answers"]) if "answers" in talk else input_of("messages", talk["given"])
        try:
            return {"answer": answer_of(await self.graph.ainvoke(what, _config(talk["thread"]["id"])))}
        except GraphInterrupt as stopped:
            return {"asked": [{"id": one.id, "value": one.value} for one in stopped.args[0]]}


async def _send(state: Talk) -> dict[str, Any]:
    return {"asked": [], **await get_runtime(_Talking).context.partner.send(state)}


def _config(thread: str) -> RunnableConfig:
    ours = get_config()
    passed = {key: value for key, value in ours.get("configurable", {}).items() if key in _PASSED}
    return {"configurable": {**passed, "thread_id": thread}, "callbacks": ours.get("callbacks")}


def _ask(state: Talk) -> dict[str, Any]:
    return {"answers": {one["id"]: interrupt(one["value"]) for one in state["asked"]}}


def _after_send(state: Talk) -> str:
    return "ask" if state["asked"] else END


def _talk_app() -> Any:
    app = StateGraph(Talk, context_schema=_Talking)
    app.add_node("send", _send)
    app.add_node("ask", _ask)
    app.add_edge(START, "send")
    app.add_conditional_edges("send", _after_send, ["ask", END])
    app.add_edge("ask", "send")
    return app.compile(name="remote")


_TALK = _talk_app()
