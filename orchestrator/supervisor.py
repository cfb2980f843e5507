"""The supervisor: plan, waves of steps, answer. All nodes and edges are on this screen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from callsheet.agents import Prompts, ToolRegistry, worker
from callsheet.graphs import CatalogSource, Policy, SettingsError, load
from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.nodes import Nodes
from callsheet.orchestrator.run.catalog_updates import Following
from callsheet.orchestrator.run.current_user import caller
from callsheet.orchestrator.run.run_settings import Choices, context
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.sync_bridge import both_ways
from callsheet.orchestrator.state import (
    ChatInput,
    ChatOutput,
    Picked,
    Query,
    RetrieverState,
    State,
    StepOutput,
    StepState,
    text_of,
)
from callsheet.orchestrator.step.step_inputs import StepInputs, after_ask, after_work
from callsheet.orchestrator.step.step_selection import selected
from callsheet.retrievers import AgentGraphRetriever

Model = str | BaseChatModel


def create_supervisor(
    source: CatalogSource,
    *,
    model: Model | None = None,
    planner_model: Model | None = None,
    worker_model: Model | None = None,
    answer_model: Model | None = None,
    retriever: AgentGraphRetriever | None = None,
    registry: ToolRegistry | None = None,
    settings: Settings | None = None,
    prompts: Prompts | None = None,
    yes: bool = False,
    policy: Policy | str | Path | None = None,
    observed: ObservationLog | None = None,
) -> StateGraph[State, Settings, ChatInput, ChatOutput]:
    """A workflow that plans a request, finds agents and tools for each step, and lets workers do the steps.

    Args:
        source: A catalog of any kind, or several; see ``callsheet.graphs.load``.
        model: Chat model for everything: ``provider:model`` or an object. Without one, rules do the work.
        planner_model: Another one for the plan.
        worker_model: Another one for the workers.
        answer_model: Another one for the answer.
        retriever: What picks agents and tools; by default one over the same catalog.
        registry: What makes tools callable; by default one over the same catalog.
        settings: What holds unless a run's ``context`` says otherwise.
        prompts: System prompts in place of ours.
        yes: Agrees to start the commands that an ``mcp.json`` names; see ``callsheet.graphs.load``.
        policy: Who may see and call what, or the file that says so; ``CALLSHEET_POLICY`` by default.
        observed: Where it is counted which tools take arguments from which, for ``callsheet infer``.

    Returns:
        An uncompiled ``StateGraph``: ``compile(checkpointer=...)`` is the caller's. It takes ``messages`` and gives
        ``messages``, ``plan``, ``selections`` and ``results``.

    Raises:
        CatalogError: The catalog cannot be read.
        TrustError: A command of the catalog was not agreed to, or its pins cannot be relied on.
        SettingsError: The policy cannot be read, or retriever or registry have another one.
    """
    loaded = load(source, yes=yes, policy=policy)
    given = {"model": model, "planner_model": planner_model, "worker_model": worker_model, "answer_model": answer_model}
    for part in (retriever, registry):
        if part is not None and part.policy != loaded.policy:
            raise SettingsError(f"the {type(part).__name__} has another policy than the supervisor: give it the same")
    nodes = Nodes(
        retriever=retriever or AgentGraphRetriever.from_catalog(loaded),
        registry=registry or ToolRegistry.from_catalog(loaded),
        choices=Choices(
            defaults=(settings or Settings()).model_copy(
                update={role: name for role, name in given.items() if isinstance(name, str)}
            ),
            models=_objects(given),
            prompts=prompts or Prompts(),
        ),
        observed=observed,
    )

    Following(nodes.retriever, nodes.registry)

    step = StateGraph(StepState, context_schema=Settings, output_schema=StepOutput)
    step.add_node("retrieve", nodes.retrieve)
    step.add_node("work", both_ways(nodes.work, "work", worker))
    step.add_node("ask", StepInputs(nodes.registry).ask)
    step.add_edge(START, "retrieve")
    step.add_edge("retrieve", "work")
    step.add_conditional_edges("work", after_work, ["ask", END])
    step.add_conditional_edges("ask", after_ask, ["ask", "work", END])

    supervisor = StateGraph(State, context_schema=Settings, input_schema=ChatInput, output_schema=ChatOutput)
    supervisor.add_node("plan", both_ways(nodes.plan, "plan"))
    supervisor.add_node("dispatch", nodes.dispatch)
    supervisor.add_node("step", step.compile(name="step"))
    supervisor.add_node("answer", both_ways(nodes.answer, "answer"))
    supervisor.add_edge(START, "plan")
    supervisor.add_edge("plan", "dispatch")
    supervisor.add_conditional_edges("dispatch", nodes.route, ["step", "answer"])
    supervisor.add_edge("step", "dispatch")
    supervisor.add_edge("answer", END)
    return supervisor


def create_retriever_app(retriever: AgentGraphRetriever) -> StateGraph[RetrieverState, Settings, Query, Picked]:
    """The retriever alone as a workflow: ``query`` in, ``selection`` with its trace out."""

    def retrieve(state: Query) -> Picked:
        given = context()
        reach = given.reach(given.model_fields_set) if given else {}
        return {"selection": selected(retriever.within(caller()), text_of(state, "query"), **reach).to_dict(trace=True)}

    app = StateGraph(RetrieverState, context_schema=Settings, input_schema=Query, output_schema=Picked)
    app.add_node("retrieve", retrieve)
    app.add_edge(START, "retrieve")
    app.add_edge("retrieve", END)
    return app


def _objects(given: Mapping[str, Model | None]) -> dict[str, BaseChatModel]:
    """The models given as objects, by role; the common one stands in for each that is not given."""
    common = given["model"]
    roles = {role: given[f"{role}_model"] or common for role in ("planner", "worker", "answer")}
    return {role: model for role, model in roles.items() if isinstance(model, BaseChatModel)}
