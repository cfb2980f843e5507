"""Supervision of a call: ask for approval, send it, and settle an unknown outcome.

Each call that may need approval, or must not be sent twice, runs as a small app inside the worker's tool node. Each
checkpoint is written before the next node starts, whatever the durability of the run. So a decision is stored before
anything is sent, and a call that was running when the program died is recognised.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from langchain.agents.middleware import ToolCallRequest
from langgraph.config import get_config
from langgraph.types import StateSnapshot

from callsheet.agents.approval.assurance import ApprovalPolicy
from callsheet.agents.approval.call_case import Answer, Case, Send, Supervision
from callsheet.agents.approval.checkpoints import checkpointer
from callsheet.agents.approval.run_claim import sole_run
from callsheet.agents.approval.supervised_call import CALL, CallState
from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.registry import ToolRegistry
from callsheet.graphs.catalog.errors import SettingsError

NO_CHECKPOINTER = (
    "some tools need approval before a call, and approval needs a checkpointer: compile the workflow with one, "
    "compile(checkpointer=InMemorySaver()), on a LangGraph server run it in a thread, or turn approval off: "
    'Settings(approval="never")'
)


def check_answerable(registry: ToolRegistry, policy: ApprovalPolicy, allow: Collection[str] = ()) -> None:
    """Checks that the questions of a run can be answered, before it begins.

    Raises:
        SettingsError: A call may need approval, and there is no checkpointer.
    """
    if checkpointer() is not None:
        return
    for tool_id in registry.catalog.tools:
        assured = registry.assurance(tool_id)
        if assured.callable and tool_id not in allow and (why := assured.why(policy)):
            raise SettingsError(f"{NO_CHECKPOINTER}. One of these tools is {tool_id}: {why}")


async def supervised(request: ToolCallRequest, bound: BoundTool, supervision: Supervision, send: Send) -> Answer:
    """Runs one call, after approval if it needs one.

    Returns:
        The tool's answer, or a message that says why the call was not sent.

    Raises:
        GraphInterrupt: A person is asked.
        ConcurrentRunError: Another run of the thread works on the same step.
    """
    assured = supervision.registry.assurance(bound.id)
    case = Case(request, bound, supervision, send)
    why = case.why(request.tool_call["args"])
    saver = checkpointer()
    if saver is None:
        return case.said(f"{NO_CHECKPOINTER}", kind="refused", effect="none") if why else await send(request)
    if not why and assured.repeatable and not (await CALL.aget_state(get_config())).values:
        return await send(request)
    async with sole_run(saver, request.tool_call["id"] or "") as case.claim:
        return await _watched(case, why)


async def _watched(case: Case, why: str) -> Answer:
    before = await CALL.aget_state(get_config())
    if not before.next and "answer" in before.values:
        return cast("Answer", before.values["answer"])
    case.asked, asked = _asked(before)
    assured = case.supervision.registry.assurance(case.bound.id)
    not_sent = before.next == ("ask",) or not before.values
    rolled_back = not_sent and case.claim is not None and case.claim.sent_before
    case.cut_off = ((before.next == ("send",) and not asked) or rolled_back) and not assured.repeatable
    args = dict(case.request.tool_call["args"])
    given = CallState(args=args, why=why, approved="", when=0.0, problem="", unknown="")
    done = await CALL.ainvoke(given, context=case, durability="sync")
    return cast("Answer", done["answer"])


def _asked(before: StateSnapshot) -> tuple[str, bool]:
    """The hash in the pending question, and whether there is a pending question at all."""
    waiting = [found.value for task in before.tasks for found in task.interrupts]
    marks = [value["hash"] for value in waiting if isinstance(value, dict) and isinstance(value.get("hash"), str)]
    return (marks[0] if marks else ""), bool(waiting)
