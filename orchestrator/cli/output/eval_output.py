"""Output of ``callsheet eval``: tables of at most 100 columns, plain in a pipe."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from callsheet.graphs import Catalog
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.output.console import GREY, WIDEST, SafeConsole, one_line
from callsheet.retrievers import Evaluation
from callsheet.retrievers.evaluation.evaluator import Lacking

_LONGEST, _PAIRS, _GOT = 90, 10, 3
_TITLES = {"recall": "recall", "map": "mAP", "ndcg": "nDCG"}


def show_evaluation(evaluation: Evaluation, *, catalog: Catalog, misses: int) -> None:
    """Prints an evaluation: metrics, tokens, confused tools, and the first ``misses`` missed queries."""
    probe = SafeConsole()
    console = SafeConsole(highlight=False, width=min(probe.width, WIDEST) if probe.is_terminal else WIDEST)
    console.print(
        f"{_queries(evaluation.n)}, {counted(len(catalog.agents), 'agent')}, "
        f"{counted(len(catalog.tools), 'tool')}: "
        f"{evaluation.seconds:.1f} s, {evaluation.seconds_per_query * 1000:.0f} ms a query (median)\n"
    )
    console.print(_figures(evaluation))
    for note in _notes(evaluation):
        console.print(note, style=GREY, soft_wrap=True)
    tokens = evaluation.tokens
    console.print(
        f"\nA selection costs a model about {tokens.selected:,.0f} tokens, all tools {tokens.all:,} "
        f"({tokens.share:.1%}), counted with the embedder's tokenizer.",
        soft_wrap=True,
    )
    _confused(console, evaluation)
    _missed(console, evaluation, misses)


def _figures(evaluation: Evaluation) -> Table:
    levels = {"agent": evaluation.agent, "tool": evaluation.tool, "skill": evaluation.skill}
    cuts = sorted({_cut(name) for of in levels.values() for name in of})
    columns = [Column(f"@{cut}", justify="right") for cut in cuts]
    last_column = Column("95 % interval of the last", style=GREY)
    table = Table("", "", *columns, last_column, box=None, pad_edge=False, header_style="bold")
    for level, of in levels.items():
        last = max(map(_cut, of), default=0)
        names = {f"{level}.{name}@{last}": (name, title) for name, title in _TITLES.items() if f"{name}@{last}" in of}
        for position, (full, (name, title)) in enumerate(names.items()):
            row = [_number(of.get(f"{name}@{cut}")) for cut in cuts]
            table.add_row(f"[bold]{level}[/]" if position == 0 else "", title, *row, _interval(evaluation, full))
        if level == "tool" and evaluation.complete:
            row = [_number(evaluation.complete.get(f"complete@{cut}")) for cut in cuts]
            table.add_row("", "complete", *row, _interval(evaluation, list(evaluation.complete)[-1]))
    return table


def _queries(number: int) -> str:
    return counted(number, "query", "queries")


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


def _confused(console: Console, evaluation: Evaluation) -> None:
    if not evaluation.confused:
        return
    console.print("\n[bold]Most often confused[/]")
    ids = [Column(name, style="cyan", overflow="fold") for name in ("wanted", "ranked above it")]
    table = Table(Column("queries", justify="right"), *ids, box=None, pad_edge=False, header_style="bold")
    for pair in evaluation.confused[:_PAIRS]:
        table.add_row(str(pair.count), escape(pair.wanted), escape(pair.instead))
    console.print(table)


def _missed(console: Console, evaluation: Evaluation, most: int) -> None:
    shown = evaluation.missed[:most]
    rest = f", the first {len(shown)}" if 0 < len(shown) < len(evaluation.missed) else ""
    console.print(f"\n[bold]{len(evaluation.missed)} of {_queries(evaluation.n)} lack something{rest}[/]")
    for miss in shown:
        console.print(f"{escape(miss.id)}  {escape(one_line(miss.query, _LONGEST))}", soft_wrap=True)
        for lacking in miss.lacking:
            ids = f"[cyan]{escape(' or '.join(lacking.ids))}[/]"
            console.print(f"   wanted {lacking.kind} {ids}: {escape(lacking.why)}", soft_wrap=True)
            if evidence := _evidence(lacking):
                console.print(f"          {evidence}", style=GREY, soft_wrap=True)
        console.print(f"   got    {escape(', '.join(miss.got[:_GOT]))}", style=GREY, soft_wrap=True)


def _evidence(lacking: Lacking) -> str:
    known = lacking.evidence
    if known is None:
        return ""
    said = [f"{lacking.kind} number {lacking.rank} by its own score {known.score:.2f}"]
    if known.cosine is not None:
        said.append(f"meaning {known.cosine:.2f} (#{known.cosine_rank})")
    if known.words is not None:
        said.append(f"words {known.words:.1f} (#{known.words_rank})")
    return ", ".join(said)


def _cut(name: str) -> int:
    return int(name.partition("@")[2])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _interval(evaluation: Evaluation, name: str) -> str:
    low, high = evaluation.intervals[name]
    return f"{low:.3f} - {high:.3f}"
