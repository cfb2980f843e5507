"""``callsheet ask``."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from callsheet.orchestrator.cli.options import common, open_catalog, open_retriever
from callsheet.orchestrator.settings import Environment, Settings

if TYPE_CHECKING:
    from callsheet.agents import ToolRegistry

_STEP_FIELDS = ("id", "text", "depends_on", "agents", "tools", "status", "calls", "result", "error")


@click.command()
@click.argument("query")
@click.option(
    "--model",
    default=Environment().model,
    metavar="PROVIDER:NAME",
    help="Chat model for plan, workers and answer.  [default: CALLSHEET_MODEL; none works by rules]",
)
@click.option("-k", "agents", default=5, show_default=True, type=click.IntRange(1, 50), help="Agents for a step.")
@click.option(
    "--tools", default=10, show_default=True, type=click.IntRange(1, 128), help="Tools that a worker gets at most."
)
@common
def ask(
    query: str,
    model: str | None,
    agents: int,
    tools: int,
    catalogs: tuple[str, ...],
    place: str | None,
    embeddings: str,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Answer QUERY: plan it, find agents and tools for each step, let workers do the steps.

    \b
    Example:
      callsheet ask "Convert 3 miles to km and write the result to km.txt" --catalog mcp.json
    """
    if not query.strip():
        raise click.UsageError("the question is empty: say what is to be done")
    began = time.monotonic()
    loaded = open_catalog(catalogs, yes=yes)
    retriever = open_retriever(loaded, place, embeddings)

    from callsheet.agents import ToolRegistry, chat_model
    from callsheet.graphs.inference import ObservationLog
    from callsheet.orchestrator.supervisor import create_supervisor

    if model:
        chat_model(model)
    settings = Settings(model=model, agents=agents, tools=tools)
    registry = ToolRegistry.from_catalog(loaded)
    observed = ObservationLog()
    workflow = create_supervisor(loaded, retriever=retriever, registry=registry, settings=settings, observed=observed)
    app = workflow.compile(name="supervisor")
    if as_json:
        state = _run(app, query, registry, lambda _: None)
        click.echo(json.dumps(_report(state, time.monotonic() - began), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.show import Show

        show = Show()
        state = _run(app, query, registry, show.event)
        show.answer(state["messages"][-1].text, time.monotonic() - began)
    steps = _steps(state)
    return 0 if steps and all(step["status"] == "done" for step in steps) else 1


def _run(app: Any, query: str, registry: ToolRegistry, show: Callable[[Mapping[str, Any]], None]) -> dict[str, Any]:
    async def follow() -> dict[str, Any]:
        state: dict[str, Any] = {}
        given = {"messages": [{"role": "user", "content": query}]}
        async for namespace, mode, chunk in app.astream(given, stream_mode=["custom", "values"], subgraphs=True):
            if mode == "custom":
                show(chunk)
            elif not namespace:
                state = chunk
        return state

    try:
        return asyncio.run(follow())
    finally:
        registry.close()


def _steps(state: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [state["results"][step["id"]] for step in state["plan"]["steps"]]


def _report(state: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    return {
        "answer": state["messages"][-1].text,
        "steps": [{name: step[name] for name in _STEP_FIELDS} for step in _steps(state)],
        "note": state["plan"]["note"],
        "seconds": round(seconds, 3),
    }
