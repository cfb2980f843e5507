"""``callsheet call`` makes one call of one tool, with the checks and questions of a run."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from callsheet.agents.calls.review import AnswerError, flat
from callsheet.graphs.errors import UnknownNameError, near_names
from callsheet.graphs.text.hidden import shown
from callsheet.orchestrator.cli.approval_prompt import approve_all, ask_person, has_terminal
from callsheet.orchestrator.cli.shared_options import (
    CatalogOptions,
    approval_option,
    catalog_options,
    open_calls_named,
    report,
)

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

    from callsheet.agents import ApprovalPolicy, BoundTool

_SESSION = "call"
_WAITS = {"tool_approval": "needs_approval", "unknown_outcome": "outcome_unknown"}
_EXIT = {"done": 0, "refused": 2}


class _UnansweredError(Exception):
    """A question about a call that nobody answers; its payload is the first argument."""


@click.command(short_help="Call one tool.")
@click.argument("tool_id", metavar="AGENT/TOOL")
@click.argument("given", nargs=-1, metavar="[NAME=VALUE]...")
@approval_option
@catalog_options
def call(options: CatalogOptions, tool_id: str, given: tuple[str, ...], approval: ApprovalPolicy) -> int:
    """Call AGENT/TOOL with these arguments, without a model and without a plan.

    VALUE is a text; or JSON, where the parameter does not take a text. You are asked before a call of a tool that is
    not known to be harmless, as in a run. The exit status is 1 if the call failed or was not approved.

    \b
    Example:
      callsheet call time/get_current_time timezone=Europe/Berlin --catalog mcp.json
    """
    loaded = options.open()
    tool = loaded.catalog.tool(tool_id)

    from callsheet.agents import ToolRegistry
    from callsheet.graphs import User
    from callsheet.orchestrator.run.single_calls import SingleCalls

    registry = ToolRegistry.from_catalog(loaded)
    refused = registry.refused([tool.id]).get(tool.id)
    if refused:
        raise UnknownNameError(f"tool {tool.id!r} cannot be called: {refused}")
    (bound,) = registry.bind([tool.id], _SESSION).values()
    arguments = _arguments(bound, given)
    calls = SingleCalls(approval)
    supervision = calls.supervision(registry, _SESSION, User())

    async def ask(question: Mapping[str, Any]) -> dict[str, Any]:
        waiting = [SimpleNamespace(id=_SESSION, value=question)]
        answers = approve_all(waiting) if approval == "never" else {}
        if not answers and has_terminal() and not options.as_json:
            answers = await asyncio.to_thread(ask_person, waiting)
        if not answers:
            raise _UnansweredError(question)
        answer: dict[str, Any] = answers[_SESSION]
        return answer

    try:
        with open_calls_named(loaded):
            told = _told(asyncio.run(calls.call(bound, arguments, supervision, ask)))
    except _UnansweredError as unanswered:
        told = _unanswered(unanswered.args[0])
    finally:
        registry.close()
    told["error"] = options.runnable(told["error"])
    report(told, shown(told["error"] or told["output"], most=None), as_json=options.as_json)
    return _EXIT.get(told["status"], 1)


def _arguments(bound: BoundTool, given: Sequence[str]) -> dict[str, Any]:
    """Returns the arguments of ``name=value``.

    Raises:
        UsageError: One has another form, is no parameter of the tool, is given twice, or does not fit the schema.
    """
    from callsheet.agents.approval.questions import typed_value

    known = bound.form.plain.get("properties", {})
    arguments: dict[str, Any] = {}
    for one in given:
        name, sign, text = one.partition("=")
        if not sign:
            raise click.UsageError(f"{one!r} is not an argument: write name=value")
        if name not in known:
            names = ", ".join(known) or "none"
            raise click.UsageError(f"{bound.id} has no parameter {name!r}{near_names(name, known)}; it has: {names}")
        if name in arguments:
            raise click.UsageError(f"{name!r} is given twice")
        try:
            arguments[name] = typed_value(bound.form.plain, name, text)
        except AnswerError as error:
            raise click.UsageError(shown(str(error))) from error
    return arguments


def _told(answer: ToolMessage) -> dict[str, Any]:
    """Returns the answer of a call as the fields of the command's JSON."""
    from callsheet.agents.calls.outcome import outcome_in

    outcome = outcome_in(answer)
    if answer.status != "error":
        status = "done"
    elif outcome.effect == "unknown":
        status = "outcome_unknown"
    elif outcome.kind in ("refused", "rejected"):
        status = outcome.kind
    else:
        status = "failed"
    return {"status": status, "output": outcome.text, "data": outcome.structured, "error": outcome.error}


def _unanswered(question: Mapping[str, Any]) -> dict[str, Any]:
    """Returns why a call was not sent about which nobody answered."""
    asked = flat(question)
    status = _WAITS.get(asked["type"], "needs_input")
    why = asked["description"]
    if status == "needs_approval":
        allow = shlex.join(["callsheet", "trust", "allow", asked["tool"]])
        cure = f"repeat this in a terminal, or allow the tool for good with `{allow}`"
        why = f"{asked['tool']} was not called. {asked['why']} Nobody can be asked here: {cure}"
    return {"status": status, "output": "", "data": None, "error": why}
