"""Calls in the middle of which a server asks a person, while the client is asked and answers."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import ToolMessage

from callsheet.agents.calls.call_context import asked_by
from callsheet.graphs import User
from callsheet.orchestrator.server.gateway.supervised_calls import Waiting

SERVER_QUESTION = "server_question"
"""The ``type`` of the question; its ``message`` and ``form`` are the server's."""
_MOST_OPEN = 20

Answer = ToolMessage | Waiting


@dataclass(slots=True, eq=False)
class _Open:
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
        self._open: dict[str, _Open] = {}

    async def run(self, call: Coroutine[Any, Any, Answer], agent: str, user: User) -> Answer:
        """The answer of a call; or the first question of its server.

        Args:
            call: The call.
            agent: Its server.
            user: The caller, who alone may answer.
        """
        opened = _Open(agent, user)
        with asked_by(opened.ask):
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

    async def _next(self, opened: _Open) -> Answer:
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
        if len(mine) >= _MOST_OPEN:
            self.drop(mine[0])
        waiting = opened.asked[0]
        self._open[waiting.id] = opened
        # Nobody may come to fetch what became of it; without this, asyncio complains about its error.
        opened.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting
