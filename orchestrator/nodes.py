"""The nodes of the supervisor; ``supervisor.py`` connects them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.runnables.config import ContextThreadPoolExecutor
from langgraph.config import get_stream_writer
from langgraph.types import Overwrite, Send

from callsheet.agents import (
    AnswerTask,
    Plan,
    Question,
    Step,
    StepResult,
    ToolRegistry,
    Usage,
    check_answerable,
    checkpointer,
)
from callsheet.agents.calls.plan import ask_user, question_text, source_of
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.models.prompts import ANSWER
from callsheet.agents.planning.planner import recent
from callsheet.agents.planning.revision import NO_ITEMS
from callsheet.agents.work.context import LISTED, listed, place_of, spoken, transcript
from callsheet.graphs import CallsheetError
from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.plans import (
    archived,
    earlier_results,
    expand_mapped,
    limit_reached,
    plan_request,
    plan_update,
    retriable,
    revision_update,
    tokens_left,
    understood,
    unfinished,
    usage_report,
)
from callsheet.orchestrator.run.run_context import RunConfiguration, caller, keep_observed, preferences
from callsheet.orchestrator.state import (
    State,
    StepState,
    completed,
    ending,
    plan_of,
    planned,
    read_results,
    results_of,
    step_result,
)
from callsheet.orchestrator.step import StepNodes
from callsheet.retrievers import AgentGraphRetriever


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one supervisor; without ``observed``, it is not counted how calls end and what takes from what."""

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    configuration: RunConfiguration
    steps: StepNodes
    observed: ObservationLog | None = None

    def _configuration(self, state: State) -> RunConfiguration:
        return self.configuration.of(state.get("preferences", {}))

    async def request(self, state: State) -> dict[str, Any]:
        """Starts a request: archives the last one, and makes it understandable without the conversation."""
        turns = archived(state)
        update = _fresh(turns)
        try:
            update["preferences"] = await preferences()
            configuration = self.configuration.of(update["preferences"])
            await asyncio.to_thread(check_answerable, configuration.supervision(self.registry))
            await asyncio.to_thread(configuration.check_code_mode)
            meant = await understood(state, configuration)
        except (CallsheetError, ImportError) as error:
            said = state["messages"][-1].text if state["messages"] else ""
            return {**update, "request": said, **_unplanned(str(error))}
        spent = Overwrite({"request": meant.usage.model_dump()})
        note = "; ".join(filter(None, (meant.note, unfinished(state))))
        return {**update, "request": meant.request, "note": note, "spent": spent}

    async def plan(self, state: State) -> dict[str, Any]:
        """Plans the request, or prepares a question to the user."""
        state = completed(state)
        if state["plan"]:  # there is an error, and the plan's note says which
            return {}
        configuration = self._configuration(state)
        try:
            plan = await plan_request(state, configuration, self.retriever.within(caller()), self.registry)
        except (CallsheetError, ImportError) as error:
            return _unplanned(str(error))
        spent = {f"plan {len(state['answers'])}": plan.usage.model_dump()}
        if plan.ask and checkpointer() is not None and not state["answers"]:
            return {"question": plan.ask.model_dump(), "spent": spent}
        asked = f"a question must be answered first: {question_text(plan.ask)}" if plan.ask else ""
        note = "; ".join(filter(None, (configuration.noted(plan.note), state["note"], asked)))
        shown = plan.model_copy(update={"note": note, "request": state["request"]}).model_dump(mode="json")
        get_stream_writer()({"event": "plan", "said": state["messages"][-1].text, **shown})
        return {"plan": shown, "spent": spent}

    def ask(self, state: State) -> dict[str, Any]:
        """Asks the user a question of the planner or the reviser."""
        state = completed(state)
        asked = Question(**state["question"])
        answer = ask_user(asked)
        text = f"You asked: {asked.question} The user answered: {answer or 'nothing'}"
        update = {"question": {"answered": True}, "answers": [*state["answers"], text]}
        if answer:
            return update
        left = f"a question was not answered: {question_text(asked)}"
        if not state["plan"]:
            return {**update, **_unplanned(left)}
        return {**update, **plan_update(state, plan_of(state).model_copy(update={"incomplete": left}), ())}

    def dispatch(self, state: State) -> dict[str, Any]:
        """Decides on the next wave, and marks the steps that cannot run."""
        state = completed(state)
        if not planned(state):
            return {}
        settings = self._configuration(state).settings
        (plan, expansions, ended), results = expand_mapped(state, settings), results_of(state)
        marked = {result.id: result for result in ended}
        if why := limit_reached(state, settings, plan):
            marked |= {s.id: step_result(s, status="skipped", error=why) for s in plan.steps if s.id not in results}
        marked |= _blocked(plan, {**results, **marked}, settings.replans)
        ready = _ready(plan, {**results, **marked}, settings.replans)
        waves = [*state["waves"], [step.id for step in ready]] if ready else state["waves"]
        plain = {name: result.model_dump(mode="json") for name, result in marked.items()}
        update = {**plan_update(state, plan, expansions), "results": plain, "waves": waves}
        if not ready and settings.transcript == "calls":  # the answer is next, and streamed after them
            begun = dict.fromkeys(step for wave in waves for step in wave)
            told = [*read_results(state["replaced"]).values(), *(results[step] for step in begun if step in results)]
            update["messages"] = transcript(state["run"], plan, told)
        return update

    def route(self, state: State) -> str:
        """To the retriever, if there is another wave; otherwise to the answer."""
        return "retriever" if self._ready_steps(completed(state)) else "answer"

    def retrieve(self, state: State) -> dict[str, Any]:
        """Selects agents and tools for each step of the wave, side by side."""
        wave = self._wave(state)
        selections, spent = {}, {}
        with ContextThreadPoolExecutor() as pool:
            for one, selection in zip(wave, pool.map(self.steps.retrieve, wave), strict=True):
                step_id = one["step"]["id"]
                selections[step_id] = selection
                if judged := selection.get("decision"):
                    spent[f"decision {step_id} {one['attempts']}"] = Usage(calls=1, **judged).model_dump()
        return {"selections": selections, "spent": spent}

    def send(self, state: State) -> list[Send]:
        """One worker for each step of the wave."""
        return [Send("worker", one) for one in self._wave(state)]

    def _wave(self, state: State) -> list[StepState]:
        """The state of every step of the wave."""
        state = completed(state)
        ready, results = self._ready_steps(state), results_of(state)
        left = tokens_left(state, self._configuration(state).settings)
        return [_step_state(state, step, results, left) for step in ready]

    def _ready_steps(self, state: State) -> Sequence[Step]:
        """The steps whose dependencies are done; none without a plan."""
        if not planned(state):
            return ()
        return _ready(plan_of(state), results_of(state), self._configuration(state).settings.replans)

    async def revise(self, state: State) -> dict[str, Any]:
        """Revises the plan after a wave, if the results require it."""
        state = completed(state)
        if not planned(state):
            return {}
        return await revision_update(state, self._configuration(state), self.retriever.within(caller()), self.registry)

    async def answer(self, state: State) -> dict[str, Any]:
        """Answers from the results, and ends the run's sessions."""
        state = completed(state)
        await self.registry.close_run(state["run"])
        began = time.monotonic()
        message, asked = await self._answer(state)
        spent = {"answer": (usage_of([message], time.monotonic() - began) if asked else Usage()).model_dump()}
        usage = usage_report({**state, "spent": {**state["spent"], **spent}})
        get_stream_writer()({"event": "usage", **usage})
        ended = ending(state["plan"], state["results"])
        return {"messages": [message], "spent": spent, "usage": usage, "ended": ended}

    async def _answer(self, state: State) -> tuple[AIMessage, bool]:
        """The answer, and whether a model wrote it."""
        if not planned(state):
            told = state["plan"]
            return AIMessage(told.get("answer") or f"Nothing was done: {told['note']}.", name="supervisor"), False
        plan, results, configuration = plan_of(state), results_of(state), self._configuration(state)
        ordered = [results[step.id] for step in plan.steps]
        conversation = spoken(state["messages"])
        said = "\n".join(message.text for message in conversation)
        if self.observed is not None and configuration.settings.learn:
            await keep_observed(self.observed, plan, results, said, self.registry.catalog, self.registry.policy)
        note = f"\n\n(Not finished: {plan.incomplete}.)" if plan.incomplete else ""
        before = recent(conversation[:-1], configuration.settings.conversation_tokens)
        task = AnswerTask(state["request"], ordered, configuration.prompt("answer"), before)
        try:
            alone = len(ordered) == 1 and not state["revisions"]
            if alone and configuration.reasoner("worker").prose and task.prompt == ANSWER:
                said = ordered[0].result if ordered[0].status == "done" else f"Not done: {ordered[0].error}"
                return AIMessage(said + note, name="supervisor"), False
            message = await configuration.reasoner("answer").answer(task)
        except (CallsheetError, ImportError) as error:
            text = f"{listed(task.request, ordered)}\n\n{LISTED.format(error)}{note}"
            return AIMessage(text, name="supervisor"), False
        return message.model_copy(update={"content": message.text + note}), configuration.model("answer") is not None


def after_plan(state: State) -> str:
    """To the user, if there is a question."""
    return "question" if completed(state)["question"].get("question") else "dispatch"


def after_ask(state: State) -> str:
    """Back to the node that asked the question."""
    if not state.get("plan"):
        return "plan"
    return "revise" if planned(state) else "dispatch"


def _fresh(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The state at the start of a request."""
    empty: dict[str, Any] = dict(completed({}))  # type: ignore[typeddict-item]
    del empty["messages"]
    merged = dict.fromkeys(("results", "selections", "replaced", "spent"), Overwrite({}))
    return {**empty, **merged, "run": uuid.uuid4().hex, "turns": list(turns)}


def _unplanned(why: str) -> dict[str, Any]:
    plan = {"steps": [], "note": why}
    get_stream_writer()({"event": "plan", **plan})
    return {"plan": plan}


def _ready(plan: Plan, results: Mapping[str, StepResult], replans: int) -> tuple[Step, ...]:
    """The steps that can run now, failed ones that other agents may try included."""
    return plan.ready({name for name, result in results.items() if not retriable(result, replans)})


def _blocked(plan: Plan, results: Mapping[str, StepResult], replans: int) -> dict[str, StepResult]:
    """The steps that cannot run, because none of their dependencies was done or their items are missing."""
    marked: dict[str, StepResult] = {}
    while True:
        known = {**results, **marked}
        lost = {step.id: result for step in _ready(plan, known, replans) if (result := _not_run(step, known))}
        if not lost:
            return marked
        marked |= lost


def _not_run(step: Step, known: Mapping[str, StepResult]) -> StepResult | None:
    """The result of a step that cannot run; None if it can."""
    if step.depends_on and all(known[name].status != "done" for name in step.depends_on):
        why = f"nothing that it waits for was done (step {', '.join(step.depends_on)})"
        return step_result(step, status="skipped", error=why)
    if not step.for_each or step.item:
        return None
    # A mapped step is still here: its source was not done, or has just been found to have no items.
    source = source_of(step.for_each, known)
    if source in known and known[source].status == "done":
        return step_result(step, result=NO_ITEMS)
    return step_result(step, status="skipped", error=f"the step with its items was not done (step {source})")


def _step_state(state: State, step: Step, results: Mapping[str, StepResult], left: int | None) -> StepState:
    before = results.get(step.id)
    tried = [call.agent for call in before.calls if call.error] or before.agents[:1] if before else []
    earlier = earlier_results(state["turns"])
    inputs = [earlier[name] for name in step.uses if name in earlier]
    items_of = source_of(step.for_each, step.depends_on) if step.item else ""
    plan, replaced = plan_of(state), read_results(state["replaced"])
    inputs += [result for name, result in replaced.items() if plan.step(name) is None]
    inputs += [results[name] for name in plan.ancestors(step.id) if name != items_of]
    began = before or replaced.get(step.id)
    return StepState(
        run_id=state["run"],
        run_request=state["request"],
        run_begun=state["begun"],
        place=place_of(step, plan, results),
        before=began.model_dump(mode="json") if began else {},
        tokens_left=left,
        step=step.model_dump(mode="json"),
        inputs=[result.model_dump(mode="json") for result in inputs],
        tried=list(dict.fromkeys(tried)),
        attempts=(before.attempts if before else 0) + 1,
        selection=state["selections"].get(step.id, {}),
        results={step.id: before.model_dump(mode="json")} if before else {},
        preferences=state.get("preferences", {}),
    )
