"""Reports the calls of a worker to the streams of the run, with the id of its step."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.config import get_stream_writer
from langgraph.types import Command

from callsheet.agents.registry.binding import BoundTool

STEP_ID = "step_id"
M = TypeVar("M", bound=BaseMessage)
Answer = ToolMessage | Command[Any]


class NameStep(AgentMiddleware[AgentState[Any], Any]):
    """Adds the step's id to the metadata of every message, which providers do not get. A worker's first middleware."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Adds the step's id to the model's messages."""
        response, step_id = await handler(request), _step_id(request.runtime.context)
        if isinstance(response, ModelResponse):
            named = [_named(message, step_id) for message in response.result]
            return ModelResponse(result=named, structured_response=response.structured_response)
        return _named(response, step_id) if isinstance(response, AIMessage) else response

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Adds the step's id to the tool's message."""
        answer = await handler(request)
        return _named(answer, _step_id(request.runtime.context)) if isinstance(answer, ToolMessage) else answer


class TellCalls(AgentMiddleware[AgentState[Any], Any]):
    """Writes to the custom stream when a call starts and ends. A worker's last middleware, next to the tool."""

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """Sends a call between the events ``tool_started`` and ``tool_finished``."""
        write, call, tool = get_stream_writer(), request.tool_call, request.tool
        about = {STEP_ID: _step_id(request.runtime.context), "call_id": call["id"], "tool": call["name"]}
        if isinstance(tool, BoundTool):
            about |= {"tool": tool.id, "agent": tool.agent}
        began = time.time()
        write({"event": "tool_started", **about, "args": call["args"], "began": began})
        answer = _dated(await handler(request), began)
        write({"event": "tool_finished", **about, **_outcome(answer)})
        return answer


def _step_id(context: object) -> str:
    return str(getattr(context, STEP_ID, ""))


def _named(message: M, step_id: str) -> M:
    return message.model_copy(update={"response_metadata": {**message.response_metadata, STEP_ID: step_id}})


def _dated(answer: Answer, began: float) -> Answer:
    if not isinstance(answer, ToolMessage):
        return answer
    artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
    return answer.model_copy(update={"artifact": {**artifact, "began": began}})


def _outcome(answer: Answer) -> dict[str, Any]:
    if not isinstance(answer, ToolMessage):
        return {"status": "success"}
    artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
    kept = {key: artifact[key] for key in ("seconds", "kind", "effect") if key in artifact}
    return {"status": answer.status, "output": answer.text, **kept}
