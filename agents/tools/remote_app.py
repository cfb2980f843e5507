"""A remote agent as a part of our run: called, and resumed after its questions to a person; its messages as results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, Protocol

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import ToolException
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

# The remote run streams into ours under these keys; it does not get the others, above all not the user.
_PASSED = ("checkpoint_ns", "__pregel_stream")


class Talk(TypedDict):
    """A conversation with a remote agent, as stored in our checkpoints.

    Attributes:
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


def input_of(field: str | None, request: str) -> Any:
    """A request as the input of an app: in ``field``, or as the input itself if None."""
    match field:
        case None:
            return request
        case "messages":
            return {"messages": [{"role": "user", "content": request}]}
        case _:
            return {field: request}


def answer_of(output: object) -> tuple[str, Any]:
    """Text and structured part of an app's output."""
    match output:
        case str():
            return output, None
        case BaseMessage():
            return output.text, None
        case {"__interrupt__": [*asked]}:
            raise unanswerable(asked)
        case {"messages": [*_, (BaseMessage() | dict()) as last], **rest}:
            return convert_to_messages([last])[0].text, rest or None
        case Mapping() | list():
            return json.dumps(output, ensure_ascii=False, default=str), output
        case _:
            return str(output), None


def unanswerable(asked: Iterable[Any]) -> ToolException:
    """The error of an app whose questions nobody can answer."""
    questions = "; ".join(str(getattr(question, "value", question)) for question in asked)
    return ToolException(
        f"it asks a person, who can answer only if the workflow is compiled with a checkpointer: {questions}"
    )
