"""``callsheet eval``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.orchestrator.cli.eval_model import (
    Gate,
    ModelOptions,
    evaluate_model,
    failed_gates,
    model_options,
    read_gate,
    refused_gate,
    tell_failed,
)
from callsheet.orchestrator.cli.shared_options import CatalogOptions, common, progress_bar

if TYPE_CHECKING:
    from callsheet.graphs import Loaded
    from callsheet.retrievers import AgentGraphRetriever, Evaluation, LabelledQuery

_LABELS = {"tool.": "tools", "complete": "tools", "skill.": "skills"}
_MODEL_ONLY = ("arms", "sample", "rate", "prices", "max_cost", "max_output")


@click.command("eval", short_help="Measure retrieval, or a chat model, on labelled queries.")
@click.argument("queries", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "-k", "agents", default=5, show_default=True, type=click.IntRange(1, 1000), help="Maximum agents per query."
)
@click.option("--tools", default=10, show_default=True, type=click.IntRange(1, 10000), help="Maximum tools per query.")
@click.option(
    "--fail-under",
    "demands",
    multiple=True,
    metavar="METRIC=LEAST",
    help="Exit with status 1 if this metric is lower; repeatable. Metrics of agents: recall@5, map@5, ndcg@5; of "
    "tools: tool.recall@10, complete@10; of skills: skill.recall@1.",
)
@click.option(
    "--misses", default=10, show_default=True, type=click.IntRange(0), help="Maximum number of missed queries to list."
)
@model_options
@common
def evaluate_command(
    options: CatalogOptions,
    queries: Path,
    agents: int,
    tools: int,
    demands: tuple[str, ...],
    misses: int,
    **of_model: Any,
) -> int:
    """Measure retrieval on labelled queries. With --model, measure which tools a chat model calls.

    FILE has one query per line: {"query": "...", "agents": ["a", ["b", "c"]], "tools": ["a/x"], "skills": ["s"]}. An
    inner list has alternatives. With --model, a query may also have the right arguments of a tool, "arguments":
    {"a/x": {"city": "Oslo"}}.

    \b
    Examples:
      callsheet eval queries.jsonl --catalog manifests/ --fail-under recall@5=.8 --fail-under complete@10=.7
      callsheet eval queries.jsonl --catalog manifests/ --model openai:gpt-5-mini --arms all,k10,adaptive
    """
    from callsheet.retrievers import evaluate, metric_names, read_queries

    if of_model["model"]:
        told: dict[str, Any] = {
            "tools": tools,
            "demands": demands,
            "misses": misses,
            "as_json": options.as_json,
            "file": queries,
        }
        model_evaluation = ModelOptions(**of_model, **told)
        return evaluate_model(model_evaluation, lambda: _opened(options))
    if useless := [name for name in _MODEL_ONLY if of_model[name]]:
        raise click.UsageError(f"--{useless[0].replace('_', '-')} needs --model PROVIDER:NAME")
    known = metric_names(agents, tools)
    names = f"there are {', '.join(known)}; -k and --tools set the last cut-offs"
    gates = [read_gate(demand, known, names) for demand in demands]
    loaded = options.open()
    labelled = read_queries(queries, loaded.catalog)
    _check_measured(gates, labelled)
    retriever = options.retriever(loaded)
    with progress_bar("Asking") as progress:
        evaluation = evaluate(retriever, labelled, agents=agents, tools=tools, progress=progress)
    failed = failed_gates(gates, evaluation.metric)
    if options.as_json:
        click.echo(json.dumps(_report(evaluation, misses, gates, failed), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.eval_output import show_evaluation

        show_evaluation(evaluation, catalog=loaded.catalog, misses=misses)
    tell_failed(failed, evaluation.metric)
    return 1 if failed else 0


def _opened(options: CatalogOptions) -> tuple[Loaded, AgentGraphRetriever]:
    loaded = options.open()
    return loaded, options.retriever(loaded)


def _check_measured(gates: Sequence[Gate], labelled: Sequence[LabelledQuery]) -> None:
    """Refuses a gate on nodes that no query has labelled: it must not pass without a measurement."""
    for gate in gates:
        kind = next((kind for start, kind in _LABELS.items() if gate.metric.startswith(start)), "agents")
        if not any(getattr(query, kind) for query in labelled):
            raise refused_gate(f"{gate.metric} cannot be measured: no query has {kind} labelled")


def _report(evaluation: Evaluation, misses: int, gates: Sequence[Gate], failed: Sequence[Gate]) -> dict[str, Any]:
    from callsheet.retrievers.evaluation.ranking_metrics import rounded

    report = evaluation.to_dict()
    report["missed"] = report["missed"][:misses]
    report["gates"] = [
        {**asdict(gate), "value": evaluation.metric(gate.metric), "passed": gate not in failed} for gate in gates
    ]
    plain: dict[str, Any] = rounded(report)
    return plain
