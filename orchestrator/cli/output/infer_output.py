"""Output of ``callsheet infer``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from callsheet.graphs.dependencies import Proposal
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import console

_MOST = 30
_DECIDED = {True: "accepted", False: "refused", None: ""}


def show_proposals(edges: Sequence[Proposal], file: Path | None) -> None:
    """Prints the most likely proposals by dependent tool, their number, and the next step."""
    out = console()
    if not edges:
        out.print("No dependency is proposed.")
        return
    shown = sorted(edges[:_MOST], key=lambda edge: edge.source)
    for source, needs in groupby(shown, key=lambda edge: edge.source):
        out.print(f"[bold]{escape(source)}[/]")
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column("", width=1)
        table.add_column("for")
        table.add_column("needs", style="cyan", overflow="fold")
        table.add_column("sure", justify="right")
        table.add_column("why", style="bright_black", overflow="fold")
        for edge in needs:
            table.add_row("", *map(escape, _row(edge)))
        out.print(table)
    if len(edges) > _MOST:
        out.print(f"and {len(edges) - _MOST:,} more with less confidence", style="bright_black")
    _say_what_next(edges, file)


def _row(edge: Proposal) -> tuple[str, ...]:
    what = f"{edge.parameter} <-" if edge.parameter else "after" if edge.kind.direct else "may follow"
    said = _DECIDED[edge.accept]
    return what, edge.target, f"{edge.confidence:.2f}", f"{said}; {edge.evidence}" if said else edge.evidence


def _say_what_next(edges: Sequence[Proposal], file: Path | None) -> None:
    accepted = sum(edge.accept is True for edge in edges)
    refused = sum(edge.accept is False for edge in edges)
    counts = f"{counted(len(edges), 'proposal')}, {accepted:,} accepted, {refused:,} refused"
    if file is None:
        console().print(f"{counts}; -o FILE writes them to a file for review")
        return
    name = escape(str(file))
    console().print(f"{counts} in {name}: set accept to true or false, then add --catalog {name}")
