"""Decisions of the supervisor's nodes: the request, its plan, the limits of a run, and the plan after a wave."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ChatMessage, HumanMessage
from langgraph.config import get_stream_writer
from langgraph.types import Overwrite

from callsheet.agents import Plan, PlanTask, Revision, Step, StepResult, ToolRegistry, Usage, checkpointer, revise
from callsheet.agents.calls.plan import question_text, source_of
from callsheet.agents.planning.planner import Contextual, self_contained
from callsheet.agents.planning.revision import NO_ITEMS, Revised, expanded, items_of, reason_to_revise
from callsheet.agents.work.context import reports, surroundings
from callsheet.graphs import PlanError
from callsheet.graphs.text.sanitizing import bounded
from callsheet.orchestrator.run.run_context import RunConfiguration
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import ChatInput, State, plan_of, read_results, results_of, step_result
from callsheet.retrievers import AgentGraphRetriever, CatalogTools, catalog_outline

_ROLES = {"request": "planner", "plan": "planner", "step": "worker", "revise": "reviser"}
"""Roles that have another name than the places where they spend."""


def limit_reached(state: State, settings: Settings, plan: Plan) -> str:
    """Why no further step may start; empty if one may."""
    if settings.token_budget is not None and (tokens := _tokens(state)) >= settings.token_budget:
        return f"the token budget of {settings.token_budget:,} is spent ({tokens:,} tokens)"
    if settings.run_seconds is not None and time.time() - state["begun"] >= settings.run_seconds:
        return f"the run has taken {settings.run_seconds:g} s, its limit (run_seconds)"
    if plan.mode == "adaptive" and len(state["waves"]) >= settings.max_waves:
        return f"the plan has taken {settings.max_waves} waves of steps, its limit (max_waves)"
    return ""


def tokens_left(state: State, settings: Settings) -> int | None:
    """Maximum number of tokens for each step of the next wave; None without a limit."""
    if settings.token_budget is None:
        return None
    return max(1, settings.token_budget - _tokens(state))


def usage_report(state: State) -> dict[str, Any]:
    """Cost of the run's models so far, in total, by role and by step."""
    results: Mapping[str, Any] = state.get("results", {})
    steps = {f"step {name}": Usage(**result.get("usage") or {}) for name, result in results.items()}
    places = {name: Usage(**spent) for name, spent in state.get("spent", {}).items()} | steps
    by_role, by_step = defaultdict[str, Usage](Usage), defaultdict[str, Usage](Usage)
    for place, spent in places.items():
        kind, step, *_ = [*place.split(" "), ""]
        by_role[_ROLES.get(kind, kind)] += spent
        if kind in ("step", "decision"):
            by_step[step] += spent
    total = sum(by_role.values(), Usage())
    parts = {"by_role": by_role, "by_step": by_step}
    plain = {part: {name: spent.model_dump() for name, spent in of.items()} for part, of in parts.items()}
    return {**total.model_dump(), **plain}


def _tokens(state: State) -> int:
    report = usage_report(state)
    return int(report["input_tokens"] + report["output_tokens"])


_QUESTIONS = 3
"""Maximum questions to the user during one request."""


def retriable(result: StepResult, replans: int) -> bool:
    """Whether other agents try a failed step before anything else happens."""
    return result.status == "failed" and not result.exhausted and result.attempts <= replans


def plan_update(state: State, plan: Plan, revisions: Sequence[Revision]) -> dict[str, Any]:
    """The state's update for a new plan with its revisions, which are streamed; empty without changes."""
    for revision in revisions:
        get_stream_writer()({"event": "revision", **revision.model_dump(mode="json")})
    new = [revision.model_dump(mode="json") for revision in revisions]
    changed = {"plan": plan.model_dump(mode="json")} if plan != plan_of(state) else {}
    return {**changed, **({"revisions": [*state["revisions"], *new]} if new else {})}


async def revision_update(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
) -> dict[str, Any]:
    """The state's update after a wave; a plan that runs as expected is not sent to a model."""
    settings, results = configuration.settings, results_of(state)
    plan, expansions, without = expand_mapped(state, settings)
    update = plan_update(state, plan, expansions)
    model = configuration.model("planner") if plan.mode == "adaptive" else None
    if model is None or any(retriable(result, settings.replans) for result in results.values()):
        return update
    answered = "the user answered a question" if state["question"].get("answered") else ""
    unreadable = "; ".join(result.error for result in without if result.error)
    wave = state["waves"][-1] if state["waves"] else ()
    why = answered or unreadable or reason_to_revise(plan, results, wave)
    if not why:
        return update
    if late := limit_reached(state, settings, plan):
        ended = plan.model_copy(update={"incomplete": f"not revised, although {why}: {late}"})
        return {**update, **plan_update(state, ended, ())}
    done = await revise(
        plan,
        results,
        state["request"],
        model,
        why=why,
        wave=len(state["waves"]),
        prompt=configuration.prompt("reviser"),
        context=await asyncio.to_thread(planning_context, state, configuration, retriever, registry),
        replaced=tuple(read_results(state["replaced"]).values()),
        answers=state["answers"],
        earlier=tuple(earlier_results(state["turns"])),
        max_steps=settings.max_steps,
    )
    before: State = {**state, **update}  # type: ignore[typeddict-item]
    return {**update, **_after(before, done, results)}


def _after(state: State, done: Revised, results: Mapping[str, StepResult]) -> dict[str, Any]:
    """The update after a model's revision, without the results of steps that were replaced or will run again."""
    plan, revision = done.plan, done.revision
    asks = done.ask if checkpointer() is not None and len(state["answers"]) < _QUESTIONS else None
    if done.ask and not asks:
        plan = plan.model_copy(update={"incomplete": f"a question was not answered: {question_text(done.ask)}"})
    shown = [revision] if revision.changes or revision.refused else []
    gone = {name for name in (*revision.changed, *revision.dropped) if name in results}
    kept = {name: result.model_dump(mode="json") for name, result in results.items() if name not in gone}
    spent = {f"revise {len(state['waves'])} {len(state['answers'])}": done.usage.model_dump()}
    spent |= {f"step {name} before {revision.wave}": results[name].usage.model_dump() for name in gone}
    return {
        **plan_update(state, plan, shown),
        "spent": spent,
        "question": asks.model_dump() if asks else {},
        "replaced": {name: results[name].model_dump(mode="json") for name in gone},
        **({"results": Overwrite(kept)} if gone else {}),
    }


def expand_mapped(state: State, settings: Settings) -> tuple[Plan, list[Revision], list[StepResult]]:
    """The plan with one step per item for each mapped step whose list is available, its revisions, and other results.

    These are the results of the steps that have no items, or whose items cannot be read.
    """
    plan, results, earlier = plan_of(state), results_of(state), earlier_results(state["turns"])
    revisions: list[Revision] = []
    ended: list[StepResult] = []
    for step in plan.steps:
        sources = _sources(step, results, earlier)
        if not sources or step.id in results:
            continue
        try:
            items = items_of(step, *sources, max_items=settings.max_items)
        except PlanError as error:
            ended.append(step_result(step, status="failed", error=str(error), exhausted=True))
            continue
        if items:
            plan, revision = expanded(plan, step, items, wave=len(state["waves"]))
            revisions.append(revision)
        else:
            ended.append(step_result(step, result=NO_ITEMS))
    return plan, revisions, ended


def _sources(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> Sequence[StepResult]:
    """The result with a step's items, or the results of a mapped step; empty while a dependency is unfinished."""
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return ()
    known = {**earlier, **results}
    name = source_of(step.for_each, known)
    parts = [other for other in step.depends_on if other.startswith(f"{name}.")]
    return [known[one] for one in ([name] if name in known else parts) if known[one].status == "done"]


_AGENTS, _TOOLS = 12, 36
"""Maximum number of agents and tools in the planner's prompt."""
_ATTACHED = (
    "the message has attachments ({}), and only its text is read: say in words what is in them, or put them where a "
    "tool can read them, and give their paths or addresses"
)
_NO_REQUEST = "the last message is of type {!r}, and no request: append the user's message (HumanMessage)"


async def understood(state: ChatInput, configuration: RunConfiguration) -> Contextual:
    """The last message as a request that is understandable without the conversation.

    If it is no message of a user, or has attachments, it raises a PlanError; if it is too long, a RequestError.
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
    """Plans a request; an empty one, or one of too many steps, raises a PlanError, a too long one a RequestError."""
    settings, turns = configuration.settings, state["turns"]
    request = bounded(state["request"], settings.max_request, "max_request")
    if not request.strip():
        raise PlanError("the request is empty: say what is to be done")

    def find(text: str) -> Sequence[str]:
        found = retriever.select(text, **{**settings.reach(), "skills": 0, "judged": 0})
        return [tool.id for tool in sorted(found.tools, key=lambda tool: -tool.score)]

    async def context() -> str:
        return await asyncio.to_thread(planning_context, state, configuration, retriever, registry)

    plan = await configuration.reasoner("planner").plan(
        PlanTask(
            request=request,
            mode=settings.planning,
            catalog=retriever.catalog,
            registry=registry,
            find=find,
            context=context,
            prompt=configuration.prompt("planner"),
            answers=state["answers"],
            earlier=tuple(earlier_results(turns)),
            last=tuple(earlier_results(turns[-1:]).values()),
            tools=settings.tools,
            max_steps=settings.max_steps,
            graph=CatalogTools(retriever).as_tools()[-1] if settings.graph_looks else None,
            looks=settings.graph_looks,
        )
    )
    return _alone(state, plan, whole=settings.weak_model)


def planning_context(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
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

    As a ``whole``, its text is the request: a weak model loses parts of it.
    """
    if len(plan.steps) != 1:
        return plan
    text, request = state["messages"][-1].text, state["request"]
    changes: dict[str, Any] = {"text": request} if whole else {}
    if bounded(text, len(text), "max_request").strip() != request.strip():
        changes["uses"] = tuple(earlier_results(state["turns"][-1:]))
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
