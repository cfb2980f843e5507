"""Output of the commands about a catalog: findings, proposals, capabilities, discoveries and evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.dependencies import Proposal
from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.cli.output.console import GREY, console, folded, number, one_line, table
from callsheet.retrievers import Evaluation

if TYPE_CHECKING:
    from callsheet.orchestrator.apps.model_evaluation import ArmResult, ModelEvaluation
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
    for title, shares in (("likely capabilities", found.capabilities), ("likely sources", found.sources)):
        if said := ", ".join(f"{escape(name)} {share:.2f}" for name, share in [*shares.items()][:_CUT]):
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


_LONGEST_QUERY, _PAIRS, _GOT = 90, 10, 3
_LEVELS = ("agent", "tool", "skill")
_TITLES = {"recall": "recall", "map": "mAP", "ndcg": "nDCG", "complete": "complete"}


def show_evaluation(
    evaluation: Evaluation, *, catalog: Catalog, misses: int, methods: Mapping[str, Evaluation] | None = None
) -> None:
    """Prints an evaluation: metrics, methods beside it, tokens, confused tools, and the first missed queries."""
    out = console(wrap=True)
    sizes = f"{counted(len(catalog.agents), 'agent')}, {counted(len(catalog.tools), 'tool')}"
    speed = f"{evaluation.seconds:.1f} s, {evaluation.seconds_per_query * 1000:.0f} ms a query (median)"
    out.print(f"{_queries(evaluation.n)}, {sizes}: {speed}\n")
    out.print(_figures(evaluation))
    for note in _notes(evaluation):
        out.print(note, style=GREY, soft_wrap=True)
    if methods:
        out.print(_side_by_side(methods))
        out.print("In brackets: 95 % intervals.", style=GREY)
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


def _side_by_side(methods: Mapping[str, Evaluation]) -> Table:
    """One row a method: recall at the last cut-off of each level, and whole sets of tools, with intervals."""
    last = {name.partition("@")[0]: name for name in next(iter(methods.values())).intervals}
    recalls = [name for metric, name in last.items() if metric.endswith(("recall", "complete"))]
    rows = table(Column("method", style="bold"), *map(number, recalls), number("ms"))
    for method, of in methods.items():
        values = {f"{level}.{n}": v for level in _LEVELS for n, v in getattr(of, level).items()} | {**of.complete}
        cells = ("{:.3f} [{:.2f}, {:.2f}]".format(values[name], *of.intervals[name]) for name in recalls)
        rows.add_row(method, *map(escape, cells), f"{of.seconds_per_query * 1000:.0f}")
    return rows


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
        out.print(f"{escape(miss.id)}  {escape(one_line(miss.query, _LONGEST_QUERY))}", soft_wrap=True)
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
