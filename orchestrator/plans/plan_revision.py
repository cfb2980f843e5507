"""The plan after a wave: mapped steps are expanded, and a model revises the plan if there is a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.types import Overwrite

from callsheet.agents import Plan, Revision, Step, StepResult, ToolRegistry, checkpointer, revise
from callsheet.agents.calls.plan import question_text, source_of
from callsheet.agents.planning.revision import ItemsError, Revised, expanded, items_of, reason_to_revise
from callsheet.orchestrator.plans.request_planner import earlier_results, planning_context
from callsheet.orchestrator.plans.run_limits import limit_reached
from callsheet.orchestrator.run.run_context import RunConfiguration
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import State, plan_of, read_results, results_of
from callsheet.retrievers import AgentGraphRetriever

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
    mapped = expand_mapped(state, settings)
    plan = mapped.plan
    update = plan_update(state, plan, mapped.revisions)
    model = configuration.model("planner") if plan.mode == "adaptive" else None
    if model is None or any(retriable(result, settings.replans) for result in results.values()):
        return update
    answered = "the user answered a question" if state["question"].get("answered") else ""
    unreadable = "; ".join(why for _, why in mapped.unreadable)
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


@dataclass(frozen=True, slots=True)
class Expansion:
    """The expansion of all mapped steps that are due.

    Attributes:
        plan: The plan with one step per item in their place.
        empty: Steps without items.
        unreadable: Steps whose items cannot be read or are too many, each with the reason.
    """

    plan: Plan
    revisions: tuple[Revision, ...] = ()
    empty: tuple[Step, ...] = ()
    unreadable: tuple[tuple[Step, str], ...] = ()


def expand_mapped(state: State, settings: Settings) -> Expansion:
    """Replaces each mapped step whose list is available by one step per item."""
    plan, results, earlier = plan_of(state), results_of(state), earlier_results(state["turns"])
    revisions: list[Revision] = []
    empty: list[Step] = []
    unreadable: list[tuple[Step, str]] = []
    for step in plan.steps:
        sources = _sources(step, results, earlier)
        if not sources or step.id in results:
            continue
        try:
            items = items_of(step, *sources, max_items=settings.max_items)
        except ItemsError as error:
            unreadable.append((step, str(error)))
            continue
        if not items:
            empty.append(step)
            continue
        plan, revision = expanded(plan, step, items, wave=len(state["waves"]))
        revisions.append(revision)
    return Expansion(plan, tuple(revisions), tuple(empty), tuple(unreadable))


def _sources(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> Sequence[StepResult]:
    """The result with a step's items, or the results of a mapped step; empty while a dependency is unfinished."""
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return ()
    known = {**earlier, **results}
    name = source_of(step.for_each, known)
    parts = [other for other in step.depends_on if other.startswith(f"{name}.")]
    return [known[one] for one in ([name] if name in known else parts) if known[one].status == "done"]
