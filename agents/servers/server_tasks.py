"""Follows calls that their server works on as tasks (MCP extension SEP-2663), until they end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from callsheet.agents.calls.call_context import Ask, Limits, Progress, TaskCall
from callsheet.agents.calls.outcome import Fault, Outcome
from callsheet.agents.servers.server_questions import MOST_QUESTIONS
from callsheet.agents.servers.session import Session
from callsheet.graphs.text.hidden import shown

_STATES = ("working", "input_required", "completed", "failed", "cancelled")
_LONGEST_ID = 2_000
_LONGEST_MESSAGE = 500
_INTERVAL = 1.0
"""Seconds between two requests for the state of a task, if its server names no interval."""
_SHORTEST_INTERVAL = 0.05
_PASSING = ("crash", "busy", "start", "timeout")
"""Kinds of faults after which a later request for the same task may succeed."""
_ASKS = "The server asks a question first."
_DOUBT = "whether the call took effect is unknown"


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task as its server reports it.

    Attributes:
        id: The server's id of the task; it may be all that is needed to read the result, so it is not shown.
        status: ``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``.
        message: What the server says about the state.
        interval: Seconds until the server wants to be asked again.
        raw: The whole answer of the server.
    """

    id: str
    status: str
    message: str
    interval: float
    raw: Mapping[str, object]

    @classmethod
    def of(cls, raw: Mapping[str, object]) -> TaskState:
        """Reads the state from an answer of the server.

        Raises:
            Fault: The answer has no id, or a status that the protocol does not know.
        """
        task_id = raw.get("taskId")
        status = raw.get("status")
        if not isinstance(task_id, str) or not 0 < len(task_id) <= _LONGEST_ID or status not in _STATES:
            raise Fault("protocol", "it works on the call as a task, and the state of the task cannot be read")
        message = raw.get("statusMessage")
        said = shown(message, most=_LONGEST_MESSAGE) if isinstance(message, str) else ""
        return cls(task_id, str(status), said, _interval(raw.get("pollIntervalMs")), raw)

    @classmethod
    def known(cls, task: TaskCall) -> TaskState:
        """Returns the state of a task of which only the id is known."""
        return cls(task.id, "working", "", max(task.interval, _SHORTEST_INTERVAL), {})

    @property
    def has_ended(self) -> bool:
        """Returns whether the state is final."""
        return self.status in ("completed", "failed", "cancelled")

    @property
    def outcome(self) -> Outcome:
        """Returns the outcome of a call that goes on at its server."""
        return Outcome(text=f"The server works on it as a task: {self.told}.", task=self.id, interval=self.interval)

    @property
    def told(self) -> str:
        """Returns the state as text for a person: the status, and what the server says about it."""
        return ": ".join(filter(None, (self.status.replace("_", " "), self.message)))


def unfinished_outcome(session: Session, result: Mapping[str, object]) -> Outcome | None:
    """Returns the outcome of a call that goes on as a task, or needs an answer first; None if the answer is a result.

    Raises:
        Fault: The task or the questions cannot be read.
    """
    match result.get("resultType"):
        case "task":
            return TaskState.of(result).outcome
        case "input_required":
            state = result.get("requestState")
            asked = session.questions.questions(result)
            return Outcome(text=_ASKS, questions=asked, state=state if isinstance(state, str) else "")
    return None


Ready = Callable[[], Awaitable[Session]]
"""A function that returns the session of the run with the server, which is replaced if it has ended."""


class TaskFollower:
    """Waits for the end of a task, passes its state on as progress, and its questions to the person behind the call.

    Args:
        ready: Returns the session with the server.
        limits: Those of the tool; ``longest_call`` limits the whole time, but for that in which a person thinks.
        progress: Receives each new state.
        ask: Asks the person behind the call; without it, each question of the task is answered with ``cancel``.
        held: What the caller does by itself: it may ask the questions of the task, or only look at its state.

    Attributes:
        hidden: Removes the server's secrets from a text.
    """

    def __init__(
        self, ready: Ready, limits: Limits, progress: Progress | None, ask: Ask | None, held: TaskCall | None = None
    ) -> None:
        self._ready = ready
        self._limits = limits
        self._progress = progress
        self._held = held or TaskCall()
        self._ask = ask
        self.hidden: Callable[[str], str] = str
        self._end = _now() + limits.longest_call
        self._heard = _now()
        self._told = ""
        # Keys of the questions that have been answered: a server repeats a question until it has used the answer.
        self._answered = {*self._held.answered}

    async def result(self, task: TaskState) -> Mapping[str, object] | Outcome:
        """Returns the raw result of the call, once the task has completed; or the questions that the caller asks.

        Raises:
            Fault: The task failed or was cancelled; or the outcome is unknown, because the server no longer knows the
                task or does not answer, or because the time is over.
            CancelledError: The caller was cancelled; the server has been asked to cancel the task.
        """
        while True:
            try:
                return await self._in_session(task)
            except _PollError as error:
                # A server that has ended may be starting again.
                is_over = not self._held.waits or _now() - self._heard > self._limits.start
                if is_over or error.fault.kind not in _PASSING:
                    # Servers name the task in their errors, and its id may be all that is needed to read the result.
                    why = str(error.fault).replace(task.id, "(its id)")
                    raise _unknown(f"its task cannot be followed: {why}", error.fault) from error
            await asyncio.sleep(_INTERVAL)

    async def _in_session(self, task: TaskState) -> Mapping[str, object] | Outcome:
        """As ``result``, as long as one session with the server lasts; raises a ``_PollError`` after that."""
        try:
            session = await self._ready()
        except Fault as fault:
            raise _PollError(fault) from fault
        self.hidden = session.hidden
        try:
            # An idle session would be closed between two requests that are far apart.
            async with session.used():
                return await self._ended(session, task)
        except asyncio.CancelledError:
            session.cancel_task(task.id)
            raise

    async def _ended(self, session: Session, task: TaskState) -> Mapping[str, object] | Outcome:
        """As ``_in_session``."""
        if self._held.answers:
            await self._update(session, task, self._held.answers)
        while True:
            await self._tell(task)
            match task.status:
                case "completed":
                    return _result_of(task)
                case "failed":
                    raise await session.error_of_task(task.raw.get("error"), task.message)
                case "cancelled":
                    raise Fault("tool", f"its task was {task.told}", effect="reported")
                case "input_required":
                    asked = await self._answer(session, task)
                    if asked is not None:
                        return asked
            await self._pause(task)
            try:
                raw = await session.ask("tasks/get", {"taskId": task.id}, self._limits.call)
                task = TaskState.of({**raw, "taskId": task.id})
            except Fault as fault:
                raise _PollError(fault) from fault
            self._heard = _now()
            if not self._held.waits and not task.has_ended:
                raise Fault("timeout", f"its task has not ended; its last state was {task.told}; {_DOUBT}")

    async def _pause(self, task: TaskState) -> None:
        """Waits until the server wants to be asked again."""
        if _now() + task.interval > self._end:
            why = f"its task has not ended within {self._limits.longest_call:.3g} s, the most that a call may take"
            raise Fault("timeout", f"{why}; its last state was {task.told}; {_DOUBT}")
        await asyncio.sleep(task.interval)

    async def _tell(self, task: TaskState) -> None:
        if self._progress is not None and task.told != self._told:
            self._told = task.told
            await self._progress(None, None, task.told)

    async def _answer(self, session: Session, task: TaskState) -> Outcome | None:
        """Answers the questions of a task that are new; or returns them, if the caller asks them by itself."""
        requests = task.raw.get("inputRequests")
        found = requests if isinstance(requests, Mapping) else {}
        new = {key: one for key, one in found.items() if key not in self._answered}
        if not new:
            return None
        since = _now()
        try:
            if len(self._answered) + len(new) > MOST_QUESTIONS:
                raise Fault("protocol", f"it asks more than {MOST_QUESTIONS} times for input")
            questions = session.questions.questions({"inputRequests": new})
        except Fault as fault:
            session.cancel_task(task.id)
            raise _unknown(f"a question of its task cannot be answered: {fault}", fault) from fault
        if self._ask is None and self._held.asks:
            return task.outcome.model_copy(update={"questions": questions})
        answers = await session.questions.answers(questions, self._ask or _answer_of_nobody)
        await self._update(session, task, answers)
        self._end += self._heard - since
        return None

    async def _update(self, session: Session, task: TaskState, answers: Mapping[str, object]) -> None:
        """Sends the answers to questions of a task."""
        try:
            await session.ask("tasks/update", {"taskId": task.id, "inputResponses": dict(answers)}, self._limits.call)
        except Fault as fault:
            raise _PollError(fault) from fault
        self._heard = _now()
        self._answered |= {*answers}


class _PollError(Exception):
    """Raised if the state of a task could not be read."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _interval(milliseconds: object) -> float:
    """Returns how many seconds to wait before the next request, by the interval that the server names."""
    if not isinstance(milliseconds, int | float) or isinstance(milliseconds, bool) or not milliseconds >= 0:
        return _INTERVAL
    return max(milliseconds / 1000, _SHORTEST_INTERVAL)


def _result_of(task: TaskState) -> dict[str, object]:
    result = task.raw.get("result")
    if not isinstance(result, dict):
        raise Fault("protocol", "its task has completed without a result that can be read", effect="reported")
    return result


def _unknown(what: str, fault: Fault) -> Fault:
    return Fault(fault.kind, f"{what}; {_DOUBT}")


async def _answer_of_nobody(message: str, form: object) -> dict[str, Any]:
    """Answers a question for a call without a person behind it: it is dismissed, and the task decides what it does."""
    return {"action": "cancel"}


def _now() -> float:
    return asyncio.get_running_loop().time()
