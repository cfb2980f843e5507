"""Output of the commands about a catalog: ``check``, ``infer``, ``capabilities`` and ``discover``."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Column

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.dependencies import Proposal
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import GREY, console, folded, number, one_line, table

if TYPE_CHECKING:
    from callsheet.retrievers.capabilities import Assignments, Discovery

_MOST = {Severity.ERROR: 20, Severity.WARNING: 5, Severity.INFO: 3}
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
_LONGEST, _NAMED, _CUT, _PROPOSALS = 300, 3, 5, 30
_DECIDED = {True: "accepted", False: "refused", None: ""}


def show_findings(findings: Sequence[Finding], catalog: Catalog, *, everything: bool) -> None:
    """Prints findings by severity and rule; without ``everything``, only the first few of each rule."""
    out, order = console(), list(Severity)
    by_severity = sorted(findings, key=lambda finding: order.index(finding.severity))
    for (severity, rule), group in groupby(by_severity, key=lambda finding: (finding.severity, finding.rule)):
        found = list(group)
        out.print(f"[{_COLOURS[severity]}]{severity}[/] [bold]{escape(rule)}[/] ({len(found)})")
        most = len(found) if everything else _MOST[severity]
        for finding in found[:most]:
            place = f"[cyan]{escape(finding.tool or finding.agent)}[/]: " if finding.tool or finding.agent else ""
            out.print(f"  {place}{escape(one_line(finding.message, _LONGEST))}")
        if len(found) > most:
            out.print(f"  [{GREY}]and {len(found) - most} more: --all shows them[/]")
    counts = ", ".join(counted(sum(one.severity == severity for one in findings), severity) for severity in Severity)
    out.print(f"{catalog.sizes}: {counts}")


def show_assignments(found: Assignments) -> None:
    """Prints the capabilities in use, with the surest tools of each, and the coverage."""
    out = console()
    if not found.of:
        out.print("The catalog holds no tools.")
        return
    rows = table(Column("capability", style="bold", no_wrap=True), number("tools"), folded("such as"))
    for name, tools in found.tools_of.items():
        if tools and name in found.taxonomy.leaves:
            sure = {
                tool: max((c.confidence for c in found.of[tool] if c.capability == name), default=0.0) for tool in tools
            }
            surest = sorted(tools, key=lambda tool: -sure[tool])[:_NAMED]
            rows.add_row(escape(name), str(len(tools)), escape(", ".join(surest)))
    out.print(rows)
    none, count = [tool for tool, entries in found.of.items() if not entries], len(found.of)
    out.print(f"{count - len(none):,} of {counted(count, 'tool')} have a capability ({found.coverage:.1%})")
    if none:
        more = f" and {len(none) - _CUT:,} more" if len(none) > _CUT else ""
        out.print(f"none: {escape(', '.join(none[:_CUT]))}{more}", style=GREY)
    for tool, names in list(found.unknown.items())[:_CUT]:
        out.print(f"unknown: {escape(tool)} has {escape(', '.join(names))}", style="yellow")


def show_discovery(found: Discovery) -> None:
    """Prints each step: capabilities, sources, and the candidates with the runners-up."""
    out = console()
    if found.verdict == "nothing_fits":
        out.print("Nothing in the catalog fits well; the nearest are:" if found.candidates else "The catalog is empty.")
    likely = ", ".join(f"{escape(entry.id)} {entry.likelihood:.2f}" for entry in found.capabilities[:_CUT])
    sources = ", ".join(f"{escape(source.id)} {source.share:.2f}" for source in found.sources)
    for title, said in (("likely capabilities", likely), ("likely sources", sources)):
        if said:
            out.print(f"[bold]{title}[/]{' ' * (21 - len(title))}{said}")
    inspected = {entry.id: entry for entry in found.inspected}
    columns = folded("candidate"), number("use"), number("link"), folded("capabilities", "")
    rows = table(*columns, header=bool(found.candidates))
    for tool in found.candidates:
        entry = inspected.get(tool.id)
        link, able = (f"{entry.link:.2f}", ", ".join(entry.capabilities)) if entry else ("", "")
        rows.add_row(escape(tool.id), f"{tool.use:.4f}", link, escape(able))
    out.print(rows)
    for entry in [entry for entry in found.inspected if not entry.kept][:_CUT]:
        out.print(f"cut: {escape(entry.id)}: {escape(entry.why)}", style=GREY)


def show_proposals(edges: Sequence[Proposal], file: Path | None) -> None:
    """Prints the most likely proposals by dependent tool, their number, and the next step."""
    out = console()
    if not edges:
        out.print("No dependency is proposed.")
        return
    likely = sorted(edges[:_PROPOSALS], key=lambda edge: edge.source)
    for source, needs in groupby(likely, key=lambda edge: edge.source):
        out.print(f"[bold]{escape(source)}[/]")
        rows = table(Column(width=1), Column(), folded(), number(), folded(style=GREY), header=False)
        for edge in needs:
            what = f"{edge.parameter} <-" if edge.parameter else "after" if edge.kind.direct else "may follow"
            why = "; ".join(filter(None, (_DECIDED[edge.accept], edge.evidence)))
            rows.add_row("", *map(escape, (what, edge.target, f"{edge.confidence:.2f}", why)))
        out.print(rows)
    if len(edges) > _PROPOSALS:
        out.print(f"and {len(edges) - _PROPOSALS:,} more with less confidence", style=GREY)
    accepted, refused = (sum(edge.accept is decided for edge in edges) for decided in (True, False))
    counts = f"{counted(len(edges), 'proposal')}, {accepted:,} accepted, {refused:,} refused"
    name = escape(str(file))
    following = f" in {name}: set accept to true or false, then add --catalog {name}"
    out.print(f"{counts}{following if file else '; -o FILE writes them to a file for review'}")
