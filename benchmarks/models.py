"""Arms of ``callsheet eval --model``: does a model call MetaTool's right tool, and do the demo's tasks?"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.fleet import SANDBOX, Task, read_tasks
from callsheet.agents import chat_model
from callsheet.graphs import Loaded, load
from callsheet.orchestrator.apps.model_evaluation import (
    CAUSES,
    Arm,
    ArmResult,
    Arms,
    Attempt,
    Grade,
    ModelEvaluation,
    digest,
    evaluate_arms,
    recorded,
    sampled,
)
from callsheet.retrievers import AgentGraphRetriever, LabelledQuery, read_queries

SET = "metatool"
DEMO: Mapping[str, str] = {"1": "one step", "2": "two steps"}
"""Names of the parts of the demo's tasks, by the first character of their ids."""
ARMS: Mapping[str, Sequence[str]] = {
    SET: ("all", "k5"),
    **dict.fromkeys(DEMO.values(), ("none", "auto", "rules")),
}
SAMPLE, MAX_OUTPUT = 100, 300
TOOLS, DEMO_TOOLS = 10, 5
"""Maximum tools per step in the arms of the supervisor; a small model is slow where it reads many."""
DEMO_TASKS = Path(__file__).with_name("sets") / "demo_tasks.json"
DEMO_CATALOG = ("examples/demo/mcp.json", "examples.demo.toolkits:agents")
ATTEMPTS = Path(".callsheet") / "benchmarks" / "model-attempts"
COLUMNS = (
    "requests", "arm", "n", "right", "against the first", "calls", "input", "cached", "output", "seconds", "failures"
)  # fmt: skip
_ABOUT = (
    "{}, at most {} output tokens a call. {}. *Against the first*: paired difference. Intervals are 95 % bootstrap. "
    "Calls and tokens are means, seconds medians"
)
_SUPERVISOR = "the supervisor in this planning mode, with at most {} tools a step"
_LABELLED = (
    f"*metatool*: {SAMPLE} queries, drawn by hash, over 199 tools; right is a query of which every labelled tool was "
    "called with arguments that fit its schema (calls are recorded, not run). Arms: *all*: every tool bound; *k5*: the "
    "best 5 tools of one selection bound"
)
_DEMO = (
    "Requests to the demo's agents that need one tool, and that need two. Right is an answer with the right value, or "
    f"a file with it. *none*, *auto*: {_SUPERVISOR.format(DEMO_TOOLS)}; *rules*: the same without the model"
)


def measure(data: Path, model: str) -> Mapping[str, object]:
    """Labelled queries, whose calls are recorded. Attempts are stored, so a run that was ended goes on."""
    loaded = load(data / SET / "catalog")
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    queries = sampled(read_queries(data / SET / "queries.jsonl", loaded.catalog), SAMPLE)
    made = _arms(SET, recorded(loaded), retriever, model, tools=TOOLS)
    key = (digest(retriever.catalog.model_dump(mode="json")), TOOLS, MAX_OUTPUT)
    found = asyncio.run(evaluate_arms(made, queries, model=model, folder=ATTEMPTS, key=key))
    return _body(_LABELLED, model, {SET: found})


def measure_demo(model: str) -> Mapping[str, object]:
    """The demo's tasks, those of one step and those of two; attempts are stored as those of ``measure``."""
    with tempfile.TemporaryDirectory(prefix="callsheet-demo-") as folder:
        scratch = Path(folder).resolve()
        os.environ["CALLSHEET_WORKSPACE"] = str(scratch / SANDBOX)
        (scratch / SANDBOX).mkdir()
        loaded = load(*DEMO_CATALOG, yes=True, pins=scratch / "pins.json")
        retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
        content = [retriever.catalog.model_dump(mode="json"), DEMO_TASKS.read_text(encoding="utf-8")]
        key, tasks, found = (digest(content), DEMO_TOOLS, MAX_OUTPUT), read_tasks(DEMO_TASKS, scratch), {}
        for first, name in DEMO.items():
            arms = _arms(name, loaded, retriever, model, tools=DEMO_TOOLS)
            if of := [task for task in tasks if task.id.startswith(first)]:
                found[name] = _on_tasks(arms, of, model, key, scratch)
    return _body(_DEMO, model, found)


def _arms(name: str, loaded: Loaded, retriever: AgentGraphRetriever, model: str, *, tools: int) -> dict[str, Arm]:
    arms = Arms(loaded, retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=tools)
    return {arm: arms.named(arm) for arm in ARMS[name]}


def _on_tasks(
    arms: Mapping[str, Arm], tasks: Sequence[Task], model: str, key: Sequence[object], scratch: Path
) -> ModelEvaluation:
    """Every arm at every task, each in an empty folder, judged by the end state alone."""
    by_text, place = {task.task: task for task in tasks}, scratch / SANDBOX

    def renew(task: Task) -> None:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for name, text in task.files.items():
            (place / name).write_text(text, encoding="utf-8")
        if not task.unmet():
            raise RuntimeError(f"task {task.id}: its checks hold before anything is done: correct them")

    def checked(arm: Arm) -> Arm:
        async def attempt(request: str) -> Attempt:
            task = by_text[request]
            await asyncio.to_thread(renew, task)
            made = await arm(request)
            return made.model_copy(update={"unmet": await asyncio.to_thread(task.unmet, made.answer)})

        return attempt

    queries = [LabelledQuery(task.id, task.task, agents=()) for task in tasks]
    made = {name: checked(arm) for name, arm in arms.items()}
    return asyncio.run(evaluate_arms(made, queries, model=model, folder=ATTEMPTS, key=key, grade=graded_task))


def graded_task(query: LabelledQuery, attempt: Attempt) -> Grade:
    """The grade of an attempt at a task: by its end state alone, whatever was called."""
    failed, unmet = [f"{call.tool}: {call.error}" for call in attempt.calls if call.error], "; ".join(attempt.unmet)
    if attempt.failure:
        return Grade("model error", attempt.failure)
    if not unmet or not (attempt.offered or attempt.steps):
        return Grade("plan", unmet) if unmet else Grade()
    if attempt.stopped:
        return Grade("gave up", f"{unmet}; {attempt.stopped}")
    return Grade("tool error", f"{unmet}; {failed[-1]}") if failed else Grade("end state", unmet)


def _body(what: str, model: str, found: Mapping[str, ModelEvaluation]) -> Mapping[str, object]:
    rows = [[name, *row(one, arm)] for name, one in found.items() for arm in one.arms]
    about = _ABOUT.format(model, MAX_OUTPUT, what)
    if stopped := "; ".join(filter(None, (one.stopped for one in found.values()))):
        about += f". Not all was attempted: {stopped}"
    return {"about": about, "model": model, "columns": list(COLUMNS), "rows": rows}


def row(evaluation: ModelEvaluation, arm: ArmResult) -> list[str]:
    """An arm, as the table has it."""
    plain = evaluation.row(arm)
    success, apart = (arm.success, *plain["interval"]), plain["difference"]
    return [
        arm.arm,
        str(plain["n"]),
        "{:.2f} [{:.2f}, {:.2f}]".format(*success),
        "" if arm is evaluation.arms[0] else "{:+.2f} [{:+.2f}, {:+.2f}]".format(*apart),
        f"{plain['calls']:.1f}",
        *(f"{plain[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens", "seconds")),
        ", ".join(f"{arm.causes[cause]} {cause}" for cause in CAUSES if arm.causes[cause]),
    ]
