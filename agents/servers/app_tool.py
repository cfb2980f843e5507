"""A LangGraph app, a remote agent or any other runnable as one tool that takes a request in words."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, NotRequired, Protocol

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_config
from langgraph.errors import GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from pydantic import Field
from typing_extensions import TypedDict

from callsheet.graphs.catalog.errors import CatalogError

# The remote run streams into ours under these keys; it does not get the others, above all not the user.
_PASSED = ("checkpoint_ns", "__pregel_stream")


class RemoteConversation(TypedDict):
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


class RemoteAgent(Protocol):
    """A remote agent; it cannot be stored in a checkpoint."""

    async def send(self, talk: RemoteConversation) -> dict[str, Any]:
        """Sends the request, or the answers to its last questions.

        Returns:
            An update of the conversation: an ``answer``, or what is ``asked`` now.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Conversing:
    partner: RemoteAgent


async def talk(partner: RemoteAgent, request: str) -> Any:
    """Has a conversation with a remote agent as a part of the calling run.

    Our run asks its questions to a person, and the answer resumes it at the same place: its thread and questions are
    stored in our checkpoints.

    Returns:
        Text and structured part of its answer.

    Raises:
        GraphInterrupt: A person is asked.
    """
    begin: RemoteConversation = {"given": request, "thread": {"id": str(uuid.uuid4())}, "asked": []}
    done = await _TALK.ainvoke(begin, context=_Conversing(partner))
    if "__interrupt__" in done:
        raise GraphInterrupt(done["__interrupt__"])
    return done["answer"]


@dataclass(frozen=True, slots=True)
class RemoteGraphAgent:
    """A graph on another LangGraph server; its tokens are streamed in our run."""

    graph: RemoteGraph

    async def send(self, talk: RemoteConversation) -> dict[str, Any]:
        """As in ``RemoteAgent``."""
        what: Any = Command(resume=talk["answers"]) if "answers" in talk else input_of("messages", talk["given"])
        try:
            return {"answer": answer_of(await self.graph.ainvoke(what, _remote_config(talk["thread"]["id"])))}
        except GraphInterrupt as stopped:
            return {"asked": [{"id": one.id, "value": one.value} for one in stopped.args[0]]}


async def _send(state: RemoteConversation) -> dict[str, Any]:
    return {"asked": [], **await get_runtime(_Conversing).context.partner.send(state)}


def _remote_config(thread: str) -> RunnableConfig:
    ours = get_config()
    passed = {key: value for key, value in ours.get("configurable", {}).items() if key in _PASSED}
    return {"configurable": {**passed, "thread_id": thread}, "callbacks": ours.get("callbacks")}


def _ask(state: RemoteConversation) -> dict[str, Any]:
    return {"answers": {one["id"]: interrupt(one["value"]) for one in state["asked"]}}


def _after_send(state: RemoteConversation) -> str:
    return "ask" if state["asked"] else END


def _talk_app() -> Any:
    app = StateGraph(RemoteConversation, context_schema=_Conversing)
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


TOOL_NAME = "run"
APP = "callsheet_app"
"""In a tool's metadata: the tool is an app, which may take as long as its step."""
_MOST_TOOLS = 30
_LONGEST_LINE = 160
Request = Annotated[str, Field(description="The whole request, in plain words.")]


def tool_of_app(agent_id: str, app: Runnable[Any, Any], description: str = "") -> StructuredTool:
    """The tool ``run(request: str)`` that passes its request to the app.

    The app runs as a part of the calling run: its tokens are streamed, its interrupts are interrupts of that run, and
    the answer resumes the app at the same place.

    Args:
        agent_id: Id of the app's agent.
        app: Takes a string, messages, or an object with one required string; a ``RemoteGraph`` takes messages.
        description: What it does; by default the app's own description. Metadata of the app that begin with
            ``callsheet/`` apply to the tool: ``app.with_config(metadata={"callsheet/approval": "never"})``.

    Raises:
        CatalogError: The app takes another input.
    """
    own = {key: value for key, value in _metadata(app).items() if key.startswith("callsheet/")}
    description = description or description_of(agent_id, app)
    if isinstance(app, RemoteGraph):
        return tool_of_remote_agent(RemoteGraphAgent(app), description, own)
    field = _field_for_request(agent_id, app)

    def run(request: Request) -> tuple[str, Any]:
        with _askable():
            return answer_of(app.invoke(input_of(field, request), _config(app)))

    async def arun(request: Request) -> tuple[str, Any]:
        with _askable():
            return answer_of(await app.ainvoke(input_of(field, request), _config(app)))

    return StructuredTool.from_function(func=run, coroutine=arun, **_about(description, own))


def tool_of_remote_agent(partner: RemoteAgent, description: str, own: Mapping[str, Any]) -> StructuredTool:
    """The same tool for a remote agent, with which our run has a conversation; ``own`` is metadata of the tool."""

    async def ask(request: Request) -> tuple[str, Any]:
        with _askable():
            text, structured = await talk(partner, request)
            return text, structured

    return StructuredTool.from_function(coroutine=ask, **_about(description, own))


def _about(description: str, own: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": TOOL_NAME,
        "description": description,
        "response_format": "content_and_artifact",
        "metadata": {APP: True, **own},
        "handle_tool_error": True,
    }


def description_of(agent_id: str, app: Runnable[Any, Any]) -> str:
    """The app's own description, or its tools, or the names of its nodes."""
    if isinstance(said := getattr(app, "description", None), str) and said.strip():
        return said
    if isinstance(said := _metadata(app).get("description"), str) and said.strip():
        return said
    name = getattr(app, "name", None)
    named = name if isinstance(name, str) and name not in ("", "LangGraph") else agent_id
    if tools := tools_of(app):
        listed = " ".join(
            summary_line(tool.name, tool.description.strip().split("\n\n")[0]) for tool in tools[:_MOST_TOOLS]
        )
        return f"Hands a request to {named}, which has these tools. {listed}"
    nodes = [str(node) for node in getattr(app, "nodes", None) or () if not str(node).startswith("__")]
    return f"Hands a request to {named}" + (f", which works in the steps {', '.join(nodes)}." if nodes else ".")


def tools_of(app: Runnable[Any, Any]) -> list[BaseTool]:
    """The tools of an app from ``create_agent``, or with a ``ToolNode``; empty if none are known."""
    nodes = getattr(app, "nodes", None)
    bound = [getattr(node, "bound", None) for node in (nodes.values() if isinstance(nodes, Mapping) else ())]
    held: Iterable[Any] = (getattr(node, "tools_by_name", {}) for node in bound)
    return [tool for tools in held for tool in tools.values() if isinstance(tool, BaseTool)]


def summary_line(name: str, description: str) -> str:
    """A name with the beginning of its description, on one line."""
    about = " ".join(description.split())
    return f"{name.strip()}: {about if len(about) <= _LONGEST_LINE else about[:_LONGEST_LINE] + '…'}"


def _metadata(app: Runnable[Any, Any]) -> dict[str, Any]:
    return dict((getattr(app, "config", None) or {}).get("metadata") or {})


def _field_for_request(agent_id: str, app: Runnable[Any, Any]) -> str | None:
    """Name of the input field for the request; None if the input itself is the request.

    A LangGraph app without an input schema (``@entrypoint``) is assumed to take messages, as most do.
    """
    from langgraph.pregel.protocol import PregelProtocol

    schema = app.get_input_jsonschema()
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return "messages" if isinstance(app, PregelProtocol) and "type" not in schema else None
    if "messages" in properties:
        return "messages"
    required = [name for name in schema.get("required") or properties if name in properties]
    if len(required) == 1:
        return str(required[0])
    raise CatalogError(
        f"agent {agent_id!r}: the app needs the inputs {', '.join(required)}, but it is handed one request in words: "
        "give it 'messages' or one string as input"
    )


def _config(app: Runnable[Any, Any]) -> RunnableConfig | None:
    """A new thread for an app with its own checkpointer, if the calling run has none."""
    from callsheet.agents.calls.run_claim import checkpointer

    if checkpointer() is not None or not getattr(app, "checkpointer", None):
        return None
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


@contextmanager
def _askable() -> Iterator[None]:
    """Passes interrupts on if the run can wait for the answer."""
    from callsheet.agents.calls.run_claim import checkpointer

    try:
        yield
    except GraphInterrupt as stopped:
        if checkpointer() is not None:
            raise
        raise unanswerable(stopped.args[0]) from None
