"""Arms of ``callsheet eval --model``: does a model call MetaTool's right tool, and do tasks over running servers?"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fleet.end_states import SANDBOX, FleetTask, moved, read_tasks
from benchmarks.fleet.fleet_runs import opened
from callsheet.agents import chat_model
from callsheet.graphs import load
from callsheet.orchestrator.apps.model_evaluation.arms import Arm, Arms
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt, AttemptLog
from callsheet.orchestrator.apps.model_evaluation.grading import CAUSES, graded_task
from callsheet.orchestrator.apps.model_evaluation.model_evaluator import (
    ArmResult,
    Case,
    ModelEvaluation,
    evaluate_arms,
    sampled,
    task_case,
)
from callsheet.orchestrator.apps.model_evaluation.recorded_tools import recorded
from callsheet.orchestrator.apps.model_evaluation.tasks import TaskData, read_tasks as read_demo_tasks
from callsheet.retrievers import AgentGraphRetriever, read_queries

SET, FLEET = "metatool", "fleet tasks"
DEMO: Mapping[str, str] = {"1": "one step", "2": "two steps"}
"""Names of the parts of the demo's tasks, by the first character of their ids."""
MODES = ("none", "once", "adaptive", "rules")
ARMS: Mapping[str, Sequence[str]] = {
    SET: ("all", "k5"),
    **dict.fromkeys(DEMO.values(), MODES),
    FLEET: ("k10", "adaptive"),
}
SAMPLE, MAX_OUTPUT = 100, 300
TOOLS, DEMO_TOOLS = 10, 5
"""Maximum tools per step in the arms of the supervisor; a small model is slow where it reads many."""
DEMO_TASKS = Path(__file__).parents[1] / "sets" / "demo_tasks.json"
DEMO_CATALOG = ("examples/demo/mcp.json", "examples.demo.toolkits:agents")
ATTEMPTS = Path(".callsheet") / "benchmarks" / "model-attempts.jsonl"
COLUMNS = (
    "requests", "arm", "n", "right", "against the first", "calls", "input", "cached", "output", "seconds", "failures"
)  # fmt: skip
_MEANS = "Intervals are 95 % bootstrap. Calls and tokens are means, seconds medians"
_ABOUT = (
    "{}, at most {} output tokens a call. *metatool*: {} queries, drawn by hash, over 199 tools; right is a query of "
    "which every labelled tool was called with arguments that fit its schema (calls are recorded, not run). Arms: "
    "*all*: every tool bound; *k5*: the best 5 tools of one selection bound. *Against the first*: paired difference. "
    + _MEANS
)
_ABOUT_FLEET = (
    "{}, at most {} output tokens a call. Tasks over 27 real MCP servers with 472 tools, each over fresh copies of "
    "their data; right is a task whose end state was reached. Arms: *k10*: the best 10 tools of one selection bound; "
    "*adaptive*: the supervisor in this planning mode, with at most 10 tools a step. *Against the first*: paired "
    "difference. " + _MEANS
)
_ABOUT_DEMO = (
    "{}, at most {} output tokens a call. Requests to the demo's agents that need one tool, and that need two. "
    "Right is an answer with the right value, or a file with it. *none*, *once*, *adaptive*: the supervisor in this "
    "planning mode, with at most 5 tools a step; *rules*: the same without the model. *Against the first*: paired "
    "difference. " + _MEANS
)


def measure(data: Path, model: str) -> Mapping[str, object]:
    """The body of the results file. Every attempt is kept in ``ATTEMPTS``, so a run that was ended goes on.

    Args:
        data: The folder of data sets.
        model: ``provider:name``.
    """
    found = asyncio.run(on_queries(data / SET, model))
    return _body(_ABOUT.format(model, MAX_OUTPUT, SAMPLE), model, {SET: found})


def measure_fleet(config: Path, tasks: Path, model: str) -> Mapping[str, object]:
    """The body of the results file of tasks over running servers; attempts are kept as those of ``measure``.

    Args:
        config: The ``mcp.json`` of installed servers; their data are copied.
        tasks: The file of the tasks.
        model: ``provider:name``.
    """
    return _body(_ABOUT_FLEET.format(model, MAX_OUTPUT), model, {FLEET: on_fleet(config, tasks, model)})


def measure_demo(model: str) -> Mapping[str, object]:
    """The body of the results file of the demo's tasks; attempts are kept as those of ``measure``."""
    return _body(_ABOUT_DEMO.format(model, MAX_OUTPUT), model, on_demo(model))


def _body(about: str, model: str, found: Mapping[str, ModelEvaluation]) -> Mapping[str, object]:
    rows = [[name, *row(one, arm)] for name, one in found.items() for arm in one.arms]
    if stopped := "; ".join(filter(None, (one.stopped for one in found.values()))):
        about += f". Not all was attempted: {stopped}"
    return {"about": about, "model": model, "columns": list(COLUMNS), "rows": rows}


async def on_queries(folder: Path, model: str) -> ModelEvaluation:
    """Labelled queries, whose calls are recorded."""
    loaded = load(folder / "catalog")
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    arms = Arms(
        recorded(loaded),
        retriever,
        chat_model(model, max_tokens=MAX_OUTPUT),
        tools=TOOLS,
        weak_model=True,
        records=True,
    )
    cases = sampled(read_queries(folder / "queries.jsonl", loaded.catalog), SAMPLE)
    return await _evaluated(arms, SET, cases, model, _content(retriever))


def on_demo(model: str) -> Mapping[str, ModelEvaluation]:
    """The demo's tasks, those of one step and those of two."""
    with tempfile.TemporaryDirectory(prefix="callsheet-demo-") as folder:
        scratch = Path(folder).resolve()
        tasks, data = read_demo_tasks(DEMO_TASKS, scratch / SANDBOX)
        os.environ["CALLSHEET_WORKSPACE"] = str(data.place)
        loaded = load(*DEMO_CATALOG, yes=True, pins=scratch / "pins.json")
        retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
        arms = Arms(loaded, retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=DEMO_TOOLS, weak_model=True)
        return {
            name: asyncio.run(_evaluated(arms, name, cases, model, _content(retriever)))
            for first, name in DEMO.items()
            if (cases := [task_case(task, data) for task in tasks if task.id.startswith(first)])
        }


def on_fleet(config: Path, tasks: Path, model: str) -> ModelEvaluation:
    """Tasks over running servers."""
    with tempfile.TemporaryDirectory(prefix="callsheet-fleet-") as folder:
        scratch = Path(folder).resolve()
        world = opened(moved(config, scratch), scratch)
        data = TaskData(config.resolve().parent / SANDBOX, scratch / SANDBOX)
        cases = [_case(task, data) for task in read_tasks(tasks, scratch)]
        arms = Arms(
            world.loaded, world.retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=TOOLS, weak_model=True
        )
        # Texts of servers name the copied folders, and sets in the order of one process.
        content = [config.read_text(encoding="utf-8"), *sorted(world.retriever.catalog.tools)]
        return asyncio.run(_evaluated(arms, FLEET, cases, model, content))


def _case(task: FleetTask, data: TaskData) -> Case:
    async def attempt(arm: Arm) -> Attempt:
        """An attempt over a fresh copy of the data."""
        await asyncio.to_thread(data.renew)
        made = await arm.attempt(task.task)
        holds = await asyncio.to_thread(task.check.holds)
        return made.model_copy(update={"unmet": () if holds else (task.check.kind,)})

    return Case(task.id, task.task, task.check.kind, task.task, attempt, graded_task)


def _content(retriever: AgentGraphRetriever) -> Any:
    return retriever.catalog.model_dump(mode="json")


async def _evaluated(arms: Arms, name: str, cases: Sequence[Case], model: str, content: Any) -> ModelEvaluation:
    """Attempts are kept by the content of the catalog."""
    key = (AttemptLog.key(content), arms.tools, "")
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
