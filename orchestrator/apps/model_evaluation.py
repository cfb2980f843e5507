"""Lets a chat model attempt labelled queries in several arms, grades what it called, and compares the arms.

The arms: all tools, the best k tools, the best k by a judgement of the model, or the supervisor.
"""

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
from typing import Any, NamedTuple, cast, get_args
from uuid import uuid4

from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware, wrap_model_call
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel, ConfigDict

from callsheet.agents import Call, ModelError, ToolRegistry, Usage
from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.token_usage import Price, usage_of
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.models.chat_models import answered, with_ids, with_written_calls
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.equipment import calls_of
from callsheet.graphs import Loaded, SettingsError, Tool
from callsheet.graphs.storage import cure_of, private_folder, replace_bytes
from callsheet.orchestrator.run.settings import Planning, Settings
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import AgentGraphRetriever, LabelledQuery
from callsheet.retrievers.evaluation.evaluator import bootstrap_interval
from callsheet.retrievers.index.node_texts import Progress

ALL, RULES = "all", "rules"
DEFAULT_ARMS = ("k5", "k10", "none", "adaptive")
CAUSES: Mapping[str, str] = {
    "not retrieved": "the model was not shown the tool",
    "not chosen": "it was shown the tool, and did not call it",
    "wrong arguments": "it called the tool with invalid arguments, or with others than labelled",
    "tool error": "the call failed for another reason",
    "plan": "no step was planned, so no tool could be called",
    "gave up": "a limit, or a question to the user, ended the run first",
    "end state": "it ended, and a check of the end state does not hold",
    "model error": "the model did not answer; asked again in the next evaluation",
}
_MODES: tuple[str, ...] = get_args(Planning)
_MOST_BOUND, _MAX_TURNS, _GIVE_UP_AFTER = 10_000, 8, 3
_PROMPT = "Call the tools that the request needs, and nothing else. When it is done, answer in one sentence."
_NUMBER = re.compile(r"[+-]?(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d{1,3})?", re.ASCII)


class Attempt(BaseModel):
    """What a model did with one request in one arm.

    Attributes:
        offered: Ids of the tools that the model was shown.
        answer: Its last text.
        steps: Texts of the planned steps; the request in an arm without a plan.
        stopped: Why it ended before the model was done: a limit, or a question to the user; empty otherwise.
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


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to give a model tools, ``all``, ``k10``, ``adaptive`` ...: what it does with a request."""

    name: str
    attempt: Callable[[str], Awaitable[Attempt]]


def recorded(loaded: Loaded) -> Loaded:
    """The same catalog and policy, with tools that validate their arguments and do nothing: no server is called."""
    connections = {
        agent.id: InProcess({tool.name: _recorded_tool(tool) for tool in agent.tools})
        for agent in loaded.catalog.agents
    }
    return replace(loaded, connections=connections, digests={}, live={}, resources={})


def _recorded_tool(tool: Tool) -> BaseTool:
    async def record(**args: Any) -> str:
        if misfit := fit_of(tool.input_schema, args).misfit:
            raise Fault("refused", misfit, effect="none")
        return "The call was recorded."

    schema = dict(tool.input_schema) or {"type": "object", "properties": {}}
    return StructuredTool(
        name=tool.name, description=tool.description or tool.name, args_schema=schema, coroutine=record
    )


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes arms over one catalog and one model.

    Attributes:
        loaded: The catalog, whose tools are called without approval; see ``recorded``.
        retriever: Over the same catalog.
        model: The chat model of every arm.
        tools: Maximum tools per worker in the arms of the supervisor.
        weak_model: As in ``Settings``, for the arms of the supervisor.
        records: Whether calls are only recorded, so that a model that only repeats its calls is done.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    model: BaseChatModel
    tools: int = 10
    weak_model: bool = False
    records: bool = True

    def named(self, name: str) -> Arm:
        """An arm by name.

        Raises:
            SettingsError: There is no such arm; the message lists them.
        """
        # What a server keeps of one request must not help or hinder the next.
        registry = ToolRegistry.from_catalog(self.loaded, limits=Limits(warm=0))
        if name in (*_MODES, RULES):
            return Arm(name, partial(_supervised, self._supervisor(name, registry)))
        if name == ALL:
            return Arm(name, partial(self._looped, registry, None))
        if name[:1] in ("k", "d") and name[1:].isdecimal() and 0 < int(name[1:]) <= _MOST_BOUND:
            judge = self.model if name[0] == "d" else None
            return Arm(name, partial(self._looped, registry, int(name[1:]), judge=judge))
        raise SettingsError(
            f"there is no arm {name!r}: there are {ALL} (all tools bound), k5, k10, ... (the best 5, 10, ... tools "
            f"bound), d5, d10, ... (the best ones by a decision of the model), {', '.join(_MODES)} (the supervisor in "
            f"this planning mode), and {RULES} (without a model)"
        )

    def _supervisor(self, name: str, registry: ToolRegistry) -> Any:
        planning, weak = "auto" if name == RULES else name, self.weak_model
        told: dict[str, Any] = {"approval": "never", "allow": tuple(self.loaded.catalog.tools), "weak_model": weak}
        settings = Settings(planning=planning, tools=self.tools, learn=False, **told)
        parts: dict[str, Any] = {"retriever": self.retriever, "registry": registry, "settings": settings}
        workflow = create_supervisor(self.loaded, model=None if name == RULES else self.model, **parts)
        return workflow.compile(checkpointer=InMemorySaver())

    async def _looped(
        self, registry: ToolRegistry, k: int | None, request: str, *, judge: BaseChatModel | None = None
    ) -> Attempt:
        """An agent loop without a supervisor, over the best k tools, or all of them."""
        began, run, failure = monotonic(), uuid4().hex, ""
        best = await self.retriever.aselect(request, tools=k, decision_model=judge, decision_seconds=600) if k else None
        judged = {**asdict(best.decision), "seconds": 0.0, "calls": 1} if best and best.decision else {}
        offered = [tool.id for tool in best.tools] if best else [*self.retriever.catalog.tools]
        tools = registry.bind(offered, run)
        around: list[Any] = [ModelCallLimitMiddleware(run_limit=_MAX_TURNS), _reader([*tools], records=self.records)]
        agent: Any = create_agent(self.model, [*tools.values()], system_prompt=_PROMPT, middleware=around)
        messages: list[AnyMessage] = [HumanMessage(request)]
        try:
            async for state in agent.astream({"messages": messages}, stream_mode="values"):
                messages = state["messages"]
        except ModelError as error:
            failure = str(error)
        finally:
            await registry.close_run(run)
        answers = [message for message in messages if isinstance(message, AIMessage)]
        stopped = len(answers) > _MAX_TURNS
        return Attempt(
            offered=tuple(dict.fromkeys(offered)),
            calls=calls_of(messages, tools),
            answer=answers[-1].text if answers and not stopped else "",
            usage=usage_of(answers[:_MAX_TURNS], monotonic() - began) + Usage(**judged),
            steps=(request,),
            stopped=f"the limit of {_MAX_TURNS} model calls" if stopped else "",
            failure=failure,
        )


def _reader(names: Sequence[str], *, records: bool) -> Any:
    """Model calls with the time limit and the error of the other arms, and with calls that were written as text."""

    @wrap_model_call
    async def read(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        (message,) = (await answered(handler(request))).result
        message = cast("AIMessage", with_written_calls(with_ids(message), names, request.messages))
        made = [(c["name"], c["args"]) for m in request.messages if isinstance(m, AIMessage) for c in m.tool_calls]
        if records and all((call["name"], call["args"]) in made for call in message.tool_calls):
            return message.model_copy(update={"tool_calls": []})
        return message

    return read


async def _supervised(app: Any, request: str) -> Attempt:
    """A run of the supervisor."""
    thread, errors, began = uuid4().hex, _ModelErrors(), monotonic()
    config = {"configurable": {"thread_id": thread}, "callbacks": [errors]}
    try:
        state = await app.ainvoke({"messages": [HumanMessage(request)]}, config)
    finally:
        await app.checkpointer.adelete_thread(thread)
    results = state.get("results", {}).values()
    picked = [agent for one in state.get("selections", {}).values() for agent in one["agents"]]
    selected = [tool["id"] for agent in picked for tool in agent["tools"]]
    held = [tool for result in results for tool in result["tools"]]  # with those that it asked for
    asked = [str(one.value.get("type", "question")) for one in state.get("__interrupt__", ())]
    stopped = [*(f"it asked the user: {kind}" for kind in asked), *(r["error"] for r in results if r["error"])]
    usage = Usage(**state.get("usage", {}))
    return Attempt(
        offered=tuple(dict.fromkeys([*selected, *held])),
        calls=tuple(Call(**call) for result in results for call in result["calls"]),
        answer=state["messages"][-1].text,
        usage=usage.model_copy(update={"seconds": round(monotonic() - began, 3)}),
        steps=tuple(step["text"] for step in state.get("plan", {}).get("steps", ())),
        stopped="; ".join(stopped),
        failure="; ".join(dict.fromkeys(errors.messages)),
    )


class _ModelErrors(AsyncCallbackHandler):
    """Remembers errors of models: the supervisor goes on without an answer after some of them.

    An answer that its token limit cut is the model's own failure, and the same when it is asked again.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []

    async def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        if type(error).__name__ != "LengthFinishReasonError":  # of openai, which may not be installed
            self.messages.append(f"{type(error).__name__}: {error}")


class Grade(NamedTuple):
    """Why an attempt is not right, and the first wanted tools with what happened; the cause is empty if it is right."""

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
        last = calls[-1]
        differs = f"arguments {dict(last.args)}, labelled {arguments.get(last.tool)}"
        return Grade(cause, f"{last.tool}: {last.error or differs}")
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
    if isinstance(given, str | int | float) and isinstance(wanted, str | int | float):
        return _plain(given) == _plain(wanted)
    return bool(given == wanted)


def _plain(value: str | float) -> str | Decimal:
    text = str(value).strip().casefold()
    return Decimal(text) if _NUMBER.fullmatch(text) else text


class Graded(NamedTuple):
    """An attempt of one arm at one query, with its grade."""

    query: LabelledQuery
    attempt: Attempt
    grade: Grade


@dataclass(frozen=True, slots=True)
class ArmResult:
    """The attempts of one arm, in the order of the queries, and the number of those that a limit left out."""

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
    """The results of all arms; the others are compared with the first.

    Attributes:
        stopped: Why not all attempts were made; empty if they were.
    """

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
        return {
            "name": arm.arm,
            "n": len(arm.cases),
            "missing": arm.missing,
            "success": arm.success,
            "interval": _mean([*ours.values()])[1:],
            "difference": _mean([ours[name] - theirs[name] for name in ours if name in theirs]),
            "calls": usage.calls / n,
            "tool_calls": sum(len(case.attempt.calls) for case in arm.cases) / n,
            **{name: getattr(usage, name) / n for name in ("input_tokens", "cached_tokens", "output_tokens")},
            "seconds": median(case.attempt.usage.seconds for case in arm.cases) if arm.cases else 0.0,
            "cost": self.price.of(usage) if self.price else None,
            "failures": dict(arm.causes),
            "failed": [{"id": case.query.id, **case.grade._asdict()} for case in arm.cases if case.grade.cause],
        }


def _mean(values: Sequence[float]) -> list[float]:
    """A mean with its interval; zeros without values."""
    return [fmean(values), *bootstrap_interval(values)] if values else [0.0, 0.0, 0.0]


def sampled(queries: Sequence[LabelledQuery], count: int | None) -> tuple[LabelledQuery, ...]:
    """The queries with labelled tools, or ``count`` of them: the same ones whatever the order of the file.

    Raises:
        SettingsError: No query has labelled tools.
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
    arms: Sequence[Arm],
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
    the same queries. Each attempt is stored at once in a file of its own in the folder, and is not made again; ``key``
    is what decides an attempt beside arm, model and request, as JSON values. No attempt begins after new ones have cost
    ``max_cost``, in the currency of the price.

    Raises:
        SettingsError: Attempts cannot be stored in the folder.
    """
    pairs = [(query, arm) for query in queries for arm in arms]
    turn, failures, spent, stopped, done = asyncio.Semaphore(concurrency), Counter[str](), Usage(), "", 0

    def limit(arm: Arm) -> str:
        if price and max_cost is not None and price.of(spent) >= max_cost:
            return f"the new attempts cost {price.of(spent):.4f} of {max_cost:g}"
        if failures[arm.name] >= _GIVE_UP_AFTER:
            return f"the model failed in the first {_GIVE_UP_AFTER} attempts of {arm.name}"
        return ""

    async def made(query: LabelledQuery, arm: Arm) -> Attempt | None:
        nonlocal spent, stopped
        file = folder / f"{digest(model, arm.name, query.query, *key)}.json"
        with suppress(OSError, ValueError):  # there is none, or it is not one
            return Attempt.model_validate_json(file.read_bytes())
        async with turn:
            if why := limit(arm):
                stopped = stopped or why
                return None
            attempt = await arm.attempt(query.query)
            spent += attempt.usage
            # Once an arm works, later errors are those of single queries.
            failures[arm.name] = failures[arm.name] + 1 if attempt.failure else -len(pairs)
            if not attempt.failure:
                try:
                    private_folder(folder)
                    replace_bytes(file, attempt.model_dump_json().encode())
                except OSError as error:
                    why = f"{error.strerror}: {cure_of(error)}"
                    raise SettingsError(f"the attempt cannot be stored in {file}: {why}") from error
            return attempt

    async def counted(query: LabelledQuery, arm: Arm) -> Graded | None:
        nonlocal done
        attempt = await made(query, arm)
        done += 1
        if progress:
            progress(done, len(pairs))
        return Graded(query, attempt, grade(query, attempt)) if attempt else None

    found = await asyncio.gather(*(counted(query, arm) for query, arm in pairs))
    cases = [tuple(filter(None, found[place :: len(arms)])) for place in range(len(arms))]
    results = (ArmResult(arm.name, of, len(queries) - len(of)) for arm, of in zip(arms, cases, strict=True))
    return ModelEvaluation(model, tuple(results), price, stopped)
