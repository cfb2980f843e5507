"""Output of capabilities and discoveries."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import console
from callsheet.retrievers.capabilities import Assignments, Discovery

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
