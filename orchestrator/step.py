"""One step: select agents and tools, let a worker do the step, ask a person for missing values."""

from __future__ import annotations

import asyncio
import importlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.graph import END
from pydantic import TypeAdapter

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
    unsettled,
)
from callsheet.agents.approval.questions import (
    MOST_WRONG,
    ask_values,
    input_question,
    wanted_schema,
    wrong_values,
)
from callsheet.agents.calls.call_context import within
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.servers.in_process import TOOL_MODEL, ToolModel
from callsheet.agents.work.context import surroundings
from callsheet.agents.work.worker_agent import WEAK_TURNS
from callsheet.graphs import CallsheetError, Catalog, SettingsError, shown
from callsheet.graphs.catalog.errors import needs_extra
from callsheet.graphs.text.model_schema import model_schema
from callsheet.orchestrator.run.named_requests import tool_requests
from callsheet.orchestrator.run.run_context import RunConfiguration, caller
from callsheet.orchestrator.run.run_metrics import count_result, measured
from callsheet.orchestrator.state import StepState, continued, step_result, with_earlier
from callsheet.retrievers import AgentGraphRetriever, Selection, explain_tool
from callsheet.retrievers.catalog_tools import agent_line
from callsheet.retrievers.index.embedding import first_tokens

Worker = Runnable[Any, Any]
_BEST = 6
"""Number of tools of an agent that the planner has named without a tool."""
_NEAREST = 3
_UNFIT = (
    "No tool of the catalog seems to fit this step. If none of yours does it, ask for one in other words, or end with "
    "cannot, and say what is missing. The nearest agents:"
)
_EXPORTER = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
_SELECTION = TypeAdapter(Selection)


@dataclass(frozen=True, slots=True)
class StepNodes:
    """The nodes of a step, with the objects that must stay out of the state."""

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    configuration: RunConfiguration

    def _visible(self) -> AgentGraphRetriever:
        return self.retriever.within(caller())

    def _configuration(self, state: StepState) -> RunConfiguration:
        return self.configuration.of(state.get("preferences", {}))

    def retrieve(self, state: StepState) -> dict[str, Any]:
        """The selection for a step as plain values, without agents that failed at it or fail repeatedly.

        If nothing could be retrieved, it has only ``error``.
        """
        step = Step(**state["step"])
        try:
            with self.registry.pool.held(state["run_id"]):
                selection, left_out = self._selected(step, state)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the step's result names it
            return {"error": f"nothing could be retrieved: {_words(error)}"}
        picked, down = selection.to_dict(), self.registry.loaded.down
        picked |= {"left_out": dict(left_out)} if left_out else {}
        if failing := {agent.id: down[agent.id] for agent in selection.agents if down.get(agent.id)}:
            picked["down"] = failing
        budget = {
            "tools": len(selection.tools),
            "schema_tokens": self.retriever.selector.tokens.count(tool.id for tool in selection.tools),
            "schema_tokens_allowed": self._configuration(state).settings.schema_tokens,
        }
        why = {tool.id: explain_tool(tool.id, selection) for tool in selection.tools}
        event = {"event": "picked", "step_id": step.id, "attempt": state["attempts"]}
        get_stream_writer()({**event, "selection": picked, "why": why, "budget": budget})
        return picked

    def _selected(self, step: Step, state: StepState) -> tuple[Selection, Mapping[str, str]]:
        """A selection without unavailable agents, and these agents; they are included if nothing else fits."""
        tried, configuration = tuple(state["tried"]), self._configuration(state)
        left_out = {agent: why for agent, why in self.registry.unavailable().items() if agent not in tried}
        reach = {**configuration.settings.reach(), "step_id": step.id}
        if not configuration.read_skills:
            reach["skills"] = 0
        if wanted := self._wanted(step, reach["tools"]):  # the planner has read what they do
            reach |= {"wanted": wanted, "tools": len(wanted), "judged": 0}
        else:
            reach |= configuration.decision()
        selection = selected(self._visible(), step.text, **reach, without=(*tried, *left_out))
        if left_out and selection.verdict == "nothing_fits":
            again = selected(self._visible(), step.text, **{**reach, "judged": 0}, without=tried)
            return replace(again, decision=selection.decision), {}  # the one call of this step, and its cost
        return selection, left_out

    def _wanted(self, step: Step, most: int) -> tuple[str, ...]:
        """The tools that the planner has named, and of agents that it has named, the best ones for the step."""
        visible = self._visible()
        known = visible.catalog.by_id
        wanted = [name for name in step.tools if name in visible.catalog.tools][:most]
        agents = [name for name in step.tools if name in known]
        for name in agents:
            if best := min(_BEST, (most - len(wanted)) // len(agents)):
                others = [agent for agent in known if agent != name]
                found = visible.select(step.text, tools=best, without=others, skills=0, judged=0)
                wanted += [tool.id for tool in found.tools]
        return tuple(dict.fromkeys(wanted))

    async def work(self, state: StepState, worker: Worker) -> dict[str, Any]:
        """Lets a worker do the step with the selected tools; an error becomes a result, not an exception."""
        step = Step(**state["step"])
        try:
            with self.registry.pool.held(state["run_id"]):
                result = await self._worked(step, state, worker)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 an error of one step must not stop the others
            result = step_result(step, status="failed", error=_words(error), exhausted=True)
        known = {"attempts": state["attempts"], "id": step.id, "depends_on": step.depends_on}
        result = result.model_copy(update=known)
        if state.get("given") and (asked := state.get("before")):
            result = continued(result, StepResult(**asked))
        before = state["results"].get(step.id)
        whole = with_earlier(result, StepResult(**before)) if before else result
        if asking := self.question(whole, state, self._configuration(state).settings.approval):
            return {"asking": asking}
        count_result(result)
        return _finished(whole)

    async def _worked(self, step: Step, state: StepState, worker: Worker) -> StepResult:
        if why := state["selection"].get("error"):
            return step_result(step, status="failed", error=why, exhausted=True)
        selection = _SELECTION.validate_python(state["selection"])
        agents = tuple(agent.id for agent in selection.agents)
        scores = {tool.id: tool.score for agent in selection.agents for tool in agent.tools}
        await self.registry.pool.settled(state["run_id"], agents)
        refused = self.registry.refused(tuple(scores), caller())
        if scores and len(refused) == len(scores):
            told = "; ".join(f"{tool}: {why}" for tool, why in refused.items())
            why = f"none of the tools that were picked for it may be called any more: {told}"
            return step_result(step, status="failed", error=why, agents=agents)
        configuration, begun = self._configuration(state), state.get("run_begun", time.time())
        settings, reasoner = configuration.settings, configuration.reasoner("worker")
        ranked = sorted((tool for tool in scores if tool not in refused), key=lambda tool: -scores[tool])
        catalog, present = self._visible().catalog, configuration.someone_present
        places = [*agents, *catalog.by_id]
        before = state.get("before")
        about = await asyncio.to_thread(surroundings, self.registry, places, begun, present=present)
        brief = Brief(
            text=step.text,
            request=state["run_request"],
            skills=skill_texts(catalog, [skill.id for skill in selection.skills], most=settings.skill_tokens),
            inputs=tuple(StepResult(**result) for result in state["inputs"]),
            before=StepResult(**before) if before else None,
            place=state.get("place", ""),
            about="\n\n".join(filter(None, (about, _unfit(selection, catalog)))),
            item=step.item,
            given=state.get("given", {}),
        )
        equipment = Equipment(
            tools=self.registry.bind(ranked, state["run_id"], user=caller(), held_only=True),
            prompt=configuration.prompt("worker"),
            max_turns=min(settings.max_turns, WEAK_TURNS) if settings.weak_model else settings.max_turns,
            max_calls=settings.max_calls,
            max_tokens=state.get("tokens_left"),
            requests=self._requests(step, state),
            refused=refused,
            code=settings.code_mode,
            replans=settings.planning in ("auto", "adaptive"),
            weak=settings.weak_model,
            supervision=configuration.supervision(self.registry, step.id, state["run_id"]),
        )
        seconds, tools = settings.step_seconds, ToolModel(configuration.model("worker"))
        with unsettled() as calls, within(TOOL_MODEL, tools):
            try:
                async with asyncio.timeout(seconds):
                    done = await reasoner.work(brief, equipment, worker)
                    return done.model_copy(update={"agents": agents, "usage": done.usage + tools.usage})
            except TimeoutError:
                late = f"the worker was not done after {seconds:g} s and was stopped"
                if not calls:
                    return step_result(step, status="failed", error=late, exhausted=True)
        late += f" during a call of {', '.join(calls)}; whether that took effect is unknown"
        spent = usage_of(equipment.replies, seconds)
        fields = {"agents": agents, "tools": tuple(ranked), "error": late, "usage": spent}
        return step_result(step, status="outcome_unknown", **fields)

    def _requests(self, step: Step, state: StepState) -> ToolRequests:
        """Answers a worker's requests for tools: named ones are added, words are answered with names."""
        write, user, visible = get_stream_writer(), caller(), self._visible()
        catalog, most = visible.catalog, self._configuration(state).settings.skill_tokens

        def bind(ids: Sequence[str], taken: Collection[str]) -> Mapping[str, BoundTool]:
            return self.registry.bind(ids, state["run_id"], beside=taken, user=user, held_only=True)

        def added(asked: str, ids: Sequence[str]) -> None:
            write({"event": "added", "step_id": step.id, "what": asked, "tools": list(ids)})

        def skills(ids: Sequence[str]) -> Mapping[str, str]:
            return skill_texts(catalog, ids, most=most)

        return tool_requests(visible, self.registry, user, bind=bind, added=added, skills=skills)

    def question(self, result: StepResult, state: StepState, policy: ApprovalPolicy) -> dict[str, Any]:
        """The question to a person for missing values that were not entered before; empty if nobody can be asked."""
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
        """Asks a person for missing values, at most three times if they do not fit; without any the step stays."""
        asking = state.get("asking", {})
        result, tool, schema = StepResult(**asking["result"]), asking["tool"], asking["schema"]
        values = ask_values(input_question(result.id, tool, schema, result.error, asking["problem"]))
        if values is None:
            count_result(result)
            return {"asking": {}, **_finished(result)}
        secrets = self.registry.secrets.of(state["run_id"])
        masked = secrets.masked(schema, values)
        if (problem := wrong_values(schema, values)) and (wrong := asking.get("wrong", 0) + 1) < MOST_WRONG:
            return {"asking": {**asking, "problem": secrets.hidden(problem), "wrong": wrong}}
        if problem:
            return {"asking": {}, **_finished(result)}
        before = state.get("given", {})
        return {"asking": {}, "before": asking["result"], "given": {**before, tool: {**before.get(tool, {}), **masked}}}


def after_work(state: StepState) -> str:
    """To the question, if there is one."""
    return "ask" if state.get("asking") else END


def after_input(state: StepState) -> str:
    """To the next question, to the worker with the new values, or to the end."""
    if state.get("asking"):
        return "ask"
    return END if state["step"]["id"] in state["results"] else "agent"


def _finished(result: StepResult) -> dict[str, Any]:
    """Streams the result of a step, and returns it to the supervisor."""
    plain = result.model_dump(mode="json")
    get_stream_writer()({"event": "step", "step_id": result.id, "result": plain})
    return {"results": {result.id: plain}}


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CallsheetError) else f"{type(error).__name__}: {error}"


def _unfit(selection: Selection, catalog: Catalog) -> str:
    """For a worker, if nothing seems to fit its step: the nearest agents, and what it may do; otherwise empty."""
    if selection.verdict == "found":
        return ""
    known = [agent.id for agent in selection.agents if agent.id in catalog.by_id][:_NEAREST]
    return "\n".join((_UNFIT, *(agent_line(catalog.agent(agent)) for agent in known)))


def skill_texts(catalog: Catalog, ids: Sequence[str], *, most: int) -> dict[str, str]:
    """The texts of skills by name, without hidden characters."""
    texts: dict[str, str] = {}
    for skill in (catalog.skills_by_id[skill_id] for skill_id in ids if skill_id in catalog.skills_by_id):
        whole = shown(skill.text, most=None)
        text, spent = first_tokens(whole, most)
        most -= spent
        if whole and not text:
            continue
        if len(text) < len(whole):
            text = f"{text}\n[cut: {len(text):,} of {len(whole):,} characters are shown]".lstrip()
        texts[skill.name] = text
    return texts


def check_tracing() -> None:
    """Refuses OpenTelemetry without its packages: LangSmith's client would send all runs to LangSmith instead."""
    if os.environ.get("LANGSMITH_TRACING_MODE", "").lower() not in {"otel", "hybrid"}:
        return
    try:
        importlib.import_module(_EXPORTER)
    except ImportError as error:
        raise SettingsError(f"LANGSMITH_TRACING_MODE=otel {needs_extra('otel')}") from error


def selected(retriever: AgentGraphRetriever, query: str, *, step_id: str = "", **changes: Any) -> Selection:
    """Selects in a run named ``select``, whose output is the selection with its trace.

    Tracers of LangChain show it inside the current run, with ``step_id`` in its metadata.
    """
    found: list[Selection] = []

    def select(text: str) -> dict[str, Any]:
        found.append(measured(retriever, text, **changes))
        return found[0].to_dict(trace=True)

    RunnableLambda(select, name="select").invoke(query, {"metadata": {"step_id": step_id} if step_id else {}})
    return found[0]
