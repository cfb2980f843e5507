"""Output of runs and selections: plan, selected tools, calls and answer; colours only on a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.status import Status
from rich.table import Column, Table
from rich.text import Text

from callsheet.agents.calls.review import flat
from callsheet.orchestrator.cli.approval_prompt import approve_all
from callsheet.orchestrator.cli.output.console import GREY, console, folded, number, one_line, table
from callsheet.retrievers import Decision, Selection, explain_tool

_LONGEST = 180
_COLOURS = {
    "done": "green",
    "failed": "red",
    "needs_input": "yellow",
    "outcome_unknown": "magenta",
    "skipped": GREY,
}


class Show:
    """Prints the events of a run as they happen; with ``explain`` also the picks that no call has used."""

    def __init__(self, *, explain: bool = False) -> None:
        self._console, self._explain = console(), explain
        self._why: dict[str, dict[str, str]] = {}
        self._calls: dict[str, str] = {}
        self._told: dict[str, list[Any]] = {}
        self._status: Status | None = None
        self._usage: Mapping[str, Any] = {}

    @contextmanager
    def working(self) -> Iterator[None]:
        """Shows on a terminal that the run is working, and which tools are called."""
        if not self._console.is_terminal:
            yield
            return
        self._calls.clear()
        with self._console.status("Working") as self._status:
            yield
        self._status = None

    def event(self, event: Mapping[str, Any]) -> None:
        """Prints one custom event of the supervisor; unknown events are ignored."""
        match event.get("event"):
            case "plan":
                self._plan(event)
            case "picked":
                self._picked(event)
            case "added":
                self._heading(f"Step {escape(event['step_id'])}: asked for {escape(one_line(event['what'], _LONGEST))}")
                self._console.print(f"  [cyan]{escape(', '.join(event['tools']) or 'nothing fits')}[/]")
            case "step":
                self._step(event)
            case "revision":
                self._revision(event)
            case "usage":
                self._usage = event
            case "tool_started":
                self._calls[event["call_id"]] = event["tool"]
                self._used(event.get("step_id", ""), event["tool"])
                self._now()
            case "tool_finished":
                self._calls.pop(event["call_id"], None)
                self._now()

    def _now(self) -> None:
        if self._status is not None:
            self._status.update(escape(f"Working: {', '.join(self._calls.values())}") if self._calls else "Working")

    def answer(self, text: str, seconds: float) -> None:
        """Prints the answer."""
        title = f"Answer ({seconds:.1f} s)"
        if self._console.is_terminal:
            self._console.print(Panel(Text(text), title=title, title_align="left", border_style="green"))
        else:
            self._console.print(f"{title}\n{escape(text)}")
        if self._usage.get("calls"):
            form = "Usage: {calls} model calls, {input_tokens:,} input tokens ({cached_tokens:,} cached), "
            used = (form + "{output_tokens:,} output tokens").format(**self._usage)
            self._console.print(f"[{GREY}]{escape(used)}[/]")

    def waiting(self, interrupts: Sequence[Any], again: str) -> None:
        """Prints what waits for a person, and the command to continue."""
        self._heading("Waiting for you")
        for one in interrupts:
            asked = flat(one.value)
            if "description" in asked:
                self._console.print(f"  [yellow]{escape(str(asked['description']))}[/]")
                if "args" in asked:
                    self._line(json.dumps(asked["args"], ensure_ascii=False), by=4)
            else:
                self._line(str(one.value), by=4)
        self._console.print(f"Continue in a terminal with: {escape(again)}")
        if len(approve_all(interrupts)) == len(interrupts):
            self._console.print("or skip all questions with --approval never; deletions still need a person")

    def _plan(self, plan: Mapping[str, Any]) -> None:
        if not plan["steps"]:  # the answer says why
            return
        if plan.get("request", "").strip() != plan.get("said", plan.get("request", "")).strip():
            self._heading("Request")
            self._indented(plan["request"])
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
                self._indented(f"{sign} {step}  {one_line(event['texts'].get(step, ''), _LONGEST)}")

    def _picked(self, event: Mapping[str, Any]) -> None:
        selection, step = event["selection"], event["step_id"]
        notes = [(f"without {agent}: {why}", "yellow") for agent, why in selection.get("left_out", {}).items()]
        for agent, since in selection.get("down", {}).items():
            notes.append((f"{agent} did not answer when last asked; its tools are as of {since}", "yellow"))
        if (decision := selection.get("decision")) and (decision["error"] or self._explain):
            notes.append((f"judged: {Decision(**decision).summary}", "yellow" if decision["error"] else GREY))
        if selection["verdict"] == "nothing_fits":
            notes.append(("nothing in the catalog fits", ""))
        notes += [(f"skill {one['id']}, score {one['score']:.2f}", "green") for one in selection.get("skills", ())]
        if self._explain:
            tools = dict.fromkeys(tool["id"] for agent in selection["agents"] for tool in agent["tools"])
            notes += [(f"{tool}  {event['why'][tool]}", "") for tool in tools]
        else:
            self._why[step] = dict(event["why"])
        if notes:
            again = f", attempt {event['attempt']}" if event["attempt"] > 1 else ""
            self._heading(f"Step {escape(step)}: picked{again}")
        for text, style in notes:
            self._indented(text, style)

    def _used(self, step: str, tool: str) -> None:
        """Prints a pick and its reason when it is called for the first time."""
        if why := self._why.get(step, {}).pop(tool, ""):
            self._heading(f"Step {escape(step)}: picked [cyan]{escape(tool)}[/]  [not bold {GREY}]{escape(why)}[/]")

    def _step(self, event: Mapping[str, Any]) -> None:
        result = event["result"]
        colour = _COLOURS[result["status"]]
        note = f", {result['note']}" if result.get("note") else ""
        self._heading(f"Step {event['step_id']}: [{colour}]{result['status']}[/]{note}")
        before, calls = self._told.get(result["id"], []), list(result["calls"])
        new = calls[len(before) :] if calls[: len(before)] == before else calls  # earlier attempts were printed
        self._told[result["id"]] = calls
        for call in new:
            arguments = escape(one_line(json.dumps(call["args"], ensure_ascii=False), _LONGEST))
            self._console.print(f"  [cyan]{escape(call['tool'])}[/] {arguments}  [{GREY}]{call['seconds']:.2f} s[/]")
            said = one_line(call["error"] or call["output"], _LONGEST)
            self._indented(f"-> {said}", "red" if call["error"] else "", 4)
        if result["error"] and not any(call["error"] and result["error"].endswith(call["error"]) for call in new):
            self._line(result["error"], colour)

    def _line(self, text: str, style: str = "", by: int = 2) -> None:
        self._indented(one_line(text, _LONGEST), style, by)

    def _indented(self, text: str, style: str = "", by: int = 2) -> None:
        if self._console.is_terminal:
            self._console.print(Padding(Text(text, style=style, overflow="fold"), (0, 0, 0, by)))
        else:
            self._console.print(f"{' ' * by}{escape(text)}")

    def _heading(self, text: str) -> None:
        self._console.print(f"[bold]{text}[/]")


def show_selection(selection: Selection, *, explain: bool) -> None:
    """Prints a selection as a table; with ``explain`` also what was cut, and why."""
    out, trace = console(), selection.trace
    if selection.verdict == "nothing_fits":
        nearest = selection.agents or selection.skills
        out.print("Nothing in the catalog fits" + (" well; the nearest are:" if nearest else "."))
    if selection.tools:
        out.print(_table(selection, explain=explain))
    for skill in selection.skills:
        names = f", names {', '.join(skill.tools)}" if skill.tools else ""
        out.print(escape(f"skill {skill.id} ({skill.score:.2f}){names}"))
    notes = []
    if bare := [f"{agent.id} ({agent.score:.2f})" for agent in selection.agents if not agent.tools]:
        notes.append(f"without a tool among these: {', '.join(bare)}")
    if explain:
        likely = "" if selection.probability is None else f"{selection.probability:.2f} likely that something fits, "
        notes += [f"verdict: {likely}{trace.verdict}"] if trace.verdict else []
        notes += [f"judged: {selection.decision.summary}"] if selection.decision else []
        notes += [trace.policy] if trace.policy else []
        notes += [f"{unit.kind}: {unit.text}" for unit in trace.units[1:]]
        notes += [f"cut: {cut.id} ({cut.score:.2f}): {cut.reason}" for cut in trace.cut[:5]]
    for note in notes:
        out.print(escape(note), style=GREY)


def _table(selection: Selection, *, explain: bool) -> Table:
    """One row per tool; an agent is named in its first row."""
    why = Column("why" if explain else "", style=GREY)
    rows = table(folded("agent", "bold"), number("score"), folded("tool"), why)
    for agent in selection.agents:
        named = (escape(agent.id), f"{agent.score:.2f}")
        for tool in agent.tools:
            because = explain_tool(tool.id, selection) if explain or len(tool.via) > 1 else ""
            rows.add_row(*named, escape(tool.id), escape(because))
            named = ("", "")
    return rows
