"""Runs a program of a worker in Monty, Pydantic's sandbox: advances to the next call, makes it, and continues.

Each call is a node of its own and is made like any call of a worker. Before each call, the program is stored with its
variables; each answer is stored before the program continues. So a question to a person pauses the program at the call,
and when a run is resumed, no earlier call is repeated.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NotRequired

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from callsheet.agents.approval.program_review import ProgramReview
from callsheet.agents.approval.questions import MOST_WRONG
from callsheet.agents.calls.outcome import Call, Effect, Outcome, answer_to, outcome_in
from callsheet.agents.calls.review import AnswerError, Decision
from callsheet.agents.calls.run_claim import checkpointer
from callsheet.agents.programs.functions import RESULTS, functions_of, stubs, without_functions
from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool, made_call
from callsheet.agents.registry.checked_call import Approval
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.agents.sandbox import Pause, Sandbox
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.unicode import storable

if TYPE_CHECKING:
    from langchain.agents.middleware import ToolCallRequest


_MOST_SHOWN = 20_000
"""Characters that a model sees of what a program printed, and of its last value or error."""
Answer = ToolMessage | Command[Any]


Sender = Callable[[Any, BoundTool, Approval | None], Awaitable[Answer]]
"""A function that makes a call: it takes the request, the tool, and an earlier approval, if there is one."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what it may call.

    Attributes:
        call: The call of ``run_program``.
        functions: Its tools by the names of their functions.
        send: Makes a call of a tool, of which there may be ``most``; with the approval, if there is one.
        review: Asks about several calls at once; None if nobody can be asked.
        results: Values of earlier steps by id.
        secrets: Removed from what the program shows.
        barred: Names of functions that the program may not call, with the reasons.
    """

    call: ToolCall
    functions: Mapping[str, BoundTool]
    send: Callable[[ToolCall, BoundTool, Approval | None], Awaitable[Answer]]
    most: int
    results: Mapping[str, Any]
    secrets: RunSecrets | None
    barred: Mapping[str, str] = field(default_factory=dict)
    review: ProgramReview | None = None

    def answer(self, text: str, state: Mapping[str, Any], *, error: bool, effect: Effect = "reported") -> ToolMessage:
        """Returns the answer to the call of ``run_program``, with all calls that the program made."""
        parts = (part.rstrip("\n") for part in (state.get("printed", ""), text))
        text = "\n".join(_cut(self.secrets.text(part) if self.secrets else part) for part in parts if part)
        ahead = state.get("ahead", [])  # what the program did not come to
        calls = [*state.get("calls", []), *(one["call"] for one in ahead)]
        answers = [*state.get("answers", []), *(one["answer"] for one in ahead)]
        outcome = Outcome(effect=effect, made=self._made(calls, answers))
        return answer_to(self.call, text, outcome, error=error)

    def _made(self, calls: Sequence[ToolCall], answers: Sequence[ToolMessage]) -> tuple[Call, ...]:
        """Returns the records of the program's calls, with their numbers as names."""
        tools = {tool.name: tool for tool in self.functions.values()}
        answered = {answer.tool_call_id: answer for answer in answers}
        made: list[Call] = []
        for number, call in enumerate(calls, start=1):
            made.append(made_call(call, answered.get(call["id"] or ""), tools.get(call["name"]), str(number)))
        return tuple(made)


class ProgramState(TypedDict):
    """The state of a program, stored at its last call; its calls have the names that the model sees.

    Attributes:
        position: The position of the last of ``calls`` in the code.
        foreseen: The calls that the next question is about, beginning with the last of ``calls``: function and
            arguments.
        problem: What was wrong with the last answer; ``wrong`` is the number of such answers in a row.
        decided: A person's decisions on calls that are not made yet, by their digests, and ``when`` they were made.
        ahead: Calls that only read and were made in advance, while the next calls were determined, with their answers.
    """

    snapshot: bytes
    printed: str
    calls: list[ToolCall]
    answers: list[ToolMessage]
    position: NotRequired[int | None]
    foreseen: NotRequired[list[dict[str, Any]]]
    problem: NotRequired[str]
    wrong: NotRequired[int]
    decided: NotRequired[list[dict[str, Any]]]
    when: NotRequired[float]
    ahead: NotRequired[list[dict[str, Any]]]
    done: NotRequired[ToolMessage]


_Update = dict[str, Any]


async def run_program(
    request: ToolCallRequest,
    tools: Mapping[str, BoundTool],
    make: Sender,
    *,
    most: int,
    results: Mapping[str, Any] = MappingProxyType({}),
    secrets: RunSecrets | None = None,
    review: ProgramReview | None = None,
) -> ToolMessage:
    """Runs the program in a request to its end, or to a question to a person; only the first program of a message runs.

    Each of its calls, at most ``most``, is made by ``make`` like any other call. Calls that need approval and whose
    arguments are known before the first of them is sent are one question, by ``review``.

    Raises:
        GraphInterrupt: A person is asked about one of its calls.
    """
    call = request.tool_call
    beside = request.state["messages"][-1].tool_calls
    if call["id"] != next(other["id"] for other in beside if other["name"] == RUN_PROGRAM):
        return answer_to(call, "one program at a time: this one was not run", error=True)

    async def send(inner: ToolCall, tool: BoundTool, approval: Approval | None) -> Answer:
        return await make(request.override(tool_call=inner, tool=tool), tool, approval)

    stored = checkpointer() is not None
    asks = review if stored else None
    program = Program(call, functions_of(tools), send, most, results, secrets, without_functions(tools), asks)
    code = call["args"].get("code")
    if not isinstance(code, str) or not code.strip():
        return program.answer("give the program as the text 'code'", {}, error=True)
    if stored:
        before = await _PROGRAM.aget_state(get_config())
        if not before.next and (done := before.values.get("done")):
            return done  # type: ignore[no-any-return]
    begin = ProgramState(snapshot=b"", printed="", calls=[], answers=[])
    ended = await _PROGRAM.ainvoke(begin, context=program, durability="sync" if stored else None)
    return ended["done"]  # type: ignore[no-any-return]


def _sandbox(program: Program) -> Sandbox:
    return Sandbox(program.functions, stubs(program.functions, program.barred), program.barred)


async def _advance(state: ProgramState) -> _Update:
    program = get_runtime(Program).context
    answers = state["answers"]
    sandbox = _sandbox(program)
    if answers:
        at = await sandbox.proceed(state["snapshot"], _value(answers[-1]), printed=len(state["printed"]))
    else:
        at = await sandbox.start(program.call["args"]["code"], {RESULTS: dict(program.results)})
    printed = state["printed"] + storable(at.printed)
    now = {**state, "printed": printed}
    if not at.function:
        text = _at_line(program, at.position) + at.error + _made_before(answers) if at.error else _written(at.value)
        return {"printed": printed, "done": program.answer(text, now, error=bool(at.error))}
    if len(answers) == program.most:
        most = counted(program.most, "call")
        text = f"{_at_line(program, at.position)}the program was stopped before it made more than {most}"
        return {"printed": printed, "done": program.answer(text, now, error=True)}
    call = _called(program, at, f"{program.call['id']}_{len(answers) + 1}")
    foreseen, ahead = await _foresee(program, sandbox, at, call, state)
    update: _Update = {"printed": printed, "snapshot": at.snapshot, "calls": [*state["calls"], call]}
    update["position"] = at.position
    return {**update, "foreseen": foreseen, "ahead": ahead, "problem": "", "wrong": 0}


def _at_line(program: Program, position: int | None) -> str:
    """Returns the line of a call, as the beginning of an error; empty for an error that names it already."""
    if position is None:
        return ""
    before = str(program.call["args"]["code"]).encode("utf-8", "replace")[:position]
    number = before.count(b"\n") + 1
    return f"line {number}: "


def _made_before(answers: Sequence[ToolMessage]) -> str:
    """Returns what a program that ends early has done until then, as a further line."""
    made = counted(len(answers), "call")
    return f"\nBefore that, the program made {made}: do not repeat what took effect." if answers else ""


def _called(program: Program, at: Pause, call_id: str) -> ToolCall:
    """Returns the call at which a program waits, in the names that the model sees."""
    tool = program.functions[at.function]
    return ToolCall(name=tool.name, args=tool.form.own(at.args), id=call_id, type="tool_call")


_MOST_FORESEEN = 50
"""Maximum number of calls in one question."""
_PLACEHOLDERS = ("not known yet" * 3, "?|" * 40, "")
"""What an effect returns while a program is run ahead: of different lengths, one empty, without a common character."""


async def _foresee(
    program: Program, sandbox: Sandbox, at: Pause, call: ToolCall, state: ProgramState
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Returns the calls that a person is asked about together, if this one needs approval; and calls that only read.

    The stored program is run ahead several times, step by step, with placeholders in place of what effects return.
    Where the runs differ, a call depends on an earlier one. What is foreseen decides nothing: a decision counts only
    for a call that the program then makes with exactly these arguments.

    Calls that only read are made, once, as far as they read nothing that an effect before them may have changed.
    """
    review = program.review
    tool = program.functions[at.function]
    ahead = [*state.get("ahead", [])]
    if review is None or not await _asks_now(review, tool, call["args"], state):
        return [], ahead
    foreseen = [{"function": at.function, "args": call["args"]}]
    changed = {tool.agent}
    made = len(state["answers"]) + len(ahead) + 1
    runs: Sequence[Pause] = [at] * len(_PLACEHOLDERS)
    values: Sequence[Mapping[str, Any]] = [{"return_value": text} for text in _PLACEHOLDERS]
    while len(foreseen) < _MOST_FORESEEN and made < program.most:
        made += 1
        runs = await sandbox.proceed_each(runs, values)
        one = runs[0]
        if not _at_one_call(runs):
            break
        tool = program.functions[one.function]
        args = tool.form.own(one.args)
        asked = await _is_asked(review, tool, args)
        if asked:
            foreseen.append({"function": one.function, "args": args})
        elif await review.doubt(tool, args):
            break  # it is asked about alone
        if asked or not tool.harmless:
            changed.add(tool.agent)
            values = [{"return_value": text} for text in _PLACEHOLDERS]
            continue
        if tool.agent in changed:
            break
        read = await _read_ahead(program, one, tool, f"{call['id']}_ahead_{len(ahead)}")
        if read is None:
            break
        ahead.append(read)
        values = [_value(read["answer"])] * len(runs)
    # One call is asked about by itself, where a person may also change it.
    return (foreseen if len(foreseen) > 1 else []), ahead


async def _asks_now(review: ProgramReview, tool: BoundTool, args: Mapping[str, Any], state: ProgramState) -> bool:
    """Returns whether a person is asked about a call on which nobody has decided."""
    decided = [one["digest"] for one in state.get("decided", [])]
    return await review.digest(tool, args) not in decided and await _is_asked(review, tool, args)


async def _read_ahead(program: Program, at: Pause, tool: BoundTool, call_id: str) -> dict[str, Any] | None:
    """Makes a call that only reads; returns it with its answer, or None if the answer is no message."""
    call = _called(program, at, call_id)
    answer = await program.send(call, tool, None)
    if not isinstance(answer, ToolMessage):
        return None
    return {"tool": tool.id, "agent": tool.agent, "call": call, "answer": answer}


def _at_one_call(runs: Sequence[Pause]) -> bool:
    """Returns whether all runs wait at a call, and at the same one."""
    first = runs[0]
    same = all((run.function, run.args) == (first.function, first.args) for run in runs)
    return bool(first.function) and same


async def _is_asked(review: ProgramReview, tool: BoundTool, args: Mapping[str, Any]) -> bool:
    """Returns whether a person is asked about a call, and may approve it among others."""
    return await review.doubt(tool, args) is not None and "approve" in review.offers(tool)


async def _review(state: ProgramState) -> _Update:
    """Asks about the calls that are foreseen."""
    program = get_runtime(Program).context
    review = program.review
    if review is None:
        raise TypeError("without a review, no calls are foreseen")
    calls = [(program.functions[call["function"]], call["args"]) for call in state.get("foreseen", ())]
    try:
        decisions = await review.ask(calls, state.get("problem", ""))
    except AnswerError as error:
        wrong = state.get("wrong", 0) + 1
        if wrong < MOST_WRONG:
            return {"problem": str(error), "wrong": wrong}
        given = Decision(
            type="reject", message=f"the question was asked {wrong} times without a valid answer ({error})"
        )
        decisions = [given] * len(calls)
    decided = [
        {"digest": await review.digest(tool, args), "type": decision.type, "message": decision.message}
        for (tool, args), decision in zip(calls, decisions, strict=True)
    ]
    return {"decided": decided, "when": time.time(), "foreseen": []}


async def _call(state: ProgramState) -> _Update:
    """Makes the program's call. A refusal by a person, and an unknown outcome, end the program: it cannot go on."""
    program = get_runtime(Program).context
    call = state["calls"][-1]
    tool = next(tool for tool in program.functions.values() if tool.name == call["name"])
    made, answer = await _answered(program, tool, call, state)
    if not isinstance(answer, ToolMessage):
        raise TypeError(f"{tool.name} answered with {type(answer).__name__}, not with a message")
    made["answers"] = [*state["answers"], answer]
    outcome = outcome_in(answer)
    unknown = outcome.effect == "unknown" and not tool.repeatable
    if answer.status != "error" or not (unknown or outcome.kind == "rejected"):
        return made
    line = _at_line(program, state.get("position"))
    text = f"{line}the program was ended: {answer.text}{_made_before(state['answers'])}"
    effect: Effect = "unknown" if unknown else "reported"
    return {**made, "done": program.answer(text, {**state, **made}, error=True, effect=effect)}


async def _answered(program: Program, tool: BoundTool, call: ToolCall, state: ProgramState) -> tuple[_Update, Answer]:
    """Returns the answer to a call: made ahead, made now, or rejected before.

    And what changes in the program's state.
    """
    ahead = [*state.get("ahead", [])]
    for read in ahead:
        if (read["tool"], read["call"]["args"]) == (tool.id, call["args"]):
            ahead.remove(read)
            return {"ahead": ahead}, read["answer"].model_copy(update={"tool_call_id": call["id"]})
    decided = [*state.get("decided", [])]
    approval = None
    if program.review and decided:
        digest = await program.review.digest(tool, call["args"])
        given = next((one for one in decided if one["digest"] == digest), None)
        if given is not None:
            decided.remove(given)
            if given["type"] == "reject":
                return {"decided": decided}, await program.review.rejected(tool, call, given["message"])
            approval = Approval(digest, state.get("when", 0.0))
    answer = await program.send(call, tool, approval)
    # What was read of this agent before may not hold any more; it stays among the calls that were made.
    ahead = [{**read, "tool": ""} if read["agent"] == tool.agent else read for read in ahead]
    return {"decided": decided, "ahead": ahead}, answer


def _after_advance(state: ProgramState) -> str:
    if "done" in state:
        return END
    return "review" if state.get("foreseen") else "call"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}\n[{len(text) - _MOST_SHOWN:,} characters more]"


def _value(answer: ToolMessage) -> dict[str, Any]:
    """Returns what a call returns to the program, or raises in it."""
    if answer.status == "error":
        return {"exc_type": "RuntimeError", "message": answer.text}
    # As the model saw it when it made the first call by hand.
    try:
        return {"return_value": json.loads(answer.text)}
    except (ValueError, RecursionError):
        return {"return_value": answer.text}


def _written(value: Any) -> str:
    """Returns the value of a last line: a text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError):
        return "[the value of the last line cannot be shown]"


def _program_app() -> Any:
    app = StateGraph(ProgramState, context_schema=Program)
    app.add_node("advance", _advance)
    app.add_node("review", _review)
    app.add_node("call", _call)
    app.add_edge(START, "advance")
    app.add_conditional_edges("advance", _after_advance, ["review", "call", END])
    app.add_conditional_edges("review", lambda state: "review" if state["foreseen"] else "call", ["call", "review"])
    app.add_conditional_edges("call", lambda state: END if "done" in state else "advance", ["advance", END])
    return app.compile(name="program")


_PROGRAM = _program_app()
