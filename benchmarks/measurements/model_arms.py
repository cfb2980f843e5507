"""Arms of ``callsheet eval --model`` on MetaTool: does a model call the right tool, and at what price?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from callsheet.agents import chat_model
from callsheet.graphs import load
from callsheet.orchestrator.apps.model_evaluation.arms import Arms
from callsheet.orchestrator.apps.model_evaluation.attempts import AttemptLog
from callsheet.orchestrator.apps.model_evaluation.grading import CAUSES
from callsheet.orchestrator.apps.model_evaluation.model_evaluator import (
    ArmResult,
    ModelEvaluation,
    evaluate_arms,
    sampled,
)
from callsheet.orchestrator.apps.model_evaluation.recorded_tools import recorded
from callsheet.retrievers import AgentGraphRetriever, read_queries

SET = "metatool"
ARMS = ("all", "k5", "k10", "none")
SAMPLE, TOOLS, MAX_OUTPUT = 100, 10, 300
ATTEMPTS = Path(".callsheet") / "benchmarks" / "model-attempts.jsonl"
_ABOUT = (
    "{}, at most {} output tokens a call, {} queries of MetaTool, drawn by hash, over {} tools. *all*: every tool "
    "bound; *k5*, *k10*: the best 5 and 10 tools of one selection bound; *none*: the supervisor with one worker. "
    "*Right*: every labelled tool was called with arguments that fit its schema (they are recorded, not run); *against "
    "all*: paired difference. Intervals are 95 % bootstrap over queries. Calls and tokens are means per query, "
    "seconds the median"
)


def measure(data: Path, model: str) -> Mapping[str, object]:
    """The body of the results file. Every attempt is kept in ``ATTEMPTS``, so a run that was ended goes on.

    Args:
        data: The folder of data sets.
        model: ``provider:name``.
    """
    loaded = load(data / SET / "catalog")
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    arms = Arms(recorded(loaded), retriever, chat_model(model, max_tokens=MAX_OUTPUT), tools=TOOLS, records=True)
    evaluation = asyncio.run(
        evaluate_arms(
            [arms.named(name) for name in ARMS],
            sampled(read_queries(data / SET / "queries.jsonl", loaded.catalog), SAMPLE),
            model=model,
            log=AttemptLog(ATTEMPTS),
            key=(AttemptLog.key(retriever.catalog.model_dump(mode="json")), TOOLS, ""),
        )
    )
    about = _ABOUT.format(model, MAX_OUTPUT, SAMPLE, len(loaded.catalog.tools))
    if evaluation.stopped:
        about += f". Not all was attempted: {evaluation.stopped}"
    return {"about": about, "model": model, "columns": columns(), "rows": [row(evaluation, a) for a in evaluation.arms]}


def columns() -> list[str]:
    """The heads of the table."""
    return ["arm", "n", "right", f"against {ARMS[0]}", "calls", "input", "cached", "output", "seconds", "failures"]


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
