"""The supervisor: it plans, runs steps in waves (retriever, then workers), and answers.

All nodes and edges are in this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph

from callsheet.agents import Prompts, ToolRegistry, chat_model, worker
from callsheet.agents.approval.supervision import InterruptOn, reviews_of
from callsheet.agents.models.chat_models import check_model
from callsheet.graphs import CatalogSource, Policy, SettingsError, load
from callsheet.graphs.dependencies import ObservationLog
from callsheet.graphs.text.arguments import check_type
from callsheet.orchestrator.nodes import Nodes, after_ask, after_plan
from callsheet.orchestrator.run.answers import AnswerableGraph
from callsheet.orchestrator.run.process.process_state import CatalogSync
from callsheet.orchestrator.run.run_context import RunConfiguration, caller, context, sync_and_async
from callsheet.orchestrator.run.settings import RetrieverSettings, Settings
from callsheet.orchestrator.state import (
    ChatInput,
    ChatOutput,
    Picked,
    Query,
    RetrieverState,
    State,
    StepOutput,
    StepState,
    input_text,
)
from callsheet.orchestrator.step import StepNodes, after_input, after_work, check_tracing, select_traced
from callsheet.retrievers import AgentGraphRetriever, DecisionModel
from callsheet.retrievers.selection.decision_models import judge_of

Model = str | BaseChatModel


def create_supervisor(
    source: CatalogSource,
    *,
    model: Model | None = None,
    planner_model: Model | None = None,
    worker_model: Model | None = None,
    answer_model: Model | None = None,
    decision_model: str | DecisionModel | None = None,
    retriever: AgentGraphRetriever | None = None,
    registry: ToolRegistry | None = None,
    settings: Settings | None = None,
    prompts: Prompts | None = None,
    yes: bool = False,
    policy: Policy | str | Path | None = None,
    observed: ObservationLog | None = None,
    interrupt_on: InterruptOn | None = None,
) -> StateGraph[State, Settings, ChatInput, ChatOutput]:
    """Returns a workflow that plans a request, finds agents and tools for each step, and lets workers do the steps.

    Args:
        source: A catalog of any kind, or several; see ``callsheet.graphs.load``.
        model: Chat model for all parts: ``provider:model`` or an object; without one, rules.
        planner_model: Chat model for the plan instead.
        worker_model: Chat model for the workers instead.
        answer_model: Chat model for the answer instead.
        decision_model: Judges the first tools of each step; off by default. A ``BaseDecisionModel``, or a chat model
            or its name.
        retriever: Selects agents and tools; by default a retriever over the same catalog.
        registry: Makes tools callable; by default a registry over the same catalog.
        settings: Defaults for the ``context`` of a run.
        prompts: System prompts that replace the defaults.
        yes: Starts the commands of an ``mcp.json`` without consent; see ``callsheet.graphs.load``.
        policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
        observed: Counts which tools take arguments from which, and how calls end; None counts nothing.
        interrupt_on: As in LangChain, by ``agent/tool``: True asks before each call, ``{"allowed_decisions": [...]}``
            offers only these decisions, False never asks. It overrides what else is known of the tool.

    Returns:
        An uncompiled ``StateGraph``; call ``compile(checkpointer=...)``. It takes ``messages`` and returns
        ``messages``, ``plan``, ``selections``, ``results``, ``revisions`` and ``usage``.

    Raises:
        CatalogError: The catalog cannot be read.
        TrustError: A command of the catalog has no consent, or its pins cannot be used.
        UnknownNameError: ``interrupt_on`` names a tool that the catalog does not have.
        SettingsError: The policy cannot be read, the retriever or registry has a different policy, an argument has
            another type or form (such as a model with ``with_retry``), or OpenTelemetry is on without its packages.
    """
    check_tracing()
    check_type(settings, Settings, "settings")
    check_type(retriever, AgentGraphRetriever, "retriever")
    check_type(registry, ToolRegistry, "registry")
    check_type(prompts, Prompts, "prompts")
    models = _Models(model, planner_model, worker_model, answer_model, decision_model)
    models.check()
    loaded = load(source, yes=yes, policy=policy)
    for part in (retriever, registry):
        if part is not None and part.policy != loaded.policy:
            raise SettingsError(f"the {type(part).__name__} has another policy than the supervisor: give it the same")
    if retriever is None:
        retriever = AgentGraphRetriever.from_catalog(loaded)
    if registry is None:
        registry = ToolRegistry.from_catalog(loaded)
    CatalogSync(retriever, registry)
    configuration = RunConfiguration(
        defaults=(settings or Settings()).model_copy(update=models.names()),
        models=models.objects(),
        prompts=prompts or Prompts(),
        reviews=reviews_of(interrupt_on, registry.catalog.tools),
    )
    steps = StepNodes(retriever, registry, configuration)
    return _workflow(Nodes(retriever, registry, configuration, steps, observed))


@dataclass(frozen=True, slots=True)
class _Models:
    """The models that a program names: by ``provider:model``, which is a setting, or as objects."""

    common: Model | None
    planner: Model | None
    worker: Model | None
    answer: Model | None
    decision: str | DecisionModel | None

    def check(self) -> None:
        """Raises ``SettingsError`` if one of them is no model."""
        check_model(self.common, "model")
        check_model(self.planner, "planner_model")
        check_model(self.worker, "worker_model")
        check_model(self.answer, "answer_model")
        if self.decision is not None and not isinstance(self.decision, str):
            judge_of(self.decision)

    def names(self) -> dict[str, str]:
        """Returns the models that are named by text, by their settings."""
        given = {
            "model": self.common,
            "planner_model": self.planner,
            "worker_model": self.worker,
            "answer_model": self.answer,
            "decision_model": self.decision,
        }
        return {setting: one for setting, one in given.items() if isinstance(one, str)}

    def objects(self) -> dict[str, Any]:
        """Returns the models that are objects, by their roles."""
        roles = {
            "planner": self.planner or self.common,
            "worker": self.worker or self.common,
            "answer": self.answer or self.common,
            "decision": self.decision,
        }
        return {role: one for role, one in roles.items() if not isinstance(one, str | None)}


def _workflow(nodes: Nodes) -> StateGraph[State, Settings, ChatInput, ChatOutput]:
    """Builds the graph of the supervisor, and in it that of a worker, which may ask a person and go on."""
    steps = nodes.steps
    one_step = StateGraph(StepState, context_schema=Settings, output_schema=StepOutput)
    one_step.add_node("agent", sync_and_async(steps.work, "agent", worker))
    one_step.add_node("ask", steps.ask)
    one_step.add_edge(START, "agent")
    one_step.add_conditional_edges("agent", after_work, ["ask", END])
    one_step.add_conditional_edges("ask", after_input, ["ask", "agent", END])

    supervisor = AnswerableGraph(State, context_schema=Settings, input_schema=ChatInput, output_schema=ChatOutput)
    supervisor.add_node("request", sync_and_async(nodes.request, "request"))
    supervisor.add_node("plan", sync_and_async(nodes.plan, "plan"))
    supervisor.add_node("question", nodes.ask)
    supervisor.add_node("dispatch", nodes.dispatch)
    supervisor.add_node("retriever", nodes.retrieve)
    supervisor.add_node("worker", one_step.compile(name="worker"))
    supervisor.add_node("revise", sync_and_async(nodes.revise, "revise"))
    supervisor.add_node("answer", sync_and_async(nodes.answer, "answer"))
    supervisor.add_edge(START, "request")
    supervisor.add_edge("request", "plan")
    supervisor.add_conditional_edges("plan", after_plan, ["question", "dispatch"])
    supervisor.add_conditional_edges("question", after_ask, ["plan", "revise", "dispatch"])
    supervisor.add_conditional_edges("dispatch", nodes.route, ["retriever", "answer"])
    supervisor.add_conditional_edges("retriever", nodes.send, ["worker"])
    supervisor.add_edge("worker", "revise")
    supervisor.add_conditional_edges("revise", after_plan, ["question", "dispatch"])
    supervisor.add_edge("answer", END)
    return supervisor


def create_retriever_app(
    retriever: AgentGraphRetriever,
) -> StateGraph[RetrieverState, RetrieverSettings, Query, Picked]:
    """Returns the retriever as a workflow: ``query`` in, ``selection`` with its trace out.

    Raises:
        SettingsError: OpenTelemetry is on without its packages.
    """
    check_tracing()

    def retrieve(state: Query) -> Picked:
        given = context(RetrieverSettings) or RetrieverSettings()
        reach = given.reach(given.model_fields_set)
        if given.decision_model:
            reach["decision_model"] = chat_model(given.decision_model)
        return {
            "selection": select_traced(retriever.within(caller()), input_text(state, "query"), **reach).to_dict(
                trace=True
            )
        }

    app = StateGraph(RetrieverState, context_schema=RetrieverSettings, input_schema=Query, output_schema=Picked)
    app.add_node("retriever", retrieve)
    app.add_edge(START, "retriever")
    app.add_edge("retriever", END)
    return app
