"""Calls that may wait for a person, in this process, and the questions about them as forms of MCP's elicitation."""

from __future__ import annotations

import asyncio
import json
import shlex
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NotRequired

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from mcp import types
from typing_extensions import TypedDict

from callsheet.agents import BoundTool, Supervision, supervised
from callsheet.agents.approval.supervised_call import examined
from callsheet.agents.calls.call_context import ASK, PROGRESS, Progress, within
from callsheet.agents.calls.review import TOOK_EFFECT, decided, flat
from callsheet.graphs import SettingsError, User, shown

MOST_WAITING = 100
_SERVER_QUESTION = "server_question"
_ALWAYS = "always"
_TITLES = {
    "tool_approval": {
        "approve": "Send this call",
        _ALWAYS: "Send it, and later calls of this tool without asking",
        "reject": "Do not send it",
    },
    "unknown_outcome": {
        "respond": "The call took effect",
        "edit": "It did not: send it again",
        "reject": "Leave it",
    },
}
_LONGEST = 4_000
_NOBODY = (
    "It needs the approval of a person, and this client cannot ask one (it does not support elicitation). Nothing was "
    "sent. To allow this tool for good, a person runs `callsheet trust allow {}`{}"
)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person.

    ``question`` is the payload of an interrupt, or a question of the server in the middle of the call (``type``,
    ``agent``, ``message``, ``form``).
    """

    id: str
    question: Mapping[str, Any]


class UnknownCallError(SettingsError):
    """An answer is about a call that does not wait (any more)."""


Answer = ToolMessage | Waiting
AskPerson = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class _Call:
    """What no checkpoint can hold."""

    supervised: Callable[[], Awaitable[Any]]


class _State(TypedDict):
    answer: NotRequired[Any]


async def _call(state: _State, runtime: Runtime[_Call]) -> dict[str, Any]:
    return {"answer": await runtime.context.supervised()}


class SupervisedCalls:
    """Calls tools by the path of a worker's calls, and asks a person where a call needs approval."""

    def __init__(self) -> None:
        workflow = StateGraph(_State, context_schema=_Call)
        workflow.add_node("call", _call)
        workflow.add_edge(START, "call")
        workflow.add_edge("call", END)
        self._saver = InMemorySaver()
        self._app = workflow.compile(checkpointer=self._saver, name="gateway")

    async def call(
        self, bound: BoundTool, arguments: Mapping[str, Any], supervision: Supervision, ask: AskPerson
    ) -> ToolMessage:
        """The answer of a tool; a call that needs nobody is sent at once."""

        async def send(request: ToolCallRequest) -> ToolMessage:
            answer: ToolMessage = await bound.ainvoke(request.tool_call)
            return answer

        thread = uuid.uuid4().hex
        call = ToolCall(name=bound.name, args=dict(arguments), id=thread, type="tool_call")
        # There is no agent whose state and runtime a tool could ask for.
        request = ToolCallRequest(tool_call=call, tool=bound, state={}, runtime=None)  # type: ignore[arg-type]
        if not (await examined(request, bound, supervision, send)).why(arguments):
            return await send(request)
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        given: Any = {}
        context = _Call(partial(supervised, request, bound, supervision, send))
        try:
            while True:
                state = await self._app.ainvoke(given, config, context=context)
                if not (asked := state.get("__interrupt__")):
                    answer: ToolMessage = state["answer"]
                    return answer
                given = Command(resume=await ask(asked[0].value))
        finally:
            self._saver.delete_thread(thread)


@dataclass(slots=True, eq=False)
class _Running:
    """A running call, and its questions that are not answered yet."""

    agent: str
    user: User
    progress: Progress | None = None
    questions: asyncio.Queue[tuple[Waiting, asyncio.Future[dict[str, Any]]]] = field(default_factory=asyncio.Queue)
    task: asyncio.Task[ToolMessage] = field(init=False)
    asked: tuple[Waiting, asyncio.Future[dict[str, Any]]] | None = None

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the person behind the call."""
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        await self.questions.put((Waiting(uuid.uuid4().hex, question), answer))
        return await answer

    async def ask_for_server(self, message: str, form: dict[str, Any]) -> dict[str, Any]:
        """Passes on a question of the server; called by its session."""
        return await self.ask({"type": _SERVER_QUESTION, "agent": self.agent, "message": message, "form": form})

    async def report(self, progress: float, total: float | None, message: str | None) -> None:
        """Passes progress on to the last request about the call."""
        if self.progress is not None:
            await self.progress(progress, total, message)


class QuestionRelay:
    """Runs calls, and stops at each question about them until it is answered.

    The call goes on running meanwhile; a question of a server that is not answered in time is cancelled by its session.
    If the call ends first, its answer is kept for whoever answers the question. Waiting calls are lost with the
    process, those for an approval unsent; beyond 100 of one user, the oldest is dropped.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Running] = {}

    async def run(
        self, call: Callable[[AskPerson], Coroutine[Any, Any, ToolMessage]], agent: str, user: User, *, asks: bool
    ) -> Answer:
        """The answer of a call, which can ask the user, or the first question; ``asks``: its server may ask too."""
        running = _Running(agent, user, PROGRESS.get())
        with within(PROGRESS, running.report), within(ASK, running.ask_for_server) if asks else nullcontext():
            running.task = asyncio.create_task(call(running.ask))
        return await self._next(running)

    def waiting(self, waiting_id: str, user: User) -> Waiting:
        """A question to this user that is not answered.

        Raises:
            UnknownCallError: There is none.
        """
        running = self._open.get(waiting_id)
        if running is None or running.asked is None or running.user != user:
            raise UnknownCallError("no such call waits for an answer: make the call again")
        return running.asked[0]

    async def answer(self, waiting_id: str, answer: Mapping[str, Any], user: User) -> Answer:
        """Answers a question as of ``waiting``; returns the answer of the call, or the next question."""
        self.waiting(waiting_id, user)
        running = self._open.pop(waiting_id)
        running.progress = PROGRESS.get()
        if running.asked and not running.asked[1].done():
            running.asked[1].set_result(dict(answer))
        return await self._next(running)

    def drop(self, waiting_id: str, user: User) -> None:
        """Gives up a call of this user, if it still waits."""
        with suppress(UnknownCallError):
            self.waiting(waiting_id, user)
            self._open.pop(waiting_id).task.cancel()

    async def _next(self, running: _Running) -> Answer:
        question = asyncio.create_task(running.questions.get())
        try:
            await asyncio.wait((running.task, question), return_when=asyncio.FIRST_COMPLETED)
            if running.task.done():
                return running.task.result()
            running.asked = question.result()
        except asyncio.CancelledError:
            running.task.cancel()
            raise
        finally:
            question.cancel()
        mine = [name for name, other in self._open.items() if other.user == running.user]
        if len(mine) >= MOST_WAITING:
            self.drop(mine[0], running.user)
        waiting = running.asked[0]
        self._open[waiting.id] = running
        # Nobody may come to fetch what became of it; without this, asyncio complains about its error.
        running.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether a client shows forms; one that names no modes of elicitation does."""
    able = capabilities.elicitation if capabilities else None
    return able is not None and (able.form is not None or able.url is None)


def refusal(waiting: Waiting, user: User) -> str:
    """Why a call is not made if the client cannot ask; empty for a question that has an answer without a person."""
    asked = waiting.question
    if asked["type"] != "tool_approval":
        return ""
    words = [asked["tool"], *(["--user", user.id] if user.id else [])]
    claimed = "not trusted" in asked["why"]  # trust changes nothing for a tool that makes no claim
    trust = f", or `callsheet trust allow {shlex.quote(asked['agent'])}` to believe its server" if claimed else ""
    return f"{asked['tool']}: {asked['why']} {_NOBODY.format(shlex.join(words), trust)}"


def decision(waiting: Waiting, answer: object) -> dict[str, Any]:
    """The answer to a question, from the result of its form; whoever declines or dismisses it refuses."""
    asked = waiting.question
    given = answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel")
    if asked["type"] == _SERVER_QUESTION:
        return given.model_dump(mode="json", by_alias=True, include={"action", "content"}, exclude_none=True)
    texts = {name: value for name, value in (given.content or {}).items() if isinstance(value, str) and value}
    chosen = texts.get("decision", "reject") if given.action == "accept" else "reject"
    remark = {"message": texts["message"]} if "message" in texts else {}
    match chosen if chosen in _choices(asked) else "":
        case "always":
            return decided("approve", asked, always=True)
        case "edit":
            return decided("edit", asked)
        case "respond":
            return decided("respond", asked, message=texts.get("message", TOOK_EFFECT))
        case "approve" | "reject" as word:
            return decided(word, asked, **remark)
    return {"decisions": [{"type": f"({chosen})"}]}


def _choices(asked: Mapping[str, Any]) -> dict[str, str]:
    """The choices of a question, each with its title."""
    able = {*flat(asked)["decisions"], *([_ALWAYS] if asked.get("always") else [])}
    return {word: title for word, title in _TITLES[asked["type"]].items() if word in able}


def form_of(waiting: Waiting) -> types.ElicitRequestFormParams:
    """The question as a form with one choice and a remark.

    A form has no place for arguments, so the answer cannot change them.
    """
    asked = waiting.question
    if asked["type"] == _SERVER_QUESTION:
        # In one line: a new one could look like the question of somebody else.
        message = f"The server {shown(asked['agent'])!r} asks: {' '.join(asked['message'].split())}"
        return types.ElicitRequestFormParams(message=message, requested_schema=asked["form"])
    told = flat(asked)
    choices = [{"const": word, "title": title} for word, title in _choices(asked).items()]
    schema = {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "oneOf": choices},
            "message": {"type": "string", "title": "Remark", "description": "For the agent; may be empty."},
        },
        "required": ["decision"],
    }
    arguments = shown(json.dumps(told["args"], ensure_ascii=False, indent=2, default=str), most=None)
    lines = [told["description"], f"Arguments: {_both_ends(arguments)}"]
    lines += [f"Note: {asked[name]}" for name in ("problem", "unchecked") if asked.get(name)]
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema)


def _both_ends(text: str) -> str:
    """A long text without its middle, which is said: what stands at the end must not be approved unseen."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[ATTENTION: {len(text) - 2 * half:,} characters are not shown]\n{text[-half:]}"
