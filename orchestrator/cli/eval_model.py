"""``callsheet eval --model``: labelled queries with a chat model, in several arms."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cache_folder
from callsheet.orchestrator.cli.shared_options import progress_bar

if TYPE_CHECKING:
    from callsheet.graphs import Loaded
    from callsheet.orchestrator.apps.model_evaluation import ModelEvaluation
    from callsheet.retrievers import AgentGraphRetriever


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """The options of ``callsheet eval --model``."""

    model: str
    arms: str | None
    sample: int | None
    concurrency: int
    rate: float | None
    prices: Path | None
    max_cost: float | None
    max_output: int | None
    tools: int
    demands: tuple[str, ...]
    misses: int
    as_json: bool
    file: Path

    @property
    def names(self) -> list[str]:
        """The names of the arms."""
        from callsheet.orchestrator.apps.evaluation_arms import DEFAULT_ARMS

        given = self.arms.replace(" ", "").split(",") if self.arms else DEFAULT_ARMS
        return list(dict.fromkeys(filter(None, given)))


def model_options(command: Any) -> Any:
    """Adds the options of an evaluation with a model."""
    options = [
        click.option(
            "--model", metavar="PROVIDER:NAME", help="Measure the calls of this chat model; tools are not run."
        ),
        click.option(
            "--arms",
            metavar="ARM,ARM",
            help="With --model: all (the model gets all tools), search (the provider's search finds tools), k5, k10 "
            "... (the best 5, 10 tools), none, once, adaptive, auto (the supervisor in this planning mode), rules "
            "(no model).  [default: k5,k10,none,adaptive]",
        ),
        click.option("--sample", type=click.IntRange(1), help="With --model: only this many queries, always the same."),
        click.option(
            "--concurrency",
            default=1,
            show_default=True,
            type=click.IntRange(1, 64),
            help="With --model: maximum attempts at the same time.",
        ),
        click.option("--rate", type=click.FloatRange(0, min_open=True), help="With --model: maximum calls per second."),
        click.option("--prices", type=click.Path(path_type=Path), metavar="FILE", help="JSON file of model prices."),
        click.option(
            "--max-cost", type=click.FloatRange(0, min_open=True), help="Start no further attempt after this cost."
        ),
        click.option("--max-output", type=click.IntRange(1), help="Maximum output tokens per model call."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def evaluate_model(options: ModelOptions, opened: Callable[[], tuple[Loaded, AgentGraphRetriever]]) -> int:
    """Runs an evaluation with a model, and reports it; the exit status is 1 if a gate failed or something is missing.

    Raises:
        SettingsError: An option is invalid.
    """
    from callsheet.agents.calls.token_usage import price_of
    from callsheet.orchestrator.apps.evaluation_arms import Arms, recorded
    from callsheet.orchestrator.apps.model_evaluation import digest, evaluate_arms, sampled
    from callsheet.retrievers import read_queries

    known = [f"{name}.success" for name in options.names]
    gates = [read_gate(demand, known, f"with --model there are {', '.join(known)}") for demand in options.demands]
    price = price_of(options.model, options.prices)
    if options.max_cost is not None and price is None:
        raise SettingsError("--max-cost needs the price of the model: give --prices FILE")
    model = _model(options)
    loaded, retriever = opened()
    queries = sampled(read_queries(options.file, loaded.catalog), options.sample)
    made = Arms(recorded(loaded), retriever, model, tools=options.tools)
    arms = [made.named(name) for name in options.names]
    with progress_bar("Asking the model") as progress:
        evaluation = asyncio.run(
            evaluate_arms(
                arms,
                queries,
                model=options.model,
                folder=cache_folder() / "model-evaluations",
                key=(digest(retriever.catalog.model_dump(mode="json")), options.tools, options.max_output),
                concurrency=options.concurrency,
                price=price,
                max_cost=options.max_cost,
                progress=progress,
            )
        )
    return _report(evaluation, gates, options)


def _model(options: ModelOptions) -> Any:
    from callsheet.agents import chat_model

    model = chat_model(options.model, max_tokens=options.max_output)
    if options.rate is None:
        return model
    from langchain_core.rate_limiters import InMemoryRateLimiter

    return model.model_copy(update={"rate_limiter": InMemoryRateLimiter(requests_per_second=options.rate)})


def _report(evaluation: ModelEvaluation, gates: Sequence[Gate], options: ModelOptions) -> int:
    reached = {f"{arm.arm}.success": arm.success for arm in evaluation.arms}
    failed = failed_gates(gates, reached.__getitem__)
    if options.as_json:
        click.echo(json.dumps(evaluation.to_dict(), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.model_eval_output import show_model_evaluation

        show_model_evaluation(evaluation, misses=options.misses)
    if evaluation.stopped:
        click.echo(f"not all requests were attempted: {evaluation.stopped}", err=True)
    tell_failed(failed, reached.__getitem__)
    errors = sum(arm.causes["model error"] for arm in evaluation.arms)
    return 1 if failed or evaluation.stopped or errors else 0


_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Gate:
    """A metric with its minimum."""

    metric: str
    least: float


def read_gate(demand: str, known: Collection[str], names: str) -> Gate:
    """The gate of one ``--fail-under``.

    Raises:
        BadParameter: It is malformed, or the metric is unknown.
    """
    metric, _, number = demand.partition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not 0 <= least <= 1:
        raise refused_gate(f"{demand!r} is not METRIC=LEAST with a number from 0 to 1, as {next(iter(known))}=.8")
    if metric.strip() not in known:
        raise refused_gate(f"unknown metric {metric.strip()!r}: {names}")
    return Gate(metric.strip(), least)


def refused_gate(message: str) -> click.BadParameter:
    """The error of ``--fail-under``."""
    return click.BadParameter(message, param_hint="--fail-under")


def failed_gates(gates: Sequence[Gate], value: Callable[[str], float]) -> list[Gate]:
    """The gates whose metric is lower than its minimum, by the metric's value."""
    return [gate for gate in gates if value(gate.metric) < gate.least - _ROUNDING]


def tell_failed(failed: Sequence[Gate], value: Callable[[str], float]) -> None:
    """A line on standard error for each failed gate."""
    for gate in failed:
        click.echo(f"failed: {gate.metric} is {value(gate.metric):.4f}, under {gate.least:g}", err=True)
