"""The nodes of one step: select agents and tools, and let a worker do the step."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp

from callsheet.agents import (
    BoundTool,
    Brief,
    Equipment,
    Step,
    StepResult,
    Supervision,
    ToolRegistry,
    ToolRequests,
    Usage,
    unsettled,
)
from callsheet.agents.models.token_usage import usage_of
from callsheet.agents.tools.in_process import tool_model
from callsheet.agents.work.context import surroundings
from callsheet.graphs import CallsheetError, Catalog, shown
from callsheet.orchestrator.run.current_user import caller
from callsheet.orchestrator.run.run_metrics import count_result
from callsheet.orchestrator.run.run_settings import Choices
from callsheet.orchestrator.state import StepState, with_earlier
from callsheet.orchestrator.step.step_inputs import StepInputs, finished
from callsheet.orchestrator.step.step_selection import picked_event, selected
from callsheet.retrievers import AgentGraphRetriever, Selection
from callsheet.retrievers.catalog_tools import agent_line
from callsheet.retrievers.index.embedding import first_tokens

Worker = Runnable[Any, Any]
_BEST = 6
"""Number of tools of an agent that the planner has named without a tool."""


class StepTimeoutError(CallsheetError, TimeoutError):
    """A step took longer than ``Settings.step_seconds``."""


def step_result(step: Step, **fields: Any) -> dict[str, Any]:
    """The result of a step as plain values."""
    return StepResult(id=step.id, text=step.text, depends_on=step.depends_on, **fields).model_dump(mode="json")


@dataclass(frozen=True, slots=True)
class StepNodes:
    """The nodes of a step, with the objects that must stay out of the state."""

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    choices: Choices

    def seen(self) -> AgentGraphRetriever:
        """The retriever over the tools that the current user may see."""
        return self.retriever.within(caller())

    def _choices(self, state: StepState) -> Choices:
        return self.choices.of(state.get("preferences", {}))

    def retrieve(self, state: StepState) -> dict[str, Any]:
        """Selects agents and tools for the step, without agents that failed at it or fail repeatedly."""
        step = Step(**state["step"])
        try:
            with self.registry.held(state["run_id"]):
                selection, left_out = self._selected(step, state)
        except Exception as error:  # noqa: BLE001 an embedder may raise anything; the step's result names it
            return {"selection": {"error": f"nothing could be retrieved: {_words(error)}"}}
        down = {agent.id: self.registry.down.get(agent.id) for agent in selection.agents}
        remarks = {"left_out": left_out, "down": {agent: since for agent, since in down.items() if since}}
        picked = {**selection.to_dict(), **{name: dict(found) for name, found in remarks.items() if found}}
        cost = self.retriever.selector.tokens.count(tool.id for tool in selection.tools)
        most = self._choices(state).settings.schema_tokens
        get_stream_writer()({**picked_event(step, state["attempts"], selection, cost, most), "selection": picked})
        return {"selection": picked, "selections": {step.id: picked}}

    def _selected(self, step: Step, state: StepState) -> tuple[Selection, Mapping[str, str]]:
        """A selection without unavailable agents, and these agents; they are included if nothing else fits."""
        tried, reach = tuple(state["tried"]), self._choices(state).settings.reach()
        left_out = {agent: why for agent, why in self.registry.unavailable().items() if agent not in tried}
        if wanted := self._wanted(step, reach["tools"]):  # the planner has read what they do
            reach |= {"wanted": wanted, "tools": len(wanted)}
        reach |= {"step_id": step.id} if self._choices(state).read_skills else {"step_id": step.id, "skills": 0}
        selection = selected(self.seen(), step.text, **reach, without=(*tried, *left_out))
        if left_out and selection.verdict == "nothing_fits":
            return selected(self.seen(), step.text, **reach, without=tried), {}
        return selection, left_out

    def _wanted(self, step: Step, most: int) -> tuple[str, ...]:
        """The tools that the planner has named, and of agents that it has named, the best ones for the step."""
        seen = self.seen()
        known = seen.catalog.by_id
        wanted = [name for name in step.tools if name in seen.catalog.tools][:most]
        agents = [name for name in step.tools if name in known]
        for name in agents:
            best = min(_BEST, (most - len(wanted)) // len(agents))
            others = [agent for agent in known if agent != name]
            found = seen.select(step.text, tools=best, without=others, skills=0).tools if best else ()
            wanted += [tool.id for tool in found]
        return tuple(dict.fromkeys(wanted))

    async def work(self, state: StepState, worker: Worker) -> dict[str, Any]:
        """Lets a worker do the step with the selected tools; an error becomes a result, not an exception."""
        step = Step(**state["step"])
        try:
            with self.registry.held(state["run_id"]):
                result = await self._worked(step, state, worker)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 an error of one step must not stop the others
            result = step_result(step, status="failed", error=_words(error), attempts=state["attempts"], exhausted=True)
        if state.get("given") and (asked := state.get("before")):
            result = _continued(result, asked)
        whole = with_earlier(result, state["results"].get(step.id))
        if asking := StepInputs(self.registry).wanted(whole, state, self._choices(state).settings.approval):
            return {"asking": asking}
        count_result(result)
        return finished(whole)

    async def _worked(self, step: Step, state: StepState, worker: Worker) -> dict[str, Any]:
        picked = state["selection"]
        if "error" in picked:
            return step_result(step, status="failed", error=picked["error"], attempts=state["attempts"], exhausted=True)
        agents = tuple(agent["id"] for agent in picked["agents"])
        tools = tuple(dict.fromkeys(tool["id"] for agent in picked["agents"] for tool in agent["tools"]))
        await self.registry.settled(state["run_id"], agents)
        refused = self.registry.refused(tools, caller())
        if tools and len(refused) == len(tools):
            told = "; ".join(f"{tool}: {why}" for tool, why in refused.items())
            why = f"none of the tools that were picked for it may be called any more: {told}"
            return step_result(step, status="failed", error=why, agents=agents, attempts=state["attempts"])
        done = await self._carried_out(step, state, refused, worker)
        known = {"agents": agents, "attempts": state["attempts"]}
        return done.model_copy(update={**known, "id": step.id, "depends_on": step.depends_on}).model_dump(mode="json")

    async def _carried_out(
        self, step: Step, state: StepState, refused: Mapping[str, str], worker: Worker
    ) -> StepResult:
        scores = {tool["id"]: tool["score"] for agent in state["selection"]["agents"] for tool in agent["tools"]}
        choices = self._choices(state)
        settings, reasoner = choices.settings, choices.reasoner("worker")
        ranked = sorted((tool for tool in scores if tool not in refused), key=lambda tool: -scores[tool])
        bound = self.registry.bind(ranked, state["run_id"], user=caller(), held_only=True)
        inputs = tuple(StepResult(**result) for result in state["inputs"])
        begun_before = state.get("before")
        before = StepResult(**begun_before) if begun_before else None
        picked, begun = [agent["id"] for agent in state["selection"]["agents"]], state.get("run_begun", time.time())
        agents = [*picked, *self.seen().catalog.by_id]
        present = choices.someone_present
        about = await asyncio.to_thread(surroundings, self.registry, agents, begun, present=present)
        skills = [skill["id"] for skill in state["selection"].get("skills", ())]
        secrets = self.registry.secrets.of(state["run_id"])
        equipment = Equipment(
            tools=bound,
            prompt=choices.prompt("worker"),
            max_turns=settings.max_turns,
            max_calls=settings.max_calls,
            max_tokens=state.get("tokens_left"),
            requests=self._requests(step, state),
            refused=refused,
            code=settings.code_mode,
            replans=settings.planning in ("auto", "adaptive"),
            weak=settings.weak_model,
            supervision=Supervision(
                step.id,
                settings.approval,
                self.registry,
                secrets,
                allow=frozenset(settings.allow),
            ),
        )
        seconds = settings.step_seconds
        with unsettled() as calls, tool_model(choices.model("worker")) as tools:
            try:
                async with asyncio.timeout(seconds):
                    brief = Brief(
                        text=step.text,
                        request=state["run_request"],
                        skills=skill_texts(self.seen().catalog, skills, most=settings.skill_tokens),
                        inputs=inputs,
                        before=before,
                        place=state.get("place", ""),
                        about=about,
                        item=step.item,
                        given=state.get("given", {}),
                    )
                    done = await reasoner.work(brief, equipment, worker)
                    return done.model_copy(update={"usage": done.usage + tools.usage})
            except TimeoutError:
                late = f"the worker was not done after {seconds:g} s and was stopped"
                if not calls:
                    raise StepTimeoutError(late) from None
        why = f"{late} during a call of {', '.join(calls)}; whether that took effect is unknown"
        spent = usage_of(equipment.replies, seconds)
        return StepResult(
            id=step.id, text=step.text, status="outcome_unknown", tools=tuple(ranked), error=why, usage=spent
        )

    def _requests(self, step: Step, state: StepState) -> ToolRequests:
        """Answers a worker's requests for tools by another selection, without the tools that it has."""
        settings, write = self._choices(state).settings, get_stream_writer()
        user, seen = caller(), self.seen()

        async def find(what: str, has: Collection[str]) -> Sequence[str]:
            without = (*state["tried"], *self.registry.unavailable())
            reach = {**settings.reach(most=False), "without": without}
            added = await asyncio.to_thread(seen.more, what, has, **reach)
            write({"event": "added", "step_id": step.id, "what": what, "tools": list(added)})
            return added

        def bind(ids: Sequence[str], taken: Collection[str]) -> Mapping[str, BoundTool]:
            return self.registry.bind(ids, state["run_id"], beside=taken, user=user, held_only=True)

        def about(agent: str) -> str:
            return agent_line(seen.catalog.agent(agent)).partition(": ")[2] if agent in seen.catalog.by_id else ""

        return ToolRequests(find=find, bind=bind, about=about)


def _continued(result: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """The result of a step after a person was asked, with the calls and the cost of the part before."""
    usage = Usage(**asked["usage"]) + Usage(**result["usage"])
    return {**result, "calls": [*asked["calls"], *result["calls"]], "usage": usage.model_dump()}


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CallsheetError) else f"{type(error).__name__}: {error}"


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
