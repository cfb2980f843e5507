"""A run as the page shows it: plan, tools, calls, questions, costs and answers, as far as a user may see them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from callsheet.agents import ModelUsage, Prices, Usage
from callsheet.orchestrator.plans.run_limits import usage_report
from callsheet.orchestrator.server.runs.run_history import RunSnapshot
from callsheet.orchestrator.server.visible_catalog import Link, VisibleCatalog, fit, shown_line, shown_text

WITHHELD = "withheld: it is about tools that you may not see"
Text = Annotated[str, AfterValidator(shown_text)]
Line = Annotated[str, AfterValidator(shown_line)]
_STATUS = {"tool_approval": "needs_approval", "unknown_outcome": "outcome_unknown"}


class View(BaseModel):
    """A part of an answer with texts that are safe to display; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class QuestionView(View):
    """A question that waits for a person.

    Attributes:
        id: Id of its interrupt.
        kind: ``tool_approval``, ``unknown_outcome``, ``needs_input`` or ``question``; another agent may ask in its own.
        step: Id of the step; empty for a question about the whole request.
        status: The status of the step meanwhile.
        tool: The tool that it is about, if any.
        text: The question in one sentence.
        why: Why a call needs a person.
        problem: What was wrong with the last answer.
        unchecked: Why the arguments could not be validated; empty if they were.
        args: The arguments of the call as JSON text, complete; None without a call.
        fields: The missing values: parameter -> its JSON Schema.
        choices: Proposed answers.
        decisions: The kinds of answer; none if the user may not see the tool.
        hash: Binds an answer to exactly this call.
    """

    id: str
    kind: str
    step: Line = ""
    status: str = ""
    tool: Link | None = None
    text: Text = ""
    why: Text = ""
    problem: Text = ""
    unchecked: Text = ""
    args: str | None = None
    fields: Mapping[str, Any] = Field(default_factory=dict)
    choices: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    hash: str = ""


class CostView(View):
    """A ``Cost``, and the same in words."""

    amount: float | None
    currency: str
    unpriced: tuple[Line, ...]
    words: Text


class UsageView(View):
    """Model calls, tokens, and what they cost."""

    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: CostView


class ModelUsageView(UsageView):
    """What one role (``planner``, ``worker`` ...) spent on one model; empty for a model that is not named."""

    role: Line
    model: Line


class CallView(View):
    """One call of a worker; ``began`` in seconds since 1970, 0 if it is not known."""

    tool: Link
    args: Text
    answer: Text = Field(default="", validation_alias="output")
    error: Text = ""
    kind: str = ""
    effect: str = ""
    seconds: float = 0.0
    began: float = 0.0
    running: bool = False
    files: int = 0


class SelectedTool(View):
    """A tool that was selected for a step: why in words, its score, and the tools that led to it."""

    tool: Link
    why: Text
    score: float
    via: tuple[Line, ...]


class StepView(View):
    """One step of a plan with its result.

    ``status`` is that of ``StepResult``, or ``waiting``, ``running``, ``needs_approval``. ``wave`` counts from 1,
    and is 0 for a step that was not started.
    """

    id: Line
    text: Text
    depends_on: tuple[Line, ...]
    status: str
    wave: int = 0
    attempts: int = 0
    result: Text = ""
    error: Text = ""
    seconds: float = 0.0
    calls: tuple[CallView, ...] = ()
    picked: tuple[SelectedTool, ...] = ()
    usage: UsageView | None = None


class RevisionView(View):
    """A change of the plan, or one that was refused, with its reason."""

    wave: int
    added: tuple[Line, ...]
    changed: tuple[Line, ...]
    dropped: tuple[Line, ...]
    reason: Text
    refused: bool = False


class RunView(View):
    """One request with its plan.

    Attributes:
        id: Its id; empty for a moment at its start.
        request: The request.
        status: ``running``, ``waiting`` for a person, ``done``, or ``stopped`` before its end.
        at: Time of the first checkpoint, in ISO 8601.
        began: Its start, in seconds since 1970; 0 if it is not known.
        seconds: From the first checkpoint to the last; None if there is only one.
        note: How the plan was made.
        answer: The answer; what is written of it so far; empty if there is none yet.
        trouble: What ended it before its end; empty if nothing did.
        questions: The pending questions.
        steps: The steps.
        revisions: Changes of the plan.
        usage: What its models cost; None if no model was called.
        models: The usage by role and model.
    """

    id: Line
    request: Text
    status: str
    at: str
    began: float
    seconds: float | None
    note: Text
    answer: Text
    trouble: Text
    questions: tuple[QuestionView, ...]
    steps: tuple[StepView, ...]
    revisions: tuple[RevisionView, ...]
    usage: UsageView | None
    models: tuple[ModelUsageView, ...]


def runs_of(visible: VisibleCatalog, history: Iterable[RunSnapshot]) -> tuple[RunView, ...]:
    """The requests of one thread, the latest first.

    Args:
        visible: What the user may see: steps with hidden agents or tools keep only their place in the plan.
        history: The states of the thread, the latest first.
    """
    of_run: dict[str, list[RunSnapshot]] = {}
    for snapshot in history:
        if (run := snapshot.values.get("run")) and not is_echo(snapshot.values):
            of_run.setdefault(str(run), []).append(snapshot)
    return tuple(run_of(visible, states[0], states[-1]) for states in of_run.values())


def is_echo(values: Mapping[str, Any]) -> bool:
    """Whether a state is that of an answered request, to which the next one was added."""
    messages = values.get("messages") or ()
    return bool(values.get("usage") and messages) and field_of([*messages][-1], "type") == "human"


def run_of(visible: VisibleCatalog, last: RunSnapshot, begin: RunSnapshot | None = None) -> RunView:
    """One request, from its last state and its first one."""
    first, state = begin or last, last.values
    plan, results, selections = (state.get(name) or {} for name in ("plan", "results", "selections"))
    report: Mapping[str, Any] = state.get("usage") or usage_report({**state})  # type: ignore[typeddict-item]
    asked = tuple(question_view(visible, question.id, question.value) for question in last.questions)
    waiting = {one.step: one.status for one in asked if one.step}
    waves: Sequence[Sequence[str]] = state.get("waves") or ()
    wave_of = {step: n for n, wave in enumerate(waves, 1) for step in wave}
    steps = tuple(
        _step(
            visible,
            {**step, "wave": wave_of.get(name, 0), "status": waiting.get(name, "waiting")},
            results.get(name) or {},
            selections.get(name) or {},
            _usage((report.get("by_step") or {}).get(name) or {}, visible.prices),
        )
        for name, step in {step["id"]: step for step in plan.get("steps") or ()}.items()
    )
    withheld = any(step.error == WITHHELD for step in steps)
    answer = _answer(state.get("messages") or ())
    began = float(state.get("begun") or 0.0)
    return RunView(
        id=str(state.get("run") or ""),
        request=str(state.get("request", "")),
        status="running" if last.running else "waiting" if asked else "done" if answer else "stopped",
        at=first.at,
        began=began,
        seconds=round(time.time() - began, 3) if last.running and began else _between(first.at, last.at),
        note=str(plan.get("note") or ""),
        answer=WITHHELD if withheld else answer or last.draft,
        trouble=WITHHELD if withheld and last.trouble else last.trouble,
        questions=asked,
        steps=steps,
        revisions=() if withheld else tuple(map(RevisionView.model_validate, state.get("revisions") or ())),
        usage=_usage(report, visible.prices),
        models=tuple(_models(report, visible.prices)),
    )


def run_answered(last: RunSnapshot) -> bool:
    """Whether a run has its answer."""
    return bool(_answer(last.values.get("messages") or ()))


def run_ended(last: RunSnapshot) -> bool:
    """Whether nothing of a run is left to do: it is answered, and no step has failed."""
    results = last.values.get("results") or {}
    left = any(result["status"] in ("failed", "skipped") for result in results.values())
    return run_answered(last) and not (last.questions or left)


def _step(
    visible: VisibleCatalog,
    step: Mapping[str, Any],
    result: Mapping[str, Any],
    picked: Mapping[str, Any],
    usage: UsageView | None,
) -> StepView:
    """A step of a plan with its result and its selected tools, which are empty before it has them."""
    plain = {**step, "status": result["status"]} if result else step
    if not all(map(visible.may_see, _named(result, picked))):
        return StepView.model_validate({**plain, "error": WITHHELD})
    calls = tuple(_call(visible, call) for call in result.get("calls", ()))
    tools = [tool for agent in picked.get("agents", ()) for tool in agent["tools"]]
    return StepView.model_validate(
        {
            **plain,
            **{name: result[name] for name in ("attempts", "result", "error") if result},
            "seconds": sum(call.seconds for call in calls),
            "calls": calls,
            "usage": usage,
            "picked": tuple(
                SelectedTool(tool=visible.link(t["id"]), why=_why(t, n), score=t["score"], via=t["via"][:-1])
                for n, t in enumerate(tools)
            ),
        }
    )


def _why(tool: Mapping[str, Any], place: int) -> str:
    """Why a tool was selected, in words."""
    if len(tool["via"]) > 1:
        other, inferred = tool["via"][-2], tool.get("inferred") or ""
        why = f"{other} needs it" if tool.get("required") else f"{other} may need it"
        return f"{why}, inferred: {inferred}" if inferred else why
    return f"{fit(tool['score'])}, and best of all" if place == 0 else fit(tool["score"])


def _named(result: Mapping[str, Any], picked: Mapping[str, Any]) -> set[str]:
    """All agents and tools of a step."""
    calls, agents = result.get("calls", ()), picked.get("agents", ())
    named = {*result.get("agents", ()), *result.get("tools", ()), *(agent["id"] for agent in agents)}
    named |= {call["tool"] for call in calls} | {call.get("agent", "") for call in calls}
    return named | {node for agent in agents for tool in agent["tools"] for node in (tool["id"], *tool["via"])}


def _call(visible: VisibleCatalog, call: Mapping[str, Any]) -> CallView:
    return CallView.model_validate(
        {
            **call,
            "tool": visible.link(call["tool"]),
            "args": json.dumps(call["args"], ensure_ascii=False, indent=2, default=str),
            "seconds": round(call.get("seconds", 0.0), 3),
            "files": len(call.get("files", ())),
        }
    )


def _answer(messages: Sequence[Any]) -> str:
    """The text of the last message if it is an answer."""
    if not messages or field_of(messages[-1], "type") != "ai":
        return ""
    content = field_of(messages[-1], "content")
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)


def field_of(message: Any, name: str) -> Any:
    """A field of a message, which is an object here and plain values from a server."""
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _between(start: str, end: str) -> float | None:
    try:
        seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except ValueError:
        return None
    return round(seconds, 3) if seconds > 0 else None


def question_view(visible: VisibleCatalog, interrupt: str, value: Any) -> QuestionView:
    """A question; without its content if it is about a tool that the user may not see."""
    plain: Mapping[str, Any] = value if isinstance(value, Mapping) else {"type": "", "description": str(value)}
    kind, step, tool = str(plain.get("type") or ""), str(plain.get("step_id") or ""), plain.get("tool")
    status = _STATUS.get(kind, "needs_input")
    if tool and not visible.may_see(str(tool)):
        return QuestionView(id=interrupt, kind=kind, step=step, status=status, text=WITHHELD)
    schema, args = plain.get("schema"), plain.get("args")
    texts: dict[str, Any] = {name: str(plain.get(name) or "") for name in ("why", "problem", "unchecked", "hash")}
    texts |= {name: tuple(map(str, plain.get(name) or ())) for name in ("choices", "decisions")}
    return QuestionView(
        id=interrupt,
        kind=kind,
        step=step,
        status=status,
        tool=visible.link(str(tool)) if tool else None,
        text=str(plain.get("question") or plain.get("description") or plain),
        # Complete and exact: what is approved has to be seen, and what is edited is sent back.
        args=None if args is None else json.dumps(args, ensure_ascii=True, indent=2, default=str),
        fields=dict(schema.get("properties") or {}) if isinstance(schema, Mapping) else {},
        **texts,
    )


def _usage(report: Mapping[str, Any], prices: Prices) -> UsageView | None:
    """What the models of a report cost; None if none was called."""
    usage = Usage.from_report(report)
    return UsageView(**_costs(usage, prices)) if usage.calls else None


def _models(report: Mapping[str, Any], prices: Prices) -> Iterator[ModelUsageView]:
    for role, part in (report.get("by_role") or {}).items():
        usage = Usage.from_report(part)
        for model, spent in {**usage.by_model, "": usage.unnamed}.items():
            if spent.calls:
                one = Usage(**spent.model_dump(), by_model={model: spent} if model else {})
                yield ModelUsageView(role=role, model=model, **_costs(one, prices))


def _costs(usage: Usage, prices: Prices) -> dict[str, Any]:
    cost, counts = prices.cost(usage), {name: getattr(usage, name) for name in ModelUsage.model_fields}
    words = CostView(amount=cost.amount, currency=cost.currency, unpriced=cost.unpriced, words=str(cost))
    return {**counts, "cost": words}
