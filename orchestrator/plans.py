"""The decisions of the supervisor's nodes: read a request, plan it, limit a run, and revise the plan after a wave."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ChatMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.config import get_stream_writer
from langgraph.types import Overwrite

from callsheet.agents import Plan, PlanTask, Revision, Step, StepResult, ToolRegistry, Usage, checkpointer, revise
from callsheet.agents.calls.plan import GAVE, question_text, source_of
from callsheet.agents.planning.revision import NO_ITEMS, Revised, expand_items, items_of, reason_to_revise
from callsheet.agents.planning.workers import next_workers
from callsheet.agents.work.context import conversation_text, reports, surroundings, task, without_transcript
from callsheet.graphs import Catalog, PlanError, UnknownNameError
from callsheet.graphs.text.arguments import bounded
from callsheet.orchestrator.run.run_context import RunConfiguration
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import ChatInput, State, plan_of, read_result, read_results, results_of, step_result
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.roster import LEGEND, agents_found, found_lines, list_tools, roster

_ROLES = {"request": "planner", "plan": "planner", "step": "worker", "revise": "reviser"}
"""Roles that have another name than the places where they spend."""


def limit_reached(state: State, settings: Settings, plan: Plan) -> str:
    """Returns why no further step may start, because a limit is reached; empty if there is none."""
    if settings.token_budget is not None and (tokens := _tokens(state)) >= settings.token_budget:
        return f"the token budget of {settings.token_budget:,} is spent ({tokens:,} tokens)"
    if settings.run_seconds is not None and time.time() - state["begun"] >= settings.run_seconds:
        return f"the run has taken {settings.run_seconds:g} s, its limit (run_seconds)"
    if plan.mode == "auto" and len(state["waves"]) >= settings.max_waves:
        return f"the plan has taken {settings.max_waves} waves of workers, its limit (max_waves)"
    return ""


def tokens_left(state: State, settings: Settings) -> int | None:
    """Returns the maximum number of tokens for each step of the next wave; None without a limit."""
    if settings.token_budget is None:
        return None
    return max(1, settings.token_budget - _tokens(state))


def usage_report(state: State) -> dict[str, Any]:
    """Returns the cost of the run's models so far: in total, by role and by step."""
    results: Mapping[str, Any] = state.get("results", {})
    steps = {f"step {name}": Usage(**result.get("usage") or {}) for name, result in results.items()}
    steps = {place: spent for place, spent in steps.items() if spent != Usage()}
    places = {name: Usage(**spent) for name, spent in state.get("spent", {}).items()} | steps
    by_role = defaultdict[str, Usage](Usage)
    by_step = defaultdict[str, Usage](Usage)
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


def plan_update(state: State, plan: Plan, revisions: Sequence[Revision]) -> dict[str, Any]:
    """Returns the update of the state for a new plan, and streams its revisions; empty without changes."""
    for revision in revisions:
        steps = [step.model_dump(mode="json") for step in plan.steps]
        get_stream_writer()({"event": "revision", **revision.model_dump(mode="json"), "steps": steps})
    new = [revision.model_dump(mode="json") for revision in revisions]
    changed = {"plan": plan.model_dump(mode="json")} if plan != plan_of(state) else {}
    return {**changed, **({"revisions": [*state["revisions"], *new]} if new else {})}


async def revision_update(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
) -> dict[str, Any]:
    """Returns the update of the state after a wave; the model is asked only if the plan needs a revision."""
    settings = configuration.settings
    results = results_of(state)
    plan, expansions, without = expand_mapped(state, settings)
    update = plan_update(state, plan, expansions)
    model = configuration.model("planner") if plan.mode == "auto" else None
    if model is None:
        return update
    answered = "the user answered a question" if state["question"].get("answered") else ""
    unreadable = "; ".join(result.error for result in without if result.error)
    wave = [step for worker in state["waves"][-1] for step in worker] if state["waves"] else ()
    why = answered or unreadable or reason_to_revise(plan, results, wave)
    if not why:
        return update
    late = limit_reached(state, settings, plan)
    if late:
        ended = plan.model_copy(update={"incomplete": f"not revised, although {why}: {late}"})
        return {**update, **plan_update(state, ended, ())}
    done = await revise(
        plan,
        results,
        task(state["request"], _conversation(state, settings)),
        model,
        retriever.catalog,
        why=why,
        wave=len(state["waves"]),
        prompt=await asyncio.to_thread(with_roster, configuration, "reviser", retriever),
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
    plan = done.plan
    revision = done.revision
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
    """Replaces each mapped step whose list is available by one step per item.

    Returns the plan, its revisions, and the results of the mapped steps that have no items or whose items cannot be
    read.
    """
    plan = plan_of(state)
    results = results_of(state)
    earlier = earlier_results(state["turns"])
    revisions: list[Revision] = []
    ended: list[StepResult] = []
    for step in plan.steps:
        sources = _sources(step, results, earlier)
        if not sources or step.id in results:
            continue
        try:
            items = items_of(step, *sources, max_items=settings.max_items)
        except PlanError as error:
            ended.append(step_result(step, status="failed", error=str(error)))
            continue
        if items:
            plan, revision = expand_items(plan, step, items, wave=len(state["waves"]))
            revisions.append(revision)
        else:
            ended.append(step_result(step, result=NO_ITEMS))
    return plan, revisions, ended


def _sources(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> Sequence[StepResult]:
    """Returns the result with a step's items, or the results of a mapped step.

    Empty while a dependency is unfinished.
    """
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return ()
    known = {**earlier, **results}
    name = source_of(step.for_each, known)
    parts = [other for other in step.depends_on if other.startswith(f"{name}.")]
    return [known[one] for one in ([name] if name in known else parts) if known[one].status in GAVE]


_ATTACHED = (
    "the message has attachments ({}), and only its text is read: say in words what is in them, or put them where a "
    "tool can read them, and give their paths or addresses"
)
_NO_REQUEST = "the last message is of type {!r}, and no request: append the user's message (HumanMessage)"


def request_text(state: ChatInput, most: int) -> str:
    """Returns the text of the last message.

    Raises a ``PlanError`` if it is no message of a user or has attachments, and a ``RequestError`` if it has more than
    ``most`` characters.
    """
    if not state["messages"]:
        return ""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage | ChatMessage):
        raise PlanError(_NO_REQUEST.format(last.type))
    blocks = (block for block in last.content if isinstance(block, dict) and "text" not in block)
    attached = [str(block.get("type")) for block in blocks]
    if attached:
        raise PlanError(_ATTACHED.format(", ".join(dict.fromkeys(attached))))
    return bounded(last.text, most, "max_request")


async def plan_request(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
) -> Plan:
    """Plans a request.

    Raises a ``PlanError`` if it is empty or needs too many steps, and a ``RequestError`` if it is too long.
    """
    settings = configuration.settings
    earlier = state["turns"]
    request = bounded(state["request"], settings.max_request, "max_request")
    if not request.strip():
        raise PlanError("the request is empty: say what is to be done")

    def find(text: str) -> Sequence[str]:
        found = retriever.select(text, **{**settings.reach(), "skills": 0, "judged": 0})
        return [tool.id for tool in sorted(found.tools, key=lambda tool: -tool.score)]

    def told() -> str:
        known = planning_context(state, configuration, retriever, registry)
        asked = "\n".join([request, *state["answers"]])
        return f"{task(asked, _conversation(state, settings))}\n\n{known}"

    async def context() -> str:
        return await asyncio.to_thread(told)

    names = roster(retriever.catalog, max_tokens=settings.roster_tokens, skills=configuration.read_skills)
    return await configuration.reasoner("planner").plan(
        PlanTask(
            request=request,
            mode=settings.planning,
            catalog=retriever.catalog,
            registry=registry,
            find=find,
            context=context,
            prompt=lambda: with_roster(configuration, "planner", retriever),
            earlier=tuple(earlier_results(earlier)),
            last=tuple(earlier_results(earlier[-1:]).values()),
            tools=settings.tools,
            max_steps=settings.max_steps,
            lookup=() if names.whole else (_lookup(retriever.catalog),),
        )
    )


def with_roster(configuration: RunConfiguration, name: str, retriever: AgentGraphRetriever) -> str:
    """Returns a system prompt followed by the roster; it is the same for all requests over one catalog."""
    tokens = configuration.settings.roster_tokens
    names = roster(retriever.catalog, max_tokens=tokens, skills=configuration.read_skills)
    return f"{configuration.prompt(name)}\n{LEGEND}\n\n{names.text}"


def _lookup(catalog: Catalog) -> BaseTool:
    """Returns the tool by which a planner looks up the names that the roster of a large catalog does not hold."""

    def look_up(agent: str, start: int = 0) -> str:
        try:
            return list_tools(catalog, agent, start=start)
        except UnknownNameError as error:
            raise ToolException(str(error)) from error

    about = "List the names of an agent's tools, with a line of what each does."
    return StructuredTool.from_function(look_up, name="list_tools", description=about, handle_tool_error=True)


def _found(retriever: AgentGraphRetriever, request: str, max_tokens: int) -> str:
    """Whole lines of the agents that fit a request, if the roster does not hold the names of all tools; else empty."""
    if roster(retriever.catalog, max_tokens=max_tokens).whole:
        return ""
    agents, tools = agents_found(retriever, request)
    return found_lines(retriever.catalog, agents, first=tools)


def planning_context(
    state: State, configuration: RunConfiguration, retriever: AgentGraphRetriever, registry: ToolRegistry
) -> str:
    """Returns what planner and reviser know besides request and roster, as text.

    These are earlier results, agents that fit, and the surroundings.
    """
    earlier = list(earlier_results(state["turns"]).values())
    found = _found(retriever, state["request"], configuration.settings.roster_tokens)
    parts = (
        f"Results of earlier requests of this conversation:\n{reports(earlier)}" if earlier else "",
        f"Agents that may help, with the names of their tools:\n{found}" if found else "",
        surroundings(registry, retriever.catalog.by_id, state["begun"], present=configuration.someone_present),
    )
    return "\n\n".join(filter(None, parts))


def _conversation(state: State, settings: Settings) -> str:
    """Returns the latest turns before the request, as text."""
    return conversation_text(without_transcript(state["messages"])[:-1], settings.conversation_tokens)


def wave_of(
    plan: Plan, finished: Mapping[str, StepResult], retriever: AgentGraphRetriever, settings: Settings
) -> list[list[str]]:
    """Returns the workers of the next wave, each as the ids of its steps; empty if nothing is left to do."""
    tools = retriever.catalog.tools

    def cost(ids: Sequence[str]) -> int:
        return retriever.selector.tokens.count(one for one in ids if one in tools)

    workers = next_workers(plan, finished, cost=cost, most=settings.schema_tokens)
    return [[step.id for step in steps] for steps in workers]


_MOST = 5
"""Number of earlier requests whose results are kept."""


def archive_request(state: State) -> list[dict[str, Any]]:
    """Adds the last request of the thread to the earlier requests, if it had a plan, and returns them.

    This happens before a new request replaces it.
    """
    turns = list(state.get("turns", []))
    results = state.get("results", {})
    if not results:
        return turns
    done = {name: result for name, result in results.items() if result["status"] in GAVE}
    number = 1 + max((int(turn["id"].removeprefix("t")) for turn in turns), default=0)
    return [*turns, {"id": f"t{number}", "request": state["request"], "results": done}][-_MOST:]


def unfinished_work(state: State) -> str:
    """Describes what the last request has left undone, before a new one replaces it; empty if it was finished."""
    steps = state.get("plan", {}).get("steps", ())
    results = state.get("results", {})
    left = [str(step["text"]) for step in steps if step["id"] not in results]
    if not left:
        return ""
    more = f" and {len(left) - 1} more" if len(left) > 1 else ""
    return f'the last request was left unfinished at "{left[0]}"{more}: whether a call of it took effect is unknown'


def earlier_results(turns: Sequence[Mapping[str, Any]]) -> dict[str, StepResult]:
    """Returns the results of earlier requests by id, such as ``t1.2``, the latest request first."""
    return {
        (name := f"{turn['id']}.{step}"): read_result({**result, "id": name, "depends_on": ()})
        for turn in reversed(turns)
        for step, result in turn["results"].items()
    }
