"""Asks a person for missing values of a step, and continues with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_stream_writer
from langgraph.graph import END
from langgraph.types import interrupt

from callsheet.agents import ApprovalPolicy, ToolRegistry, checkpointer
from callsheet.agents.approval.questions import (
    given_values,
    input_answers,
    input_question,
    wanted_schema,
    wrong_values,
)
from callsheet.orchestrator.run.run_metrics import count_result
from callsheet.orchestrator.state import StepState


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Asks for the missing values of steps."""

    registry: ToolRegistry

    def wanted(self, result: Mapping[str, Any], state: StepState, policy: ApprovalPolicy) -> dict[str, Any]:
        """The question to a person; empty if nothing is missing, or if nobody can be asked.

        Values that were entered for the step before are not asked for again.
        """
        if result["status"] != "needs_input" or policy == "never" or checkpointer() is None:
            return {}
        given = state.get("given", {})
        for tool, parameters in result["missing"].items():
            left = [name for name in parameters if name not in given.get(tool, {})]
            known = self.registry.catalog.tools.get(tool)
            if left and (known or not tool):
                texts = {"properties": {name: {"type": "string", "minLength": 1} for name in left}}
                schema = wanted_schema(known.input_schema if known else texts, left)
                return {"result": dict(result), "tool": tool, "schema": schema, "problem": ""}
        return {}

    def ask(self, state: StepState) -> dict[str, Any]:
        """Asks a person, again if the answer does not fit; without values the step does not change."""
        asking = state.get("asking", {})
        result, tool, schema = asking["result"], asking["tool"], asking["schema"]
        shown = input_question(result["id"], tool, schema, result["error"], asking["problem"])
        values = given_values(interrupt(shown, response_schema=input_answers(schema)))
        if values is None:
            count_result(result)
            return {"asking": {}, **finished(result)}
        secrets = self.registry.secrets.of(state["run_id"])
        kept = secrets.masked(schema, values)
        if problem := wrong_values(schema, values):
            return {"asking": {**asking, "problem": secrets.hidden(problem)}}
        before = state.get("given", {})
        return {"asking": {}, "before": dict(result), "given": {**before, tool: {**before.get(tool, {}), **kept}}}


def after_work(state: StepState) -> str:
    """To the question, if there is one."""
    return "ask" if state.get("asking") else END


def after_input(state: StepState) -> str:
    """To the next question, to the worker with the new values, or to the end."""
    if state.get("asking"):
        return "ask"
    return END if state["step"]["id"] in state["results"] else "work"


def finished(result: Mapping[str, Any]) -> dict[str, Any]:
    """Streams the result of a step, and returns it to the supervisor."""
    get_stream_writer()({"event": "step", "step_id": result["id"], "result": result})
    return {"results": {result["id"]: dict(result)}}
