"""What plans, works and answers where there is no model, and what it says about itself and about a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
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
    fill,
    read_step,
    side_of,
    spread,
    unanswered_words,
    value_kind,
)
from callsheet.agents.no_model.values import Kind, in_words, refers_to
from callsheet.agents.planning.planner import AnswerTask, PlanTask, check_number
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.work.context import NAME, Brief, list_results
from callsheet.agents.work.equipment import Equipment
from callsheet.agents.work.worker_agent import carry_out
from callsheet.graphs.catalog.model import Catalog, Parameter, Tool
from callsheet.graphs.errors import PlanError, SettingsError
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.words import clause_spans, parts_of, split_name, tokens

_EXAMPLES = 3
_AGENTS = 20
_LONGEST = 200
_VALUES = {
    Kind.NUMBER: ("5",),
    Kind.CLOCK: ("9:30",),
    Kind.ZONE: ("Berlin", "Tokyo"),
    Kind.DATE: (date.today().isoformat(),),
    Kind.FILE: ("notes.txt",),
    Kind.FOLDER: ("notes/",),
    Kind.URL: ("https://example.org",),
    Kind.EMAIL: ("ann@example.org",),
    Kind.TEXT: ('"text"',),
    Kind.EXPRESSION: ("2 + 3",),
}
_THERE = {Kind.TEXT, Kind.FILE, Kind.FOLDER, Kind.URL, Kind.EMAIL}
"""What must be there, or mean something to a tool, so that a value of ours is no request that works."""
_NOTE = "planned without a model: only steps that name a tool and its values are done; for others, use --model"
_ABOUT = (
    "Without a model, a step must name a tool and all of its values, and nothing else. For other steps, use --model"
)


Find = Callable[[str], Sequence[str]]
"""The ids of the tools for a text, best first."""


def example(tool: Tool, registry: ToolRegistry, find: Find | None = None) -> str:
    """Returns a request that is read as a call of a tool, also among those of ``find``.

    Empty if none of the words tried is.
    """
    needed = [parameter for parameter in tool.parameters if parameter.required]
    needed.sort(key=lambda p: (side_of(p.name) == 1, value_kind(p) not in (Kind.NUMBER, Kind.CLOCK)))
    said = split_name(tool.name)
    for parameter in needed:
        value = _value(parameter)
        if value is None:
            return ""
        said += f"{' to' if side_of(parameter.name) == 1 else ''} {value}"
    said = f"{said[:1].upper()}{said[1:]}"
    reading = read_step(said, find(said) if find else [tool.id], registry)
    return said if reading is not None and reading.complete and reading.tool.id == tool.id else ""


def _value(parameter: Parameter) -> str | None:
    kind = value_kind(parameter)
    some = parameter.enum if kind == Kind.CHOICE else _VALUES.get(kind, ()) if kind else ()
    return str(some[max(0, side_of(parameter.name)) % len(some)]) if some else None


def examples(catalog: Catalog, registry: ToolRegistry, find: Find) -> list[str]:
    """Requests that work, of different agents: of harmless tools for which any value of the right form does.

    ``find`` searches the whole catalog.
    """

    def works(tool: Tool) -> bool:
        harmless = tool.id in registry.catalog.tools and registry.assurance(tool.id).harm == "none"
        return harmless and not any(p.required and value_kind(p) in _THERE for p in tool.parameters)

    firsts = (
        next(filter(None, (example(tool, registry, find) for tool in filter(works, agent.tools))), "")
        for agent in catalog.agents
    )
    return list(islice(filter(None, firsts), _EXAMPLES))


def introduction(catalog: Catalog, registry: ToolRegistry, find: Find) -> str:
    """Returns the agents, and requests that work."""
    lines = ["The agents are:"]
    for agent in catalog.agents[:_AGENTS]:
        about = agent.description or ", ".join(split_name(tool.name) for tool in agent.tools[:_EXAMPLES])
        lines.append(f"- {agent.id}: {shown(' '.join(about.split())[:_LONGEST])}")
    more = len(catalog.agents) - _AGENTS
    if more > 0:
        lines.append(f"- and {more} more")
    works = [f"- {said}" for said in examples(catalog, registry, find)]
    return "\n".join([*lines, *(["Requests that work:", *works] if works else []), _ABOUT])


def refusal(reading: StepReading, registry: ToolRegistry) -> str:
    """Returns why the tool of a step is not called, and a wording that would work."""
    tool = reading.tool
    why = []
    if reading.unused:
        why.append(f"it would ignore {_quoted(reading.unused)}{_if_harmless(reading, registry)}")
    if reading.missing:
        about = {parameter.name: f"{parameter.name} {parameter.description}" for parameter in tool.parameters}
        why.append(f"it needs {'; '.join(' '.join(about[name].split())[:_LONGEST] for name in reading.missing)}")
    if reading.others:
        why.append(f"{', '.join(reading.others)} would do as well: name one of them")
    said = example(tool, registry)
    hint = f'. A request that works: "{said}"' if said else ""
    return f"the nearest tool, {tool.id}, was not called: {', and '.join(why)}{hint}"


def _if_harmless(reading: StepReading, registry: ToolRegistry) -> str:
    """Returns a remark if the tool would have taken the step, had somebody said that it is harmless.

    Empty otherwise.
    """
    tool = reading.tool
    taken = fill(tool, registry.catalog.agent(tool.agent), reading.text, harmless=True).complete
    if reading.harmless or not taken:
        return ""
    return " (a question is understood only for a tool that is known to be harmless)"


def _quoted(words: Sequence[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


_TURNS = 1_000


@dataclass(frozen=True, slots=True)
class NoModel:
    """Stands where a model would: it makes harmless calls whose values all stand in the step, and no others.

    Attributes:
        present: Whether a person can confirm calls.
        works: Whether it works on the steps of its plans; if not, it only splits.
    """

    present: bool = False
    works: bool = True
    prose = False

    async def plan(self, task: PlanTask) -> Plan:
        """Splits a request into steps, in its own words.

        Raises:
            PlanError: It has too many steps, or one that is not understood beside one that changes something.
        """
        return await asyncio.to_thread(_plan, task, works=self.works)

    async def work(self, brief: Brief, equipment: Equipment, app: Runnable[Any, Any]) -> StepResult:
        """Calls the tool that all of the step goes into, if there is one."""
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
            first = await asyncio.to_thread(_first, reading, given, registry, tools[tool_id], doubt=doubt)
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
        """Returns the results of the steps, and what was not done and why."""
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
    """Raises a ``PlanError`` if no tool fits, or if a part is not understood beside one that may change something."""
    is_one_word = len(set(tokens(task.request))) == 1
    lone = is_one_word and not any(reading.complete for reading in readings)
    if lone or not any(reading.named or reading.args for reading in readings):
        raise PlanError(f"no tool fits. {introduction(task.catalog, task.registry, task.find)}")
    if len(readings) == 1 or all(reading.harmless for reading in readings):
        return
    lost = [reading for reading in readings if not reading.understood]
    if lost:
        why = "; ".join(f'"{reading.text}": {refusal(reading, task.registry)}' for reading in lost)
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
    reading: StepReading, given: Mapping[str, Any], registry: ToolRegistry, name: str, *, doubt: Refusal | None
) -> AIMessage:
    """Returns the call of a step, or why there is none.

    ``given`` are values that a person has given for it; ``doubt`` is why a person would have to confirm it.
    """
    tool_id = reading.tool.id
    missing = [name for name in reading.missing if name not in given]
    if missing or reading.unused or reading.others:
        parameters = [] if reading.unused or reading.others else missing
        return _ended("needs_input", refusal(reading, registry), tool=tool_id, parameters=parameters)
    if not doubt:
        call = ToolCall(name=name, args={**reading.args, **given}, id="call_1", type="tool_call")
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
        text = in_words(answer.text) or f"{reading.tool.id} returned an empty answer."
        if answer.status == "error":
            return _ended("failed", text)
        lacking = unanswered_words(reading, text)
        if not lacking:
            return AIMessage(text)
        nothing = f"{reading.tool.id} says nothing about {_quoted(lacking)}; its closest answer: {shown(text)}"
        return _ended("needs_input", nothing)


def _ended(status: str, why: str, **more: Any) -> AIMessage:
    return AIMessage(why, additional_kwargs={"outcome": {"status": status, "reason": why, **more}})
