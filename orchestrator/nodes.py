"""What the nodes of the supervisor do; how they hang together is in ``supervisor.py``."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer
from langgraph.errors import GraphBubbleUp
from langgraph.types import Overwrite, Send

from callsheet.agents import (
    BoundTool,
    Brief,
    Equipment,
    KeylessModel,
    Plan,
    Step,
    StepResult,
    Supervision,
    ToolRegistry,
    ToolRequests,
    carry_out,
    check_answerable,
    decompose,
    synthesize,
    unsettled,
)
from callsheet.graphs import CallsheetError
from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.run.current_user import caller
from callsheet.orchestrator.run.run_metrics import count_result
from callsheet.orchestrator.run.run_settings import Choices
from callsheet.orchestrator.run.run_store import preferences
from callsheet.orchestrator.state import ChatInput, State, StepState, planned, with_earlier
from callsheet.orchestrator.step.call_observation import keep_observed
from callsheet.orchestrator.step.step_inputs import StepInputs, finished
from callsheet.orchestrator.step.step_selection import picked_event, selected
from callsheet.orchestrator.step.tool_offers import offers_of
from callsheet.retrievers import AgentGraphRetriever, Selection

Worker = Runnable[Any, Any]


class StepTimeoutError(CallsheetError, TimeoutError):
    """A step took longer than ``Settings.step_seconds``."""


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one supervisor, with the objects that must stay out of the state.

    Attributes:
        retriever: Picks agents and tools.
        registry: Makes callable what was picked.
        choices: Settings, models and prompts.
        observed: Where it is counted which tools take arguments from which; nowhere where None.
    """

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    choices: Choices
    observed: ObservationLog | None = None

    def seen(self) -> AgentGraphRetriever:
        """The retriever over what the user of the current run may see."""
        return self.retriever.within(caller())

    async def plan(self, state: ChatInput) -> dict[str, Any]:
        """Decomposes the request; a new request of a conversation starts with a clean sheet."""
        request = state["messages"][-1].text if state["messages"] else ""
        wanted: dict[str, Any] = {}
        try:
            choices = self.choices.of(wanted := await preferences())
            check_answerable(self.registry, choices.settings.approval)
            model, prompt = choices.model("planner"), choices.prompt("planner")
            most = {"max_steps": choices.settings.max_steps, "max_request": choices.settings.max_request}
            plan = await decompose(request, model, prompt=prompt, **most)
            planned = {**plan.model_dump(mode="json"), "note": choices.noted(plan.note)}
        except (CallsheetError, ImportError) as error:
            planned = {"steps": [], "note": str(error)}
        update = {"run": uuid.uuid4().hex, "request": request, "results": Overwrite({}), "selections": Overwrite({})}
        get_stream_writer()({"event": "plan", **planned})
        return {**update, "preferences": wanted, "plan": planned}

    def dispatch(self, state: State) -> dict[str, Any]:
        """Marks the steps that cannot run because nothing that they wait for was done."""
        if not planned(state):
            return {}
        plan, results = _read(state)
        skipped: dict[str, Any] = {}
        while True:
            known = {**results, **{i: StepResult(**r) for i, r in skipped.items()}}
            ready = [step for step in plan.ready(self._finished(known, state)) if step.depends_on]
            lost = [step for step in ready if all(known[i].status != "done" for i in step.depends_on)]
            if not lost:
                return {"results": skipped}
            for step in lost:
                why = f"nothing that it waits for was done (step {', '.join(step.depends_on)})"
                skipped[step.id] = _result(step, status="skipped", error=why)

    def route(self, state: State) -> list[Send] | str:
        """The next wave: every step whose dependencies are done; or the answer."""
        if not planned(state):
            return "answer"
        plan, results = _read(state)
        wave = plan.ready(self._finished(results, state))
        return [Send("step", _step_state(state, step, plan, results)) for step in wave] or "answer"

    def _finished(self, results: Mapping[str, StepResult], state: State) -> set[str]:
        """The steps that are not to be tried again with other agents."""
        replans = self._choices(state).settings.replans
        return {step_id for step_id, result in results.items() if not _retriable(result, replans)}

    def _choices(self, state: State | StepState) -> Choices:
        return self.choices.of(state.get("preferences", {}))

    def retrieve(self, state: StepState) -> dict[str, Any]:
        """Picks agents and tools for the step; those that failed at it, or again and again, are left out."""
        step = Step(**state["step"])
        try:
            with self.registry.held(state["run_id"]):
                selection, left_out = self._selected(step, state)
        except Exception as error:  # noqa: BLE001 an embedder raises errors of its own; the step's result names them
            return {"selection": {"error": f"nothing could be retrieved: {_words(error)}"}}
        down = {agent.id: self.registry.down.get(agent.id) for agent in selection.agents}
        remarks = {"left_out": left_out, "down": {agent: since for agent, since in down.items() if since}}
        picked = {**selection.to_dict(), **{name: dict(found) for name, found in remarks.items() if found}}
        cost = self.retriever.selector.tokens.count(tool.id for tool in selection.tools)
        most = self._choices(state).settings.schema_tokens
        get_stream_writer()({**picked_event(step, state["attempts"], selection, cost, most), "selection": picked})
        return {"selection": picked, "selections": {step.id: picked}}

    def _selected(self, step: Step, state: StepState) -> tuple[Selection, Mapping[str, str]]:
        """What fits without the agents that are not called for now, and these; they are taken if nothing else fits."""
        tried, reach = tuple(state["tried"]), self._choices(state).settings.reach()
        left_out = {agent: why for agent, why in self.registry.unavailable().items() if agent not in tried}
        reach |= {"step_id": step.id}
        selection = selected(self.seen(), step.text, **reach, without=(*tried, *left_out))
        if left_out and selection.verdict == "nothing_fits":
            return selected(self.seen(), step.text, **reach, without=tried), {}
        return selection, left_out

    async def work(self, state: StepState, worker: Worker) -> dict[str, Any]:
        """Lets a worker do the step with what was picked; whatever goes wrong is a result, not an exception."""
        step = Step(**state["step"])
        try:
            with self.registry.held(state["run_id"]):
                result = await self._worked(step, state, worker)
        except GraphBubbleUp:
            raise
        except Exception as error:  # noqa: BLE001 one step must not take the others down with it
            result = _result(step, status="failed", error=_words(error), attempts=state["attempts"], exhausted=True)
        whole = with_earlier(result, state["results"].get(step.id))
        if asking := StepInputs(self.registry).wanted(whole, state, self._choices(state).settings.approval):
            return {"asking": asking}
        count_result(result)
        return finished(whole)

    async def _worked(self, step: Step, state: StepState, worker: Worker) -> dict[str, Any]:
        picked = state["selection"]
        if "error" in picked:
            return _result(step, status="failed", error=picked["error"], attempts=state["attempts"], exhausted=True)
        if picked["verdict"] == "nothing_fits" and not self._all_shown(state):
            why = "no agent or tool in the catalog fits this step"
            before = state["results"].get(step.id) or _result(step, status="failed", error=why)
            return {**before, "exhausted": True}
        agents = tuple(agent["id"] for agent in picked["agents"])
        tools = tuple(dict.fromkeys(tool["id"] for agent in picked["agents"] for tool in agent["tools"]))
        await self.registry.settled(state["run_id"], agents)
        refused = self.registry.refused(tools, caller())
        if tools and len(refused) == len(tools):
            told = "; ".join(f"{tool}: {why}" for tool, why in refused.items())
            why = f"none of the tools that were picked for it may be called any more: {told}"
            return _result(step, status="failed", error=why, agents=agents, attempts=state["attempts"])
        done = await self._carried_out(step, state, refused, worker)
        known = {"agents": agents, "attempts": state["attempts"]}
        return done.model_copy(update={**known, "id": step.id, "depends_on": step.depends_on}).model_dump(mode="json")

    def _all_shown(self, state: StepState) -> bool:
        """Whether a model is shown all that there is: what fits is then better left to it."""
        choices = self._choices(state)
        return len(self.seen().catalog.tools) <= choices.settings.tools and choices.model("worker") is not None

    async def _carried_out(
        self, step: Step, state: StepState, refused: Mapping[str, str], worker: Worker
    ) -> StepResult:
        scores = {tool["id"]: tool["score"] for agent in state["selection"]["agents"] for tool in agent["tools"]}
        ranked = sorted((tool for tool in scores if tool not in refused), key=lambda tool: -scores[tool])
        bound = self.registry.bind(ranked, state["run_id"], user=caller(), held_only=True)
        inputs = tuple(StepResult(**result) for result in state["inputs"])
        choices = self._choices(state)
        settings, model = choices.settings, choices.model("worker")
        offers = offers_of(self.registry, bound, scores, settings.approval, by_rules=model is None)
        secrets = self.registry.secrets.of(state["run_id"])
        equipment = Equipment(
            model=model or KeylessModel(),
            tools=bound,
            prompt=choices.prompt("worker"),
            max_turns=settings.max_turns,
            max_calls=settings.max_calls,
            requests=self._requests(step, state) if model and settings.tool_requests else None,
            refused=refused,
            supervision=Supervision(
                step.id, settings.approval, self.registry, secrets, notice=model is not None, by_rules=model is None
            ),
        )
        seconds = settings.step_seconds
        with unsettled() as calls:
            try:
                async with asyncio.timeout(seconds):
                    brief = Brief(
                        text=step.text,
                        request=state["run_request"],
                        offers=offers,
                        inputs=inputs,
                        given=state.get("given", {}),
                    )
                    return await carry_out(brief, equipment, worker)
            except TimeoutError:
                late = f"the worker was not done after {seconds:g} s and was stopped"
                if not calls:
                    raise StepTimeoutError(late) from None
        why = f"{late} during a call of {', '.join(calls)}; whether that took effect is unknown"
        return StepResult(id=step.id, text=step.text, status="outcome_unknown", tools=tuple(ranked), error=why)

    def _requests(self, step: Step, state: StepState) -> ToolRequests:
        """How the worker of a step gets tools that it lacks: by another selection, with what it has left out."""
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

        return ToolRequests(find=find, bind=bind, most=settings.tool_requests)

    async def answer(self, state: State) -> dict[str, Any]:
        """Answers from the results, and ends the run's sessions."""
        await self.registry.close_run(state["run"])
        if not planned(state):
            return {"messages": [AIMessage(f"Nothing was done: {state['plan']['note']}.", name="supervisor")]}
        plan, results = _read(state)
        ordered = [results[step.id] for step in plan.steps]
        try:
            model, note = self._choices(state).model("answer"), ""
        except (CallsheetError, ImportError) as error:
            model, note = None, f"\n\n(Put together without a model: {error})"
        said = "\n".join(message.text for message in state["messages"])
        await keep_observed(self.observed, plan, results, said)
        message = await synthesize(state["request"], ordered, model, prompt=self._choices(state).prompt("answer"))
        return {"messages": [message.model_copy(update={"content": message.text + note})]}


def _read(state: State) -> tuple[Plan, dict[str, StepResult]]:
    return Plan(**state["plan"]), {i: StepResult(**result) for i, result in state["results"].items()}


def _retriable(result: StepResult, replans: int) -> bool:
    return result.status == "failed" and not result.exhausted and result.attempts <= replans


def _step_state(state: State, step: Step, plan: Plan, results: Mapping[str, StepResult]) -> StepState:
    before = results.get(step.id)
    tried = [call.agent for call in before.calls if call.error] or before.agents[:1] if before else []
    return StepState(
        run_id=state["run"],
        run_request=state["request"],
        step=step.model_dump(mode="json"),
        inputs=[results[i].model_dump(mode="json") for i in plan.ancestors(step.id)],
        tried=list(dict.fromkeys(tried)),
        attempts=(before.attempts if before else 0) + 1,
        selection={},
        results={step.id: before.model_dump(mode="json")} if before else {},
        selections={},
        preferences=state.get("preferences", {}),
    )


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, CallsheetError) else f"{type(error).__name__}: {error}"


def _result(step: Step, **fields: Any) -> dict[str, Any]:
    return StepResult(id=step.id, text=step.text, depends_on=step.depends_on, **fields).model_dump(mode="json")
