"""The selection for a step, as a run of its own in every trace, and as an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableLambda

from callsheet.agents import Step
from callsheet.orchestrator.run.run_metrics import measured
from callsheet.retrievers import AgentGraphRetriever, Selection, explain_tool


def selected(retriever: AgentGraphRetriever, query: str, *, step_id: str = "", **changes: Any) -> Selection:
    """What ``retriever.select`` gives, as a run named ``select`` whose output is the selection with its trace.

    LangSmith, OpenTelemetry and every other tracer of LangChain sees it as a part of the run it belongs to.

    Args:
        retriever: What picks.
        query: The request.
        step_id: The step that it is for, in the run's metadata.
        changes: As in ``AgentGraphRetriever.select``.
    """
    found: list[Selection] = []

    def select(text: str) -> dict[str, Any]:
        found.append(measured(retriever, text, **changes))
        return found[0].to_dict(trace=True)

    RunnableLambda(select, name="select").invoke(query, {"metadata": {"step_id": step_id} if step_id else {}})
    return found[0]


def picked_event(step: Step, attempt: int, selection: Selection, cost: int, most: int | None) -> Mapping[str, Any]:
    """What a stream is told of a selection.

    Args:
        step: The step.
        attempt: How many times it has been sent out, this time included.
        selection: What was picked for it.
        cost: Tokens of the schemas of the picked tools.
        most: How many they may be.
    """
    return {
        "event": "picked",
        "step_id": step.id,
        "attempt": attempt,
        "selection": selection.to_dict(),
        "why": {tool.id: explain_tool(tool.id, selection) for tool in selection.tools},
        "budget": {"tools": len(selection.tools), "schema_tokens": cost, "schema_tokens_allowed": most},
    }
