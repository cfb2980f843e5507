"""Writes the texts that models read: the conversation, the task of a worker, results, date and folders."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from langchain_core.messages.utils import count_tokens_approximately

from callsheet.agents.calls.outcome import Call, Kind
from callsheet.agents.calls.plan import (
    GAVE,
    Plan,
    ResultValueError,
    Step,
    StepResult,
    shape,
    source_of,
    value_of,
)
from callsheet.agents.models.chat_models import ModelError, model_answer
from callsheet.agents.models.prompts import ANSWER, BY_REFERENCE, SKILL
from callsheet.agents.registry.binding import NO_OUTPUT, READ_RESULT, names_of_bound
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs import CallsheetError, ServerConfig
from callsheet.graphs.text.hidden import shown

_AGENTS = 50
"""Maximum number of agents whose folders are looked for."""
_BUDGET = 12_000
_LONGEST = 1_500
_LEAST = 200
"""Characters: of all results together; of one text of a result at most, and at least."""
_OTHERS = "Several workers carry out the request. Do your own steps and nothing else. The plan:"
_OPEN = (
    "The request is carried out in parts; what comes next is planned when your results are known. Do your own steps "
    "and nothing else. The plan so far:"
)
_PRESENT = "A person is present: calls may be put before them, and they can be asked what only they know."
_ABSENT = "Nobody is present: a question stays unanswered, and ends the work that needs its answer."


def surroundings(registry: ToolRegistry, agents: Collection[str], begun: float, *, present: bool) -> str:
    """Returns the date, whether a person is present, and the folders of these agents, as text for a model.

    ``begun`` is in seconds since 1970. What failing servers wrote is left out, because a server could use it to reach
    the prompt.
    """
    now = datetime.fromtimestamp(begun).astimezone()
    zone = os.environ.get("TZ") or now.tzname() or ""
    places = [(agent, folders_of(registry, agent)) for agent in list(dict.fromkeys(agents))[:_AGENTS]]
    lines = [
        f"Now: {now:%A, %Y-%m-%d %H:%M}, UTC{now:%z} ({zone}).",
        _PRESENT if present else _ABSENT,
    ]
    missing = _unavailable(registry)
    if missing:
        lines.append(f"Agents that are not available in this run: {', '.join(missing)}.")
    folders = [f"- {agent}: {', '.join(found)}" for agent, found in places if found]
    if folders:
        lines += ["Folders of the agents:", *folders]
    if len(folders) > 1:
        lines.append("A path of one agent may be out of reach for another.")
    return "\n".join(lines)


def _unavailable(registry: ToolRegistry) -> list[str]:
    """Returns the ids of agents whose servers could not be listed.

    With a policy, it is empty, because the user may not be allowed to know of these agents.
    """
    if registry.policy is not None:
        return []
    known = registry.catalog.by_id
    troubles = get_args(Kind)
    problems = (problem for problem in registry.loaded.problems if problem.kind in troubles)
    return list(dict.fromkeys(problem.agent for problem in problems if problem.agent not in known))


def folders_of(registry: ToolRegistry, agent: str) -> tuple[str, ...]:
    """Returns the folders of an agent: its roots, its working folder, and those in the arguments of its server.

    For an agent of this process, these are the ``root_dir`` of its tools.
    """
    connection = registry.loaded.connections.get(agent)
    if not isinstance(connection, ServerConfig):
        tools = connection.tools.values() if isinstance(connection, InProcess) else ()
        found = (getattr(tool, "root_dir", None) for tool in tools)
        return tuple(dict.fromkeys(str(Path(place).resolve()) for place in found if isinstance(place, str) and place))
    try:
        server = connection.expanded(os.environ)
    except CallsheetError:
        return ()  # its calls say which variable is missing
    named = (one for one in (*server.args, *server.env.values()) if Path(one).is_absolute() and Path(one).is_dir())
    return tuple(dict.fromkeys((*server.callsheet.roots, *filter(None, [server.cwd]), *named)))


def place_of(steps: Sequence[Step], plan: Plan, results: Mapping[str, StepResult], *, revised: bool = False) -> str:
    """Returns an outline of the worker's steps; if other workers do other steps, an outline of the whole plan.

    It is empty for a plan of one step. If the plan was ``revised``, other workers may have done steps before.
    """
    own = {step.id for step in steps}
    does_all = own == {step.id for step in plan.steps} and not (plan.open or revised)
    if does_all and len(steps) == 1:
        return ""
    if does_all:
        lines = ["Its steps:", plan_lines(plan.steps, whole=own)]
    else:
        lines = _part_of_plan(steps[0], own, plan, results)
    how = "as data" if len(steps) == 1 else "as its data in steps"
    for step in plan.steps:
        source = source_of(step.for_each, own)
        if step.for_each and not step.item and source in own:
            lines.append(f"Step {source} must give the list for step {step.id}: call finish with the items {how}.")
    return "\n".join(lines)


def _part_of_plan(lead: Step, own: Collection[str], plan: Plan, results: Mapping[str, StepResult]) -> list[str]:
    """Returns the outline of the plan for a worker that does some of its steps; steps for other items are left out."""
    items: list[str] = []
    if lead.item:
        items = [one.id for one in plan.steps if one.item and one.for_each == lead.for_each]
    marks = {name: f" [{result.status}]" for name, result in results.items()}
    marks |= dict.fromkeys(own, " <- yours")
    visible = [step for step in plan.steps if step.id in own or step.id not in items]
    lines = [_OPEN if plan.open else _OTHERS, plan_lines(visible, marks, whole=own)]
    if items:
        lines.append(f"Yours is item {1 + items.index(lead.id)} of {len(items)} of the result of {lead.for_each}.")
    return lines


def plan_lines(steps: Iterable[Step], marks: Mapping[str, str] | None = None, *, whole: Collection[str] = ()) -> str:
    """Returns one line for each step: what it waits for, whether it is done for each item of a list, and its mark.

    Only the texts of the steps in ``whole`` are not shortened.
    """
    lines: list[str] = []
    for step in steps:
        line = f"{step.id}. {step.text if step.id in whole else step.text[:_LEAST]}"
        if step.depends_on:
            line += f" (after {', '.join(step.depends_on)})"
        if step.for_each and not step.item:
            line += f" (once for each item of {step.for_each})"
        lines.append(line + (marks or {}).get(step.id, ""))
    return "\n".join(lines)


def reports(results: Sequence[StepResult]) -> str:
    """Returns results as text for a model, within a budget; a text that several steps share is written once."""
    most = max(_LEAST, min(_LONGEST, _BUDGET // max(1, 2 * len(results))))
    told: dict[tuple[str, str], str] = {}
    texts: list[str] = []
    for result in results:
        first = told.setdefault((result.worker, result.result or result.error), result.id)
        texts.append(report_of(result, most=most, same_as=first if result.worker and first != result.id else ""))
    return "\n\n".join(texts)


def report_of(result: StepResult, *, most: int = _LONGEST, same_as: str = "") -> str:
    """Returns one result as text for a model: the worker's text, its data with their types, and its calls.

    ``same_as`` is an earlier step whose report has the same text; the report then refers to it.
    """
    said = result.result if result.status in GAVE else f"({result.status}) {result.error}"
    text = f"(as said of step {same_as})" if same_as else beginning(said, most)
    if result.status == "partly" and not same_as:
        text = f"(done in part) {text}"
    lines = [f"<step id={result.id!r}>", result.text, "<result>", text, "</result>"]
    # More than the text: data that the worker gave, or a text that is JSON.
    if result.data is not None or (result.status in GAVE and not isinstance(value_of(result), str)):
        lines.append(f"The data of {result.id!r}: {_data(result, most)}")
    calls = [call for call in result.calls if call.id]
    if calls:
        each = max(_LEAST // 2, min(most // 3, most // len(calls)))
        lines += ["Calls:", *(_call(call, result.id, each) for call in calls)]
    return "\n".join((*lines, "</step>"))


def beginning(text: str, most: int = _LONGEST) -> str:
    """Returns the text, or its beginning and its length if it is too long."""
    if len(text) <= most:
        return text
    return f"{text[:most]}…\n[{len(text):,} characters in all; read more with {READ_RESULT}]"


def as_text(value: Any) -> str:
    """Returns a value as text: a text itself, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _data(result: StepResult, most: int) -> str:
    try:
        value = value_of(result)
    except ResultValueError as error:
        return str(error)
    inside = as_text(value)
    return shape(value) if inside in result.result else f"{shape(value)}: {beginning(inside, most)}"


def _call(call: Call, step: str, most: int) -> str:
    """Returns a call in one line: id, tool, arguments, and the beginning of its result or error."""
    args = " ".join(as_text(dict(call.args)).split())
    came = f"failed: {call.error}" if call.error else f"{len(call.output):,} characters: {call.output}"
    line = " ".join(came.split())
    cut = (text if len(text) <= most else f"{text[:most]}…" for text in (args, line))
    return f"- {step}/{call.id} {call.tool} {' -> '.join(cut)}"


@dataclass(frozen=True, slots=True)
class Brief:
    """The steps for a worker, with what it should know to do them.

    Attributes:
        text: The texts of its steps, for workers without a model.
        request: The user's message, unchanged.
        steps: The steps of the worker, its first one first.
        conversation: The latest turns before the request, as text; empty for a first request.
        skills: Name of a skill -> its instructions, as far as the budget allows.
        inputs: Results of the steps on which the worker's steps depend, directly or indirectly.
        before: The result of an earlier attempt at this step.
        place: The steps, and their place in the plan, as text for a model; ``about`` has the date, people and folders.
        item: The item for which the step is done, as JSON.
        given: Tool id -> parameter -> value that a person entered for this step; the key "" has the answers to the
            worker's own questions.
    """

    text: str = ""
    request: str = ""
    skills: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[StepResult, ...] = ()
    before: StepResult | None = None
    place: str = ""
    about: str = ""
    item: str = ""
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    conversation: str = ""

    @property
    def step_ids(self) -> tuple[str, ...]:
        """Returns the ids of the steps."""
        return tuple(step.id for step in self.steps)

    @property
    def calls_before(self) -> int:
        """Returns the number of calls of an earlier attempt."""
        return len(self.before.calls) if self.before else 0

    def opening(self) -> str:
        """Returns the first message to a worker: the request, its steps, and what it should know to do them."""
        before = self.before
        given = [f"{name}: {value}" for values in self.given.values() for name, value in values.items()]
        parts = (
            task(self.request.strip() or self.text, self.conversation),
            self.place,
            f"The item:\n{self.item}" if self.item else "",
            *(f"{SKILL.format(name=name)}\n{text}" for name, text in self.skills.items()),
            f"Results of earlier steps:\n{reports(self.inputs)}\n{BY_REFERENCE}" if self.inputs else "",
            f"This was begun before. What was done and what came of it:\n{report_of(before)}\nYour next call is "
            f"c{self.calls_before + 1}. Do not repeat what took effect." if before else "",
            "A person has said:\n" + "\n".join(given) if given else "",
            self.about,
        )  # fmt: skip
        return "\n\n".join(filter(None, parts))


def recent(messages: Sequence[AnyMessage], max_tokens: int) -> list[BaseMessage]:
    """Returns the latest messages of users and the assistant's answers to them, within a token budget."""
    told = [m for m in without_transcript(messages) if isinstance(m, HumanMessage | AIMessage) and m.text.strip()]
    count = count_tokens_approximately
    return list(trim_messages(told, max_tokens=max_tokens, token_counter=count, strategy="last", start_on="human"))


def conversation_text(messages: Sequence[AnyMessage], max_tokens: int) -> str:
    """Returns the latest turns of a conversation as text, within a token budget; empty if there are none."""
    told = recent(messages, max_tokens)
    return "\n".join(f"{'User' if isinstance(one, HumanMessage) else 'Assistant'}: {one.text}" for one in told)


def task(request: str, conversation: str) -> str:
    """Returns a request for a model; the conversation before it, if any, comes first."""
    return f"The conversation before:\n{conversation}\n\nThe request:\n{request}" if conversation else request


_LONGEST_LINE = 2_000
_HEADINGS = {
    "failed": "Failed",
    "outcome_unknown": "Outcome unknown",
    "needs_input": "Needs your input",
    "skipped": "Skipped",
}
LISTED = "(The results are listed as they are: {})"
"""The remark that is added if no answer could be written, so that the results are listed."""
NAME = "supervisor"
"""The name of the author of the answer."""


async def synthesize(
    request: str,
    results: Sequence[StepResult],
    model: BaseChatModel,
    *,
    prompt: str = ANSWER,
    conversation: Sequence[BaseMessage] = (),
) -> AIMessage:
    """Writes the answer to a request from the results of its steps, and returns the message that was streamed.

    A line is added for each step that was not done, because a model may claim what did not happen. If the model fails,
    the results are listed, and the error is named. The model sees the earlier messages of the ``conversation``.
    """
    told = f"Request: {request}\n\nResults of its steps:\n\n" + "\n\n".join(map(_said, results))
    try:
        message = await model_answer(model.ainvoke([SystemMessage(prompt), *conversation, HumanMessage(told)]))
    except ModelError as error:
        return AIMessage(f"{list_results(request, results)}\n\n{LISTED.format(error)}", name=NAME)
    text = message.text.strip()
    lines = not_done(results)
    text = "\n".join([text, "", *lines]) if text and lines else text or list_results(request, results)
    return message.model_copy(update={"content": text, "tool_calls": [], "name": NAME})


def list_results(request: str, results: Sequence[StepResult]) -> str:
    """Lists the results of a plan: first what was done, then what was not done and why."""
    done = [result for result in results if result.status in GAVE]
    parts = [_line(result, result.result.strip() or "done") for result in done]
    parts += not_done(results)
    effects = any(r.status == "outcome_unknown" or any(not call.error for call in r.calls) for r in results)
    if not done and not effects:
        said = f' for "{_shortened(request.strip(), 200)}"' if request.strip() else ""
        parts.insert(0, f"Nothing was done{said}.")
    return join_results(parts)


def join_results(parts: Sequence[str]) -> str:
    """Joins results of steps: a line each, or with an empty line between them if one of them has several lines."""
    gap = "\n\n" if any("\n" in part for part in parts) else "\n"
    return gap.join(parts)


def head_result(text: str, said: str) -> str:
    """Returns the text of a step with its result: in the same line if the result is one line, else below it."""
    head = f"{text.strip().rstrip('.;,')}:".replace("?:", "?")
    gap = "\n" if "\n" in said else " "
    return f"{head}{gap}{said}"


def not_done(results: Sequence[StepResult]) -> list[str]:
    """Returns a line for each step that failed, needs input or was skipped, with the reason."""
    return [
        f"{heading}: {_line(result, result.error.strip() or result.result.strip() or 'no reason was given')}"
        for status, heading in _HEADINGS.items()
        for result in results
        if result.status == status
    ]


def _line(result: StepResult, said: str) -> str:
    return _shortened(head_result(result.text, said))


def _shortened(text: str, longest: int = _LONGEST_LINE) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()} ... ({len(text)} characters in all)"


def _said(result: StepResult) -> str:
    """Returns one step's result as the model that writes the answer reads it."""
    if result.status not in GAVE:
        return report_of(result)
    note = f"\n({result.note})" if result.note else ""
    return f"<step id={result.id!r}>\n{result.text}\n<result>\n{result.result}\n</result>{note}\n</step>"


PART = "callsheet_part"
"""Key in ``response_metadata`` that marks the messages of a transcript; providers do not get it."""
_LONGEST_RESULT = 2_000
_LONGEST_ARGUMENT = 500
"""Maximum characters of a result, and of an argument; ``results`` in the state has them in full."""


def transcript(run: str, plan: Plan, results: Sequence[StepResult]) -> list[AnyMessage]:
    """Returns the plan and the calls of a run as messages: for each call an AI message and its answer.

    Every provider accepts these messages in a conversation. Each call is followed by its answer, ids are unique in the
    runs of a thread, and names are valid. The plan is the text of the first call's message, because Gemini refuses a
    call that follows a text of the model. A plan of one step, or without any call, is left out.
    """
    calls = {(one.id, call.id): call for one in results for call in one.calls if call.id and call.agent}
    text = f"The plan:\n{plan_lines(plan.steps)}" if len(plan.steps) > 1 else ""
    messages: list[AnyMessage] = []
    for (step, _), call in calls.items():
        messages += _pair("" if messages else text, call, step, run)
    return messages


def without_transcript(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Removes the messages that ``transcript`` has added from a conversation."""
    return [message for message in messages if PART not in message.response_metadata]


def _pair(text: str, call: Call, step: str, run: str) -> tuple[AIMessage, ToolMessage]:
    name = names_of_bound(call.agent, call.tool.removeprefix(f"{call.agent}/"))[0]
    call_id = f"call_{sha256(f'{run} {step} {call.id}'.encode()).hexdigest()[:24]}"
    about = {PART: "call", "step_id": step, "tool": call.tool}
    args = dict(call.args)
    args |= {
        key: shown(whole, most=_LONGEST_ARGUMENT)
        for key, value in args.items()
        if len(whole := as_text(value)) > _LONGEST_ARGUMENT
    }
    called = [{"type": "tool_call", "name": name, "args": args, "id": call_id}]
    asked = AIMessage(text, id=f"{call_id}-asked", name=NAME, tool_calls=called, response_metadata=about)
    answer = shown(call.error or call.output or NO_OUTPUT, most=_LONGEST_RESULT)
    status: Any = "error" if call.error else "success"
    fields: dict[str, Any] = {"id": call_id, "name": name, "status": status, "response_metadata": about}
    return asked, ToolMessage(answer, tool_call_id=call_id, **fields)
