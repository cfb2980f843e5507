"""``callsheet ask``: runs the supervisor in a thread of the command line, and reports the result."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from callsheet.agents.calls.review import flat
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.cli import output
from callsheet.orchestrator.cli.approval_prompt import (
    approve_all,
    ask_person,
    has_terminal,
    leave_inputs,
    plain_questions,
)
from callsheet.orchestrator.cli.shared_options import (
    CatalogOptions,
    check_model_name,
    common,
    decision_option,
    open_calls_named,
    run_options,
    size_options,
)
from callsheet.orchestrator.run.threads import Threads, stream_in_thread, sweep_threads
from callsheet.orchestrator.run_events import RunEvent, values_of

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

    from callsheet.orchestrator.cli.output import Show

_STEP_FIELDS = ("id", "text", "depends_on", "agents", "tools", "status", "calls", "result", "note", "data", "error")
_EXIT = {"done": 0, "partly": 3}
_WAITS = {
    "tool_approval": "needs_approval",
    "new_tool": "needs_approval",
    "unknown_outcome": "outcome_unknown",
    "needs_input": "needs_input",
}


@click.command(short_help="Answer a request: plan steps, find tools, carry out the steps.")
@click.argument("query", required=False)
@run_options
@size_options(50, 128, "worker", default="15")
@click.option(
    "--planning",
    default="auto",
    metavar="MODE",
    show_default=True,
    help="auto: a model plans the request (but for a single small agent); none: one worker does all of it.",
)
@click.option(
    "--code-mode/--no-code-mode",
    default=True,
    help="Whether the model may also call tools from programs, in a sandbox.",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="AGENT/TOOL",
    help="A tool whose calls need no approval in this run, although it may change something; repeatable.",
)
@decision_option
@click.option("--thread", metavar="NAME", help="Continue a named conversation, or start one.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run: that of --thread, otherwise the last one.")
@click.option("--explain", is_flag=True, help="Print why each tool was selected, also for tools that no call has used.")
@common
def ask(
    options: CatalogOptions,
    query: str | None,
    thread: str | None,
    allow: tuple[str, ...],
    *,
    resume: bool,
    explain: bool,
    **of_run: Any,
) -> int:
    """Answer QUERY: plan steps, find agents and tools for each step, and carry out the steps.

    You are asked before each call of a tool that is not known to be harmless. Without a terminal, the run stops at the
    question and continues with --resume.

    \b
    Example:
      callsheet ask "Convert 3 miles to km and write the result to km.txt" --catalog mcp.json
    """
    from callsheet.agents import ToolRegistry

    _check_request(query, resume=resume)
    began = time.monotonic()
    check_model_name(of_run["model"])
    check_model_name(of_run["decision_model"])
    loaded = options.open()
    threads = Threads.of(loaded)
    thread = _thread_of(threads, thread, resume=resume)
    retriever = options.retriever(loaded)

    from callsheet.graphs.dependencies import ObservationLog
    from callsheet.orchestrator.run.settings import Settings
    from callsheet.orchestrator.supervisor import create_supervisor

    allowed = tuple(loaded.catalog.tool(tool_id).id for tool_id in allow)
    given_settings = {name: value for name, value in of_run.items() if value is not None}
    settings = Settings(allow=allowed, attended=not options.as_json and has_terminal(), **given_settings)
    registry = ToolRegistry.from_catalog(loaded)
    workflow = create_supervisor(
        loaded, retriever=retriever, registry=registry, settings=settings, observed=ObservationLog()
    )
    show = None if options.as_json else output.Show(explain=explain, runnable=options.runnable)
    again = options.again("--resume", "--thread", thread, without=("resume", "thread", "as_json"))
    given = None if resume else {"messages": [{"role": "user", "content": query}]}
    try:
        with threads.locked(thread), open_calls_named(loaded, thread):
            ran = _answered(workflow, threads, thread, given, show, settings.approval)
    except (KeyboardInterrupt, click.Abort):
        click.echo(f"\ncontinue with: {again}", err=True)
        raise
    finally:
        registry.close()
    seconds = time.monotonic() - began
    if show is None:
        click.echo(json.dumps(_report(ran, thread, again, seconds, options.runnable), ensure_ascii=False))
    elif ran.waiting:
        show.waiting(ran.waiting, again)
    else:
        show.answer(ran.answer, seconds)
    return ran.exit_status


def _check_request(query: str | None, *, resume: bool) -> None:
    """Raises a usage error if there is no request, or one beside ``--resume``."""
    if resume:
        if query is not None:
            raise click.UsageError("--resume continues with the same request: leave the question out")
    elif not (query or "").strip():
        raise click.UsageError("the request is empty: write what is to be done")


def _thread_of(threads: Threads, name: str | None, *, resume: bool) -> str:
    """Returns the thread to continue, or a new one; a ``SettingsError`` if there is none to continue."""
    if resume:
        thread = threads.latest() if name is None else name
        threads.check(thread)
        return thread
    sweep_threads()
    return threads.new() if name is None else name


def _answered(workflow: Any, threads: Threads, thread: str, given: Any, show: Show | None, approval: str) -> RunResult:
    """Runs until the end, or until nobody answers the pending questions."""
    from langgraph.types import Command

    # One loop for all rounds: the connections of a chat model belong to the loop of its first call.
    with asyncio.Runner() as runner:
        left: list[Any] = []
        asked: dict[str, object] = {}
        while True:
            with show.working() if show else nullcontext():
                ran = runner.run(run_workflow(workflow, threads, thread, given, show.event if show else lambda _: None))
            if len(asked) < len(left):  # some were left for later: the rest is done, and nothing is asked again
                return ran
            answers = approve_all(ran.waiting) if approval == "never" else {}
            if approval == "never" or show is None or not has_terminal():
                answers |= leave_inputs(ran.waiting)
            left = [one for one in ran.waiting if one.id not in answers]
            asked = _asked(left, show) if left else {}
            answers = {**answers, **asked}
            if not answers:
                return ran
            given = Command(resume=answers)


def _asked(left: Sequence[object], show: Show | None) -> dict[str, object]:
    """Returns the answers of a person at the terminal, who first sees what was not printed yet."""
    if show is not None:
        show.reasons()
    return ask_person(left) if has_terminal() else {}


async def run_workflow(
    workflow: StateGraph[Any, Any, Any, Any],
    threads: Threads,
    thread: str,
    given: Any,
    show: Callable[[RunEvent], None],
) -> RunResult:
    """Runs a workflow in a thread until it ends or waits for a person, and prints its events.

    Raises:
        SettingsError: There is nothing to continue, or a new request would replace an unfinished one.
    """
    now = await stream_in_thread(
        workflow, threads, thread, given, modes=["custom"], take=lambda _, __, event: show(event)
    )
    return RunResult(values_of(now), now.interrupts)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run that has ended, or that waits for a person.

    Attributes:
        state: Its values, with the results of an unfinished wave.
        waiting: The interrupts that wait for a person; empty if the run has ended.
    """

    state: Mapping[str, Any]
    waiting: tuple[Any, ...]

    @property
    def answer(self) -> str:
        """Returns the text of the last message."""
        text: str = self.state["messages"][-1].text
        return text

    @property
    def exit_status(self) -> int:
        """Returns 0 if every step was done, 3 if a part of the request was done, otherwise 1."""
        return 1 if self.waiting else _EXIT.get(self.state.get("ended", ""), 1)

    @property
    def plan(self) -> Mapping[str, Any]:
        """Returns the plan; it has no steps while the user is asked about the request."""
        return self.state.get("plan") or {"steps": [], "note": ""}

    def steps(self) -> list[dict[str, Any]]:
        """Returns every step of the plan with its result; a step that has not run has the status ``waiting``."""
        return [self._step(step) for step in self.plan["steps"]]

    def _step(self, step: Mapping[str, Any]) -> dict[str, Any]:
        done = self.state.get("results", {}).get(step["id"])
        if done is not None:
            return {name: done[name] for name in _STEP_FIELDS}
        from callsheet.orchestrator.step_selection import StepSelection  # the run has imported it

        picked = StepSelection.from_dict(self.state.get("selections", {}).get(step["id"]))
        values = (one.value for one in self.waiting if isinstance(one.value, Mapping))
        asked = [one for one in values if one.get("type") in _WAITS and one.get("step_id") == step["id"]]
        return {
            **{name: step[name] for name in ("id", "text")},
            "depends_on": list(step["depends_on"]),
            "agents": picked.agent_ids,
            "tools": picked.tool_ids,
            "status": _WAITS[asked[0]["type"]] if asked else "waiting",
            "calls": [],
            "result": "",
            "note": "",
            "data": None,
            "error": " ".join(flat(one)["description"] for one in asked),
        }


def _report(ran: RunResult, thread: str, again: str, seconds: float, runnable: Callable[[str], str]) -> dict[str, Any]:
    """Returns the JSON of the command; ``runnable`` completes the commands that its texts name."""
    waits = f"Stopped to ask: waiting for a person with {counted(len(ran.waiting), 'question')}. Continue with: {again}"
    return {
        "answer": waits if ran.waiting else runnable(ran.answer),
        "steps": [{**step, "error": runnable(step["error"])} for step in ran.steps()],
        "note": ran.plan["note"],
        "usage": ran.state.get("usage", {}),
        "revisions": ran.state.get("revisions", []),
        "thread": thread,
        "waiting": plain_questions(ran.waiting),
        "seconds": round(seconds, 3),
    }
