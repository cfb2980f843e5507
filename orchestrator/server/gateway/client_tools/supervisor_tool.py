"""The supervisor behind the gateway's tool ``ask``."""

from __future__ import annotations

import json

from langchain_core.runnables import RunnableConfig

from callsheet.agents import ApprovalPolicy, ToolRegistry
from callsheet.graphs import Loaded
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller
from callsheet.orchestrator.server.gateway.mcp_gateway import Ask
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever


def supervisor_tool(
    loaded: Loaded,
    retriever: AgentGraphRetriever,
    registry: ToolRegistry,
    model: str | None,
    approval: ApprovalPolicy,
) -> Ask:
    """Answers requests by the supervisor, each by itself; a call that needs approval is not made, and that is said.

    Returns:
        From a request to its answer, with the steps as JSON where not all of them are done.
    """
    settings = Settings(model=model, approval=approval)
    supervisor = create_supervisor(loaded, retriever=retriever, registry=registry, settings=settings)
    app = create_ask_app(supervisor.compile()).compile(name="ask")

    async def ask(request: str, caller: Caller) -> str:
        user = {"identity": caller.user.id, "groups": sorted(caller.user.groups)} if caller.user.id else None
        config: RunnableConfig = {"configurable": {"langgraph_auth_user": user}} if user else {}
        answered = await app.ainvoke({"question": request}, config)
        left = [step for step in answered["steps"] if step["status"] != "done"]
        return "\n".join([answered["answer"], *([f"Not done: {json.dumps(left, ensure_ascii=False)}"] if left else [])])

    return ask
