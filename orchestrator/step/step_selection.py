"""The selection for a step, as a separate run in traces and as an event."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables import RunnableLambda
from langsmith.run_helpers import get_current_run_tree

from callsheet.agents import Step
from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.run_metrics import measured
from callsheet.retrievers import AgentGraphRetriever, Selection, explain_tool

_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


def check_tracing() -> None:
    """Refuses OpenTelemetry without its packages: LangSmith's client would send all runs to LangSmith instead.

    Raises:
        SettingsError: ``LANGSMITH_TRACING_MODE`` needs the extra ``otel``.
    """
    if os.environ.get("LANGSMITH_TRACING_MODE", "").lower() not in {"otel", "hybrid"}:
        return
    try:
        importlib.import_module(_EXPORTER)
    except ImportError as error:
        needed = "LANGSMITH_TRACING_MODE=otel needs an extra: pip install 'callsheet[otel]'"
        raise SettingsError(needed) from error


def selected(retriever: AgentGraphRetriever, query: str, *, step_id: str = "", **changes: Any) -> Selection:
    """Selects in a run named ``select``, whose output is the selection with its trace.

    LangSmith, OpenTelemetry and other tracers of LangChain show it inside the current run, with ``step_id`` in its
    metadata. The first two also show the verdict and the ids of agents and tools there.
    """
    found: list[Selection] = []

    def select(text: str) -> dict[str, Any]:
        found.append(measured(retriever, text, **changes))
        if (traced := get_current_run_tree()) is not None:
            traced.metadata.update(_attributes(found[0]))
        return found[0].to_dict(trace=True)

    RunnableLambda(select, name="select").invoke(query, {"metadata": {"step_id": step_id} if step_id else {}})
    return found[0]


def _attributes(selection: Selection) -> Mapping[str, Any]:
    """What a trace tells of a selection even where inputs and outputs are hidden."""
    return {
        "callsheet.verdict": selection.verdict,
        "callsheet.agents": [agent.id for agent in selection.agents],
        "callsheet.tools": [tool.id for tool in selection.tools],
    }


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
