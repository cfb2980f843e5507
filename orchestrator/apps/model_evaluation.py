"""Lets a chat model attempt labelled queries in several arms, grades what it called, and compares the arms."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean, median
from time import monotonic
from typing import Any, NamedTuple, get_args
from uuid import uuid4

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, ConfigDict

from callsheet.agents import Brief, Call, Equipment, ModelError, StepResult, ToolRegistry, Usage
from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.token_usage import Price, usage_of
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs import Loaded, SettingsError, Tool
from callsheet.graphs.storage import cure_of, private_folder, replace_bytes
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever, LabelledQuery
from callsheet.retrievers.evaluation.evaluator import bootstrap_interval
from callsheet.retrievers.index.node_texts import Progress

ALL, RULES = "all", "rules"
DEFAULT_ARMS = ("k5", "k10", "none", "auto")
CAUSES: Mapping[str, str] = {
    "not retrieved": "the model was not shown the tool",
    "not chosen": "it was shown the tool, and did not call it",
    "wrong arguments": "it called the tool with invalid arguments, or with others than labelled",
    "tool error": "the call failed for another reason",
    "plan": "no step was planned, so no tool could be called",
    "gave up": "a limit, or a question to the user, ended the run first",
    "end state": "a check of the end state does not hold",
    "model error": "the model did not answer; asked again in the next evaluation",
}
_MODES: tuple[str, ...] = get_args(Planning)
_MOST_BOUND, _MAX_TURNS = 10_000, 7
"""Maximum tools in an arm, and turns with tools in an attempt."""
_PROMPT = "Call the tools that the request needs, and nothing else. When it is done, answer in one sentence."
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)


class Attempt(BaseModel):
    """What a model did with one request in one arm.

    Attributes:
        offered: Ids of the tools that the model was shown.
        steps: Texts of the planned steps; the request in an arm without a plan.
        stopped: Why it was not done: a limit, or a question to the user.
        failure: The error of the model; such an attempt is not stored.
        unmet: What a caller's own check of the end state did not find.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    offered: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str = ""
    usage: Usage = Usage()
    steps: tuple[str, ...] = ()
    stopped: str = ""
    failure: str = ""
    unmet: tuple[str, ...] = ()


Arm = Callable[[str], Awaitable[Attempt]]
"""One way to give a model tools: what it does with a request."""


def recorded(loaded: Loaded) -> Loaded:
    """The same catalog and policy, with tools that validate their arguments and do nothing: no server is called."""
    agents = loaded.catalog.agents
    connections = {agent.id: InProcess({tool.name: _recorded_tool(tool) for tool in agent.tools}) for agent in agents}
    return replace(loaded, connections=connections, digests={}, live={}, resources={})


def _recorded_tool(tool: Tool) -> StructuredTool:
    async def record(**args: Any) -> str:
        if misfit := fit_of(tool.input_schema, args).misfit:
            raise Fault("refused", misfit, effect="none")
        return "The call was recorded."

    about, schema = tool.description or tool.name, dict(tool.input_schema) or {"type": "object", "properties": {}}
    return StructuredTool(name=tool.name, description=about, args_schema=schema, coroutine=record)


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes arms over one catalog, whose tools are called without approval (see ``recorded``), and one model.

    ``tools`` is the maximum per worker in the arms of the supervisor.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    model: BaseChatModel
    tools: int = 10

    def named(self, name: str) -> Arm:
        """An arm by name; raises a SettingsError that lists them if there is no such arm."""
        # What a server keeps of one request must not help or hinder the next.
        registry = ToolRegistry.from_catalog(self.loaded, limits=Limits(warm=0))
        if name in (*_MODES, RULES):
            return partial(_supervised, self._supervisor(name, registry))
        if name == ALL:
            return partial(self._worked, registry, None)
        if name[:1] in ("k", "d") and name[1:].isdecimal() and 0 < int(name[1:]) <= _MOST_BOUND:
            return partial(self._worked, registry, int(name[1:]), judge=self.model if name[0] == "d" else None)
        raise SettingsError(
            f"there is no arm {name!r}: there are {ALL} (all tools bound), k5, ... (the best 5, ... tools), d5, ... "
            f"(those by a decision of the model), {', '.join(_MODES)} (planning modes), {RULES} (without a model)"
        )

    def _supervisor(self, name: str, registry: ToolRegistry) -> Any:
        planning, allowed = "auto" if name == RULES else name, tuple(self.loaded.catalog.tools)
        told: dict[str, Any] = {"planning": planning, "tools": self.tools}
        settings = Settings(approval="never", allow=allowed, learn=False, **told)
        model = None if name == RULES else self.model
        parts: dict[str, Any] = {"retriever": self.retriever, "registry": registry, "settings": settings}
        return create_supervisor(self.loaded, model=model, **parts).compile()

    async def _worked(
        self, registry: ToolRegistry, k: int | None, request: str, *, judge: BaseChatModel | None = None
    ) -> Attempt:
        """A worker without a supervisor, over the best k tools, or all of them."""
        began, run, done, failure = monotonic(), uuid4().hex, StepResult(id="", text=request), ""
        best = await self.retriever.aselect(request, tools=k, decision_model=judge, decision_seconds=600) if k else None
        judged = {**asdict(best.decision), "seconds": 0.0, "calls": 1} if best and best.decision else {}
        offered = tuple(tool.id for tool in best.tools) if best else tuple(self.retriever.catalog.tools)
        equipment = Equipment(
            tools=registry.bind(offered, run),
            model=self.model,
            prompt=_PROMPT,
            own_tools=False,
            max_turns=_MAX_TURNS,
        )
        try:
            done = await carry_out(Brief(text=request), equipment)
        except ModelError as error:
            failure = str(error)
        finally:
            await registry.close_run(run)
        return Attempt(
            offered=offered,
            calls=done.calls,
            answer=done.result,
            usage=usage_of(equipment.replies, monotonic() - began) + Usage(**judged),
            steps=(request,),
            stopped=done.error,
            failure=failure,
        )


async def _supervised(app: Any, request: str) -> Attempt:
    """A run of the supervisor."""
    errors, began, alone = _ModelErrors(), monotonic(), app.copy({"checkpointer": InMemorySaver()})
    config = {"configurable": {"thread_id": "1"}, "callbacks": [errors]}
    state = await alone.ainvoke({"messages": [HumanMessage(request)]}, config)
    results = state.get("results", {}).values()
    picked = [agent for one in state.get("selections", {}).values() for agent in one["agents"]]
    offered = [tool["id"] for agent in picked for tool in agent["tools"]]
    offered += [tool for result in results for tool in result["tools"]]  # with those that it asked for
    asked = [str(one.value.get("type", "question")) for one in state.get("__interrupt__", ())]
    stopped = [*(f"it asked the user: {kind}" for kind in asked), *(r["error"] for r in results if r["error"])]
    usage = Usage(**state.get("usage", {})).model_copy(update={"seconds": round(monotonic() - began, 3)})
    return Attempt(
        offered=tuple(dict.fromkeys(offered)),
        calls=tuple(Call(**call) for result in results for call in result["calls"]),
        answer=state["messages"][-1].text,
        usage=usage,
        steps=tuple(step["text"] for step in state.get("plan", {}).get("steps", ())),
        stopped="; ".join(stopped),
        failure="; ".join(dict.fromkeys(errors.messages)),
    )


class _ModelErrors(AsyncCallbackHandler):
    """Remembers errors of models, after which the supervisor may go on; an answer that was cut is the model's own."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        if type(error).__name__ != "LengthFinishReasonError":  # of openai, which may not be installed
            self.messages.append(f"{type(error).__name__}: {error}")


class Grade(NamedTuple):
    """Why an attempt is not right, with the first wanted tools and what happened; empty if it is right."""

    cause: str = ""
    detail: str = ""


def graded(query: LabelledQuery, attempt: Attempt) -> Grade:
    """Right if every labelled tool was called with valid arguments, which have the labelled values; in any order."""
    if attempt.failure:
        return Grade("model error", attempt.failure)
    grades = (_graded(group, query.arguments, attempt) for group in query.tools)
    return next((grade for grade in grades if grade.cause), Grade())


def _graded(group: Sequence[str], arguments: Mapping[str, Mapping[str, Any]], attempt: Attempt) -> Grade:
    calls = [call for call in attempt.calls if call.tool in group]
    for call in calls:
        wanted = arguments.get(call.tool, {})
        if not call.error and all(name in call.args and _same(call.args[name], wanted[name]) for name in wanted):
            return Grade()
    if calls:
        cause = "tool error" if all(call.error and call.kind != "refused" for call in calls) else "wrong arguments"
        differs = f"arguments {dict(calls[-1].args)}, labelled {arguments.get(calls[-1].tool)}"
        return Grade(cause, f"{calls[-1].tool}: {calls[-1].error or differs}")
    detail = " or ".join(group) + (f": {attempt.stopped}" if attempt.stopped else "")
    if not attempt.offered and not attempt.steps:
        return Grade("plan", detail)
    if not set(group) & set(attempt.offered):
        return Grade("not retrieved", detail)
    return Grade("gave up" if attempt.stopped else "not chosen", detail)


def _same(given: Any, wanted: Any) -> bool:
    """Equal; texts apart from case and outer blanks, and a plain number like its text."""
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    return bool(_plain(given) == _plain(wanted))


def _plain(value: Any) -> Any:
    if not isinstance(value, str | int | float):
        return value
    text = str(value).strip().casefold()
    return Decimal(text) if _NUMBER.fullmatch(text) else text


class Graded(NamedTuple):
    """An attempt of one arm at one query, with its grade."""

    query: LabelledQuery
    attempt: Attempt
    grade: Grade


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The attempts of one arm, in the order of the queries; ``missing`` were not made, because of a limit."""

    arm: str
    cases: tuple[Graded, ...]
    missing: int = 0

    @property
    def right(self) -> dict[str, float]:
        """Id of a query -> 1.0 if the attempt is right, otherwise 0.0."""
        return {case.query.id: float(not case.grade.cause) for case in self.cases}

    @property
    def success(self) -> float:
        """Share of right attempts, 0 to 1."""
        return fmean(self.right.values()) if self.cases else 0.0

    @property
    def usage(self) -> Usage:
        """The cost of all attempts."""
        return sum((case.attempt.usage for case in self.cases), Usage())

    @property
    def causes(self) -> Counter[str]:
        """Number of failures by cause."""
        return Counter(case.grade.cause for case in self.cases if case.grade.cause)


@dataclass(frozen=True, slots=True)
class ModelEvaluation:
    """The results of all arms, compared with the first; ``stopped`` says why not all attempts were made."""

    model: str
    arms: tuple[ArmResult, ...]
    price: Price | None = None
    stopped: str = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON values, for ``callsheet eval --model --json``. Calls and tokens are means, seconds a median."""
        return {"model": self.model, "stopped": self.stopped, "arms": [self.row(arm) for arm in self.arms]}

    def row(self, arm: ArmResult) -> dict[str, Any]:
        """An arm's figures; intervals are 95 % bootstraps over queries, the difference is to the first arm, paired."""
        usage, n, ours, theirs = arm.usage, max(len(arm.cases), 1), arm.right, self.arms[0].right
        apart = [ours[name] - theirs[name] for name in ours if name in theirs]
        return {
            "name": arm.arm,
            "n": len(arm.cases),
            "missing": arm.missing,
            "success": arm.success,
            "interval": list(bootstrap_interval([*ours.values()])) if ours else [0.0, 0.0],
            "difference": [fmean(apart), *bootstrap_interval(apart)] if apart else [0.0, 0.0, 0.0],
            "calls": usage.calls / n,
            "tool_calls": sum(len(case.attempt.calls) for case in arm.cases) / n,
            **{name: getattr(usage, name) / n for name in ("input_tokens", "cached_tokens", "output_tokens")},
            "seconds": median(case.attempt.usage.seconds for case in arm.cases) if arm.cases else 0.0,
            "cost": self.price.of(usage) if self.price else None,
            "failures": dict(arm.causes),
            "failed": [{"id": case.query.id, **case.grade._asdict()} for case in arm.cases if case.grade.cause],
        }


def sampled(queries: Sequence[LabelledQuery], count: int | None) -> tuple[LabelledQuery, ...]:
    """The queries with labelled tools, or ``count`` of them: the same ones whatever the order of the file.

    Without any, it raises a SettingsError.
    """
    labelled = [query for query in queries if query.tools]
    if not labelled:
        raise SettingsError('no query has "tools": an evaluation with a model needs labelled tools')
    by_hash = sorted(labelled, key=lambda query: digest(query.id, query.query))
    chosen = {query.id for query in by_hash[:count]}
    return tuple(query for query in labelled if query.id in chosen)


def digest(*parts: Any) -> str:
    """SHA-256 of JSON values."""
    return sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


async def evaluate_arms(
    arms: Mapping[str, Arm],
    queries: Sequence[LabelledQuery],
    *,
    model: str,
    folder: Path,
    key: Sequence[object] = (),
    grade: Callable[[LabelledQuery, Attempt], Grade] = graded,
    concurrency: int = 1,
    price: Price | None = None,
    max_cost: float | None = None,
    progress: Progress | None = None,
) -> ModelEvaluation:
    """Lets every arm attempt every query, query by query, and grades the attempts.

    A query is attempted by all arms before the next one begins, so an evaluation that ends early still compares them on
    the same queries. Each attempt is stored at once in the folder, and is not made again; ``key`` is what decides an
    attempt beside arm, model and request, as JSON values. No attempt begins after new ones have cost ``max_cost``. If
    attempts cannot be stored, it raises a SettingsError.
    """
    pairs = [(query, arm) for query in queries for arm in arms]
    turn, spent, stopped, done = asyncio.Semaphore(concurrency), Usage(), "", 0

    async def made(query: LabelledQuery, arm: str) -> Attempt | None:
        nonlocal spent, stopped
        file = folder / f"{digest(model, arm, query.query, *key)}.json"
        with suppress(OSError, ValueError):  # there is none, or it is not one
            return Attempt.model_validate_json(file.read_bytes())
        async with turn:
            if price and max_cost is not None and price.of(spent) >= max_cost:
                stopped = f"the new attempts cost {price.of(spent):.4f} of {max_cost:g}"
                return None
            attempt = await arms[arm](query.query)
            spent += attempt.usage
        if not attempt.failure:
            try:
                private_folder(folder)
                replace_bytes(file, attempt.model_dump_json().encode())
            except OSError as error:
                why = f"{error.strerror}: {cure_of(error)}"
                raise SettingsError(f"the attempt cannot be stored in {file}: {why}") from error
        return attempt

    async def counted(query: LabelledQuery, arm: str) -> Graded | None:
        nonlocal done
        attempt = await made(query, arm)
        done += 1
        if progress:
            progress(done, len(pairs))
        return Graded(query, attempt, grade(query, attempt)) if attempt else None

    found = await asyncio.gather(*(counted(query, arm) for query, arm in pairs))
    cases = {arm: tuple(filter(None, found[place :: len(arms)])) for place, arm in enumerate(arms)}
    results = tuple(ArmResult(arm, of, len(queries) - len(of)) for arm, of in cases.items())
    return ModelEvaluation(model, results, price, stopped)
