"""Prints what is known about a catalog, and runs, for people; uses colours only in a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.status import Status
from rich.table import Column, Table

from callsheet.agents.calls.review import flat
from callsheet.graphs.errors import Finding, Severity
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.cli.approval_prompt import approve_all
from callsheet.orchestrator.run_events import RunEvent, pick_notes, progress_text

if TYPE_CHECKING:
    from callsheet.agents import Call
    from callsheet.graphs.catalog.model import Catalog
    from callsheet.graphs.dependencies import Proposal
    from callsheet.orchestrator.apps.model_evaluation import ModelEvaluation
    from callsheet.retrievers import Discovery, Evaluation, Selection
    from callsheet.retrievers.capabilities import Assignments
    from callsheet.retrievers.inference import DependencyReview

WIDEST = 100
GREY = "bright_black"


class SafeConsole(Console):
    """A console that removes control characters, ANSI codes and other hidden characters from all texts."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Renders as rich does, but removes hidden characters from the text of every segment; styles are kept."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else shown(text, most=None), style, control)


def console(*, wrap: bool = False) -> SafeConsole:
    """Returns a console of at most 100 columns for standard output.

    If the output is not a terminal, lines are unlimited unless they ``wrap``.
    """
    probe = SafeConsole()
    width = min(probe.width, WIDEST) if probe.is_terminal else WIDEST
    return SafeConsole(width=width, highlight=False, soft_wrap=not (wrap or probe.is_terminal))


def table(*columns: Column | str, header: bool = True) -> Table:
    """Returns a table without border lines."""
    return Table(*columns, box=None, pad_edge=False, show_header=header)


def number(header: str = "") -> Column:
    """Returns a column for numbers."""
    return Column(header, justify="right")


def folded_column(header: str = "", style: str = "cyan") -> Column:
    """Returns a column whose long texts take several lines."""
    return Column(header, style=style, overflow="fold")


def cut_line(text: str, most: int) -> str:
    """Returns a text as one line of at most ``most`` characters."""
    return line if len(line := " ".join(text.split())) <= most else f"{line[: most - 1]}…"


_MOST = {Severity.ERROR: 20, Severity.WARNING: 5, Severity.INFO: 3}
_SEVERITY_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "blue"}
_LONGEST_FINDING = 300
_LONGEST_QUERY = 90
_NAMED = 3
_LIKELY = 5
_PAIRS = 10
_MISSES = 10
_PROPOSALS = 30
_DECIDED = {True: "accepted", False: "refused", None: ""}


def show_findings(findings: Sequence[Finding], catalog: Catalog, *, everything: bool) -> None:
    """Prints findings by severity and rule; without ``everything``, only the first few of each rule."""
    out = console()
    order = list(Severity)
    by_severity = sorted(findings, key=lambda finding: order.index(finding.severity))
    for (severity, rule), group in groupby(by_severity, key=lambda finding: (finding.severity, finding.rule)):
        found = list(group)
        out.print(f"[{_SEVERITY_COLOURS[severity]}]{severity}[/] [bold]{escape(rule)}[/] ({len(found)})")
        most = len(found) if everything else _MOST[severity]
        for finding in found[:most]:
            place = f"[cyan]{escape(finding.tool or finding.agent)}[/]: " if finding.tool or finding.agent else ""
            out.print(f"  {place}{escape(cut_line(finding.message, _LONGEST_FINDING))}")
        if len(found) > most:
            out.print(f"  [{GREY}]and {len(found) - most} more: --all shows them[/]")
    counts = ", ".join(counted(sum(one.severity == severity for one in findings), severity) for severity in Severity)
    out.print(f"{catalog.sizes}: {counts}")


def show_assignments(found: Assignments) -> None:
    """Prints the capabilities in use, with some tools of each, and the coverage."""
    out = console()
    rows = table(Column("capability", style="bold", no_wrap=True), number("tools"), folded_column("such as"))
    for name, tools in found.tools_of.items():
        if tools and name in found.taxonomy.leaves:
            rows.add_row(escape(name), str(len(tools)), escape(", ".join([*tools][:_NAMED])))
    out.print(rows)
    having = sum(map(bool, found.of.values()))
    out.print(f"{having:,} of {counted(len(found.of), 'tool')} have a capability ({found.coverage:.1%})")


def show_discovery(found: Discovery) -> None:
    """Prints the likely capabilities and sources, and the candidates."""
    out = console()
    if found.verdict == "nothing_fits":
        out.print("Nothing in the catalog fits well; the nearest are:" if found.candidates else "The catalog is empty.")
    for title, shares in (("likely capabilities", found.capabilities), ("likely sources", found.sources)):
        named = ", ".join(f"{name} {share:.2f}" for name, share in [*shares.items()][:_LIKELY])
        out.print(f"[bold]{title}[/]  {escape(named)}")
    rows = table(folded_column("candidate"), number("use"))
    for tool in found.candidates:
        rows.add_row(escape(tool.id), f"{tool.use:.4f}")
    out.print(rows)


def show_proposals(edges: Sequence[Proposal], file: Path | None, review: DependencyReview | None = None) -> None:
    """Prints the most likely proposals by dependent tool, their number, what a model said, and the next step."""
    out = console()
    if not edges:
        out.print("No dependency is proposed.")
        return
    likely = sorted(edges[:_PROPOSALS], key=lambda edge: edge.source)
    for source, needs in groupby(likely, key=lambda edge: edge.source):
        out.print(f"[bold]{escape(source)}[/]")
        for edge in needs:
            what = f"{edge.parameter} <-" if edge.parameter else "after" if edge.kind.direct else "may follow"
            why = "; ".join(filter(None, (_DECIDED[edge.accept], edge.evidence)))
            out.print(escape(f"  {what} {edge.target}  {edge.confidence:.2f}  {why}"))
    if len(edges) > _PROPOSALS:
        out.print(f"and {len(edges) - _PROPOSALS:,} more with less confidence", style=GREY)
    if review:
        said = f"The model judged {review.judged}: {review.accepted} accepted, {review.dropped} dropped"
        out.print(f"{said}, {review.left} left to you; {review.unanswered} not answered.")
    accepted, refused = (sum(edge.accept is decided for edge in edges) for decided in (True, False))
    counts = f"{counted(len(edges), 'proposal')}, {accepted:,} accepted, {refused:,} refused"
    name = escape(str(file))
    following = f" in {name}: set accept to true or false, then add --catalog {name}"
    out.print(f"{counts}{following if file else '; -o FILE writes them to a file for review'}")


def show_evaluation(
    evaluation: Evaluation, *, catalog: Catalog, methods: Mapping[str, Evaluation] | None = None
) -> None:
    """Prints an evaluation: metrics, other methods, tokens, confused tools, and the first incomplete selections."""
    out = console(wrap=True)
    queries = counted(evaluation.n, "query", "queries")
    sizes = f"{counted(len(catalog.agents), 'agent')}, {counted(len(catalog.tools), 'tool')}"
    speed = f"{evaluation.seconds:.1f} s, {evaluation.seconds_per_query * 1000:.0f} ms a query (median)"
    out.print(f"{queries}, {sizes}: {speed}")
    agents = evaluation.budget["agents"]
    owners = "any number of agents" if agents is None else counted(agents, "agent")
    whose = "every method" if methods else "a selection"
    out.print(f"Budget of {whose}: {counted(evaluation.budget['tools'] or 0, 'tool')} of {owners}.\n")
    out.print(_figures(evaluation))
    labelled = {"agents": evaluation.n_agent, "tools": evaluation.n_tool, "skills": evaluation.n_skill}
    out.print(f"Labelled: {', '.join(f'{n} with {what}' for what, n in labelled.items() if n)}.", style=GREY)
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
        rows = table(number("queries"), folded_column("wanted"), folded_column("ranked above it"))
        for pair in evaluation.confused[:_PAIRS]:
            rows.add_row(str(pair.count), escape(pair.wanted), escape(pair.instead))
        out.print(rows)
    out.print(f"\n[bold]{len(evaluation.missed)} of {queries} lack something[/]")
    for miss in evaluation.missed[:_MISSES]:
        out.print(f"{escape(miss.id)}  {escape(cut_line(miss.query, _LONGEST_QUERY))}", soft_wrap=True)
        for lacking in miss.lacking:
            ids = f"[cyan]{escape(' or '.join(lacking.ids))}[/]"
            out.print(f"   wanted {lacking.kind} {ids}: {escape(lacking.why)}", soft_wrap=True)
        out.print(f"   got    {escape(', '.join(miss.got[:_NAMED]))}", style=GREY, soft_wrap=True)


def _figures(evaluation: Evaluation) -> Table:
    """One row a metric, one column a cut-off."""
    metrics: dict[str, dict[int, str]] = {}
    for name in evaluation.intervals:
        metric, _, cut = name.partition("@")
        metrics.setdefault(metric, {})[int(cut)] = name
    cuts = sorted({cut for names in metrics.values() for cut in names})
    rows = table("", *(number(f"@{cut}") for cut in cuts), Column("95 % interval of the last", style=GREY))
    for metric, names in metrics.items():
        cells = (f"{evaluation.metric(names[cut]):.3f}" if cut in names else "" for cut in cuts)
        low, high = evaluation.intervals[names[max(names)]]
        rows.add_row(metric, *cells, f"{low:.3f} - {high:.3f}")
    return rows


def _side_by_side(methods: Mapping[str, Evaluation]) -> Table:
    """One row a method: recall at the last cut-off of each level, and whole sets of tools, with intervals."""
    last = {name.partition("@")[0]: name for name in next(iter(methods.values())).intervals}
    recalls = [name for metric, name in last.items() if metric.endswith(("recall", "complete"))]
    rows = table(Column("method", style="bold"), *map(number, recalls), number("ms"))
    for method, of in methods.items():
        cells = ("{:.3f} [{:.2f}, {:.2f}]".format(of.metric(name), *of.intervals[name]) for name in recalls)
        rows.add_row(method, *map(escape, cells), f"{of.seconds_per_query * 1000:.0f}")
    return rows


def show_model_evaluation(evaluation: ModelEvaluation) -> None:
    """Prints an evaluation with a model: the arms, failures by cause, and the first failures of each arm."""
    out = console(wrap=True)
    arms = evaluation.arms
    out.print(f"{escape(evaluation.model)}, {counted(len(arms[0].cases) + arms[0].missing, 'request')}\n")
    names = ("n", "right", "interval", f"against {arms[0].arm}", "calls", "input", "cached", "output", "s", "cost")
    rows = table("arm", *map(number, names))
    for arm in arms:
        row = evaluation.row(arm)
        rows.add_row(
            escape(arm.arm),
            str(row["n"]),
            f"{arm.success:.3f}",
            "{:.2f} - {:.2f}".format(*row["interval"]),
            "" if arm is arms[0] else escape("{:+.2f} [{:+.2f}, {:+.2f}]".format(*row["difference"])),
            f"{row['calls']:.1f}",
            *(f"{row[name]:,.0f}" for name in ("input_tokens", "cached_tokens", "output_tokens")),
            f"{row['seconds']:.1f}",
            "" if row["cost"] is None else f"{row['cost']:.4f}",
        )
    out.print(rows)
    out.print("Tokens and calls: means per request. Seconds: median. Intervals: 95 % bootstrap.", style=GREY)
    for arm in arms:
        if arm.causes:
            causes = ", ".join(f"{count} {cause}" for cause, count in arm.causes.items())
            out.print(f"\n[bold]{escape(arm.arm)}[/]: {causes}")
        for case in [case for case in arm.cases if case.grade.cause][:_MISSES]:
            out.print(f"{escape(case.query.id)}  {escape(shown(case.query.query))}", soft_wrap=True)
            detail = shown(f"{case.grade.cause}: {case.grade.detail}")
            out.print(f"   {escape(detail)}", style=GREY, soft_wrap=True)


_WIDTH = 180
_WORKING = "Working"
_MOST_CUTS = 5
"""Cuts of a selection that are printed."""
_STATUS_COLOURS = {
    "done": "green",
    "partly": "yellow",
    "failed": "red",
    "needs_input": "yellow",
    "outcome_unknown": "magenta",
    "skipped": GREY,
}
_NOTE_COLOURS = {"warning": "yellow", "decision": GREY, "skill": "green"}


def progress_line(event: RunEvent) -> str:
    """Returns the progress of a call, or of a remote agent, in one line."""
    who = event.get("tool") or event.get("agent", "")
    return ": ".join(filter(None, (_WORKING, who, progress_text(event))))


class Show:
    """Prints the events of a run as they happen; with ``explain`` also tools that were selected but not called.

    ``runnable`` completes the commands in a text, so that they can be run.
    """

    def __init__(self, *, explain: bool = False, runnable: Callable[[str], str] = str) -> None:
        self._console = console()
        self._runnable = runnable
        self._explain = explain
        self._why: dict[str, dict[str, str]] = {}
        self._told: dict[str, tuple[Call, ...]] = {}
        self._usage: Mapping[str, Any] = {}
        self._status: Status | None = None
        # Why steps were not done: step id, reason and colour. They wait, because an answer that follows repeats them.
        self._reasons: list[tuple[str, str, str]] = []

    @contextmanager
    def working(self) -> Iterator[None]:
        """Shows in a terminal that the run is working, with the progress that a call reports."""
        self._status = self._console.status(_WORKING) if self._console.is_terminal else None
        try:
            with self._status or nullcontext():
                yield
        except BaseException:
            self.reasons()  # no answer follows
            raise

    def event(self, event: RunEvent) -> None:
        """Prints one event of the supervisor; unknown events are ignored."""
        if event.get("event") not in ("step", "usage"):
            self.reasons()
        match event.get("event"):
            case "plan":
                self._plan(event)
            case "picked":
                self._picked(event)
            case "added":
                self._heading(f"Step {escape(event['step_id'])}: asked for {escape(cut_line(event['what'], _WIDTH))}")
                self._console.print(f"  [cyan]{escape(', '.join(event['tools']) or 'nothing fits')}[/]")
            case "step":
                self._step(event)
            case "revision":
                self._revision(event)
            case "usage":
                self._usage = event
            case "tool_started":
                self._used(event.get("step_id", ""), event["tool"])
            case "progress" | "tool_finished" if self._status is not None:
                progress = event["event"] == "progress"
                self._status.update(escape(cut_line(progress_line(event), _WIDTH)) if progress else _WORKING)

    def answer(self, text: str, seconds: float) -> None:
        """Prints the answer."""
        self.reasons(besides=text)
        self._heading(f"Answer ({seconds:.1f} s)")
        self._console.print(escape(self._runnable(text)))
        if self._usage.get("calls"):
            form = "Usage: {calls} model calls, {input_tokens:,} input tokens ({cached_tokens:,} cached), "
            used = (form + "{output_tokens:,} output tokens").format(**self._usage)
            self._console.print(f"[{GREY}]{escape(used)}[/]")

    def waiting(self, interrupts: Sequence[Any], again: str) -> None:
        """Prints the questions that wait for a person, and the command to continue."""
        self.reasons()
        self._heading("Waiting for you")
        for one in interrupts:
            asked = flat(one.value)
            if "description" in asked:
                self._console.print(f"  [yellow]{escape(self._runnable(asked['description']))}[/]")
                if asked.get("type") == "needs_input":
                    self._line(f"values: {', '.join(asked['args'])}", by=4)
                elif asked["shown"] not in asked["description"]:
                    self._indented(asked["shown"], by=4)
            else:
                self._line(str(one.value), by=4)
        # In one line, to be copied: rich would break it at the width of the terminal.
        self._console.print(f"Continue in a terminal with: {escape(again)}", soft_wrap=True)
        if len(approve_all(interrupts)) == len(interrupts):
            self._console.print("or skip all questions with --approval never; deletions still need a person")

    def reasons(self, *, besides: str = "") -> None:
        """Prints why steps were not done, if that is not printed yet and not in the text ``besides``."""
        known = " ".join(besides.split())
        for step, reason, colour in self._reasons:
            if " ".join(reason.split()) not in known:
                self._line(f"Step {step}: {reason}", colour)
        self._reasons.clear()

    def _plan(self, plan: Mapping[str, Any]) -> None:
        if not plan["steps"]:  # the answer says why
            return
        self._heading("Plan")
        for step in plan["steps"]:
            waits = f"  [{GREY}](after {', '.join(step['depends_on'])})[/]" if step["depends_on"] else ""
            self._console.print(f"  [bold]{escape(step['id'])}[/]  {escape(step['text'])}{waits}")
        if plan.get("note"):
            self._console.print(f"  [yellow]{escape(plan['note'])}[/]")

    def _revision(self, event: Mapping[str, Any]) -> None:
        self._heading("Plan revised" if not event["refused"] else "Plan not revised")
        if event["reason"]:
            self._line(event["reason"], "yellow")
        for sign, name in (("+", "added"), ("~", "changed"), ("-", "dropped")):
            for step in event[name]:
                self._indented(f"{sign} {step}  {cut_line(event['texts'].get(step, ''), _WIDTH)}")

    def _picked(self, event: Mapping[str, Any]) -> None:
        from callsheet.orchestrator.step_selection import StepSelection  # a run has imported it

        picked = StepSelection.from_dict(event["selection"])
        step = event["step_id"]
        notes = [(text, _NOTE_COLOURS[kind]) for kind, text in pick_notes(picked, explain=self._explain)]
        if self._explain:
            notes += [(f"{tool}  {picked.why[tool]}", "") for tool in picked.tool_ids]
        else:
            self._why[step] = dict(picked.why)
        if notes:
            self._heading(f"Step {escape(step)}: picked")
        for text, style in notes:
            self._indented(text, style)

    def _used(self, step: str, tool: str) -> None:
        """Prints a pick and its reason when it is called for the first time.

        A worker of several steps calls all tools in its first step, so the other steps are looked at, too.
        """
        for chosen in dict.fromkeys([step, *self._why]):
            why = self._why.get(chosen, {}).pop(tool, "")
            if why:
                about = f"[cyan]{escape(tool)}[/]  [not bold {GREY}]{escape(why)}[/]"
                self._heading(f"Step {escape(chosen)}: picked {about}")
                return

    def _step(self, event: Mapping[str, Any]) -> None:
        from callsheet.orchestrator.state import read_result  # a run has imported it

        result = read_result(event["result"])
        colour = _STATUS_COLOURS[result.status]
        note = f", {result.note}" if result.note else ""
        self._heading(f"Step {event['step_id']}: [{colour}]{result.status}[/]{note}")
        before = self._told.get(result.id, ())
        # Before a person gave values, some were printed.
        new = result.calls[len(before) :] if result.calls[: len(before)] == before else result.calls
        self._told[result.id] = result.calls
        for call in new:
            arguments = escape(cut_line(json.dumps(call.args, ensure_ascii=False), _WIDTH))
            self._console.print(f"  [cyan]{escape(call.tool)}[/] {arguments}  [{GREY}]{call.seconds:.2f} s[/]")
            said = cut_line(call.error or call.output, _WIDTH)
            self._indented(f"-> {said}", "red" if call.error else "", 4)
        if result.error and not any(call.error and result.error.endswith(call.error) for call in new):
            self._reasons.append((result.id, result.error, colour))

    def _line(self, text: str, style: str = "", by: int = 2) -> None:
        self._indented(cut_line(text, _WIDTH), style, by)

    def _indented(self, text: str, style: str = "", by: int = 2) -> None:
        self._console.print(f"{' ' * by}{escape(text)}", style=style)

    def _heading(self, text: str) -> None:
        self._console.print(f"[bold]{text}[/]")


def show_selection(selection: Selection, *, explain: bool) -> None:
    """Prints a selection as a table; with ``explain`` also the candidates that were left out, and why."""
    out = console()
    if selection.verdict == "nothing_fits":
        nearest = selection.agents or selection.skills
        out.print("Nothing in the catalog fits" + (" well; the nearest are:" if nearest else "."))
    if selection.tools:
        out.print(_table(selection, explain=explain))
    for skill in selection.skills:
        names = f", names {', '.join(skill.tools)}" if skill.tools else ""
        out.print(escape(f"skill {skill.id} ({skill.score:.2f}){names}"))
    notes = [selection.order_note] if selection.order_note else []
    if selection.verdict == "unsure":
        notes.append(f"It is not sure that one of these fits: {selection.probability:.2f} likely, by the best score.")
    without_tools = [f"{agent.id} ({agent.score:.2f})" for agent in selection.agents if not agent.tools]
    if without_tools:
        notes.append(f"without a tool among these: {', '.join(without_tools)}")
    if explain:
        notes += _reasons(selection)
    for note in notes:
        out.print(escape(note), style=GREY)


def _reasons(selection: Selection) -> list[str]:
    """Returns a line for each reason of a selection: its verdict, who judged it, the policy, its parts, the cuts."""
    trace = selection.trace
    reasons: list[str] = []
    if trace.verdict:
        likely = ""
        if selection.probability is not None:
            likely = f"{selection.probability:.2f} likely that something fits, "
        reasons.append(f"verdict: {likely}{trace.verdict}")
    if selection.decision:
        reasons.append(f"judged: {selection.decision.summary}")
    if trace.policy:
        reasons.append(trace.policy)
    for agent, terms in trace.contributions.items():
        reasons.append(f"agent {agent}: {' + '.join(map(str, terms))}")
    # The first unit is the request as a whole.
    reasons += [f"{unit.kind}: {unit.text}" for unit in trace.units[1:]]
    reasons += [f"cut: {cut.id} ({cut.score:.2f}): {cut.reason}" for cut in trace.cut[:_MOST_CUTS]]
    return reasons


def _table(selection: Selection, *, explain: bool) -> Table:
    """One row per tool; an agent is named in its first row."""
    from callsheet.retrievers import explain_tool

    why = Column("why" if explain else "", style=GREY)
    rows = table(folded_column("agent", "bold"), number("score"), folded_column("tool"), why)
    for agent in selection.agents:
        named = (escape(agent.id), f"{agent.score:.2f}")
        for tool in agent.tools:
            because = explain_tool(tool.id, selection) if explain or len(tool.via) > 1 else ""
            rows.add_row(*named, escape(tool.id), escape(because))
            named = ("", "")
    return rows
