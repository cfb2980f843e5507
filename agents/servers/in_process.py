"""Tools in this process: LangChain tools and LangGraph apps, called with limits."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from callsheet.agents.calls.call_context import LOOP
from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.calls.tool_result import Fault, Keep, Outcome, capped, failed, text_of
from callsheet.agents.servers.app_tool import APP
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.text.sanitizing import clean

_T = TypeVar("_T")
_CALL_ID = "callsheet"
_COMMAND = "it returned a Command for the workflow that calls it, which Callsheet does not carry out: return a result"
CALL_LIMITS: ContextVar[Limits | None] = ContextVar("callsheet_limits", default=None)
"""The limits of the current call, for a tool that enforces them itself."""


@dataclass(slots=True)
class ToolModel:
    """The model for tools of this process that answer with one.

    Attributes:
        model: The chat model of the run; None without one.
        usage: Cost of these tools' model calls so far.
    """

    model: BaseChatModel | None = None
    usage: Usage = field(default_factory=Usage)


TOOL_MODEL: ContextVar[ToolModel | None] = ContextVar("callsheet_tool_model", default=None)
"""The model of the current step, see ``tool_model``; None outside of a step."""


@contextmanager
def tool_model(model: BaseChatModel | None) -> Iterator[ToolModel]:
    """Gives the tools that are called in this block a model, and collects the cost of its calls."""
    given = ToolModel(model)
    token = TOOL_MODEL.set(given)
    try:
        yield given
    finally:
        TOOL_MODEL.reset(token)


@dataclass(frozen=True, slots=True)
class InProcess:
    """A connection to tools of this process, with what the user's catalog sets for them."""

    tools: Mapping[str, BaseTool]
    options: ServerOptions = field(default_factory=ServerOptions)


async def call(
    agent_id: str, tool: BaseTool, args: Mapping[str, Any], limits: Limits, keep: Keep | None = None
) -> Outcome:
    """Calls a tool; any exception is in the outcome.

    Raises:
        GraphBubbleUp: The tool interrupts the workflow that it runs in.
    """
    began, bounds = monotonic(), CALL_LIMITS.set(limits)
    scope = asyncio.timeout(_seconds(tool, limits))
    try:
        async with scope:
            request = _request(tool, args)
            if _is_async(tool):
                answer = await tool.ainvoke(request)
                outcome = await asyncio.to_thread(_outcome, agent_id, tool, answer, limits, keep)
            else:
                outcome = await asyncio.wrap_future(
                    in_thread(lambda: _outcome(agent_id, tool, tool.invoke(request), limits, keep))
                )
    except Exception as error:  # noqa: BLE001 (a tool may raise anything; it becomes data)
        outcome = _late(agent_id, tool, limits) if scope.expired() else _raised(agent_id, tool, error)
    finally:
        CALL_LIMITS.reset(bounds)
    return replace(outcome, seconds=monotonic() - began)


def call_blocking(
    agent_id: str, tool: BaseTool, args: Mapping[str, Any], limits: Limits, keep: Keep | None = None
) -> Outcome:
    """As ``call``, for callers without an event loop; a tool with asynchronous code only works too."""
    if isinstance(tool, StructuredTool) and tool.func is None:
        return LOOP.blocking(call(agent_id, tool, args, limits, keep))
    began = monotonic()
    future = in_thread(lambda: _outcome(agent_id, tool, tool.invoke(_request(tool, args)), limits, keep))
    try:
        outcome = future.result(_seconds(tool, limits))
    except Exception as error:  # noqa: BLE001 (a tool may raise anything; it becomes data)
        if _only_async(tool, error):
            return LOOP.blocking(call(agent_id, tool, args, limits, keep))
        outcome = _raised(agent_id, tool, error) if future.done() else _late(agent_id, tool, limits)
    return replace(outcome, seconds=monotonic() - began)


def _seconds(tool: BaseTool, limits: Limits) -> float | None:
    """Timeout of a call; None for an app, which is limited by its step."""
    return None if (tool.metadata or {}).get(APP) else limits.call


def _request(tool: BaseTool, args: Mapping[str, Any]) -> dict[str, Any]:
    # As a tool call: only then a tool returns its artifact and status, and gets an injected id.
    return {"type": "tool_call", "name": tool.name, "args": dict(args), "id": _CALL_ID}


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


def _is_async(tool: BaseTool) -> bool:
    if isinstance(tool, StructuredTool):
        return tool.coroutine is not None
    return type(tool)._arun is not BaseTool._arun


def _only_async(tool: BaseTool, error: Exception) -> bool:
    if isinstance(error, NotImplementedError):
        return _is_async(tool)
    return isinstance(error, TypeError) and "No synchronous function" in str(error)


def _outcome(agent_id: str, tool: BaseTool, answer: object, limits: Limits, keep: Keep | None) -> Outcome:
    from langgraph.types import Command

    if isinstance(answer, Command):
        return failed(agent_id, tool.name, "protocol", _COMMAND, "reported")
    message = answer if isinstance(answer, ToolMessage) else ToolMessage(str(answer), tool_call_id=_CALL_ID)
    text, media = text_of(message.content, keep)
    text, structured = clean(text), _plain(message.artifact)
    if message.artifact is not None and structured is None:
        text += f"\n[artifact left out: {type(message.artifact).__name__} that is not JSON]"
    if message.status == "error":
        return capped(replace(failed(agent_id, tool.name, "tool", text, "reported"), media=media), limits, keep)
    return capped(Outcome(text=text, structured=structured, media=media), limits, keep)


def _plain(artifact: object) -> Any | None:
    """The artifact if it is valid JSON, as state holds plain values only."""
    try:
        return clean(json.loads(json.dumps(artifact)))
    except (TypeError, ValueError, RecursionError):
        return None


def _late(agent_id: str, tool: BaseTool, limits: Limits) -> Outcome:
    message = f"no answer within {limits.call:g} s; whether the call took effect is unknown"
    return failed(agent_id, tool.name, "timeout", message, "unknown")


def _raised(agent_id: str, tool: BaseTool, error: Exception) -> Outcome:
    from langgraph.errors import GraphBubbleUp

    if isinstance(error, GraphBubbleUp):
        raise error
    if isinstance(error, Fault):
        return failed(agent_id, tool.name, error.kind, clean(str(error)), error.effect)
    return failed(agent_id, tool.name, "tool", clean(f"{type(error).__name__}: {error}"[:4_000]), "reported")
