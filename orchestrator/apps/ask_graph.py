"""The supervisor with a question as input, and an answer with its steps as output."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command, Interrupt
from pydantic import Field
from typing_extensions import TypedDict

from callsheet.agents.approval.supervised_call import NOBODY
from callsheet.agents.calls.review import decided, flat
from callsheet.orchestrator.run.run_context import sync_and_async
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import text_of

_AUTH = "langgraph_auth"
Supervisor = CompiledStateGraph[Any, Any, Any, Any]


class Question(TypedDict):
    """Input of the app."""

    question: Annotated[str, Field(description="A question, or a request of several steps, in plain words.")]


class Answer(TypedDict):
    """Output of the app.

    Attributes:
        answer: The answer.
        steps: One object per step: ``id``, ``text``, ``status``, ``tools`` (ids of those that were called), and
            ``result`` or ``error``.
    """

    answer: str
    steps: list[dict[str, Any]]


class AskState(Question, Answer):
    """State of the app."""


def create_ask_app(supervisor: Supervisor) -> StateGraph[AskState, Settings, Question, Answer]:
    """The supervisor with small schemas, for MCP clients and scripts.

    Each question is independent. Nobody can be asked: a call that needs approval is not made, and the answer says so.

    Args:
        supervisor: ``create_supervisor(...)``, compiled without a checkpointer.
    """

    async def answer(state: Question, app: Supervisor) -> Answer:
        return await _answered(text_of(state, "question"), app)

    workflow = StateGraph(AskState, context_schema=Settings, input_schema=Question, output_schema=Answer)
    workflow.add_node("supervisor", sync_and_async(answer, "supervisor", supervisor))
    workflow.add_edge(START, "supervisor")
    workflow.add_edge("supervisor", END)
    return workflow


async def _answered(question: str, supervisor: Supervisor) -> Answer:
    """Runs the supervisor in a thread of its own, which is not kept."""
    runtime = get_runtime(Settings)
    app = supervisor.copy({"checkpointer": InMemorySaver(), "store": runtime.store})
    ours = get_config().get("configurable", {})
    user = {key: value for key, value in ours.items() if key.startswith(_AUTH)}
    config: RunnableConfig = {"configurable": {**user, "thread_id": uuid.uuid4().hex}}
    state = await app.ainvoke({"messages": [HumanMessage(question)]}, config, context=runtime.context)
    while refusals := _refusals(state.get("__interrupt__", ())):
        state = await app.ainvoke(Command(resume=refusals), config, context=runtime.context)
    return _reported(state)


def _refusals(asked: Sequence[Interrupt]) -> dict[str, dict[str, Any]]:
    """Answers that refuse the pending questions."""
    ours = [one for one in asked if "reject" in flat(one.value).get("decisions", ())]
    return {one.id: decided("reject", one.value, message=NOBODY) for one in ours}


def _reported(state: dict[str, Any]) -> Answer:
    steps = [_step(step["id"], step["text"], state["results"].get(step["id"])) for step in state["plan"]["steps"]]
    asked = "; ".join(str(one.value) for one in state.get("__interrupt__", ()))
    answer = f"Not finished: an agent asks a person; {NOBODY}: {asked}" if asked else state["messages"][-1].text
    return {"answer": answer, "steps": steps}


def _step(name: str, text: str, result: dict[str, Any] | None) -> dict[str, Any]:
    status, tools, told = "not_finished", [], {"error": "it, or one before it, waits for a person"}
    if result is not None:
        status, tools = result["status"], list(dict.fromkeys(call["tool"] for call in result["calls"]))
        field = "result" if status == "done" else "error"
        told = {field: result[field]}
    return {"id": name, "text": text, "status": status, "tools": tools, **told}
