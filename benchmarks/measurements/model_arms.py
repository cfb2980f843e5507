"""Arms of ``callsheet eval --model``: does a model call the right tool of MetaTool, and do the tasks over a fleet?"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.fleet.end_states import SANDBOX, FleetTask, moved, read_tasks
from benchmarks.fleet.fleet_runs import opened
from callsheet.agents import chat_model
from callsheet.graphs import Catalog, load
from callsheet.orchestrator.apps.model_evaluation.arms import Arm, Arms
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt, AttemptLog
from callsheet.orchestrator.apps.model_evaluation.cases import Case
from callsheet.orchestrator.apps.model_evaluation.grading import CAUSES, graded_task
from callsheet.orchestrator.apps.model_evaluation.model_evaluator import (
    ArmResult,
    ModelEvaluation,
    evaluate_arms,
    sampled,
)
from callsheet.orchestrator.apps.model_evaluation.recorded_tools import recorded
from callsheet.orchestrator.apps.model_evaluation.tasks import TaskData
from callsheet.retrievers import AgentGraphRetriever, read_queries

SET, FLEET = "metatool", "fleet tasks"
ARMS: Mapping[str, Sequence[str]] = {SET: ("all", "k5"), FLEET: ("k10", "none")}
SAMPLE, TOOLS, MAX_OUTPUT = 100, 10, 300
ATTEMPTS = Path(".callsheet") / "benchmarks" / "model-attempts.jsonl"
COLUMNS = (
    "requests", "arm", "n", "right", "against the first", "calls", "input", "cached", "output", "seconds", "failures"
)  # fmt: skip
_ABOUT = (
    "{}, at most {} output tokens a call. *metatool*: {} queries, drawn by hash, over 199 tools; right is a query of "
    "which every labelled tool was called with arguments that fit its schema (calls are recorded, not run). *fleet "
    "tasks*: over real MCP servers and fresh copies of their data; right is a task whose end state was reached. Arms: "
    "*all*: every tool bound; *k5*, *k10*: the best 5 and 10 tools of one selection bound; *none*: the supervisor with "
    "one worker. *Against the first*: paired difference. Intervals are 95 % bootstrap. Calls "
    "and tokens are means, seconds medians"
)


def measure(data: Path, model: str, fleet: Path | None = None) -> Mapping[str, object]:
    """The body of the results file. Every attempt is kept in ``ATTEMPTS``, so a run that was ended goes on.

    Args:
        data: The folder of data sets.
        model: ``provider:name``.
        fleet: The ``mcp.json`` of installed servers, for the tasks over them; their data are copied.
    """
    found = {SET: asyncio.run(on_queries(data / SET, model))}
    if fleet is not None:
        found[FLEET] = on_fleet(fleet, data.parent / "fleet" / "tasks.json", model)
    about = _ABOUT.format(model, MAX_OUTPUT, SAMPLE)
    if stopped := "; ".join(filter(None, (one.stopped for one in found.values()))):
        about += f". Not all was attempted: {stopped}"
    rows = [[name, *row(one, arm)] for name, one in found.items() for arm in one.arms]
    return {"about": about, "model": model, "columns": list(COLUMNS), "rows": rows}


async def on_queries(folder: Path, model: str) -> ModelEvaluation:
    """Labelled queries, whose calls are recorded."""
    loaded = load(folder / "catalog")
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    arms = Arms(recorded(loaded), retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=TOOLS, records=True)
    cases = sampled(read_queries(folder / "queries.jsonl", loaded.catalog), SAMPLE)
    return await _evaluated(arms, SET, cases, model, retriever.catalog)


def on_fleet(config: Path, tasks: Path, model: str) -> ModelEvaluation:
    """Tasks over running servers."""
    with tempfile.TemporaryDirectory(prefix="callsheet-fleet-") as folder:
        scratch = Path(folder).resolve()
        world = opened(moved(config, scratch), scratch)
        data = TaskData(config.resolve().parent / SANDBOX, scratch / SANDBOX)
        cases = [_case(task, data) for task in read_tasks(tasks, scratch)]
        arms = Arms(world.loaded, world.retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=TOOLS)
        return asyncio.run(_evaluated(arms, FLEET, cases, model, world.retriever.catalog))


def _case(task: FleetTask, data: TaskData) -> Case:
    async def attempt(arm: Arm) -> Attempt:
        """An attempt over a fresh copy of the data."""
        await asyncio.to_thread(data.renew)
        made = await arm.attempt(task.task)
        holds = await asyncio.to_thread(task.check.holds)
        return made.model_copy(update={"unmet": () if holds else (task.check.kind,)})

    return Case(task.id, task.task, task.check.kind, task.task, attempt, graded_task)


async def _evaluated(arms: Arms, name: str, cases: Sequence[Case], model: str, catalog: Catalog) -> ModelEvaluation:
    key = (AttemptLog.key(catalog.model_dump(mode="json")), TOOLS, "")
    named = [arms.named(arm) for arm in ARMS[name]]
    return await evaluate_arms(named, cases, model=model, log=AttemptLog(ATTEMPTS), key=key)


def row(evaluation: ModelEvaluation, arm: ArmResult) -> list[str]:
    """An arm, as the table has it."""
    plain = next(one for one in evaluation.to_dict()["arms"] if one["arm"] == arm.arm)
    low, high = plain["interval"]
    mean, less, more = plain["difference"]
    return [
        arm.arm,
        str(plain["n"]),
        f"{arm.success:.2f} [{low:.2f}, {high:.2f}]",
        "" if arm is evaluation.arms[0] else f"{mean:+.2f} [{less:+.2f}, {more:+.2f}]",
        f"{plain['model_calls']:.1f}",
        *(f"{plain[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens")),
        f"{plain['seconds']:.0f}",
        ", ".join(f"{arm.causes[cause]} {cause}" for cause in CAUSES if arm.causes[cause]),
    ]
