"""From the last message of a conversation to a plan: the request, the results of earlier ones, the planning mode."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ChatMessage, HumanMessage

from callsheet.agents import Plan, PlanTask, StepResult, ToolRegistry, self_contained
from callsheet.agents.planning.planner import Contextual, checked_request
from callsheet.agents.work.context import reports, surroundings
from callsheet.graphs import PlanError
from callsheet.graphs.text.sanitizing import bounded
from callsheet.orchestrator.run.run_context import RunConfiguration
from callsheet.orchestrator.state import ChatInput, State
from callsheet.retrievers import AgentGraphRetriever, CatalogTools, catalog_outline

_AGENTS, _TOOLS = 12, 36
"""Maximum number of agents and tools in the planner's prompt."""
_ATTACHED = (
    "the message has attachments ({}), and only its text is read: say in words what is in them, or put them where a "
    "tool can read them, and give their paths or addresses"
)
_NO_REQUEST = "the last message is of type {!r}, and no request: append the user's message (HumanMessage)"


async def understood(state: ChatInput, configuration: RunConfiguration) -> Contextual:
    """The last message as a request that is understandable without the conversation.

    Raises:
        PlanError: It is no message of a user, or it has attachments; the message says what is missing.
        RequestError: It is too long.
    """
    if not state["messages"]:
        return Contextual(request="")
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage | ChatMessage):
        raise PlanError(_NO_REQUEST.format(last.type))
    blocks = (block for block in last.content if isinstance(block, dict) and "text" not in block)
    if attached := [str(block.get("type")) for block in blocks]:
        raise PlanError(_ATTACHED.format(", ".join(dict.fromkeys(attached))))
    model, settings = configuration.model("planner"), configuration.settings
    said = bounded(last.text, settings.max_request, "max_request")
    if model is None:
        return Contextual(request=said)
    messages = [*state["messages"][:-1], HumanMessage(said)]
    return await self_contained(
        messages, model, prompt=configuration.prompt("condenser"), max_tokens=settings.conversation_tokens
    )


async def plan_request(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
) -> Plan:
    """Plans a request in the mode of the settings.

    Raises:
        PlanError: The request is empty, or needs too many steps.
        RequestError: The request is too long.
    """
    settings, turns = configuration.settings, state["turns"]
    results = earlier_results(turns)

    def find(text: str) -> Sequence[str]:
        found = retriever.select(text, **{**settings.reach(), "skills": 0, "judged": 0})
        return [tool.id for tool in sorted(found.tools, key=lambda tool: -tool.score)]

    async def context() -> str:
        return await asyncio.to_thread(planning_context, state, configuration, retriever, registry)

    plan = await configuration.reasoner("planner").plan(
        PlanTask(
            request=checked_request(state["request"], settings.max_request),
            mode=settings.planning,
            catalog=retriever.catalog,
            registry=registry,
            find=find,
            context=context,
            prompt=configuration.prompt("planner"),
            answers=state["answers"],
            earlier=tuple(results),
            last=tuple(results[name] for name in last_results(turns)),
            tools=settings.tools,
            max_steps=settings.max_steps,
            max_request=settings.max_request,
            graph=CatalogTools(retriever).as_tools()[-1] if settings.graph_looks else None,
            looks=settings.graph_looks,
        )
    )
    return _alone(state, plan, whole=settings.weak_model)


def planning_context(
    state: State,
    configuration: RunConfiguration,
    retriever: AgentGraphRetriever,
    registry: ToolRegistry,
) -> str:
    """What planner and reviser know besides the request: earlier results, the agents that fit, the surroundings."""
    skills: dict[str, Any] = {} if configuration.read_skills else {"skills": 0}
    found = retriever.select(state["request"], agents=_AGENTS, tools=_TOOLS, judged=0, **skills)
    outline = catalog_outline(retriever.catalog, found)
    earlier = list(earlier_results(state["turns"]).values())
    agents = [*(agent.id for agent in found.agents), *retriever.catalog.by_id]
    parts = (
        f"Results of earlier requests of this conversation:\n{reports(earlier)}" if earlier else "",
        f"Agents that may help:\n{outline}" if outline else "",
        surroundings(registry, agents, state["begun"], present=configuration.someone_present),
    )
    return "\n\n".join(filter(None, parts))


def _alone(state: State, plan: Plan, *, whole: bool) -> Plan:
    """The plan; a single step uses the results of the last request if the request was completed from them.

    A weak model's single step is the whole request, because such a model loses parts of it.
    """
    if len(plan.steps) != 1:
        return plan
    text, request = state["messages"][-1].text, state["request"]
    completed = bounded(text, len(text), "max_request").strip() != request.strip()
    changes = {
        **({"uses": last_results(state["turns"])} if completed else {}),
        **({"text": request} if whole else {}),
    }
    return plan.model_copy(update={"steps": (plan.steps[0].model_copy(update=changes),)})


_MOST = 5
"""Number of earlier requests whose results are kept."""


def archived(state: State) -> list[dict[str, Any]]:
    """The earlier requests with the last one of this thread, if it had a plan; a new request is about to replace it."""
    turns = list(state.get("turns", []))
    results = state.get("results", {})
    if not results:
        return turns
    done = {name: result for name, result in results.items() if result["status"] == "done"}
    number = 1 + max((int(turn["id"].removeprefix("t")) for turn in turns), default=0)
    return [*turns, {"id": f"t{number}", "request": state["request"], "results": done}][-_MOST:]


def unfinished(state: State) -> str:
    """What is left of the last request, which a new one is about to replace; empty if it was finished."""
    steps, results = state.get("plan", {}).get("steps", ()), state.get("results", {})
    left = [str(step["text"]) for step in steps if step["id"] not in results]
    if not left:
        return ""
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return f'the last request was left unfinished at "{left[0]}"{more}: whether a call of it took effect is unknown'


def earlier_results(turns: Sequence[Mapping[str, Any]]) -> dict[str, StepResult]:
    """The results of earlier requests by id, such as ``t1.2``, the latest request first."""
    return {
        (name := f"{turn['id']}.{step}"): StepResult(**{**result, "id": name, "depends_on": ()})
        for turn in reversed(turns)
        for step, result in turn["results"].items()
    }


def last_results(turns: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Ids of the results of the last request."""
    return tuple(earlier_results(turns[-1:]))
