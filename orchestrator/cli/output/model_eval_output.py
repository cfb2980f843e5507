"""Output of ``callsheet eval --model``: tables of at most 100 columns, plain in a pipe."""

from __future__ import annotations

from typing import Any

from rich.markup import escape
from rich.table import Table

from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.apps.model_evaluation import CAUSES, ArmResult, ModelEvaluation
from callsheet.orchestrator.cli.output.console import WIDEST, SafeConsole

_GREY = "bright_black"


def show_model_evaluation(evaluation: ModelEvaluation, *, misses: int) -> None:
    """Prints an evaluation: the arms, failures by cause, and the first ``misses`` failures of each arm."""
    probe = SafeConsole()
    console = SafeConsole(highlight=False, width=min(probe.width, WIDEST) if probe.is_terminal else WIDEST)
    first = evaluation.arms[0]
    console.print(f"{escape(evaluation.model)}, {counted(len(first.cases) + first.missing, 'request')}\n")
    console.print(_arms(evaluation))
    console.print("Tokens and calls: means per request. Seconds: median. Intervals: 95 % bootstrap.", style=_GREY)
    if any(arm.causes for arm in evaluation.arms):
        console.print("\n[bold]Failures by cause[/]")
        console.print(_causes(evaluation))
    for arm in evaluation.arms:
        _failures(console, arm, misses)


def _arms(evaluation: ModelEvaluation) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("arm")
    for name in (
        "n",
        "right",
        "interval",
        f"against {evaluation.arms[0].arm}",
        "calls",
        "input",
        "cached",
        "output",
        "s",
    ):
        table.add_column(name, justify="right")
    if evaluation.price:
        table.add_column("cost", justify="right")
    for arm, plain in zip(evaluation.arms, evaluation.to_dict()["arms"], strict=True):
        table.add_row(*_row(evaluation, arm, plain))
    return table


def _row(evaluation: ModelEvaluation, arm: ArmResult, plain: dict[str, Any]) -> list[str]:
    low, high = plain["interval"]
    mean, less, more = plain["difference"]
    against = "" if arm is evaluation.arms[0] else f"{mean:+.2f} [{less:+.2f}, {more:+.2f}]"
    row = [escape(arm.arm), str(plain["n"]), f"{arm.success:.3f}", f"{low:.2f} - {high:.2f}", against]
    row += [f"{plain['calls']:.1f}"]
    row += [f"{plain[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens")]
    row += [f"{plain['seconds']:.1f}"]
    return [*row, f"{plain['cost']:.4f}"] if plain["cost"] is not None else row


def _causes(evaluation: ModelEvaluation) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("cause")
    for arm in evaluation.arms:
        table.add_column(escape(arm.arm), justify="right")
    table.add_column("", style=_GREY)
    for cause, meaning in CAUSES.items():
        counts = [arm.causes[cause] for arm in evaluation.arms]
        if any(counts):
            table.add_row(cause, *(str(count or "") for count in counts), meaning)
    return table


def _failures(console: SafeConsole, arm: ArmResult, most: int) -> None:
    failed = [case for case in arm.cases if case.grade.cause][:most]
    if failed:
        console.print(f"\n[bold]{escape(arm.arm)}[/]")
    for case in failed:
        detail = escape(shown(f"{case.grade.cause}: {case.grade.detail}"))
        console.print(f"{escape(case.query.id)}  {escape(shown(case.query.query))}", soft_wrap=True)
        console.print(f"   {detail}", style=_GREY, soft_wrap=True)
