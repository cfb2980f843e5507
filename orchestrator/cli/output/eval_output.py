"""Output of ``callsheet eval``, with and without a model: tables of at most 100 columns, plain in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from callsheet.graphs import Catalog
from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.cli.output.console import GREY, console, folded, number, one_line, table
from callsheet.retrievers import Evaluation

if TYPE_CHECKING:
    from callsheet.orchestrator.apps.model_evaluation import ArmResult, ModelEvaluation

_LONGEST, _PAIRS, _GOT = 90, 10, 3
_TITLES = {"recall": "recall", "map": "mAP", "ndcg": "nDCG", "complete": "complete"}


def show_evaluation(evaluation: Evaluation, *, catalog: Catalog, misses: int) -> None:
    """Prints an evaluation: metrics, tokens, confused tools, and the first ``misses`` missed queries."""
    out = console(wrap=True)
    sizes = f"{counted(len(catalog.agents), 'agent')}, {counted(len(catalog.tools), 'tool')}"
    speed = f"{evaluation.seconds:.1f} s, {evaluation.seconds_per_query * 1000:.0f} ms a query (median)"
    out.print(f"{_queries(evaluation.n)}, {sizes}: {speed}\n")
    out.print(_figures(evaluation))
    for note in _notes(evaluation):
        out.print(note, style=GREY, soft_wrap=True)
    tokens = evaluation.tokens
    out.print(
        f"\nA selection costs a model about {tokens.selected:,.0f} tokens, all tools {tokens.all:,} "
        f"({tokens.share:.1%}), counted with the embedder's tokenizer.",
        soft_wrap=True,
    )
    if evaluation.confused:
        out.print("\n[bold]Most often confused[/]")
        rows = table(number("queries"), folded("wanted"), folded("ranked above it"))
        for pair in evaluation.confused[:_PAIRS]:
            rows.add_row(str(pair.count), escape(pair.wanted), escape(pair.instead))
        out.print(rows)
    _missed(out, evaluation, misses)


def _figures(evaluation: Evaluation) -> Table:
    levels = {"agent": evaluation.agent, "tool": {**evaluation.tool, **evaluation.complete}, "skill": evaluation.skill}
    cuts = sorted({_cut(name) for of in levels.values() for name in of})
    rows = table("", "", *(number(f"@{cut}") for cut in cuts), Column("95 % interval of the last", style=GREY))
    for level, of in levels.items():
        for metric in dict.fromkeys(name.partition("@")[0] for name in of):
            last = max(_cut(name) for name in of if name.startswith(f"{metric}@"))
            full = f"complete@{last}" if metric == "complete" else f"{level}.{metric}@{last}"
            low, high = evaluation.intervals[full]
            values = (of.get(f"{metric}@{cut}") for cut in cuts)
            cells = ("" if value is None else f"{value:.3f}" for value in values)
            first = f"[bold]{level}[/]" if metric == "recall" else ""
            rows.add_row(first, _TITLES[metric], *cells, f"{low:.3f} - {high:.3f}")
    return rows


def _cut(name: str) -> int:
    return int(name.partition("@")[2])


def _queries(count: int) -> str:
    return counted(count, "query", "queries")


def _notes(evaluation: Evaluation) -> list[str]:
    notes = []
    for what, n in (("agents", evaluation.n_agent), ("tools", evaluation.n_tool), ("skills", evaluation.n_skill)):
        if 0 < n < evaluation.n:
            notes.append(f"The figures of {what} are of {_queries(n)} with labelled {what}.")
    if evaluation.agents_from_tools:
        notes.append(f"Wanted agents taken from the wanted tools: {_queries(evaluation.agents_from_tools)}.")
    if evaluation.nothing_fits:
        notes.append(f"Verdict that nothing fits: {evaluation.nothing_fits} of {evaluation.n}.")
    return notes


def _missed(out: Console, evaluation: Evaluation, most: int) -> None:
    first = evaluation.missed[:most]
    rest = f", the first {len(first)}" if 0 < len(first) < len(evaluation.missed) else ""
    out.print(f"\n[bold]{len(evaluation.missed)} of {_queries(evaluation.n)} lack something{rest}[/]")
    for miss in first:
        out.print(f"{escape(miss.id)}  {escape(one_line(miss.query, _LONGEST))}", soft_wrap=True)
        for lacking in miss.lacking:
            ids = f"[cyan]{escape(' or '.join(lacking.ids))}[/]"
            out.print(f"   wanted {lacking.kind} {ids}: {escape(lacking.why)}", soft_wrap=True)
        out.print(f"   got    {escape(', '.join(miss.got[:_GOT]))}", style=GREY, soft_wrap=True)


def show_model_evaluation(evaluation: ModelEvaluation, *, misses: int) -> None:
    """Prints an evaluation with a model: the arms, failures by cause, and the first ``misses`` failures of each arm."""
    from callsheet.orchestrator.apps.model_evaluation import CAUSES

    out, arms = console(wrap=True), evaluation.arms
    out.print(f"{escape(evaluation.model)}, {counted(len(arms[0].cases) + arms[0].missing, 'request')}\n")
    names = ("n", "right", "interval", f"against {arms[0].arm}", "calls", "input", "cached", "output", "s")
    rows = table("arm", *map(number, (*names, "cost") if evaluation.price else names))
    for arm in arms:
        rows.add_row(*_row(evaluation, arm))
    out.print(rows)
    out.print("Tokens and calls: means per request. Seconds: median. Intervals: 95 % bootstrap.", style=GREY)
    if any(arm.causes for arm in arms):
        out.print("\n[bold]Failures by cause[/]")
        rows = table("cause", *(number(escape(arm.arm)) for arm in arms), Column(style=GREY))
        for cause, meaning in CAUSES.items():
            if any(arm.causes[cause] for arm in arms):
                rows.add_row(cause, *(str(arm.causes[cause] or "") for arm in arms), meaning)
        out.print(rows)
    for arm in arms:
        failed = [case for case in arm.cases if case.grade.cause][:misses]
        if failed:
            out.print(f"\n[bold]{escape(arm.arm)}[/]")
        for case in failed:
            out.print(f"{escape(case.query.id)}  {escape(shown(case.query.query))}", soft_wrap=True)
            detail = shown(f"{case.grade.cause}: {case.grade.detail}")
            out.print(f"   {escape(detail)}", style=GREY, soft_wrap=True)


def _row(evaluation: ModelEvaluation, arm: ArmResult) -> list[str]:
    plain = evaluation.row(arm)
    (low, high), (mean, less, more), cost = plain["interval"], plain["difference"], plain["cost"]
    return [
        escape(arm.arm),
        str(plain["n"]),
        f"{arm.success:.3f}",
        f"{low:.2f} - {high:.2f}",
        "" if arm is evaluation.arms[0] else f"{mean:+.2f} [{less:+.2f}, {more:+.2f}]",
        f"{plain['calls']:.1f}",
        *(f"{plain[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens")),
        f"{plain['seconds']:.1f}",
        *([] if cost is None else [f"{cost:.4f}"]),
    ]
