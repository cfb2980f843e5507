"""``callsheet eval`` measures retrieval on labelled queries, or a chat model in several arms."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs import SettingsError
from callsheet.orchestrator.cli import output
from callsheet.orchestrator.cli.shared_options import (
    FILE,
    CatalogOptions,
    check_model_name,
    common,
    methods_option,
    model_option,
    progress_bar,
    report,
    size_options,
)

if TYPE_CHECKING:
    from callsheet.retrievers import Evaluation, SelectSettings

_LABELS = {"tool.": "tools", "complete": "tools", "skill.": "skills"}
"""Beginnings of the names of metrics -> the labels that they need; the others need agents."""
_MODEL_ONLY = ("arms", "sample", "prices", "max_cost")
_ROUNDING = 1e-9
_POSITIVE = click.FloatRange(0, min_open=True)


@click.command("eval", short_help="Measure retrieval, or a chat model, on labelled queries.")
@click.argument("queries", type=click.Path(path_type=Path), metavar="FILE")
@size_options(1000, 10000, "query", default="10; 15 for a worker of the supervisor")
@click.option(
    "--fail-under",
    "demands",
    multiple=True,
    metavar="METRIC=LEAST",
    help="Exit with status 1 if this metric is lower; repeatable. Metrics of agents: recall@5, map@5, ndcg@5; of "
    "tools: tool.recall@10, complete@10; of skills: skill.recall@1; of an arm: k10.success.",
)
@methods_option("--methods", "Measure these side by side too")
@model_option("Measure the calls of this chat model; tools are not run.")
@click.option(
    "--arms",
    metavar="ARM,ARM",
    help="With --model: all (the model gets all tools), k10 (the best 10 tools), none, auto (the supervisor in this "
    "planning mode).  [default: k10,none,auto]",
)
@click.option(
    "--sample",
    type=click.IntRange(1),
    help="With --model: number of queries to attempt; the sample is always the same.",
)
@click.option("--concurrency", default=1, type=click.IntRange(1, 64), help="With --model: number of parallel attempts.")
@click.option("--prices", type=FILE, help="With --model: JSON file of the prices of models.")
@click.option("--max-cost", type=_POSITIVE, help="With --model: start no further attempt after this cost.")
@common
def evaluate_command(options: CatalogOptions, demands: tuple[str, ...], model: str | None, **given: Any) -> int:
    """Measure retrieval on labelled queries. With --model, measure which tools a chat model calls.

    FILE has one query per line: {"query": "...", "agents": ["a", ["b", "c"]], "tools": ["a/x"], "skills": ["s"]}. An
    inner list has alternatives. With --model, a query may also have the right arguments of a tool, "arguments":
    {"a/x": {"city": "Oslo"}}.

    \b
    Examples:
      callsheet eval queries.jsonl --catalog manifests/ --fail-under recall@5=.8 --fail-under complete@10=.7
      callsheet eval queries.jsonl --catalog manifests/ --methods callsheet,agent-as-a-graph,bm25
      callsheet eval queries.jsonl --catalog manifests/ --model openai:gpt-5-mini --arms all,k10,auto
    """
    if model:
        if given.pop("methods"):
            raise click.UsageError("--methods measures retrieval, without a model: leave --model out")
        return _evaluate_model(options, demands, model, **given)
    for name in _MODEL_ONLY:
        if given.pop(name):
            raise click.UsageError(f"--{name.replace('_', '-')} needs --model PROVIDER:NAME")
    # It has a default, so nobody can tell whether it was given.
    given.pop("concurrency")
    return _evaluate_retrieval(options, demands, **given)


def _evaluate_retrieval(
    options: CatalogOptions,
    demands: Sequence[str],
    *,
    queries: Path,
    agents: int | None,
    tools: int | None,
    methods: Mapping[str, SelectSettings],
) -> int:
    """Measures the retriever, and each method beside it; returns the exit status."""
    from callsheet.retrievers import evaluate, metric_names, read_queries
    from callsheet.retrievers.evaluation.evaluator import round_numbers
    from callsheet.retrievers.selection.select_settings import OURS, SelectSettings

    most = SelectSettings().tools if tools is None else tools
    names = metric_names(agents, most)
    gates = _gates(demands, names, f"there are {', '.join(names)}; --tools and -k set the last cut-offs")
    loaded = options.open()
    labelled = read_queries(queries, loaded.catalog)
    for name in gates:
        kind = _labels_of(name)
        if not any(getattr(query, kind) for query in labelled):
            raise _refused(f"{name} cannot be measured: no query has {kind} labelled")

    def measure(settings: SelectSettings | None = None) -> Evaluation:
        retriever = options.retriever(loaded, settings=settings)
        with progress_bar("Asking") as progress:
            return evaluate(retriever, labelled, agents=agents, tools=most, progress=progress)

    evaluation = measure()
    evaluations = {}
    for name, settings in methods.items():
        evaluations[name] = evaluation if name == OURS else measure(settings)
    results = _results(gates, evaluation.metric)
    plain = {**evaluation.to_dict(), "gates": results}
    if evaluations:
        plain["methods"] = [_method_row(name, other) for name, other in evaluations.items()]
    report(
        round_numbers(plain),
        lambda: output.show_evaluation(evaluation, catalog=loaded.catalog, methods=evaluations),
        as_json=options.as_json,
    )
    return _status(results)


def _labels_of(metric: str) -> str:
    """Returns which labels of queries a metric needs."""
    for start, kind in _LABELS.items():
        if metric.startswith(start):
            return kind
    return "agents"


def _method_row(name: str, evaluation: Evaluation) -> dict[str, Any]:
    """Returns the figures of a method as JSON values, without its errors one by one."""
    row = {"name": name, **evaluation.to_dict()}
    del row["confused"], row["missed"]
    return row


def _evaluate_model(
    options: CatalogOptions,
    demands: Sequence[str],
    model: str,
    *,
    queries: Path,
    agents: int | None,
    tools: int | None,
    arms: str | None,
    sample: int | None,
    concurrency: int,
    prices: Path | None,
    max_cost: float | None,
) -> int:
    """Measures a chat model in several arms; returns the exit status."""
    from callsheet.agents import chat_model
    from callsheet.agents.calls.token_usage import price_of
    from callsheet.graphs.storage import cache_folder
    from callsheet.orchestrator.apps.model_arms import DEFAULT_ARMS, Arms, record_only
    from callsheet.orchestrator.apps.model_evaluation import digest_of_parts, evaluate_arms, sample_queries
    from callsheet.retrievers import read_queries

    names = _listed(arms) if arms else list(DEFAULT_ARMS)
    metrics = [f"{name}.success" for name in names]
    gates = _gates(demands, metrics, f"with --model there are {', '.join(metrics)}")
    price = price_of(model, prices)
    check_model_name(model)
    if max_cost is not None and price is None:
        raise SettingsError("--max-cost needs the price of the model: give --prices FILE")
    loaded = options.open()
    retriever = options.retriever(loaded, k=agents)
    sample_of = sample_queries(read_queries(queries, loaded.catalog), sample)
    makes = Arms(record_only(loaded), retriever, chat_model(model), tools=tools)
    with progress_bar("Asking the model") as progress:
        evaluation = asyncio.run(
            evaluate_arms(
                {name: makes.named(name) for name in names},
                sample_of,
                model=model,
                folder=cache_folder() / "model-evaluations",
                key=(digest_of_parts(retriever.catalog.model_dump(mode="json")), agents, tools),
                concurrency=concurrency,
                price=price,
                max_cost=max_cost,
                progress=progress,
            )
        )
    report(evaluation.to_dict(), lambda: output.show_model_evaluation(evaluation), as_json=options.as_json)
    if evaluation.stopped:
        click.echo(f"not all requests were attempted: {evaluation.stopped}", err=True)
    successes = {f"{arm.arm}.success": arm.success for arm in evaluation.arms}
    gates_failed = _status(_results(gates, successes.__getitem__)) != 0
    model_failed = any(arm.causes["model error"] for arm in evaluation.arms)
    return 1 if gates_failed or model_failed or evaluation.stopped else 0


def _listed(arms: str) -> list[str]:
    """Returns the names in a list with commas, each once."""
    names = [name.strip() for name in arms.split(",")]
    return list(dict.fromkeys(name for name in names if name))


def _gates(demands: Sequence[str], known: Collection[str], names: str) -> dict[str, float]:
    """Returns the least value of each metric of ``--fail-under``.

    Raises:
        click.BadParameter: A demand is malformed, or its metric is not known; ``names`` says which are.
    """
    gates: dict[str, float] = {}
    for demand in demands:
        name, _, number = demand.partition("=")
        try:
            gates[name] = float(number)
        except ValueError:
            gates[name] = math.nan
        if not 0 <= gates[name] <= 1:
            example = f"{next(iter(known))}=.8"
            raise _refused(f"{demand!r} is not METRIC=LEAST with a number from 0 to 1, as {example}")
        if name not in known:
            raise _refused(f"unknown metric {name!r}: {names}")
    return gates


def _refused(message: str) -> click.BadParameter:
    return click.BadParameter(message, param_hint="--fail-under")


def _results(gates: Mapping[str, float], value: Callable[[str], float]) -> list[dict[str, Any]]:
    """Returns each gate with the value of its metric, and whether it passed."""
    results = []
    for name, least in gates.items():
        reached = value(name)
        # A mean of binary fractions may miss the decimal number that it equals.
        passed = reached >= least - _ROUNDING
        results.append({"metric": name, "least": least, "value": reached, "passed": passed})
    return results


def _status(results: Sequence[Mapping[str, Any]]) -> int:
    """Prints each gate that failed on standard error; returns the exit status."""
    failed = [gate for gate in results if not gate["passed"]]
    for gate in failed:
        click.echo("failed: {metric} is {value:.4f}, under {least:g}".format(**gate), err=True)
    return 1 if failed else 0
