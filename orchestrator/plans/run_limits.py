"""Cost of a run, and limits that stop further steps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from callsheet.agents import Plan, Usage
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import State

_ROLES = {
    "request": "planner", "plan": "planner", "decision": "decision", "step": "worker", "revise": "reviser",
    "answer": "answer",
}  # fmt: skip


def limit_reached(state: State, settings: Settings, plan: Plan) -> str:
    """Why no further step may start; empty if one may."""
    if settings.token_budget is not None and (tokens := _tokens(state)) >= settings.token_budget:
        return f"the token budget of {settings.token_budget:,} is spent ({tokens:,} tokens)"
    if settings.run_seconds is not None and time.time() - state["begun"] >= settings.run_seconds:
        return f"the run has taken {settings.run_seconds:g} s, its limit (run_seconds)"
    if plan.mode == "adaptive" and len(state["waves"]) >= settings.max_waves:
        return f"the plan has taken {settings.max_waves} waves of steps, its limit (max_waves)"
    return ""


def tokens_left(state: State, settings: Settings) -> int | None:
    """Maximum number of tokens for each step of the next wave; None without a limit."""
    if settings.token_budget is None:
        return None
    return max(1, settings.token_budget - _tokens(state))


def usage_report(state: State) -> dict[str, Any]:
    """Cost of the run's models so far, in total, by role and by step."""
    results: Mapping[str, Any] = state.get("results", {})
    steps = {f"step {name}": Usage(**result.get("usage") or {}) for name, result in results.items()}
    places = {name: Usage(**spent) for name, spent in state.get("spent", {}).items()} | steps
    by_role: dict[str, Usage] = {}
    by_step: dict[str, Usage] = {}
    for place, spent in places.items():
        kind, _, rest = place.partition(" ")
        role = _ROLES[kind]
        by_role[role] = by_role.get(role, Usage()) + spent
        if kind in ("step", "decision"):
            step = rest.partition(" ")[0]
            by_step[step] = by_step.get(step, Usage()) + spent
    total = sum(by_role.values(), Usage())
    return {**total.model_dump(), "by_role": _plain(by_role), "by_step": _plain(by_step)}


def _tokens(state: State) -> int:
    report = usage_report(state)
    return int(report["input_tokens"] + report["output_tokens"])


def _plain(usages: Mapping[str, Usage]) -> dict[str, Any]:
    return {name: usage.model_dump() for name, usage in usages.items()}
