"""A worker's program in Monty, Pydantic's sandbox, as a small app: advance to the next call, make it, and so on.

Each call is a node of its own, and takes the way that every call of a worker takes. The program is stored before each
call, with its variables, and each answer before the program goes on. So a question to a person pauses the program at
the call, and no call is repeated when a run is resumed: nothing before it is run again.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import keyword
import re
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NotRequired, Protocol

from langchain_core.messages import ToolCall, ToolMessage
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import get_runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from callsheet.agents.calls.run_claim import checkpointer
from callsheet.agents.calls.tool_result import answer_to, artifact_of
from callsheet.agents.registry.binding import RUN_PROGRAM, BoundTool
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.graphs.text.sanitizing import clean, counted, storable

if TYPE_CHECKING:
    from langchain.agents.middleware import ToolCallRequest
    from pydantic_monty import AsyncMonty, AsyncMontySession, CollectString, ResourceLimits


_MOST_PRINTED, _MOST_ERROR = 100_000, 2_000
_MOST_STORED = 4 * 1024 * 1024
"""Bytes of a stored program: it is stored at each of its calls."""
_CRASH = 20.0
"""Seconds after which a sandbox that does not answer is killed."""
_CHECKS: Any = {"type_check": True, "type_check_format": "concise", "os_policy": {"sleep": "zero"}}
_LIMITS: ResourceLimits = {
    "max_feed_duration_secs": 5.0,
    "max_memory": 64 * 1024 * 1024,
    "max_recursion_depth": 200,
}


@dataclass(frozen=True, slots=True)
class Pause:
    """Where a program has ended, or waits for the result of a call, and what it has printed since it went on.

    Attributes:
        function: The function that it calls, with ``args``; empty if it has ended.
        snapshot: The stored program.
        value: The value of its last line.
        error: Why it ended early, with the line.
    """

    printed: str
    function: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    snapshot: bytes = b""
    value: Any = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs programs that call these functions, each in a process of its own.

    No program reads a file, the environment or the network. It may compute for five seconds, use 64 MiB and
    nest 200 function calls. It is checked against the ``stubs`` before it starts. ``barred`` says why a name that is
    none of the functions cannot be called.
    """

    functions: Collection[str]
    stubs: str
    barred: Mapping[str, str] = field(default_factory=dict)

    async def start(self, code: str, inputs: Mapping[str, Any]) -> Pause:
        """Starts a program with these variables; what cannot be encoded in their texts is replaced."""
        given = clean(dict(inputs))
        return await self._run(lambda session, out: session.feed_start(code, inputs=given, print_callback=out))

    async def proceed(self, snapshot: bytes, answer: Mapping[str, Any], *, printed: int = 0) -> Pause:
        """Continues a stored program: its call returns ``{"return_value": ...}`` or raises ``{"exc_type", "message"}``.

        It has ``printed`` so many characters before.
        """

        async def begin(session: AsyncMontySession, out: CollectString) -> Any:
            at: Any = await session.load_snapshot(snapshot, print_callback=out)
            return await at.resume(clean(dict(answer)))

        return await self._run(begin, printed)

    async def _run(self, begin: Callable[[Any, Any], Awaitable[Any]], printed: int = 0) -> Pause:
        pool = await asyncio.to_thread(_pool)  # an import reads files, and so does the search for the binary
        from pydantic_monty import CollectString, MontyError

        out = CollectString(_MOST_PRINTED - printed)
        options = {**_CHECKS, "type_check_stubs": self.stubs, "limits": _LIMITS}
        async with pool, pool.checkout(script_name="program.py", **options) as session:
            try:
                return await self._until_call(await begin(session, out), out)
            except MontyError as error:
                display = getattr(error, "display", None)
                shown = (display() if display else f"{type(error).__name__}: {error}").strip()
                if len(shown) > _MOST_ERROR:  # the line stands at the beginning, and the kind often at the end
                    shown = f"{shown[: _MOST_ERROR // 2]}\n...\n{shown[-_MOST_ERROR // 2 :]}"
                return Pause(out.output, error=shown)

    async def _until_call(self, at: Any, out: CollectString) -> Pause:
        from pydantic_monty import AsyncFunctionSnapshot, AsyncNameLookupSnapshot, MontyComplete

        while not isinstance(at, MontyComplete):
            if isinstance(at, AsyncNameLookupSnapshot):
                at = await at.resume()
            elif not isinstance(at, AsyncFunctionSnapshot):
                at = await at.resume_auto()
            elif at.is_os_function:
                at = await at.resume_not_handled()
            elif at.function_name not in self.functions:
                told = (
                    f"{at.function_name} is not among the functions; there are: {', '.join(self.functions) or 'none'}"
                )
                at = await at.resume({"exc_type": "NameError", "message": self.barred.get(at.function_name, told)})
            elif isinstance(args := "name every argument" if at.args else _as_json(at.kwargs), str):
                at = await at.resume({"exc_type": "TypeError", "message": f"{at.function_name}: {args}"})
            elif len(snapshot := at.dump()) > _MOST_STORED:
                told = f"{at.function_name} was not called: the variables take {len(snapshot):,} bytes, and at a call"
                return Pause(out.output, error=f"MemoryError: {told} a program may hold {_MOST_STORED:,}")
            else:
                return Pause(out.output, str(at.function_name), args, snapshot)
        return Pause(out.output, value=at.output)

    def _why_not(self, function: str) -> str:
        """Why a function cannot be called."""
        there = ", ".join(self.functions) or "none"
        return self.barred.get(function, f"{function} is not among the functions; there are: {there}")


def _pool() -> AsyncMonty:
    from pydantic_monty import AsyncMonty

    return AsyncMonty(max_processes=1, request_timeout=_CRASH)


def _as_json(args: Mapping[str, Any]) -> dict[str, Any] | str:
    """The arguments as JSON values, or why they are none."""
    try:
        given: dict[str, Any] = json.loads(json.dumps(args, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        return f"an argument is no JSON value: {error}"
    return given


RESULTS = "results"
"""The variable with the values of earlier steps, by their ids."""
_TAKEN = {RESULTS, *keyword.kwlist, *dir(builtins)}
_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_TYPES |= {"object": "dict[str, Any]"}
_ABOUT = f"""\
Run one Python program in a sandbox that calls your tools as functions: the same names, every argument named, without \
await. First do one of several items by calls of your own, then the others in one program. A function returns parsed \
JSON, else text, and raises RuntimeError if its call fails; an argument that is no Python name is passed as \
**{{"from": ...}}. You get what is printed and the value of the last line. {RESULTS} holds values of earlier steps by \
id. re, json, math, datetime; no files, no network, nothing from earlier programs."""


def functions_of(tools: Mapping[str, BoundTool]) -> dict[str, BoundTool]:
    """The tools that programs may call, by the names of their functions.

    A program and its variables are stored as they are, so no function takes a secret: an optional one is left out, and
    a tool that requires one is not among them.
    """
    functions: dict[str, BoundTool] = {}
    for name, tool in tools.items():
        if not _secret_parameters(tool).intersection(tool.form.plain.get("required") or ()):
            functions[_function_name(name, functions)] = tool
    return functions


def _function_name(name: str, taken: Collection[str]) -> str:
    function = re.sub(r"\W|^(?=\d)", "_", name, flags=re.ASCII)
    while function in taken or function in _TAKEN:
        function += "_"
    return function


def _secret_parameters(tool: BoundTool) -> set[str]:
    """The names of the parameters that take a secret, at the top or within."""
    properties: Mapping[str, Any] = tool.form.plain.get("properties") or {}
    return {name for name, schema in properties.items() if has_secrets({"properties": {name: schema}})}


def without_functions(tools: Mapping[str, BoundTool]) -> dict[str, str]:
    """The names under which a program would call the tools that it may not call, each with the reason."""
    inside = {tool.id for tool in functions_of(tools).values()}
    return {
        _function_name(name, ()): f"{name} takes a secret, which no program may hold: call the tool itself"
        for name, tool in tools.items()
        if tool.id not in inside
    }


DEFINITION: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": RUN_PROGRAM,
        "description": _ABOUT,
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string"}},
            "required": ["code"],
        },
    },
}
"""``run_program`` as a model sees it: the same text whatever the tools are, which stand beside it."""


def stubs(functions: Mapping[str, BoundTool], barred: Collection[str] = ()) -> str:
    """The functions as stubs for a type checker; a call of a ``barred`` name passes it, and says why it fails."""
    written = [*(_function(name, tool) for name, tool in functions.items())]
    written += [f"def {name}(**more: Any) -> Any: ..." for name in barred]
    return "\n".join(["from typing import Any", f"{RESULTS}: dict[str, Any]", *written, ""])


def _function(name: str, tool: BoundTool) -> str:
    """A tool as a stub. An optional parameter that takes a secret is left out."""
    schema = tool.form.schema
    hidden = {key for key, own in _own_names(tool).items() if own in _secret_parameters(tool)}
    properties = {key: value for key, value in schema["properties"].items() if key not in hidden}
    required, named = schema.get("required", ()), [key for key in properties if not keyword.iskeyword(key)]
    parameters = [f"{key}: {_type(properties[key])}{'' if key in required else ' = ...'}" for key in named]
    if len(named) < len(properties) or schema.get("additionalProperties"):
        parameters.append("**more: Any")
    listed = ", ".join(["*", *parameters] if named else parameters)
    return f"def {name}({listed}) -> Any: ..."


def _own_names(tool: BoundTool) -> dict[str, str]:
    """The parameters' names for a model -> the tool's own."""
    return {key: next(iter(tool.form.own({key: None}))) for key in tool.form.schema["properties"]}


def _type(schema: Mapping[str, Any]) -> str:
    """The Python type of a parameter: never narrower than what the tool accepts."""
    match schema.get("anyOf", schema.get("oneOf", schema.get("type"))):
        case "array":
            inside = _type(schema["items"])
            return f"list[{inside}]" if inside in ("str", "int", "bool") else "list[Any]"
        case list() as several:
            types = list(map(_type, several))
            return "Any" if "Any" in types else " | ".join(dict.fromkeys(types))
        case named:
            return _TYPES.get(str(named), "Any")


_MOST_SHOWN = 20_000
"""Characters that a model sees of what a program printed, and of its last value or error."""
Answer = ToolMessage | Command[Any]


class Review(Protocol):
    """Asks a person about several calls of a program at once."""

    async def doubt(self, tool: BoundTool, args: Mapping[str, Any]) -> str:
        """Why a call needs approval; empty if it needs none."""
        ...

    def reads(self, tool_id: str) -> bool:
        """Whether a tool is known to change nothing."""
        ...

    def mark(self, tool: BoundTool, args: Mapping[str, Any]) -> str:
        """The fingerprint that the approval of a call is bound to."""
        ...

    def confirms(self, tool: BoundTool) -> bool:
        """Whether a person must confirm calls of a tool whatever the policy is."""
        ...

    def ask(self, calls: Sequence[Mapping[str, Any]]) -> str | None:
        """Asks about these calls; None if they are approved, else why they are not."""
        ...


Sender = Callable[[Any, BoundTool, str, float], Awaitable[Answer]]
"""Makes a call: request, tool, and the fingerprint and time of an approval that a person has given before, if any."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program and what it may call.

    Attributes:
        call: The call of ``run_program``.
        functions: Its tools by the names of their functions.
        send: Makes a call of a tool, of which there may be ``most``; with the approval, if there is one.
        review: Asks about several calls at once; None if nobody can be asked.
        results: Values of earlier steps by id.
        secrets: Removed from what the program shows.
        barred: Names of functions that the program may not call -> why.
    """

    call: ToolCall
    functions: Mapping[str, BoundTool]
    send: Callable[[ToolCall, BoundTool, str, float], Awaitable[Answer]]
    most: int
    results: Mapping[str, Any]
    secrets: RunSecrets | None
    barred: Mapping[str, str] = field(default_factory=dict)
    review: Review | None = None

    def answer(
        self, text: str, state: Mapping[str, Any], *, error: bool, effect: str = "reported", kind: str = ""
    ) -> ToolMessage:
        """The answer to the call of ``run_program``, with the calls of the program."""
        parts = (part.rstrip("\n") for part in (state.get("printed", ""), text))
        text = "\n".join(_cut(self.secrets.text(part) if self.secrets else part) for part in parts if part)
        artifact = {"effect": effect, "calls": state.get("calls", []), "answers": state.get("answers", [])}
        artifact |= {"kind": kind} if kind else {}
        return answer_to(self.call, text, artifact, error=error)


class ProgramState(TypedDict):
    """State of a program: stored at its last call; its calls have the names that the model sees.

    Attributes:
        foreseen: The calls that a person is asked about next, the last of ``calls`` first.
        approved: Fingerprints of the calls that a person has approved and that are not made yet, given at ``when``.
        ahead: Calls that only read and were made while the program was run ahead, each with its answer.
    """

    snapshot: bytes
    printed: str
    calls: list[ToolCall]
    answers: list[ToolMessage]
    foreseen: NotRequired[list[dict[str, Any]]]
    approved: NotRequired[list[str]]
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
    review: Review | None = None,
) -> ToolMessage:
    """Runs the program of a request, if it is the first of its message, to its end, or to a question to a person.

    Each of its calls goes the way of any other, by ``make``; there may be ``most``. Calls that need approval and whose
    arguments are known before the first of them is sent are one question, by ``review``.

    Raises:
        GraphInterrupt: A person is asked about one of its calls.
    """
    call, beside = request.tool_call, request.state["messages"][-1].tool_calls
    if call["id"] != next(other["id"] for other in beside if other["name"] == RUN_PROGRAM):
        return answer_to(call, "one program at a time: this one was not run", error=True)

    async def send(inner: ToolCall, tool: BoundTool, mark: str, when: float) -> Answer:
        return await make(request.override(tool_call=inner, tool=tool), tool, mark, when)

    functions, barred = functions_of(tools), without_functions(tools)
    asks = review if checkpointer() is not None else None
    program = Program(call, functions, send, most, results, secrets, barred, asks)
    code = call["args"].get("code")
    if not isinstance(code, str) or not code.strip():
        return program.answer("give the program as the text 'code'", {}, error=True)
    stored = checkpointer() is not None
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
    program, answers = get_runtime(Program).context, state["answers"]
    sandbox = _sandbox(program)
    if answers:
        at = await sandbox.proceed(state["snapshot"], _value(answers[-1]), printed=len(state["printed"]))
    else:
        at = await sandbox.start(program.call["args"]["code"], {RESULTS: dict(program.results)})
    printed = state["printed"] + storable(at.printed)
    now = {**state, "printed": printed}
    if not at.function:
        text = at.error or _written(at.value)
        if at.error and answers:
            text += f"\nBefore that, the program made {counted(len(answers), 'call')}: do not repeat what took effect."
        return {"printed": printed, "done": program.answer(text, now, error=bool(at.error))}
    if len(answers) == program.most:
        text = f"the program was stopped before it made more than {counted(program.most, 'call')}"
        return {"printed": printed, "done": program.answer(text, now, error=True)}
    call = _called(program, at, f"{program.call['id']}_{len(answers) + 1}")
    update: _Update = {"printed": printed, "snapshot": at.snapshot, "calls": [*state["calls"], call]}
    return {**update, **await _foresee(program, sandbox, at, call, state)}


def _called(program: Program, at: Pause, call_id: str) -> ToolCall:
    """The call at which a program waits, in the names that the model sees."""
    tool = program.functions[at.function]
    return ToolCall(name=tool.name, args=tool.form.own(at.args), id=call_id, type="tool_call")


_MOST_FORESEEN = 50
"""Maximum number of calls in one question."""


async def _foresee(program: Program, sandbox: Sandbox, at: Pause, call: ToolCall, state: ProgramState) -> _Update:
    """The calls that a person is asked about together, if this one needs approval and others can be known.

    The stored program is run ahead twice, with two placeholders that have nothing in common in place of what an effect
    returns: where the two runs differ, a call depends on an earlier one. What is foreseen decides nothing: an approval
    counts only for a call that the program then makes with exactly these arguments.
    """
    review, tool = program.review, program.functions[at.function]
    if review is None or not await review.doubt(tool, call["args"]):
        return {"foreseen": []}
    if review.mark(tool, call["args"]) in state.get("approved", ()):
        return {"foreseen": []}
    ahead: list[dict[str, Any]] = []
    first, second = [await _run_ahead(program, sandbox, at, call, value, ahead) for value in _PLACEHOLDERS]
    foreseen = [_foreseen(review, tool, call["args"])]
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        foreseen.append(_foreseen(review, *one))
    # One call is asked about by itself, where a person may also change it.
    return {"foreseen": foreseen if len(foreseen) > 1 else [], "ahead": ahead}


_PLACEHOLDERS = ("not known yet" * 3, "?|" * 40)
"""What an effect returns while a program is run ahead: of different lengths, and without a common character."""


async def _run_ahead(
    program: Program, sandbox: Sandbox, at: Pause, call: ToolCall, unknown: str, ahead: list[dict[str, Any]]
) -> list[tuple[BoundTool, dict[str, Any]]]:
    """The calls that need approval and come after this one, if effects return ``unknown``.

    Calls that only read are made, once, and kept in ``ahead``. The run ends where one of them reads what an effect
    may have changed.
    """
    review = program.review
    found: list[tuple[BoundTool, dict[str, Any]]] = []
    if review is None:
        return found
    changed, reads, value = {program.functions[at.function].agent}, 0, {"return_value": unknown}
    while len(found) < min(_MOST_FORESEEN, program.most):
        at = await sandbox.proceed(at.snapshot, value)
        if not at.function:
            break
        tool = program.functions[at.function]
        args = tool.form.own(at.args)
        if await review.doubt(tool, args):
            found.append((tool, args))
            changed.add(tool.agent)
            value = {"return_value": unknown}
            continue
        if not review.reads(tool.id) or tool.agent in changed or reads >= program.most:
            break
        if reads == len(ahead):
            answer = await program.send(_called(program, at, f"{call['id']}_ahead_{reads}"), tool, "", 0.0)
            if not isinstance(answer, ToolMessage):
                break
            ahead.append({"tool": tool.id, "args": args, "answer": answer})
        if (ahead[reads]["tool"], ahead[reads]["args"]) != (tool.id, args):
            break
        value = _value(ahead[reads]["answer"])
        reads += 1
    return found


def _foreseen(review: Review, tool: BoundTool, args: dict[str, Any]) -> dict[str, Any]:
    return {"tool": tool.id, "args": args, "mark": review.mark(tool, args), "confirm": review.confirms(tool)}


async def _review(state: ProgramState) -> _Update:
    """Asks about the calls that are foreseen."""
    program = get_runtime(Program).context
    if program.review is None:
        raise TypeError("without a review, no calls are foreseen")
    why = program.review.ask(state["foreseen"])
    if why is None:
        return {"approved": [call["mark"] for call in state["foreseen"]], "when": time.time(), "foreseen": []}
    unmade = {**state, "calls": state["calls"][:-1]}
    text = f"{why}. Nothing of it was sent. Do not try it in another way"
    return {"foreseen": [], "done": program.answer(text, unmade, error=True, effect="none", kind="rejected")}


async def _call(state: ProgramState) -> _Update:
    """Makes the program's call. A refusal by a person, and an unknown outcome, end the program: it cannot go on."""
    program, call = get_runtime(Program).context, state["calls"][-1]
    tool = next(tool for tool in program.functions.values() if tool.name == call["name"])
    made: _Update = {}
    answer = _made_ahead(state, tool, call)
    if answer is not None:
        made["ahead"] = state["ahead"][1:]
    else:
        mark = program.review.mark(tool, call["args"]) if program.review else ""
        approved = [*state.get("approved", ())]
        known = mark in approved
        if known:
            approved.remove(mark)
        made["approved"] = approved
        answer = await program.send(call, tool, mark if known else "", state.get("when", 0.0))
    if not isinstance(answer, ToolMessage):
        raise TypeError(f"{tool.name} answered with {type(answer).__name__}, not with a message")
    made["answers"] = [*state["answers"], answer]
    artifact = artifact_of(answer)
    unknown = artifact.get("effect") == "unknown" and not tool.repeatable
    if answer.status != "error" or not (unknown or artifact.get("kind") == "rejected"):
        return made
    text, effect = f"the program was ended: {answer.text}", "unknown" if unknown else "reported"
    return {**made, "done": program.answer(text, {**state, **made}, error=True, effect=effect)}


def _made_ahead(state: ProgramState, tool: BoundTool, call: ToolCall) -> Any:
    """The answer of a call that was made while the program was run ahead; None for any other."""
    ahead = state.get("ahead") or ()
    if not ahead or (ahead[0]["tool"], ahead[0]["args"]) != (tool.id, call["args"]):
        return None
    answer: ToolMessage = ahead[0]["answer"]
    return answer.model_copy(update={"tool_call_id": call["id"]})


def _after_advance(state: ProgramState) -> str:
    if "done" in state:
        return END
    return "review" if state.get("foreseen") else "call"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}\n[{len(text) - _MOST_SHOWN:,} characters more]"


def _value(answer: ToolMessage) -> dict[str, Any]:
    """What a call returns to the program, or raises in it."""
    if answer.status == "error":
        return {"exc_type": "RuntimeError", "message": answer.text}
    # As the model saw it when it made the first call by hand.
    try:
        return {"return_value": json.loads(answer.text)}
    except (ValueError, RecursionError):
        return {"return_value": answer.text}


def _written(value: Any) -> str:
    """The value of a last line: a text as it is, anything else as JSON."""
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
    app.add_conditional_edges("review", lambda state: END if "done" in state else "call", ["call", END])
    app.add_conditional_edges("call", lambda state: END if "done" in state else "advance", ["advance", END])
    return app.compile(name="program")


_PROGRAM = _program_app()
