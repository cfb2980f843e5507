"""``callsheet ask``."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.cli.approval_prompt import (
    approve_all,
    ask_person,
    described,
    has_terminal,
    leave_inputs,
)
from callsheet.orchestrator.cli.shared_options import CatalogOptions, check_model, common, kept_options, run_options
from callsheet.orchestrator.cli.thread_run import RunResult, run
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.run.threads import Threads

if TYPE_CHECKING:
    from callsheet.agents import ApprovalPolicy, Prices
    from callsheet.graphs import Catalog
    from callsheet.orchestrator.cli.output.run_output import Show


@click.command(short_help="Answer a request: plan steps, find tools, carry out the steps.")
@click.argument("query", required=False)
@run_options
@click.option("-k", "agents", default=5, show_default=True, type=click.IntRange(1, 50), help="Maximum agents per step.")
@click.option("--tools", default=10, show_default=True, type=click.IntRange(1, 128), help="Maximum tools per worker.")
@click.option(
    "--planning",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "none", "once", "adaptive"]),
    help="How to plan: none (one worker does all), once, adaptive (change the plan after results), or auto (adaptive, "
    "without a planner for a single small agent).",
)
@click.option(
    "--weak-model", is_flag=True, help="Help a model of a few billion parameters: read calls from its text, ask again."
)
@click.option("--code-mode", is_flag=True, help="Let the model call tools from programs, in a sandbox.")
@click.option(
    "--allow",
    multiple=True,
    metavar="AGENT/TOOL",
    help="A tool whose calls need no approval in this run, although it may change something; repeatable.",
)
@click.option("--thread", metavar="NAME", help="Continue a named conversation, or start one.")
@click.option("--resume", is_flag=True, help="Continue an interrupted run: that of --thread, otherwise the last one.")
@common
def ask(
    options: CatalogOptions,
    query: str | None,
    model: str | None,
    agents: int,
    tools: int,
    prices: Path | None,
    approve: str,
    allow: tuple[str, ...],
    planning: str,
    thread: str | None,
    *,
    weak_model: bool,
    code_mode: bool,
    resume: bool,
) -> int:
    """Answer QUERY: plan steps, find agents and tools for each step, and carry out the steps.

    You are asked before each call of a tool that is not known to be harmless. Without a terminal, the run stops at the
    question and continues with --resume.

    \b
    Example:
      callsheet ask "Convert 3 miles to km and write the result to km.txt" --catalog mcp.json
    """
    from callsheet.agents import ToolRegistry, read_prices

    threads = Threads()
    thread = _thread(threads, query, thread, resume=resume)
    began = time.monotonic()
    check_model(model)
    priced = read_prices(prices)
    if code_mode and not model:
        raise click.UsageError("--code-mode needs --model, which writes the programs")
    if code_mode:
        from callsheet.agents.programs import check_installed

        check_installed()
    loaded = options.open()
    retriever = options.retriever(loaded)

    from callsheet.graphs.dependencies import ObservationLog
    from callsheet.orchestrator.supervisor import create_supervisor

    settings = Settings(
        model=model,
        agents=agents,
        tools=tools,
        approval=cast("ApprovalPolicy", approve),
        allow=_allowed(loaded.catalog, allow),
        planning=cast("Planning", planning),
        weak_model=weak_model,
        attended=not options.as_json and has_terminal(),
        code_mode=code_mode,
    )
    registry = ToolRegistry.from_catalog(loaded)
    workflow = create_supervisor(
        loaded, retriever=retriever, registry=registry, settings=settings, observed=ObservationLog()
    )
    from callsheet.orchestrator.cli.output.run_output import Show

    show, again = None if options.as_json else Show(priced), _again(thread)
    given = None if resume else {"messages": [{"role": "user", "content": query}]}
    with threads.locked(thread):
        try:
            ran = _run(workflow, threads, thread, given, show, approve)
        except (KeyboardInterrupt, click.Abort) as error:
            error.add_note(f"continue with: {again}")
            raise
        finally:
            registry.close()
        threads.settle(thread, ended=not ran.left)
    if show is None:
        click.echo(json.dumps(_report(ran, thread, again, time.monotonic() - began, priced), ensure_ascii=False))
    elif ran.waiting:
        show.waiting(ran.waiting, again)
    else:
        show.answer(ran.answer, time.monotonic() - began)
    return 0 if ran.done else 1


def _allowed(catalog: Catalog, allow: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of tools that are allowed for this run.

    Raises:
        UnknownNameError: There is no such tool.
    """
    return tuple(catalog.tool(tool_id).id for tool_id in allow)


def _thread(threads: Threads, query: str | None, thread: str | None, *, resume: bool) -> str:
    """The thread to work in.

    Raises:
        UsageError: There is neither a request nor a run to resume, or both.
    """
    if resume:
        if query is not None:
            raise click.UsageError("--resume continues with the same request: leave the question out")
        chosen = threads.latest() if thread is None else thread
        threads.check(chosen)
        return chosen
    if not (query or "").strip():
        raise click.UsageError("the question is empty: say what is to be done")
    threads.sweep()
    return threads.new() if thread is None else thread


def _run(workflow: Any, threads: Threads, thread: str, given: Any, show: Show | None, approve: str) -> RunResult:
    """Runs until the end, or until nobody answers the pending questions."""

    def once(given: Any) -> RunResult:
        with show.working() if show else nullcontext():
            return runner.run(run(workflow, threads, thread, given, show.event if show else lambda _: None))

    # One loop for all rounds: the connections of a chat model belong to the loop of its first call.
    with asyncio.Runner() as runner:
        return _rounds(once, given, show, approve)


def _rounds(once: Callable[[Any], RunResult], given: Any, show: Show | None, approve: str) -> RunResult:
    from langgraph.types import Command

    while True:
        ran = once(given)
        answers = approve_all(ran.waiting) if approve == "never" else {}
        if approve == "never" or show is None or not has_terminal():
            answers |= leave_inputs(ran.waiting)
        left = [found for found in ran.waiting if found.id not in answers]
        asked = ask_person(left) if left and has_terminal() else {}
        if not (answers := {**answers, **asked}):
            return ran
        given = Command(resume=answers)
        if len(asked) < len(left):  # some were left for later: the rest is done, and nothing is asked again
            return once(given)


def _again(thread: str) -> str:
    """The command that continues a run."""
    kept = kept_options("thread", "resume", "as_json")
    return shlex.join(["callsheet", "ask", "--resume", "--thread", thread, *kept])


def _report(ran: RunResult, thread: str, again: str, seconds: float, prices: Prices) -> dict[str, Any]:
    waits = f"Stopped to ask: waiting for a person with {counted(len(ran.waiting), 'question')}. Continue with: {again}"
    from callsheet.agents import Usage

    usage = ran.state.get("usage", {})
    return {
        "answer": waits if ran.waiting else ran.answer,
        "steps": ran.steps(),
        "note": ran.plan["note"],
        "usage": usage,
        "cost": asdict(prices.cost(Usage.from_report(usage))) if usage else None,
        "revisions": ran.state.get("revisions", []),
        "thread": thread,
        "waiting": described(ran.waiting),
        "seconds": round(seconds, 3),
    }
