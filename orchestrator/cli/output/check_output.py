"""Output of ``callsheet check``: findings by rule, the most severe first, a few of each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.markup import escape

from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import console

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
