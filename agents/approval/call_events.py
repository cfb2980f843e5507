"""Writes the events of calls to the custom stream: started, progress and finished."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.config import get_stream_writer
from langgraph.types import Command

from callsheet.agents.calls.call_context import PROGRESS, within
from callsheet.agents.calls.outcome import outcome_in, with_outcome
from callsheet.agents.registry.binding import BoundTool
from callsheet.graphs.text.hidden import shown

Answer = ToolMessage | Command[Any]


@contextmanager
def call_events(
    request: ToolCallRequest, step_id: str, *, began: float | None = None
) -> Iterator[Callable[[Answer], Answer]]:
    """Writes the event ``tool_started`` when a call is sent in this block, and events of its progress.

    Yields a function that takes the answer, writes ``tool_finished`` unless its server goes on with the call later,
    and returns the answer with the time at which the call began.

    Args:
        request: The call.
        step_id: Id of its step.
        began: The time at which the call has begun, if the stream was told of that; in seconds since 1970.
    """
    write = get_stream_writer()
    call = request.tool_call
    tool = request.tool
    about = {"step_id": step_id, "call_id": call["id"], "tool": call["name"]}
    if isinstance(tool, BoundTool):
        about |= {"tool": tool.id, "agent": tool.agent}
    is_later = began is not None
    if began is None:
        began = time.time()
        write({"event": "tool_started", **about, "args": call["args"], "began": began})
    outer = PROGRESS.get()

    async def report(done: float | None, total: float | None, text: str | None) -> None:
        write({"event": "progress", **about, "progress": done, "total": total, "text": shown(text or "")})
        if outer is not None:
            await outer(done, total, text)

    def finished(answer: Answer) -> Answer:
        if not isinstance(answer, ToolMessage):
            write({"event": "tool_finished", **about, "status": "success"})
            return answer
        outcome = outcome_in(answer).model_copy(update={"began": began})
        if is_later:  # a tool names the last part of a call only
            outcome = outcome.model_copy(update={"seconds": time.time() - began})
        if not (outcome.task or outcome.questions):
            ended = outcome.model_dump(include={"seconds", "kind", "effect"})
            write({"event": "tool_finished", **about, "status": answer.status, "output": answer.text, **ended})
        return with_outcome(answer, outcome)

    with within(PROGRESS, report):
        yield finished
