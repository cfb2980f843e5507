"""Plans, works and answers without a model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from callsheet.agents.calls.plan import Plan, Step, StepResult
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.no_model.filling import (
    StepReading,
    read_step,
    spread,
    unanswered_words,
)
from callsheet.agents.no_model.values import in_words, refers_to
from callsheet.agents.no_model.wording import introduction, nearest, quoted, refusal
from callsheet.agents.planning.planner import AnswerTask, PlanTask, check_number
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.work.context import NAME, Brief, list_results
from callsheet.agents.work.equipment import Equipment
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.errors import PlanError, SettingsError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.words import clause_spans, parts_of, tokens

_NOTE = "planned without a model: only steps that name a tool and its values are done; for others, use --model"
_TURNS = 1_000


@dataclass(frozen=True, slots=True)
class NoModel:
    """Replaces a model: it makes harmless calls whose values all stand in the step, and no other calls.

    Attributes:
        present: Whether a person can confirm calls.
        works: Whether it also does the steps of its plans; otherwise, it only splits requests.
    """

    present: bool = False
    works: bool = True
    prose = False

    async def plan(self, task: PlanTask) -> Plan:
        """Splits a request into steps; their texts are the words of the request.

        Raises:
            PlanError: It has too many steps, or one that is not understood beside one that changes something.
        """
        return await asyncio.to_thread(_plan, task, works=self.works)

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """Calls the tool that uses all words of the step, if there is one."""
        supervision = equipment.supervision
        if supervision is None:
            raise SettingsError("without supervision nothing is known about the tools, and none is called")
        registry = supervision.registry
        tools = {tool.id: tool.name for tool in equipment.tools.values()}
        inputs = [result for result in brief.inputs if result.status == "done"]
        reading = await asyncio.to_thread(read_step, brief.text, [*tools], registry, inputs)
        first = _ended("failed", "no tool in the catalog fits")
        if reading is not None:
            tool_id = reading.tool.id
            assured = registry.assurance(tool_id)
            free = self.present or await asyncio.to_thread(supervision.allows, tool_id, assured)
            doubt = None if free else assured.confirmation
            given = brief.given.get(tool_id, {})
            first = await asyncio.to_thread(_first, reading, given, registry, tools, doubt=doubt)
        equipped = replace(
            equipment,
            model=_StepModel(first=first, reading=reading),
            own_tools=False,
            requests=None,
            code=False,
            max_turns=_TURNS,
            supervision=replace(supervision, notice=False, confirms=True),
        )
        done = await carry_out(brief, equipped, app)
        return done.model_copy(update={"usage": Usage()})

    async def answer(self, task: AnswerTask) -> AIMessage:
        """Returns the results of the steps, and names what was not done and why."""
        return AIMessage(list_results(task.request, task.results), name=NAME)


def _plan(task: PlanTask, *, works: bool) -> Plan:
    if works and not tokens(task.request):
        return Plan(answer=introduction(task.catalog, task.registry, task.find))
    readings = [] if task.mode == "none" else _readings(task)
    texts = [reading.text for reading in readings] or [task.request.strip()]
    check_number(len(texts), task.max_steps)
    if works and readings:
        _check_understood(task, readings)
    placeholders = [StepResult(id=str(number), text=text) for number, text in enumerate(texts, start=1)]
    steps: list[Step] = []
    for place, text in enumerate(texts):
        needs = {one.id for one in refers_to(text, placeholders[:place])}
        for earlier, reading in zip(placeholders[:place], readings, strict=False):
            if _waits(readings[place], reading, task.catalog):
                needs.add(earlier.id)
        uses = [one.id for one in refers_to(text, task.last)] if place == 0 else []
        steps.append(Step(id=str(place + 1), text=text, depends_on=tuple(sorted(needs, key=int)), uses=tuple(uses)))
    return Plan(steps=tuple(steps), note=_NOTE, mode="no_model")


def _check_understood(task: PlanTask, readings: Sequence[StepReading]) -> None:
    """Checks that a tool is named, and that all is understood if a part may change something.

    Raises a ``PlanError`` otherwise.
    """
    is_one_word = len(set(tokens(task.request))) == 1
    lone = is_one_word and not any(reading.complete for reading in readings)
    if lone or not any(reading.named or reading.args for reading in readings):
        near = nearest(task.catalog, task.find(task.request))
        about = introduction(task.catalog, task.registry, task.find)
        raise PlanError("\n".join(filter(None, ["no step names a tool with its values.", near, about])))
    if len(readings) == 1 or all(reading.harmless for reading in readings):
        return
    lost = [reading for reading in readings if not reading.understood]
    if lost:
        why = "; ".join(f'"{reading.text}": {refusal(reading, task.registry, task.find)}' for reading in lost)
        raise PlanError(f"a part of the request is not understood, so the rest may mean something else: {why}")


def _waits(step: StepReading, before: StepReading, catalog: Catalog) -> bool:
    """Whether a step waits for an earlier one: it may change something, or may see what the other one changes."""
    first, second = (catalog.agent(reading.tool.agent).system_key for reading in (before, step))
    shared = {one for one in before.args.values() if isinstance(one, str)} & {*map(str, step.args.values())}
    return not step.harmless or (not before.harmless and bool(first == second or shared))


def _readings(task: PlanTask) -> list[StepReading]:
    """Returns the steps of a request: its clauses, or the parts of a clause if each of them is understood by itself."""
    request = task.request
    alone = _read(task, request.strip(), 0)
    if alone is not None and alone.certain:
        return [alone]
    clauses = [request[start:end].strip() for start, end in clause_spans(request)] or [request.strip()]
    found: list[StepReading] = []
    for clause in clauses:
        whole = _read(task, clause, len(found))
        if whole is None:
            return []
        if whole.certain:
            found.append(whole)
        else:
            found += _parts_of_clause(task, whole, clause, len(found)) or [whole]
    return found


def _parts_of_clause(task: PlanTask, whole: StepReading, clause: str, place: int) -> list[StepReading]:
    """Returns the parts of a clause if there are several and each is understood by itself; none otherwise.

    They are calls of the same tool, one for each of several values, or the parts between conjunctions.
    """
    return _calls_of_one_tool(task, whole, clause, place) or _understood_parts(task, clause, place)


def _calls_of_one_tool(task: PlanTask, whole: StepReading, clause: str, place: int) -> list[StepReading]:
    """Returns a call of the clause's tool for each of several values; none if one of them is not certain."""
    parts = spread(whole.tool, clause)
    calls: list[StepReading] = []
    for part in parts:
        reading = _read(task, part, place)
        if reading is None or not reading.certain:
            return []
        calls.append(reading)
    return calls if len(calls) > 1 else []


def _understood_parts(task: PlanTask, clause: str, place: int) -> list[StepReading]:
    """Returns the parts between conjunctions; none if one of them is not understood."""
    parts = parts_of(clause)
    understood: list[StepReading] = []
    for number, part in enumerate(parts, place):
        reading = _read(task, part, number)
        if reading is None or not reading.complete or not (reading.certain or reading.named):
            return []
        understood.append(reading)
    if len(understood) < 2 or not any(reading.certain for reading in understood):
        return []
    # Beside a part that may change something, each part must name its tool.
    is_clear = all(reading.harmless for reading in understood) or all(reading.named for reading in understood)
    return understood if is_clear else []


def _read(task: PlanTask, text: str, place: int) -> StepReading | None:
    before = [StepResult(id=str(number), text="") for number in range(place)] or list(task.last)
    return read_step(text, task.find(text), task.registry, before)


def _first(
    reading: StepReading,
    given: Mapping[str, Any],
    registry: ToolRegistry,
    tools: Mapping[str, str],
    *,
    doubt: Refusal | None,
) -> AIMessage:
    """Returns the call of a step, or why there is none.

    ``given`` are values that a person has given for it; ``tools`` are the names of the step's tools by their ids;
    ``doubt`` is why a person would have to confirm it.
    """
    tool_id = reading.tool.id
    missing = [name for name in reading.missing if name not in given]
    if missing or reading.unused or reading.others:
        parameters = [] if reading.unused or reading.others else missing
        return _ended(
            "needs_input", refusal(reading, registry, lambda _: [*tools]), tool=tool_id, parameters=parameters
        )
    if not doubt:
        call = ToolCall(name=tools[tool_id], args={**reading.args, **given}, id="call_1", type="tool_call")
        return AIMessage("", tool_calls=[call])
    allow = f"allow the tool with --allow {tool_id}, or for good with `callsheet trust allow {tool_id}`"
    who = "Nobody is here to confirm the call: repeat this in a terminal, or"
    return _ended("needs_input", f"{tool_id} was not called. {doubt} {who} {allow}")


class _StepModel(BaseChatModel):
    """The chat model of one step, which the worker's loop asks for the next message: the first one, then the end."""

    first: AIMessage
    reading: Any

    @property
    def _llm_type(self) -> str:
        return "callsheet-forms"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Itself: the tool is chosen already."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        message = self._last(answers[-1]) if answers else self.first
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _last(self, answer: ToolMessage) -> AIMessage:
        """Returns the outcome of the step."""
        reading: StepReading = self.reading
        everything = in_words(answer.text)
        if answer.status == "error":
            return _ended("failed", everything or f"{reading.tool.id} failed without a reason.")
        # A run that is resumed without --allow would not make the call that it has made before.
        made = self.first.tool_calls
        text = in_words(answer.text, made[0]["args"] if made else reading.args)
        lacking = unanswered_words(reading, everything)
        if not lacking:
            return AIMessage(text or f"{reading.tool.id} returned an empty answer.")
        nothing = f"{reading.tool.id} says nothing about {quoted(lacking)}; its closest answer: {shown(text)}"
        return _ended("needs_input", nothing)


def _ended(status: str, why: str, **more: Any) -> AIMessage:
    return AIMessage(why, additional_kwargs={"outcome": {"status": status, "reason": why, **more}})
