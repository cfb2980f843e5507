"""Calls that wait for a person, in this process: for an approval or a sign-in, or for an answer to their server."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, NotRequired

from langchain.agents.middleware import ToolCallRequest
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from callsheet.agents import BoundTool, ConcurrentRunError, Supervision, supervised
from callsheet.agents.approval.supervised_call import SupervisedCall
from callsheet.agents.calls.call_context import ASK, within
from callsheet.graphs import User

MOST_WAITING = 200
SERVER_QUESTION = "server_question"
"""The ``type`` of the question of a server; its ``message`` and ``form`` are the server's."""
_MOST_ASKING = 20


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for a person.

    Attributes:
        id: Names it in ``answer``.
        question: The payload of the interrupt: ``type``, ``tool``, ``args``, ``why``, ``description``, ``hash``
            and so on.
    """

    id: str
    question: Mapping[str, Any]


@dataclass(slots=True)
class _Open:
    call: ToolCall
    bound: BoundTool
    supervision: Supervision
    user: User
    question: Mapping[str, Any] = field(default_factory=dict)

    @property
    def request(self) -> ToolCallRequest:
        # There is no agent whose state and runtime a tool could ask for.
        return ToolCallRequest(tool_call=self.call, tool=self.bound, state={}, runtime=None)  # type: ignore[arg-type]

    async def send(self, request: ToolCallRequest) -> ToolMessage:
        answer: ToolMessage = await self.bound.ainvoke(request.tool_call)
        return answer


class _State(TypedDict):
    answer: NotRequired[Any]


async def _call(state: _State, runtime: Runtime[_Open]) -> dict[str, Any]:
    given = runtime.context
    return {"answer": await supervised(given.request, given.bound, given.supervision, given.send)}


class SupervisedCalls:
    """Calls tools, and asks a person to approve it where a call needs that.

    A call that needs nobody is sent at once. Another becomes a ``Waiting``; its answer sends it, or does not. Waiting
    calls are lost with the process, unsent; beyond 200 of one user, the oldest is dropped.
    """

    def __init__(self) -> None:
        workflow = StateGraph(_State, context_schema=_Open)
        workflow.add_node("call", _call)
        workflow.add_edge(START, "call")
        workflow.add_edge("call", END)
        self._saver = InMemorySaver()
        self._app = workflow.compile(checkpointer=self._saver, name="gateway")
        self._open: dict[str, _Open] = {}

    async def call(
        self, bound: BoundTool, arguments: Mapping[str, Any], supervision: Supervision, user: User
    ) -> ToolMessage | Waiting:
        """Sends a call, unless it needs approval."""
        thread = uuid.uuid4().hex
        call = ToolCall(name=bound.name, args=dict(arguments), id=thread, type="tool_call")
        opened = _Open(call, bound, supervision, user)
        case = SupervisedCall(opened.request, bound, supervision, opened.send)
        if not case.why(arguments):
            return await opened.send(opened.request)
        waiting = [thread for thread, other in self._open.items() if other.user == user]
        if len(waiting) >= MOST_WAITING:
            self.drop(waiting[0])
        self._open[thread] = opened
        return await self._run(thread, opened, {})

    def waiting(self, waiting_id: str, user: User) -> Waiting | None:
        """A call of this user that waits."""
        opened = self._open.get(waiting_id)
        return Waiting(waiting_id, opened.question) if opened and opened.user == user else None

    async def answer(self, waiting_id: str, answer: Mapping[str, Any]) -> ToolMessage | Waiting:
        """Answers the question of a waiting call, which is ``waiting``."""
        return await self._run(waiting_id, self._open[waiting_id], Command(resume=dict(answer)))

    async def _run(self, thread: str, opened: _Open, given: Any) -> ToolMessage | Waiting:
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        try:
            state = await self._app.ainvoke(given, config, context=opened)
        except ConcurrentRunError:
            raise  # another answer came first, and its call goes on
        except BaseException:
            self.drop(thread)
            raise
        if asked := state.get("__interrupt__"):
            opened.question = asked[0].value
            return Waiting(thread, opened.question)
        self.drop(thread)
        answer: ToolMessage = state["answer"]
        return answer

    def drop(self, waiting_id: str) -> None:
        """Gives up a waiting call."""
        self._open.pop(waiting_id, None)
        self._saver.delete_thread(waiting_id)


Answer = ToolMessage | Waiting


@dataclass(slots=True, eq=False)
class _Asking:
    """A running call, and its questions that are not answered yet."""

    agent: str
    user: User
    questions: asyncio.Queue[tuple[Waiting, asyncio.Future[dict[str, Any]]]] = field(default_factory=asyncio.Queue)
    task: asyncio.Task[Answer] = field(init=False)
    asked: tuple[Waiting, asyncio.Future[dict[str, Any]]] | None = None

    async def ask(self, message: str, form: dict[str, Any]) -> dict[str, Any]:
        """Asks the person behind the call; called by its session."""
        question = {"type": SERVER_QUESTION, "agent": self.agent, "message": message, "form": form}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        await self.questions.put((Waiting(uuid.uuid4().hex, question), answer))
        return await answer


class QuestionRelay:
    """Runs calls, and stops at each question of their servers until it is answered.

    The call goes on running meanwhile; a question that is not answered in time is cancelled by its session. If the call
    ends first, its answer is kept for whoever answers the question. Beyond 20 calls of one user, the oldest is dropped.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Asking] = {}

    async def run(self, call: Coroutine[Any, Any, Answer], agent: str, user: User) -> Answer:
        """The answer of a call; or the first question of its server.

        Args:
            call: The call.
            agent: Its server.
            user: The caller, who alone may answer.
        """
        opened = _Asking(agent, user)
        with within(ASK, opened.ask):
            opened.task = asyncio.create_task(call)
        return await self._next(opened)

    def waiting(self, waiting_id: str, user: User) -> Waiting | None:
        """A question to this user that is not answered."""
        opened = self._open.get(waiting_id)
        return opened.asked[0] if opened and opened.asked and opened.user == user else None

    async def answer(self, waiting_id: str, answer: Mapping[str, Any]) -> Answer:
        """Answers a question, which is ``waiting``; returns the answer of the call, or the next question."""
        opened = self._open.pop(waiting_id)
        if opened.asked and not opened.asked[1].done():
            opened.asked[1].set_result(dict(answer))
        return await self._next(opened)

    def drop(self, waiting_id: str) -> None:
        """Gives up a call."""
        if opened := self._open.pop(waiting_id, None):
            opened.task.cancel()

    async def _next(self, opened: _Asking) -> Answer:
        question = asyncio.create_task(opened.questions.get())
        try:
            await asyncio.wait((opened.task, question), return_when=asyncio.FIRST_COMPLETED)
            if opened.task.done():
                return opened.task.result()
            opened.asked = question.result()
        except asyncio.CancelledError:
            opened.task.cancel()
            raise
        finally:
            question.cancel()
        mine = [name for name, other in self._open.items() if other.user == opened.user]
        if len(mine) >= _MOST_ASKING:
            self.drop(mine[0])
        waiting = opened.asked[0]
        self._open[waiting.id] = opened
        # Nobody may come to fetch what became of it; without this, asyncio complains about its error.
        opened.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting
