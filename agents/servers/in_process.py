"""Calls tools in this process with limits: LangChain tools, and LangGraph apps and remote agents as one tool each."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import json
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any, NotRequired, TypeVar
from urllib.parse import unquote_to_bytes

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool as LangChainTool, ToolException
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.graph import END, START, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, interrupt
from pydantic import Field
from typing_extensions import TypedDict

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault, Outcome, failed_outcome
from callsheet.agents.calls.run_claim import checkpointer
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.calls.tool_result import Keep, Media, cap_texts
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import visible
from callsheet.graphs.text.unicode import clean, storable

_T = TypeVar("_T")
_CALL_ID = "callsheet"
_FILE_TOOLS = "langchain_community.tools.file_management."
_ADAPTERS = ("langchain.mcp", "langchain_mcp_adapters")
_COMMAND = "it returned a Command for the workflow that calls it, which Callsheet does not carry out: return a result"
CALL_LIMITS: ContextVar[Limits | None] = ContextVar("callsheet_limits", default=None)
"""The limits of the current call, for tools that enforce them themselves."""


@dataclass(slots=True)
class ToolModel:
    """The chat model of the run for tools of this process, with the cost of their calls so far."""

    model: BaseChatModel | None = None
    usage: Usage = field(default_factory=Usage)


TOOL_MODEL: ContextVar[ToolModel | None] = ContextVar("callsheet_tool_model", default=None)
"""The model of the current step for tools of this process; None outside of a step."""


@dataclass(frozen=True, slots=True)
class InProcess:
    """A connection to tools of this process, with the user's options; ``own`` if the program passed them as objects."""

    tools: Mapping[str, BaseTool]
    options: ServerOptions = field(default_factory=ServerOptions)
    own: bool = False


def is_foreign(tool: BaseTool) -> bool:
    """Returns whether a tool belongs to an MCP server and is adapted by LangChain (``MCPAdapter``)."""
    adapted = str(getattr(getattr(tool, "coroutine", None), "__module__", "")).startswith(_ADAPTERS)
    return adapted or isinstance((tool.metadata or {}).get("mcp"), dict)


async def call(
    agent_id: str,
    tool: BaseTool,
    args: Mapping[str, object],
    limits: Limits,
    keep: Keep | None = None,
    *,
    sync: bool = False,
) -> Outcome:
    """Calls a tool of this process and returns the outcome; exceptions become a part of it, interrupts are raised.

    Args:
        agent_id: The agent, for errors.
        tool: The tool.
        args: Its arguments.
        limits: The limits of the call.
        keep: Stores media and long answers; None drops them.
        sync: Prefers the synchronous code of the tool.
    """
    began = monotonic()
    bounds = CALL_LIMITS.set(limits)
    # As a tool call: only then a tool returns its artifact and status, and gets an injected id.
    request: dict[str, Any] = {"type": "tool_call", "name": tool.name, "args": dict(args), "id": _CALL_ID}
    # An app is limited by its step.
    scope = asyncio.timeout(None if (tool.metadata or {}).get(APP) else limits.call)
    try:
        async with scope:
            if _is_async(tool, sync=sync):
                answer = await tool.ainvoke(request)
                outcome = await asyncio.to_thread(_outcome, agent_id, tool, args, answer, limits, keep)
            else:
                outcome = await asyncio.wrap_future(
                    in_thread(lambda: _outcome(agent_id, tool, args, tool.invoke(request), limits, keep))
                )
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 (a tool may raise anything; it becomes data)
        outcome = _raised(agent_id, tool, error, limits.call if scope.expired() else None)
    finally:
        CALL_LIMITS.reset(bounds)
    return outcome.model_copy(update={"seconds": monotonic() - began})


def in_thread(work: Callable[[], _T]) -> Future[_T]:
    """Runs work in a daemon thread, so that a hung tool does not block the exit."""
    future: Future[_T] = Future()
    future.set_running_or_notify_cancel()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 (handed to the waiting thread)
            future.set_exception(error)

    threading.Thread(target=run, name="callsheet-tool", daemon=True).start()
    return future


def _is_async(tool: BaseTool, *, sync: bool) -> bool:
    if isinstance(tool, StructuredTool | LangChainTool):
        return tool.coroutine is not None and not (sync and tool.func)
    return type(tool)._arun is not BaseTool._arun


def _outcome(
    agent_id: str, tool: BaseTool, args: Mapping[str, object], answer: object, limits: Limits, keep: Keep | None
) -> Outcome:
    """Makes an outcome of what a tool returned: its text, its artifact as plain values, and its media."""
    if isinstance(answer, Command):
        return failed_outcome(agent_id, tool.name, "protocol", _COMMAND, "reported")
    message = answer if isinstance(answer, ToolMessage) else ToolMessage(str(answer), tool_call_id=_CALL_ID)
    media = Media(keep)
    text = media.text_of(blocks_of(message))
    artifact = message.artifact
    if isinstance(artifact, dict) and list(artifact) == ["structured_content"] and is_foreign(tool):
        artifact = artifact["structured_content"]
    text = visible(media.noted(text))
    structured = None
    try:  # state holds plain values only
        structured = media.noted(clean(json.loads(json.dumps(artifact)), text=visible))
    except (TypeError, ValueError, RecursionError):
        text += f"\n[artifact left out: {type(artifact).__name__} that is not JSON]"
    if message.status == "error" or _tells_error(tool, args, text):
        error = failed_outcome(agent_id, tool.name, "tool", text, "reported")
        return cap_texts(error.model_copy(update={"media": tuple(media.stored)}), limits, keep)
    return cap_texts(Outcome(text=text, structured=structured, media=tuple(media.stored)), limits, keep)


def blocks_of(message: ToolMessage) -> Any:
    """Returns the content of a message, in which pictures, sounds and files of any provider's form have ``base64``.

    Those that have only an address become links.
    """
    if isinstance(message.content, str):
        return message.content
    blocks: list[Any] = []
    for standard in message.content_blocks:
        block: dict[str, Any] = dict(standard)
        if block["type"] == "non_standard":  # LangChain does not know it: as the tool wrote it
            block = block["value"]
        address = block.get("url", block.get("image_url"))
        if isinstance(address, str):
            block = _at_address(str(block.get("type", "")).removesuffix("_url"), address)
        blocks.append(block)
    return blocks


def _at_address(kind: str, address: str) -> dict[str, Any]:
    """Makes the block of a picture, sound or file that is in a data URL, or at another address."""
    scheme, _, rest = address.partition(":")
    about, separator, data = rest.partition(",")
    if scheme.lower() == "data" and separator:
        content = data
        if not about.endswith(";base64"):
            content = base64.b64encode(unquote_to_bytes(data)).decode()
        return {"type": kind, "base64": content, "mime_type": about.partition(";")[0]}
    return {"type": "resource_link", "uri": address, "title": kind}


def _tells_error(tool: BaseTool, args: Mapping[str, object], text: str) -> bool:
    """Returns whether a text is the error of one of LangChain's file tools, which neither raise nor set a status."""
    if not type(tool).__module__.startswith(_FILE_TOOLS) or not text.startswith("Error: ") or "\n" in text:
        return False
    return any(isinstance(value, str) and value in text for value in args.values())


def _raised(agent_id: str, tool: BaseTool, error: Exception, late: float | None) -> Outcome:
    """Makes an outcome of what a tool has raised; ``late`` is the timeout in seconds, if that was the reason."""
    if late is not None:
        message = f"no answer within {late:g} s; whether the call took effect is unknown"
        return failed_outcome(agent_id, tool.name, "timeout", message, "unknown")
    if isinstance(error, Fault):
        return failed_outcome(agent_id, tool.name, error.kind, str(error), error.effect)
    return failed_outcome(agent_id, tool.name, "tool", f"{type(error).__name__}: {error}"[:4_000], "reported")


TOOL_NAME = "run"
APP = "callsheet_app"
"""Key in a tool's metadata that marks an app, which may take as long as its step."""
_MOST_TOOLS = 30
_LONGEST_LINE = 160
# The remote run streams into ours under these keys; it does not get the others, above all not the user.
_PASSED = ("checkpoint_ns", "__pregel_stream")
Request = Annotated[str, Field(description="The whole request, in plain words.")]


class RemoteConversation(TypedDict):
    """A conversation with a remote agent, as it is stored in our checkpoints.

    ``given`` is the request; ``thread`` has the ids of the remote agent. ``asked`` are its pending questions, each with
    ``id`` and ``value``, and ``answers`` those of the person by the id of the question. ``answer`` is the final answer
    as text, with its structured part.
    """

    given: str
    thread: dict[str, str]
    asked: list[dict[str, Any]]
    answers: NotRequired[dict[str, Any]]
    answer: NotRequired[Any]


Send = Callable[[RemoteConversation], Awaitable[dict[str, Any]]]
"""A function that sends a remote agent the request, or the answers to its last questions.

It returns an update of the conversation: an ``answer``, or what is ``asked`` now.

It returns an update of the conversation: an ``answer``, or what is ``asked`` now.
"""


class _Partner(TypedDict):
    send: Any


async def _send(state: RemoteConversation) -> dict[str, Any]:
    # The partner is in the context, because it cannot be stored in a checkpoint.
    return {"asked": [], **await get_runtime(_Partner).context["send"](state)}


def _ask(state: RemoteConversation) -> dict[str, Any]:
    return {"answers": {one["id"]: interrupt(one["value"]) for one in state["asked"]}}


_WORKFLOW = StateGraph(RemoteConversation, context_schema=_Partner).add_node("send", _send).add_node("ask", _ask)
_WORKFLOW.add_edge(START, "send").add_edge("ask", "send")
_WORKFLOW.add_conditional_edges("send", lambda state: "ask" if state["asked"] else END, ["ask", END])
_CONVERSATION: Any = _WORKFLOW.compile(name="remote")
"""Asks the partner's questions to a person; thread and questions are stored in our checkpoints."""


def _send_to(graph: RemoteGraph) -> Send:
    """Returns a graph on another LangGraph server; its tokens are streamed in our run."""

    async def send(talk: RemoteConversation) -> dict[str, Any]:
        given: Any = Command(resume=talk["answers"]) if "answers" in talk else _input("messages", talk["given"])
        ours = get_config()
        passed = {key: value for key, value in ours.get("configurable", {}).items() if key in _PASSED}
        thread = {**passed, "thread_id": talk["thread"]["id"]}
        config: Any = {"configurable": thread, "callbacks": ours.get("callbacks")}
        try:
            return {"answer": answer_of(await graph.ainvoke(given, config))}
        except GraphInterrupt as stopped:
            return {"asked": [{"id": one.id, "value": one.value} for one in stopped.args[0]]}

    return send


def _input(field: str | None, request: str) -> Any:
    """Makes the input of an app of a request, which is in ``field``, or is the input itself if None."""
    if field is None:
        return request
    if field == "messages":
        return {field: [{"role": "user", "content": request}]}
    return {field: request}


def answer_of(output: object) -> tuple[str, Any]:
    """Returns the text and the structured part of an app's output."""
    match output:
        case str():
            return output, None
        case BaseMessage():
            return output.text, None
        case {"__interrupt__": [*interrupts]}:
            raise _unanswerable(interrupts)
        case {"messages": [*_, (BaseMessage() | dict()) as last], **rest}:
            return convert_to_messages([last])[0].text, rest or None
        case Mapping() | list():
            return json.dumps(output, ensure_ascii=False, default=str), output
        case _:
            return str(output), None


def _unanswerable(interrupts: Iterable[object]) -> ToolException:
    """Makes the error for questions to a person that no run can wait for."""
    questions = "; ".join(str(getattr(one, "value", one)) for one in interrupts)
    return ToolException(
        f"it asks a person, who can answer only if the workflow is compiled with a checkpointer: {questions}"
    )


def tool_of_app(agent_id: str, app: Runnable[Any, Any], description: str) -> StructuredTool:
    """Makes the tool ``run(request: str)``, which passes a request to the app as a part of the calling run.

    The app takes a string, messages, or an object with one required string; a ``RemoteGraph`` takes messages. Metadata
    of the app that begin with ``callsheet/`` apply to the tool: ``app.with_config(metadata={"callsheet/approval":
    "never"})``.

    Raises:
        CatalogError: The app takes another input.
    """
    metadata = (getattr(app, "config", None) or {}).get("metadata") or {}
    own = {key: value for key, value in metadata.items() if key.startswith("callsheet/")}
    if isinstance(app, RemoteGraph):
        return tool_of_remote_agent(_send_to(app), description, own)
    field = _field_for_request(agent_id, app)

    def run(request: Request) -> tuple[str, Any]:
        with _askable():
            return answer_of(app.invoke(_input(field, request), _config(app)))

    async def arun(request: Request) -> tuple[str, Any]:
        with _askable():
            return answer_of(await app.ainvoke(_input(field, request), _config(app)))

    return StructuredTool.from_function(func=run, coroutine=arun, **_about(description, own))


def tool_of_remote_agent(send: Send, description: str, own: Mapping[str, object]) -> StructuredTool:
    """Makes the tool ``run`` for a remote agent, which may ask questions; ``own`` is metadata of the tool."""

    async def ask(request: Request) -> tuple[str, Any]:
        begin: RemoteConversation = {"given": storable(request), "thread": {"id": str(uuid.uuid4())}, "asked": []}
        with _askable():
            done = await _CONVERSATION.ainvoke(begin, context={"send": send})
            if "__interrupt__" in done:
                raise GraphInterrupt(done["__interrupt__"])
        text, structured = done["answer"]
        return text, structured

    return StructuredTool.from_function(coroutine=ask, **_about(description, own))


def _about(description: str, own: Mapping[str, object]) -> dict[str, Any]:
    return {
        "name": TOOL_NAME,
        "description": description,
        "response_format": "content_and_artifact",
        "metadata": {APP: True, **own},
        "handle_tool_error": True,
    }


def description_of(agent_id: str, app: Runnable[Any, Any]) -> str:
    """Describes an app: by its own description, or its tools, or the names of its nodes."""
    metadata = (getattr(app, "config", None) or {}).get("metadata") or {}
    for text in (getattr(app, "description", None), metadata.get("description")):
        if isinstance(text, str) and text.strip():
            return text
    name = getattr(app, "name", None)
    if not isinstance(name, str) or name in ("", "LangGraph"):  # what LangGraph calls an app without a name
        name = agent_id
    beginning = f"Hands a request to {name}"
    nodes = getattr(app, "nodes", None)
    tools = _tools_of_nodes(nodes)
    if tools:
        lines = [summary_line(tool.name, tool.description.strip().split("\n\n")[0]) for tool in tools[:_MOST_TOOLS]]
        return f"{beginning}, which has these tools. {' '.join(lines)}"
    steps = [str(node) for node in nodes or () if not str(node).startswith("__")]
    if steps:
        return f"{beginning}, which works in the steps {', '.join(steps)}."
    return f"{beginning}."


def _tools_of_nodes(nodes: object) -> list[BaseTool]:
    """Returns the tools of the tool nodes of an app, such as one from ``create_agent``."""
    tools: list[BaseTool] = []
    for node in nodes.values() if isinstance(nodes, Mapping) else ():
        members = getattr(getattr(node, "bound", None), "tools_by_name", {})
        tools += [member for member in members.values() if isinstance(member, BaseTool)]
    return tools


def summary_line(name: str, description: str) -> str:
    """Returns a name and the beginning of its description, on one line."""
    about = " ".join(description.split())
    if len(about) > _LONGEST_LINE:
        about = f"{about[:_LONGEST_LINE]}…"
    return f"{name.strip()}: {about}"


def _field_for_request(agent_id: str, app: Runnable[Any, Any]) -> str | None:
    """Returns the input field for the request; None if it is the input. Without a schema, an app takes messages."""
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
    """Returns a new thread for an app with its own checkpointer, if the calling run has none; else None."""
    if checkpointer() is not None or not getattr(app, "checkpointer", None):
        return None
    return {"configurable": {"thread_id": str(uuid.uuid4())}}


@contextmanager
def _askable() -> Iterator[None]:
    """Passes interrupts on if the run can wait for the answer; otherwise they become errors."""
    try:
        yield
    except GraphInterrupt as stopped:
        if checkpointer() is not None:
            raise
        raise _unanswerable(stopped.args[0]) from None
