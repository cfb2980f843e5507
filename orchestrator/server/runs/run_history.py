"""Past and present runs: where they are stored, and who carries them out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.requests import Request

MOST_RUNS = 50


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation with the supervisor.

    Attributes:
        id: Its id.
        request: The last request.
        status: LangGraph's status: ``idle``, ``busy``, ``interrupted`` or ``error``; ``unfinished`` if it has no answer
            yet and may go on elsewhere.
        at: Time of the last change, in ISO 8601.
    """

    id: str
    request: str
    status: str
    at: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that waits: the id of its interrupt, and the payload."""

    id: str
    value: Any


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """The supervisor's state at one checkpoint.

    Attributes:
        values: The state.
        at: Time, in ISO 8601.
        questions: The pending questions.
        running: Whether the run goes on.
        draft: The answer as far as a model has written it.
        trouble: What ended the run; empty if nothing did.
    """

    values: Mapping[str, Any]
    at: str
    questions: Sequence[Pending] = ()
    running: bool = False
    draft: str = ""
    trouble: str = ""


class Runs(Protocol):
    """A store of past runs; each method answers for the user of the request."""

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The user's last threads, the latest first."""
        ...

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        """The history of a thread, the latest state first; empty if there is no such thread."""
        ...

    async def waiting(self, request: Request) -> int | None:
        """Number of pending questions in all threads; None if the user may not know."""
        ...


class Runner(Protocol):
    """Carries out requests; each method acts for the user of the HTTP request."""

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request, in a thread or in a new one, and returns the thread's id.

        Raises:
            RefusedError: There is no such thread, or its last run has not ended.
        """
        ...

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions by the ids of their interrupts, or without answers continues a run that stopped.

        Raises:
            RefusedError: There is nothing to continue, or the run goes on.
        """
        ...

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops a run; it can be continued."""
        ...

    def watch(self, request: Request, thread: str) -> AsyncIterator[RunSnapshot]:
        """The run of a thread as it goes, until it ends or waits for a person; empty if none goes on."""
        ...
