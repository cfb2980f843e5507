"""Output of the commands about a catalog: ``check``, ``infer``, ``capabilities`` and ``discover``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.dependencies import Proposal
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import console
from callsheet.retrievers.capabilities import Assignments, Discovery

_MOST = {Severity.ERROR: 20, Severity.WARNING: 5, Severity.INFO: 3}
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
_LONGEST = 300


def show_findings(findings: Sequence[Finding], catalog: Catalog, *, everything: bool) -> None:
    """Prints findings by severity and rule; without ``everything``, only the first few of each rule."""
    out = console()
    order = list(Severity)
    for (severity, rule), group in groupby(
        sorted(findings, key=lambda finding: order.index(finding.severity)), key=lambda f: (f.severity, f.rule)
    ):
        found = list(group)
        out.print(f"[{_COLOURS[severity]}]{severity}[/] [bold]{escape(rule)}[/] ({len(found)})")
        most = len(found) if everything else _MOST[severity]
        for finding in found[:most]:
            out.print(f"  {_line(finding)}")
        if len(found) > most:
            out.print(f"  [bright_black]and {len(found) - most} more: --all shows them[/]")
    said = ", ".join(counted(sum(f.severity == severity for f in findings), severity) for severity in Severity)
    out.print(f"{catalog.sizes}: {said}")


def _line(finding: Finding) -> str:
    place = finding.tool or finding.agent
    message = " ".join(finding.message.split())
    message = message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"
    return f"[cyan]{escape(place)}[/]: {escape(message)}" if place else escape(message)


_NAMED, _CUT_TOLD = 3, 5


def show_assignments(found: Assignments) -> None:
    """Prints the capabilities in use, with some tools of each, and the coverage."""
    out = console()
    if not found.of:
        out.print("The catalog holds no tools.")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("capability", style="bold", no_wrap=True)
    table.add_column("tools", justify="right")
    table.add_column("such as", style="cyan", overflow="fold")
    for name, tools in found.tools_of.items():
        if tools and name in found.taxonomy.leaves:
            table.add_row(escape(name), str(len(tools)), escape(", ".join(_surest(name, tools, found))))
    out.print(table)
    _say_what_is_missing(found, out)


def _surest(name: str, tools: tuple[str, ...], found: Assignments) -> list[str]:
    sure = {tool: max((a.confidence for a in found.of[tool] if a.capability == name), default=0.0) for tool in tools}
    return sorted(tools, key=lambda tool: -sure[tool])[:_NAMED]


def _say_what_is_missing(found: Assignments, out: Console) -> None:
    none = [tool for tool, entries in found.of.items() if not entries]
    count = len(found.of)
    out.print(f"{count - len(none):,} of {counted(count, 'tool')} have a capability ({found.coverage:.1%})")
    if none:
        more = f" and {len(none) - _CUT_TOLD:,} more" if len(none) > _CUT_TOLD else ""
        out.print(f"none: {escape(', '.join(none[:_CUT_TOLD]))}{more}", style="bright_black")
    for tool, names in list(found.unknown.items())[:_CUT_TOLD]:
        out.print(f"unknown: {escape(tool)} has {escape(', '.join(names))}", style="yellow")


def show_discovery(found: Discovery) -> None:
    """Prints each step: capabilities, sources, and the candidates with the runners-up."""
    out = console()
    if found.verdict == "nothing_fits":
        out.print("Nothing in the catalog fits well; the nearest are:" if found.candidates else "The catalog is empty.")
    if found.capabilities:
        likely = (f"{escape(entry.id)} {entry.likelihood:.2f}" for entry in found.capabilities[:_CUT_TOLD])
        out.print(f"[bold]likely capabilities[/]  {', '.join(likely)}")
    if found.sources:
        sources = (f"{escape(source.id)} {source.share:.2f}" for source in found.sources)
        out.print(f"[bold]likely sources[/]       {', '.join(sources)}")
    table = Table(box=None, pad_edge=False, show_header=bool(found.candidates))
    table.add_column("candidate", style="cyan", overflow="fold")
    table.add_column("use", justify="right")
    table.add_column("link", justify="right")
    table.add_column("capabilities", overflow="fold")
    looked_at = {entry.id: entry for entry in found.inspected}
    for tool in found.candidates:
        entry = looked_at.get(tool.id)
        link, able = (f"{entry.link:.2f}", ", ".join(entry.capabilities)) if entry else ("", "")
        table.add_row(escape(tool.id), f"{tool.use:.4f}", link, escape(able))
    out.print(table)
    for entry in [entry for entry in found.inspected if not entry.kept][:_CUT_TOLD]:
        out.print(f"cut: {escape(entry.id)}: {escape(entry.why)}", style="bright_black")


_MOST_LINES = 30
_DECIDED = {True: "accepted", False: "refused", None: ""}


def show_proposals(edges: Sequence[Proposal], file: Path | None) -> None:
    """Prints the most likely proposals by dependent tool, their number, and the next step."""
    out = console()
    if not edges:
        out.print("No dependency is proposed.")
        return
    shown = sorted(edges[:_MOST_LINES], key=lambda edge: edge.source)
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
    if len(edges) > _MOST_LINES:
        out.print(f"and {len(edges) - _MOST_LINES:,} more with less confidence", style="bright_black")
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
