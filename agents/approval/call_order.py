"""Keeps the order of the calls of one turn to the same server, unless both calls only read.

A model that appends ten paragraphs to a document writes ten calls in one turn, and an agent's tool node runs them in
parallel. So a call waits for the earlier ones of its turn that go to the same server. If one of these waits for a
person, the calls after it wait too: they end as if they had been interrupted, and run again when the run is resumed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.runtime import get_runtime

from callsheet.agents.calls.run_claim import checkpointer
from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool

_MOST = 1_000
"""Number of turns that are remembered: many more than run at once in a process."""


@dataclass(slots=True)
class _Turn:
    """The calls of one turn, within one run.

    Attributes:
        control: LangGraph's object for the run; it is held so that no later run gets its ``id``.
        ended: Call id -> set when the call has ended, or waits for a person.
        waiting: Ids of the calls that wait for a person, or behind one that does.
    """

    control: object
    ended: dict[str, asyncio.Event] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)

    def end_of(self, call_id: str) -> asyncio.Event:
        """Returns the event that a call has ended."""
        return self.ended.setdefault(call_id, asyncio.Event())


_TURNS: OrderedDict[tuple[int, str, str], _Turn] = OrderedDict()


@asynccontextmanager
async def in_order(request: ToolCallRequest, tools: Mapping[str, BoundTool]) -> AsyncIterator[None]:
    """Runs the block, in which a call is made, after the earlier calls of the turn to the same server.

    Args:
        request: The call, within the conversation.
        tools: The tools by the names that the model sees.

    Raises:
        GraphInterrupt: An earlier call to the same server waits for a person, or this one does.
    """
    call_id = request.tool_call["id"] or ""
    turn_calls = _turn_of(request)
    if len(turn_calls) < 2:
        yield
        return
    earlier = _before(request.tool_call, turn_calls, tools)
    turn = _turn(turn_calls[0]["id"] or "")
    try:
        if earlier:
            await _wait_for(turn, earlier)
        yield
    except GraphBubbleUp:
        turn.waiting.add(call_id)
        turn.end_of(call_id).set()
        raise
    except BaseException:
        turn.end_of(call_id).set()
        raise
    turn.end_of(call_id).set()


def _turn_of(request: ToolCallRequest) -> Sequence[ToolCall]:
    """Returns the calls of the message that has this one.

    Empty for a call that no message has, such as that of a program.
    """
    for message in reversed(request.state["messages"]):
        if isinstance(message, AIMessage):
            ids = [call["id"] for call in message.tool_calls]
            return message.tool_calls if request.tool_call["id"] in ids else ()
    return ()


def _before(call: ToolCall, calls: Sequence[ToolCall], tools: Mapping[str, BoundTool]) -> list[str]:
    """Returns ids of the calls of a turn for which a call must wait."""
    earlier: list[str] = []
    for other in calls:
        if other["id"] == call["id"]:
            break
        if _same_server(call["name"], other["name"], tools):
            earlier.append(other["id"] or "")
    return earlier


def _same_server(name: str, other: str, tools: Mapping[str, BoundTool]) -> bool:
    """Returns whether the order of two calls counts: they go to one server, and one of them may change something.

    A program may call any tool.
    """
    if RUN_PROGRAM in (name, other):
        return all(one == RUN_PROGRAM or one in tools for one in (name, other))
    one = tools.get(name)
    two = tools.get(other)
    if one is None or two is None or one.server != two.server:
        return False
    return not (one.harmless and two.harmless)


def _turn(first_call: str) -> _Turn:
    """Returns the turn that begins with this call, in the current run."""
    control = get_runtime().control
    namespace = str((get_config().get("configurable") or {}).get("checkpoint_ns", "")).rpartition("|")[0]
    key = (id(control), namespace, first_call)
    turn = _TURNS.get(key)
    if turn is None:
        turn = _TURNS[key] = _Turn(control)
        if len(_TURNS) > _MOST:
            _TURNS.popitem(last=False)
    return turn


async def _wait_for(turn: _Turn, earlier: Sequence[str]) -> None:
    """Waits until these calls have ended; raises an empty GraphInterrupt if one of them waits for a person."""
    answered = await _answered_before()
    for call_id in earlier:
        if call_id not in answered:
            await turn.end_of(call_id).wait()
    if turn.waiting.intersection(earlier):
        raise GraphInterrupt(())


async def _answered_before() -> Collection[str]:
    """Returns ids of the calls of the turn that were answered before the run was resumed: they do not run again."""
    saver = checkpointer()
    configurable = get_config().get("configurable") or {}
    if saver is None:
        return ()
    namespace = str(configurable.get("checkpoint_ns", "")).rpartition("|")[0]
    checkpoint = (configurable.get("checkpoint_map") or {}).get(namespace)
    if checkpoint is None:
        return ()
    place = {"thread_id": configurable["thread_id"], "checkpoint_ns": namespace, "checkpoint_id": checkpoint}
    found = await saver.aget_tuple({"configurable": place})
    written = found.pending_writes if found is not None else None
    answers: list[Any] = []
    for _, _, value in written or ():
        answers += value if isinstance(value, list) else [value]
    return {answer.tool_call_id for answer in answers if isinstance(answer, ToolMessage)}
