"""The nodes of the supervisor; ``supervisor.py`` connects them."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
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
from callsheet.agents.calls.plan import GAVE, ask_user, question_text, source_of
from callsheet.agents.calls.token_usage import usage_of
from callsheet.agents.models.prompts import ANSWER
from callsheet.agents.planning.revision import NO_ITEMS
from callsheet.agents.work.context import (
    LISTED,
    conversation_text,
    list_results,
    place_of,
    recent,
    transcript,
    without_transcript,
)
from callsheet.graphs import CallsheetError
from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.plans import (
    archive_request,
    earlier_results,
    expand_mapped,
    limit_reached,
    plan_request,
    plan_update,
    request_text,
    revision_update,
    tokens_left,
    unfinished_work,
    usage_report,
    wave_of,
)
from callsheet.orchestrator.run.run_context import RunConfiguration, caller, keep_observed, preferences
from callsheet.orchestrator.run_events import request_event
from callsheet.orchestrator.state import (
    State,
    StepState,
    ending,
    has_steps,
    plan_of,
    read_results,
    results_of,
    step_result,
    with_defaults,
)
from callsheet.orchestrator.step import StepNodes
from callsheet.orchestrator.step_selection import StepSelection
from callsheet.retrievers import AgentGraphRetriever


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one supervisor; without ``observed``, no counts of calls and their results are stored."""

    retriever: AgentGraphRetriever
    registry: ToolRegistry
    configuration: RunConfiguration
    steps: StepNodes
    observed: ObservationLog | None = None

    def _configuration(self, state: State) -> RunConfiguration:
        return self.configuration.of(state.get("preferences", {}))

    async def request(self, state: State) -> dict[str, Any]:
        """Starts a request: archives the last one, and checks that this one can be done."""
        turns = archive_request(state)
        update = _fresh(turns)
        try:
            update["preferences"] = await preferences()
            configuration = self.configuration.of(update["preferences"])
            await asyncio.to_thread(check_answerable, configuration.supervision(self.registry))
            request = request_text(state, configuration.settings.max_request)
        except (CallsheetError, ImportError) as error:
            update["request"] = state["messages"][-1].text if state["messages"] else ""
            _write_request(update)
            return {**update, **_unplanned(str(error))}
        update["request"] = request
        _write_request(update)
        return {**update, "note": unfinished_work(state)}

    async def plan(self, state: State) -> dict[str, Any]:
        """Plans the request, or prepares a question to the user."""
        state = with_defaults(state)
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
        """Asks the user the question of the planner or of the reviser."""
        state = with_defaults(state)
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
        """Decides which workers run next and which steps each does; marks the steps that cannot run."""
        state = with_defaults(state)
        if not has_steps(state):
            return {}
        settings = self._configuration(state).settings
        (plan, expansions, ended), results = expand_mapped(state, settings), results_of(state)
        marked = {result.id: result for result in ended}
        why = limit_reached(state, settings, plan)
        if why:
            marked |= {s.id: step_result(s, status="skipped", error=why) for s in plan.steps if s.id not in results}
        marked |= _blocked(plan, {**results, **marked})
        workers = wave_of(plan, {**results, **marked}, self.retriever.within(caller()), settings)
        waves = [*state["waves"], workers] if workers else state["waves"]
        plain = {name: result.model_dump(mode="json") for name, result in marked.items()}
        for name, result in plain.items():
            get_stream_writer()({"event": "step", "step_id": name, "result": result})
        update = {**plan_update(state, plan, expansions), "results": plain, "waves": waves}
        if not workers and settings.transcript == "calls":  # the answer is next, and streamed after them
            begun = _results_begun(results, waves)
            update["messages"] = transcript(state["run"], plan, [*read_results(state["replaced"]).values(), *begun])
        return update

    def route(self, state: State) -> str:
        """Routes to the retriever if there is another wave, otherwise to the answer."""
        return "retriever" if self._wave(state) else "answer"

    def retrieve(self, state: State) -> dict[str, Any]:
        """Selects agents and tools for each step of the wave, in parallel for several workers."""
        wave = self._wave(state)
        selections: dict[str, StepSelection] = {}
        spent: dict[str, Any] = {}
        with ContextThreadPoolExecutor() as pool:
            for picked in pool.map(self.steps.retrieve, wave):
                selections |= picked
        for step_id, picked_for_step in selections.items():
            judged = picked_for_step.selection.decision
            if judged:
                spent[f"decision {step_id} {len(state['waves'])}"] = Usage(calls=1, **asdict(judged)).model_dump()
        return {"selections": {name: one.to_dict() for name, one in selections.items()}, "spent": spent}

    def send(self, state: State) -> list[Send]:
        """Starts the workers of the wave, each with its steps."""
        return [Send("worker", one) for one in self._wave(state)]

    def _wave(self, state: State) -> list[StepState]:
        """Returns the state of every worker of the wave."""
        state = with_defaults(state)
        if not has_steps(state) or not state["waves"]:
            return []
        plan = plan_of(state)
        results = results_of(state)
        settings = self._configuration(state).settings
        workers = [[step for name in ids if (step := plan.step(name))] for ids in state["waves"][-1]]
        left = tokens_left(state, settings)
        before = conversation_text(without_transcript(state["messages"])[:-1], settings.conversation_tokens)
        return [
            _step_state(state, steps, results, left, before)
            for steps in workers
            if steps and any(step.id not in results for step in steps)
        ]

    async def revise(self, state: State) -> dict[str, Any]:
        """Revises the plan after a wave, if the results require it."""
        state = with_defaults(state)
        if not has_steps(state):
            return {}
        get_stream_writer()({"event": "usage", **usage_report(state)})
        return await revision_update(state, self._configuration(state), self.retriever.within(caller()), self.registry)

    async def answer(self, state: State) -> dict[str, Any]:
        """Answers the request from the results, and closes the sessions of the run."""
        state = with_defaults(state)
        await self.registry.close_run(state["run"])
        began = time.monotonic()
        message, asked = await self._answer(state)
        spent = {"answer": (usage_of([message], time.monotonic() - began) if asked else Usage()).model_dump()}
        usage = usage_report({**state, "spent": {**state["spent"], **spent}})
        get_stream_writer()({"event": "usage", **usage})
        ended = ending(state["plan"], state["results"])
        return {"messages": [message], "spent": spent, "usage": usage, "ended": ended}

    async def _answer(self, state: State) -> tuple[AIMessage, bool]:
        """Returns the answer, and whether a model wrote it."""
        if not has_steps(state):
            return AIMessage(_without_steps(state["plan"]), name="supervisor"), False
        plan = plan_of(state)
        results = results_of(state)
        configuration = self._configuration(state)
        ordered = [results[step.id] for step in plan.steps]
        conversation = without_transcript(state["messages"])
        if self.observed is not None and configuration.settings.learn:
            words = "\n".join(message.text for message in conversation)
            await keep_observed(self.observed, plan, results, words, self.registry.catalog, self.registry.policy)
        note = self._notes(plan, ordered)
        before = recent(conversation[:-1], configuration.settings.conversation_tokens)
        task = AnswerTask(state["request"], ordered, configuration.prompt("answer"), before)
        try:
            # One worker has read everything: its words are the answer, unless somebody wants it written in a way.
            own_words = task.prompt == ANSWER and configuration.reasoner("worker").prose
            if own_words and _is_of_one_worker(ordered) and not state["replaced"]:
                return AIMessage(_words_of(ordered) + note, name="supervisor"), False
            message = await configuration.reasoner("answer").answer(task)
        except (CallsheetError, ImportError) as error:
            text = f"{list_results(task.request, ordered)}\n\n{LISTED.format(error)}{note}"
            return AIMessage(text, name="supervisor"), False
        return message.model_copy(update={"content": message.text + note}), configuration.model("answer") is not None

    def _notes(self, plan: Plan, results: Sequence[StepResult]) -> str:
        """Returns what stands below the answer: why the plan is not finished, and which tools servers have changed."""
        notes: list[str] = []
        if plan.incomplete:
            notes.append(f"\n\n(Not finished: {plan.incomplete}.)")
        called: set[str] = set()
        for result in results:
            called.update(call.agent for call in result.calls)
        news = self.registry.news(called, caller())
        if news:
            get_stream_writer()({"event": "tools_changed", "text": news})
            notes.append(f"\n\n({news})")
        return "".join(notes)


def _without_steps(plan: Mapping[str, Any]) -> str:
    """Returns what is said of a request without steps: the planner's answer, or why nothing was done."""
    if plan.get("answer"):
        return str(plan["answer"])
    why = ". ".join(filter(None, (str(plan.get("cannot") or "").rstrip("."), plan["note"])))
    return f"Nothing was done: {why.removesuffix('.')}."


def _is_of_one_worker(results: Sequence[StepResult]) -> bool:
    """Returns whether one worker has done all steps."""
    return len({result.worker for result in results}) == 1 and bool(results[0].worker)


def _words_of(results: Sequence[StepResult]) -> str:
    """Returns the words of the one worker that has done all steps."""
    gave = [result for result in results if result.status in GAVE]
    if gave:
        return gave[0].result
    return f"Not done: {results[0].error}"


def after_plan(state: State) -> str:
    """Routes to the user if there is a question, otherwise to the steps."""
    return "question" if with_defaults(state)["question"].get("question") else "dispatch"


def after_ask(state: State) -> str:
    """Routes back to the node that asked the question."""
    if not state.get("plan"):
        return "plan"
    return "revise" if has_steps(state) else "dispatch"


def _fresh(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the state at the start of a request."""
    empty: dict[str, Any] = dict(with_defaults({}))  # type: ignore[typeddict-item]
    del empty["messages"]
    merged = dict.fromkeys(("results", "selections", "replaced", "spent"), Overwrite({}))
    return {**empty, **merged, "run": uuid.uuid4().hex, "turns": list(turns)}


def _write_request(update: Mapping[str, Any]) -> None:
    """Streams that a request begins."""
    get_stream_writer()(request_event(update))


def _results_begun(results: Mapping[str, StepResult], waves: Sequence[Sequence[Sequence[str]]]) -> list[StepResult]:
    """Returns the results of the steps of these waves, in the order in which the steps began."""
    begun = dict.fromkeys(step for wave in waves for steps in wave for step in steps)
    return [results[step] for step in begun if step in results]


def _unplanned(why: str) -> dict[str, Any]:
    plan = {"steps": [], "note": why}
    get_stream_writer()({"event": "plan", **plan})
    return {"plan": plan}


def _blocked(plan: Plan, results: Mapping[str, StepResult]) -> dict[str, StepResult]:
    """Returns the steps that cannot run, because none of their dependencies was done or their items are missing."""
    marked: dict[str, StepResult] = {}
    while True:
        known = {**results, **marked}
        lost = {step.id: result for step in plan.ready(known) if (result := _not_run(step, known))}
        if not lost:
            return marked
        marked |= lost


def _not_run(step: Step, known: Mapping[str, StepResult]) -> StepResult | None:
    """Returns the result of a step that cannot run; None if it can."""
    if step.depends_on and all(known[name].status not in GAVE for name in step.depends_on):
        why = f"none of the steps that it depends on was done (step {', '.join(step.depends_on)})"
        return step_result(step, status="skipped", error=why)
    if not step.for_each or step.item:
        return None
    # A mapped step is still here: its source was not done, or has just been found to have no items.
    source = source_of(step.for_each, known)
    if source in known and known[source].status in GAVE:
        return step_result(step, result=NO_ITEMS)
    return step_result(step, status="skipped", error=f"the step with its items was not done (step {source})")


def _step_state(
    state: State, steps: Sequence[Step], results: Mapping[str, StepResult], left: int | None, conversation: str
) -> StepState:
    """Returns the state of a worker of these steps."""
    plan = plan_of(state)
    replaced = read_results(state["replaced"])
    lead = steps[0]
    began = replaced.get(lead.id)
    return StepState(
        run_id=state["run"],
        run_request="\n".join([state["request"], *state["answers"]]),
        run_begun=state["begun"],
        steps=[step.model_dump(mode="json") for step in steps],
        conversation=conversation,
        place=place_of(steps, plan, results, revised=bool(state["revisions"])),
        before=began.model_dump(mode="json") if began else {},
        tokens_left=left,
        inputs=[result.model_dump(mode="json") for result in _inputs(state, steps, results, replaced)],
        picked={step.id: state["selections"][step.id] for step in steps if step.id in state["selections"]},
        results={},
        preferences=state.get("preferences", {}),
    )


def _inputs(
    state: State, steps: Sequence[Step], results: Mapping[str, StepResult], replaced: Mapping[str, StepResult]
) -> list[StepResult]:
    """The results that the worker of these steps gets: of earlier requests, replaced steps, and what they wait for."""
    plan = plan_of(state)
    earlier = earlier_results(state["turns"])
    lead = steps[0]
    used = dict.fromkeys(name for step in steps for name in step.uses)
    waits = {name for step in steps for name in plan.ancestors(step.id)}
    # The worker of an item has the item, and not the list.
    left_out = source_of(lead.for_each, lead.depends_on) if lead.item else ""
    inputs = [earlier[name] for name in used if name in earlier]
    inputs += [result for name, result in replaced.items() if plan.step(name) is None]
    inputs += [
        results[step.id] for step in plan.steps if step.id in waits and step.id in results and step.id != left_out
    ]
    return inputs
