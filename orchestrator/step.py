"""The nodes of a worker: select agents and tools, do the steps, and ask a person for missing values."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END

from callsheet.agents import (
    ApprovalPolicy,
    BoundTool,
    Brief,
    Equipment,
    Step,
    StepResult,
    ToolRegistry,
    ToolRequests,
    checkpointer,
    unsettled_calls,
)
from callsheet.agents.approval.call_record import open_calls_told
from callsheet.agents.approval.questions import (
    MOST_WRONG,
    ask_values,
    input_question,
    refusal_of_values,
    wanted_schema,
)
from callsheet.agents.calls.call_context import within
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.registry.skills import read_skill_blocking
from callsheet.agents.servers.in_process import TOOL_MODEL, ToolModel
from callsheet.agents.work.argument_sources import argument_sources
from callsheet.agents.work.context import surroundings
from callsheet.agents.work.open_arguments import siblings
from callsheet.agents.work.step_results import step_results
from callsheet.graphs import CallsheetError, Catalog, SettingsError, shown
from callsheet.graphs.catalog.names import skill_named
from callsheet.graphs.errors import needs_extra
from callsheet.graphs.text.model_schema import model_schema
from callsheet.orchestrator.plans import with_roster
from callsheet.orchestrator.run.answers import asked_in_turn
from callsheet.orchestrator.run.named_requests import tool_requests
from callsheet.orchestrator.run.run_context import RunConfiguration, call_ledger, caller
from callsheet.orchestrator.run.run_metrics import count_result, count_selections, select_measured
from callsheet.orchestrator.state import StepState, continue_result, read_result, step_result
from callsheet.orchestrator.step_selection import StepSelection
from callsheet.retrievers import AgentGraphRetriever, Selection, StepNeed, explain_tool
from callsheet.retrievers.catalog_tools import agent_line
from callsheet.retrievers.index.embedding import first_tokens

Worker = Runnable[Any, Any]
_NEAREST = 3
_UNFIT = (
    "No tool of the catalog seems to fit this step. If none of yours does it, ask for one in other words, or end with "
    "cannot, and say what is missing. The nearest agents:"
)
_NOT_GIVEN = "The plan also names these tools, which you do not have; need_tool adds what you name:"
_SERVED = "[Written by the server of agent {!r}, not by the user.]\n"
"""The beginning of the text of a skill that a server serves."""
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"


@dataclass(frozen=True, slots=True)
class StepNodes:
    """The nodes of a worker, with the objects that cannot be stored in the state."""

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    configuration: RunConfiguration

    def _visible(self) -> AgentGraphRetriever:
        return self.retriever.within(caller())

    def _configuration(self, state: StepState) -> RunConfiguration:
        return self.configuration.of(state.get("preferences", {}))

    def retrieve(self, state: StepState) -> dict[str, StepSelection]:
        """Selects agents and tools for the steps of a worker; agents that fail repeatedly are left out.

        If nothing could be retrieved, each selection has only ``error``.
        """
        steps = _steps(state)
        try:
            with self.registry.pool.held(state["run_id"]):
                selections, left_out = self._selected(steps, state)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the steps' results name it
            why = f"nothing could be retrieved: {_words(error)}"
            return {step.id: StepSelection(Selection(step.text), error=why) for step in steps}
        picked: dict[str, StepSelection] = {}
        for step, selection in zip(steps, selections, strict=True):
            picked[step.id] = self._streamed(step, selection, left_out, state)
        return picked

    def _streamed(
        self, step: Step, selection: Selection, left_out: Mapping[str, str], state: StepState
    ) -> StepSelection:
        """Streams a selection, with what is known of agents that do not answer, and returns it."""
        down = self.registry.loaded.down
        tools = [tool.id for tool in selection.tools]
        picked = StepSelection(
            selection,
            left_out=left_out,
            down={agent.id: down[agent.id] for agent in selection.agents if down.get(agent.id)},
            not_given=_not_given(step, selection),
            # In the state too: the page also explains the picks of a run that has ended.
            why={tool: explain_tool(tool, selection) for tool in tools},
        )
        budget = {
            "tools": len(tools),
            "schema_tokens": self.retriever.selector.tokens.count(tools),
            "schema_tokens_allowed": self._configuration(state).settings.schema_tokens,
        }
        plain = picked.to_dict()
        event = {"event": "picked", "step_id": step.id, "selection": plain, "why": dict(picked.why), "budget": budget}
        get_stream_writer()(event)
        return picked

    def _selected(self, steps: Sequence[Step], state: StepState) -> tuple[Sequence[Selection], Mapping[str, str]]:
        """Returns selections without unavailable agents, and these agents; they are included if nothing else fits."""
        configuration = self._configuration(state)
        left_out = self.registry.unavailable()
        reach = configuration.settings.reach()
        if not configuration.read_skills:
            reach["skills"] = 0
        reach |= configuration.decision()
        needs = [StepNeed(step.text, step.tools) for step in steps]
        ids = [step.id for step in steps]
        selections = selected_steps(self._visible(), needs, ids, **reach, without=tuple(left_out))
        if left_out and any(selection.verdict == "nothing_fits" for selection in selections):
            again = selected_steps(self._visible(), needs, ids, **reach)
            # The decision model was asked again; what both calls cost is counted once each.
            return again, {}
        return selections, left_out

    async def work(self, state: StepState, worker: Worker) -> dict[str, Any]:
        """Lets a worker do its steps with the selected tools; an error becomes a result, not an exception."""
        steps = _steps(state)
        picked = _picked(state)
        try:
            questions = self._configuration(state).settings.questions
            with asked_in_turn(questions), self.registry.pool.held(state["run_id"]):
                whole = await self._worked(steps, picked, state, worker)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 an error of one worker must not stop the others
            whole = step_result(steps[0], status="failed", error=_words(error))
        whole = whole.model_copy(update={"id": steps[0].id})
        if state.get("given") and (asked := state.get("before")):
            whole = continue_result(whole, read_result(asked))
        asking = self.question(whole, state, self._configuration(state).settings.approval)
        if asking:
            return {"asking": asking}
        return _finished(whole, picked, state)

    async def _worked(
        self, steps: Sequence[Step], picked: Sequence[StepSelection], state: StepState, worker: Worker
    ) -> StepResult:
        """Returns the result of the worker for all of its steps."""
        for one in picked:
            if one.error:
                return step_result(steps[0], status="failed", error=one.error)
        selections = [one.selection for one in picked]
        wanted = list(dict.fromkeys(tool.id for selection in selections for tool in selection.tools))
        agents = tuple(dict.fromkeys(agent.id for selection in selections for agent in selection.agents))
        await self.registry.pool.settled(state["run_id"], agents)
        refused = self.registry.refused(tuple(wanted), caller())
        if wanted and len(refused) == len(wanted):
            reasons = "; ".join(f"{tool}: {why}" for tool, why in refused.items())
            why = f"none of the tools that were selected for the step may be called any more: {reasons}"
            return step_result(steps[0], status="failed", error=why, agents=agents)
        brief = await asyncio.to_thread(self._brief, steps, state, picked, agents)
        equipment = await self._equipment(steps[0], state, wanted, refused)
        done = await self._within_time(steps[0], state, brief, equipment, worker)
        return done.model_copy(update={"agents": agents})

    async def _equipment(
        self, step: Step, state: StepState, wanted: Sequence[str], refused: Mapping[str, str]
    ) -> Equipment:
        """Returns the tools, the prompt and the limits of a worker whose first step is ``step``.

        It gets the tools that are ``wanted`` without those that are ``refused``, and knows why it lacks the others.
        """
        configuration = self._configuration(state)
        settings = configuration.settings
        prompt = configuration.prompt("worker")
        if settings.planning == "none":
            prompt = await asyncio.to_thread(with_roster, configuration, "worker", self._visible())
        permitted = [tool for tool in wanted if tool not in refused]
        tools = self.registry.bind(permitted, state["run_id"], user=caller(), held_only=True)
        # A listing that arrived since ``refused`` was read may have taken a tool away.
        bound = {tool.id for tool in tools.values()}
        missing = [tool for tool in permitted if tool not in bound]
        refused = {**refused, **self.registry.refused(missing, caller())}
        return Equipment(
            tools=tools,
            prompt=prompt,
            max_turns=settings.max_turns,
            max_calls=settings.max_calls,
            max_tokens=state.get("tokens_left"),
            requests=self._requests(step, state),
            refused=refused,
            code=settings.code_mode,
            replans=settings.planning == "auto" and configuration.model("planner") is not None,
            supervision=configuration.supervision(self.registry, step.id, state["run_id"]),
        )

    async def _within_time(
        self, step: Step, state: StepState, brief: Brief, equipment: Equipment, worker: Worker
    ) -> StepResult:
        """Lets the worker work for at most ``step_seconds``; a call that it was making then has an unknown outcome.

        The result of a worker that was stopped has the calls that were answered before.
        """
        configuration = self._configuration(state)
        seconds = configuration.settings.step_seconds
        tool_model = ToolModel(configuration.model("worker"))
        with unsettled_calls() as calls, within(TOOL_MODEL, tool_model):
            try:
                async with asyncio.timeout(seconds):
                    done = await configuration.reasoner("worker").work(brief, equipment, worker)
                    return done.model_copy(update={"usage": done.usage + tool_model.usage})
            except TimeoutError:
                late = f"the worker was not done after {seconds:g} s and was stopped"
        done_so_far: dict[str, Any] = {
            "tools": tuple(tool.id for tool in equipment.tools.values()),
            "calls": replace(equipment, brief=brief).answered_calls(),
            "usage": usage_of(equipment.replies, seconds),
        }
        if not calls:
            return step_result(step, status="failed", error=late, **done_so_far)
        late += f" during a call of {', '.join(calls)}; whether that took effect is unknown"
        return step_result(step, status="outcome_unknown", error=late, **done_so_far)

    def _brief(
        self, steps: Sequence[Step], state: StepState, picked: Sequence[StepSelection], agents: Sequence[str]
    ) -> Brief:
        """Returns what the worker is told."""
        configuration = self._configuration(state)
        selections = [one.selection for one in picked]
        catalog = self._visible().catalog
        begun = state.get("run_begun", time.time())
        before = state.get("before")
        skills = dict.fromkeys(skill.id for selection in selections for skill in selection.skills)
        selected = dict.fromkeys(tool.id for selection in selections for tool in selection.tools)
        tools = [tool for tool in selected if tool in catalog.tools]
        owners = dict.fromkeys(catalog.tools[tool].agent for tool in tools)
        about = (
            surroundings(self.registry, [*agents, *owners], begun, present=configuration.someone_present),
            _unfit(selections, catalog),
            _lacking(picked),
            siblings(catalog, tools),
            argument_sources(catalog, tools),
            open_calls_told(call_ledger(self.registry.loaded), tools),
        )
        return Brief(
            text="\n".join(step.text for step in steps),
            request=state["run_request"],
            steps=tuple(steps),
            conversation=state.get("conversation", ""),
            skills=self._skill_texts(catalog, list(skills), state),
            inputs=tuple(map(read_result, state["inputs"])),
            before=read_result(before) if before else None,
            place=state.get("place", ""),
            about="\n\n".join(filter(None, about)),
            item=steps[0].item,
            given=state.get("given", {}),
        )

    def _requests(self, step: Step, state: StepState) -> ToolRequests:
        """Answers a worker's requests for tools: named ones are added, words are answered with names."""
        write = get_stream_writer()
        user = caller()
        visible = self._visible()
        catalog = visible.catalog
        settings = self._configuration(state).settings
        seen = settings.roster_tokens if settings.planning == "none" else 0

        def bind(ids: Sequence[str], taken: Collection[str]) -> Mapping[str, BoundTool]:
            return self.registry.bind(ids, state["run_id"], beside=taken, user=user, held_only=True)

        def added(asked: str, ids: Sequence[str]) -> None:
            write({"event": "added", "step_id": step.id, "what": asked, "tools": list(ids)})

        def skills(ids: Sequence[str]) -> Mapping[str, str]:
            return self._skill_texts(catalog, ids, state)

        ledger = call_ledger(self.registry.loaded)
        answers: dict[str, Any] = {"bind": bind, "added": added, "skills": skills}
        answers["told"] = partial(open_calls_told, ledger)
        supervision = self._configuration(state).supervision(self.registry, step.id, state["run_id"])
        answers |= {"supervision": supervision, "run_id": state["run_id"]}
        return tool_requests(visible, self.registry, user, roster_tokens=seen, **answers)

    def _skill_texts(self, catalog: Catalog, ids: Sequence[str], state: StepState) -> dict[str, str]:
        """Returns the texts of skills; blocks while servers send theirs."""
        read = partial(read_skill_blocking, self.registry, run_id=state["run_id"], user=caller())
        return skill_texts(catalog, ids, read, most=self._configuration(state).settings.skill_tokens)

    def question(self, result: StepResult, state: StepState, policy: ApprovalPolicy) -> dict[str, Any]:
        """Returns the question to a person for missing values; empty if nobody can be asked.

        Values that were entered before are not asked for again.
        """
        if result.status != "needs_input" or policy == "never" or checkpointer() is None:
            return {}
        given = state.get("given", {})
        for tool, parameters in result.missing.items():
            left = [name for name in parameters if name not in given.get(tool, {})]
            known = self.registry.catalog.tools.get(tool)
            if left and (known or not tool):
                texts = {"properties": {name: {"type": "string", "minLength": 1} for name in left}}
                schema = wanted_schema(model_schema(known.input_schema).plain if known else texts, left)
                return {"result": result.model_dump(mode="json"), "tool": tool, "schema": schema, "problem": ""}
        return {}

    def ask(self, state: StepState) -> dict[str, Any]:
        """Asks a person for missing values, at most three times if they do not fit; without values, the step stays."""
        asking = state.get("asking", {})
        result = read_result(asking["result"])
        tool = asking["tool"]
        schema = asking["schema"]
        with asked_in_turn(self._configuration(state).settings.questions):
            values = ask_values(input_question(result.id, tool, schema, result.error, asking["problem"]))
        if values is None:
            return {"asking": {}, **_finished(result, _picked(state), state)}
        secrets = self.registry.secrets.of(state["run_id"])
        masked = secrets.masked(schema, values)
        refusal = refusal_of_values(schema, values)
        wrong = asking.get("wrong", 0) + 1
        if refusal and wrong < MOST_WRONG:
            return {"asking": {**asking, "problem": secrets.hidden(refusal.reason), "wrong": wrong}}
        if refusal:
            return {"asking": {}, **_finished(result, _picked(state), state)}
        before = state.get("given", {})
        return {"asking": {}, "before": asking["result"], "given": {**before, tool: {**before.get(tool, {}), **masked}}}


def after_work(state: StepState) -> str:
    """Routes to the question if there is one, otherwise to the end."""
    return "ask" if state.get("asking") else END


def after_input(state: StepState) -> str:
    """Routes to the next question, to the worker with the new values, or to the end."""
    if state.get("asking"):
        return "ask"
    return END if state["steps"][0]["id"] in state["results"] else "agent"


def _steps(state: StepState) -> list[Step]:
    return [Step(**step) for step in state["steps"]]


def _picked(state: StepState) -> list[StepSelection]:
    """Returns what was selected for each step of a worker."""
    return [StepSelection.from_dict(state["picked"].get(step["id"])) for step in state["steps"]]


def _finished(whole: StepResult, picked: Sequence[StepSelection], state: StepState) -> dict[str, Any]:
    """Streams the results of a worker's steps, and returns them to the supervisor."""
    steps = _steps(state)
    given: dict[str, Sequence[str]] = {}
    selected: dict[str, Sequence[str]] = {}
    for step, one in zip(steps, picked, strict=True):
        given[step.id] = one.tool_ids
        selected[step.id] = one.agent_ids
    plain: dict[str, Any] = {}
    for result in step_results(whole, steps, given, selected):
        count_result(result)
        plain[result.id] = result.model_dump(mode="json")
        get_stream_writer()({"event": "step", "step_id": result.id, "result": plain[result.id]})
    return {"results": plain}


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CallsheetError) else f"{type(error).__name__}: {error}"


def _unfit(selections: Sequence[Selection], catalog: Catalog) -> str:
    """For a worker, if nothing seems to fit any of its steps: the nearest agents, and what it may do; else empty."""
    if any(selection.verdict != "nothing_fits" for selection in selections):
        return ""
    near = dict.fromkeys(agent.id for selection in selections for agent in selection.agents)
    known = [agent for agent in near if agent in catalog.by_id][:_NEAREST]
    return "\n".join((_UNFIT, *(agent_line(catalog.agent(agent)) for agent in known)))


def _not_given(step: Step, selection: Selection) -> dict[str, str]:
    """Returns what the plan has named for a step and its worker does not get, with the reason."""
    given = {tool.id for tool in selection.tools} | {skill.id for skill in selection.skills}
    reasons = {cut.id: cut.reason for cut in selection.trace.cut}
    return {name: reasons.get(name, "it is not available") for name in step.tools if name not in given}


def _lacking(picked: Sequence[StepSelection]) -> str:
    """For a worker, the tools that the plan has named and that it does not have; empty if there are none."""
    lacking: dict[str, str] = {}
    for one in picked:
        lacking |= one.not_given
    if not lacking:
        return ""
    return "\n".join([_NOT_GIVEN, *(f"- {name}: {why}" for name, why in lacking.items())])


def skill_texts(catalog: Catalog, ids: Sequence[str], read: Callable[[str], str], *, most: int) -> dict[str, str]:
    """Returns the texts of skills by the names that a model sees, without hidden characters.

    A text of a server says so. If it cannot be read, the reason stands in its place.

    Args:
        catalog: What the user may see; other skills are left out.
        ids: The skills, and files of them (``skill_named``).
        read: Returns the text that has one of these names, or raises a ``CallsheetError``.
        most: Maximum tokens of all texts together.
    """
    texts: dict[str, str] = {}
    for one in ids:
        named = skill_named(catalog, one)
        if named is None:
            continue
        if most <= 0:
            break
        skill, path = named
        label = one if path else skill.label
        try:
            whole = shown(read(one), most=None)
        except CallsheetError as error:
            texts[label] = f"[it cannot be read, so do not follow it: {shown(str(error))}]"
            continue
        text, spent = first_tokens(whole, most)
        most -= spent
        if whole and not text:
            continue
        if len(text) < len(whole):
            text = f"{text}\n[cut: {len(text):,} of {len(whole):,} characters are shown]".lstrip()
        origin = _SERVED.format(skill.agent) if skill.agent else ""
        texts[label] = f"{origin}{text}"
    return texts


def check_tracing() -> None:
    """Raises an error if OpenTelemetry is configured without its packages.

    Otherwise, LangSmith's client would send all runs to LangSmith.
    """
    if os.environ.get("LANGSMITH_TRACING_MODE", "").lower() not in {"otel", "hybrid"}:
        return
    try:
        importlib.import_module(_EXPORTER)
    except ImportError as error:
        raise SettingsError(f"LANGSMITH_TRACING_MODE=otel {needs_extra('otel')}") from error


def select_traced(retriever: AgentGraphRetriever, query: str, **changes: Any) -> Selection:
    """Selects in a run named ``select``, so that LangChain's tracers record the selection with its trace."""
    found: list[Selection] = []

    def select(text: str) -> dict[str, Any]:
        found.append(select_measured(retriever, text, **changes))
        return found[0].to_dict(trace=True)

    RunnableLambda(select, name="select").invoke(query)
    return found[0]


def selected_steps(
    retriever: AgentGraphRetriever, needs: Sequence[StepNeed], step_ids: Sequence[str], **changes: Any
) -> Sequence[Selection]:
    """Selects tools for the steps of a worker in a run named ``select``, whose metadata has the ids of the steps."""
    found: list[Selection] = []

    def select(texts: list[str]) -> dict[str, Any]:
        began = time.perf_counter()
        found.extend(retriever.select_steps(needs, **changes))
        count_selections(found, time.perf_counter() - began)
        return {step_id: one.to_dict(trace=True) for step_id, one in zip(step_ids, found, strict=True)}

    texts = [need.text for need in needs]
    RunnableLambda(select, name="select").invoke(texts, {"metadata": {"step_id": ", ".join(step_ids)}})
    return found
