"""The supervisor as an app that takes a question and returns an answer with its steps."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from pydantic import Field
from typing_extensions import TypedDict

from callsheet.agents import StepResult
from callsheet.agents.approval.supervised_call import NOBODY
from callsheet.agents.calls.review import decision_on, flat
from callsheet.orchestrator.run.run_context import context, store, sync_and_async
from callsheet.orchestrator.run.settings import AskSettings, Settings
from callsheet.orchestrator.state import input_text, read_results

_AUTH = "langgraph_auth"
Supervisor = CompiledStateGraph[Any, Any, Any, Any]


class AskInput(TypedDict):
    """The input of the app."""

    question: Annotated[str, Field(description="A question, or a request of several steps, in plain words.")]


class AskOutput(TypedDict):
    """The output of the app.

    Attributes:
        steps: One object per step: ``id``, ``text``, ``status``, ``tools`` (ids of the called tools), and ``result`` or
            ``error``.
    """

    answer: str
    steps: list[dict[str, Any]]


class AskState(AskInput, AskOutput):
    """The state of the app."""


def create_ask_app(supervisor: Supervisor) -> StateGraph[AskState, AskSettings, AskInput, AskOutput]:
    """Returns the supervisor as an app with small schemas, for MCP clients and scripts.

    Each question is independent. Nobody can be asked: a call that needs approval is not made, and the answer says so.

    Args:
        supervisor: ``create_supervisor(...)``, compiled without a checkpointer.
    """
    workflow = StateGraph(AskState, context_schema=AskSettings, input_schema=AskInput, output_schema=AskOutput)
    workflow.add_node("supervisor", sync_and_async(_answered, "supervisor", supervisor))
    workflow.add_edge(START, "supervisor")
    workflow.add_edge("supervisor", END)
    return workflow


async def _answered(state: AskInput, supervisor: Supervisor) -> AskOutput:
    """Runs the supervisor in a thread of its own, which is not kept; pending questions are refused."""
    request = HumanMessage(input_text(state, "question"))
    given = context(AskSettings) or AskSettings()
    # Models are told to ask nothing, and without a model, a call that needs a yes is answered with how to give it.
    settings = Settings(**{**given.model_dump(exclude_unset=True), "attended": False})
    app = supervisor.copy({"checkpointer": InMemorySaver(), "store": store()})
    ours = get_config().get("configurable", {})
    user = {key: value for key, value in ours.items() if key.startswith(_AUTH)}
    config: RunnableConfig = {"configurable": {**user, "thread_id": uuid.uuid4().hex}}
    found = await app.ainvoke({"messages": [request]}, config, context=settings)
    while asked := [q for q in found.get("__interrupt__", ()) if "reject" in flat(q.value).get("decisions", ())]:
        refusals = {question.id: decision_on("reject", question.value, message=NOBODY) for question in asked}
        found = await app.ainvoke(Command(resume=refusals), config, context=settings)
    waiting = "; ".join(str(one.value) for one in found.get("__interrupt__", ()))
    answer = f"Not finished: an agent asks a person; {NOBODY}: {waiting}" if waiting else found["messages"][-1].text
    results = read_results(found["results"])
    return {"answer": answer, "steps": [_step(step, results) for step in found["plan"]["steps"]]}


def _step(step: Mapping[str, Any], results: Mapping[str, StepResult]) -> dict[str, Any]:
    about = {"id": step["id"], "text": step["text"]}
    result = results.get(step["id"])
    if result is None:
        return {**about, "status": "not_finished", "tools": [], "error": "it, or one before it, waits for a person"}
    tools = list(dict.fromkeys(call.tool for call in result.calls))
    said = {"result": result.result} if result.status == "done" else {"error": result.error}
    return {**about, "status": result.status, "tools": tools, **said}
