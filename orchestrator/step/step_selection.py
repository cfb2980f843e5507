"""The selection for a step, as a separate run in traces and as an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableLambda

from callsheet.agents import Step
from callsheet.orchestrator.run.run_metrics import measured
from callsheet.retrievers import AgentGraphRetriever, Selection, explain_tool


def selected(retriever: AgentGraphRetriever, query: str, *, step_id: str = "", **changes: Any) -> Selection:
    """Selects in a run named ``select``, whose output is the selection with its trace.

    LangSmith, OpenTelemetry and other tracers of LangChain show it inside the current run, with ``step_id`` in its
    metadata. ``changes`` are those of ``AgentGraphRetriever.select``.
    """
    found: list[Selection] = []

    def select(text: str) -> dict[str, Any]:
        found.append(measured(retriever, text, **changes))
        return found[0].to_dict(trace=True)

    RunnableLambda(select, name="select").invoke(query, {"metadata": {"step_id": step_id} if step_id else {}})
    return found[0]


def picked_event(step: Step, attempt: int, selection: Selection, cost: int, most: int | None) -> Mapping[str, Any]:
    """The stream event of a selection, with the tokens of its schemas and their maximum."""
    return {
        "event": "picked",
        "step_id": step.id,
        "attempt": attempt,
        "selection": selection.to_dict(),
        "why": {tool.id: explain_tool(tool.id, selection) for tool in selection.tools},
        "budget": {"tools": len(selection.tools), "schema_tokens": cost, "schema_tokens_allowed": most},
    }
