"""Arms of ``callsheet eval --model``: does a model call MetaTool's right tool?"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from callsheet.agents import chat_model
from callsheet.graphs import load
from callsheet.orchestrator.apps.model_arms import ALL, K10, Arms, record_only
from callsheet.orchestrator.apps.model_evaluation import (
    CAUSES,
    ArmResult,
    ModelEvaluation,
    digest_of_parts,
    evaluate_arms,
    sample_queries,
)
from callsheet.retrievers import AgentGraphRetriever, read_queries

SET = "metatool"
ARMS = (ALL, K10)
SAMPLE, MAX_OUTPUT = 100, 300
ATTEMPTS = Path(".callsheet") / "benchmarks" / "model-attempts"
COLUMNS = (
    "requests", "arm", "n", "right", "against the first", "calls", "input", "cached", "output", "seconds", "failures"
)  # fmt: skip
_ABOUT = (
    f"{{}}, at most {MAX_OUTPUT} output tokens a call. *metatool*: {SAMPLE} queries, drawn by hash, over 199 tools; "
    "right is a query of which every labelled tool was called with arguments that fit its schema (calls are recorded, "
    "not run). Arms: *all*: every tool bound; *k10*: the best 10 tools of one selection bound. *Against the first*: "
    "paired difference. Intervals are 95 % bootstrap. Calls and tokens are means, seconds medians"
)


def measure(data: Path, model: str) -> Mapping[str, object]:
    """Returns the body of the results file. Attempts are stored, so a run that was ended goes on."""
    loaded = load(data / SET / "catalog")
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    queries = sample_queries(read_queries(data / SET / "queries.jsonl", loaded.catalog), SAMPLE)
    makes = Arms(record_only(loaded), retriever, chat_model(model, max_tokens=MAX_OUTPUT))
    evaluation = asyncio.run(
        evaluate_arms(
            {arm: makes.named(arm) for arm in ARMS},
            queries,
            model=model,
            folder=ATTEMPTS,
            key=(digest_of_parts(retriever.catalog.model_dump(mode="json")), MAX_OUTPUT),
        )
    )
    about = _ABOUT.format(model)
    if evaluation.stopped:
        about += f". Not all was attempted: {evaluation.stopped}"
    rows = [row(evaluation, arm) for arm in evaluation.arms]
    return {"about": about, "model": model, "columns": list(COLUMNS), "rows": rows}


def row(evaluation: ModelEvaluation, arm: ArmResult) -> list[str]:
    """Returns an arm as a row of the table."""
    plain = evaluation.row(arm)
    difference = ""
    if arm is not evaluation.arms[0]:
        difference = "{:+.2f} [{:+.2f}, {:+.2f}]".format(*plain["difference"])
    return [
        SET,
        arm.arm,
        str(plain["n"]),
        "{:.2f} [{:.2f}, {:.2f}]".format(arm.success, *plain["interval"]),
        difference,
        f"{plain['calls']:.1f}",
        *(f"{plain[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens", "seconds")),
        ", ".join(f"{arm.causes[cause]} {cause}" for cause in CAUSES if arm.causes[cause]),
    ]
