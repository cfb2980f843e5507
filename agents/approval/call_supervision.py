"""A call on its way: asked about, sent, and settled where nobody knows what became of it.

Each call that may need a person, or must not be sent twice, runs as a small app of its own inside the worker's tool
node. Its checkpoints are written before the next of its nodes starts, whatever the durability of the run: what was
decided is kept before anything is sent, and a call that was under way when the program died is known as such.
"""

from __future__ import annotations

from typing import cast

from langchain.agents.middleware import ToolCallRequest
from langgraph.config import get_config
from langgraph.types import StateSnapshot

from callsheet.agents.approval.assurance import ApprovalPolicy
from callsheet.agents.approval.checkpoints import checkpointer
from callsheet.agents.approval.run_claim import sole_run
from callsheet.agents.approval.supervised_call import CALL, Answer, CallState, Case, Send, Supervision
from callsheet.agents.tools.binding import BoundTool
from callsheet.agents.tools.registry import ToolRegistry
from callsheet.graphs.catalog.errors import SettingsError

NO_CHECKPOINTER = (
    "a person has to be asked before some tools are called, which needs a checkpointer: compile the workflow with one, "
    "compile(checkpointer=InMemorySaver()), on a LangGraph server run it in a thread, or ask nobody: "
    'Settings(approval="never")'
)


def check_answerable(registry: ToolRegistry, policy: ApprovalPolicy) -> None:
    """Makes sure, before a run begins, that its questions could be answered.

    Args:
        registry: What may be called.
        policy: Which calls a person is asked about.

    Raises:
        SettingsError: A person may have to be asked, and there is no checkpointer to wait with.
    """
    if checkpointer() is not None:
        return
    for tool_id in registry.catalog.tools:
        assured = registry.assurance(tool_id)
        if assured.callable and (why := assured.why(policy)):
            raise SettingsError(f"{NO_CHECKPOINTER}. One of these tools is {tool_id}: {why}")


async def supervised(request: ToolCallRequest, bound: BoundTool, supervision: Supervision, send: Send) -> Answer:
    """Runs one call, once a person has agreed to it where that is needed.

    Args:
        request: The call.
        bound: The tool.
        supervision: How it is looked after.
        send: Sends it.

    Returns:
        The tool's answer; or that the call was not sent, and why.

    Raises:
        GraphInterrupt: A person is asked.
        ConcurrentRunError: Another run of the thread is at the same step.
    """
    assured = supervision.registry.assurance(bound.id)
    case = Case(request, bound, supervision, send)
    why = case.why(request.tool_call["args"])
    saver = checkpointer()
    if saver is None:
        return case.said(f"{NO_CHECKPOINTER}", kind="refused", effect="none") if why else await send(request)
    if not why and assured.repeatable and not (await CALL.aget_state(get_config())).values:
        return await send(request)
    async with sole_run(saver, request.tool_call["id"] or ""):
        return await _watched(case, why)


async def _watched(case: Case, why: str) -> Answer:
    before = await CALL.aget_state(get_config())
    if not before.next and "answer" in before.values:
        return cast("Answer", before.values["answer"])
    case.asked, asked = _asked(before)
    assured = case.supervision.registry.assurance(case.bound.id)
    case.cut_off = before.next == ("send",) and not asked and not assured.repeatable
    args = dict(case.request.tool_call["args"])
    given = CallState(args=args, why=why, approved="", when=0.0, problem="", unknown="")
    done = await CALL.ainvoke(given, context=case, durability="sync")
    return cast("Answer", done["answer"])


def _asked(before: StateSnapshot) -> tuple[str, bool]:
    """The hash in the question that waits for an answer, and whether there is any question at all."""
    waiting = [found.value for task in before.tasks for found in task.interrupts]
    marks = [value["hash"] for value in waiting if isinstance(value, dict) and isinstance(value.get("hash"), str)]
    return (marks[0] if marks else ""), bool(waiting)
