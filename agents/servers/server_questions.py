"""Passes questions of a server to the person behind a call, and limits the duration of the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from callsheet.agents.calls.call_context import Ask, Asks, Progress
from callsheet.agents.calls.outcome import Fault, ServerQuestion
from callsheet.agents.safety.secrets import Redaction
from callsheet.graphs.catalog.formats.server_config import is_address
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.json_schema import shown_form

if TYPE_CHECKING:
    from mcp.client.context import ClientRequestContext
    from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
Heard = Callable[[float, float | None, str | None], Coroutine[object, object, None]]
"""A callback for ``notifications/progress``: the amount done, the total if it is known, and a message."""
MOST_QUESTIONS = 5
"""Maximum number of questions in one call; further ones are refused."""
_SECONDS = 300.0
_LONGEST_FORM = 20_000
_NOBODY = "nobody can be asked: this call has no person behind it, or its client shows no forms"
_SEVERAL = "several calls are running, and nobody knows which one asks"
_LONGEST_URL = 2_000
OPENED = "opened"
"""The value of the form that asks whether a person opens a page."""
_TOO_MANY = f"a call may ask {MOST_QUESTIONS} questions at most"
_METHOD = "elicitation/create"


class CallClock:
    """Limits a call: to ``seconds`` from its start and each report of progress, to ``longest`` in all.

    The time in which a person thinks about a question does not count.

    Args:
        progress: Receives the reports too.
        hidden: Removes the server's secrets from their texts.
    """

    def __init__(
        self,
        seconds: float,
        longest: float = 0.0,
        progress: Progress | None = None,
        hidden: Callable[[str], str] = lambda text: text,
    ) -> None:
        self.seconds = seconds
        self.longest = max(seconds, longest)
        self._progress = progress
        self._hidden = hidden
        self._timeout: asyncio.Timeout | None = None
        self._last = ""
        # When the call ends if nothing more is heard, when it ends in any case, and since when a person thinks.
        self._due = self._end = self._since = 0.0
        # Questions of the server in this call: all, and those without an answer.
        self.asked = 0
        self._open = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Limits the duration of this block, which is one request of the call; raises a ``TimeoutError``."""
        self._last = ""
        self._end = _now() + self.longest
        try:
            async with asyncio.timeout(None) as self._timeout:
                self._extend()
                yield
        finally:
            self._timeout = None

    @property
    def over(self) -> bool:
        """Returns whether the request has ended or its time is over."""
        return self._timeout is None or self._timeout.expired()

    @property
    def within(self) -> str:
        """Describes how long the call has been without an answer."""
        if not self._last:
            return f"{self.seconds:.3g} s"
        if self._due < self._end:
            return f"{self.seconds:.3g} s of its last report of progress ({self._last})"
        return f"{self.longest:.3g} s, the most that a call may take; its last report of progress was {self._last}"

    async def heard(self, progress: float, total: float | None, message: str | None) -> None:
        """Extends the time after a report of progress, and passes the report on."""
        self._last = f"{progress:.6g}" if total is None else f"{progress:.6g} of {total:.6g}"
        self._extend()
        if self._progress is not None:
            await self._progress(progress, total, message and self._hidden(message))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stops the clock while a person thinks."""
        if not self._open:
            self._since = _now()
        self._open += 1
        if self._timeout is not None:
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._end += _now() - self._since
                self._extend()

    def _extend(self) -> None:
        if not self.over and not self._open and self._timeout is not None:
            self._due = min(_now() + self.seconds, self._end)
            self._timeout.reschedule(self._due)


def _now() -> float:
    return asyncio.get_running_loop().time()


class ServerQuestions:
    """Answers the questions of a server in one session; a person has five minutes for each, outside of the timeout."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        # The calls that are running, and who can be asked in each.
        self._calls: list[tuple[CallClock, Ask | None]] = []

    async def answered(
        self, send: Send, params: Mapping[str, object], clock: CallClock, ask: Ask | None, *, asks: Asks = ""
    ) -> dict[str, Any]:
        """Sends a request, answers the questions of the server meanwhile, and returns the final answer.

        If a person can only be asked ``later``, an answer that asks for input is returned too.
        """
        for asked in range(MOST_QUESTIONS + 1):
            async with clock.running():
                # A server of the older protocol asks while its call runs.
                self._calls.append(call := (clock, ask))
                try:
                    answer = await send(params)
                finally:
                    self._calls.remove(call)
            if answer.get("resultType") != "input_required" or (ask is None and asks == "later"):
                return answer
            if asked < MOST_QUESTIONS:
                params = {**params, **await self._answers(answer, ask)}
        raise Fault("protocol", f"it asked more than {MOST_QUESTIONS} times for input")

    async def elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answers ``elicitation/create``; a question that cannot be asked gets an error with the reason."""
        from mcp.types import INVALID_REQUEST, ElicitResult, ErrorData

        clock, ask = self._calls[0] if len(self._calls) == 1 else (None, None)
        if clock is None or ask is None or clock.over:
            return ErrorData(code=INVALID_REQUEST, message=_SEVERAL if len(self._calls) > 1 else _NOBODY)
        clock.asked += 1
        if clock.asked > MOST_QUESTIONS:
            return ErrorData(code=INVALID_REQUEST, message=_TOO_MANY)
        with clock.stopped():
            try:
                given = params.model_dump(mode="json", by_alias=True)
                return ElicitResult.model_validate(await self._asked(ask, self._question(given)), by_name=False)
            except Fault as fault:
                return ErrorData(code=INVALID_REQUEST, message=str(fault))

    async def _answers(self, result: Mapping[str, object], ask: Ask | None) -> dict[str, object]:
        """Makes parameters that send a call again, with answers to the questions of an ``input_required`` result."""
        questions = self.questions(result)
        if ask is None:
            raise Fault("protocol", f"it asks a question, and {_NOBODY}")
        answers = {key: await self._asked(ask, question) for key, question in questions.items()}
        state = result.get("requestState")
        return {"inputResponses": answers, **({"requestState": state} if isinstance(state, str) else {})}

    async def answers(self, questions: Mapping[str, ServerQuestion], ask: Ask) -> dict[str, object]:
        """Asks the person behind a call all questions; returns the answers by the same keys."""
        return {key: await self._asked(ask, question) for key, question in questions.items()}

    def questions(self, result: Mapping[str, object]) -> dict[str, ServerQuestion]:
        """Reads the questions of a result that asks for input, by their keys.

        Raises:
            Fault: The server asks for something else than values in a form or a page to open.
        """
        requests = result.get("inputRequests")
        found = requests if isinstance(requests, dict) else {}
        if not found or len(found) > MOST_QUESTIONS or not all(isinstance(one, dict) for one in found.values()):
            raise Fault("protocol", "it asks for further input in a form that is not supported", effect="unknown")
        others = {shown(str(one.get("method")), most=100) for one in found.values()} - {_METHOD}
        if others:
            raise Fault("protocol", f"it asks for {', '.join(sorted(others))}, which is not supported")
        return {key: self._question(one.get("params")) for key, one in found.items()}

    def _question(self, params: object) -> ServerQuestion:
        """Reads the parameters of ``elicitation/create``; raises a ``Fault`` for a form that is not supported."""
        given = self._redaction.value(params) if isinstance(params, dict) else {}
        message = given.get("message")
        if not isinstance(message, str):
            raise Fault("protocol", "its question has no message")
        if given.get("mode") == "url":
            return _page(shown(message), given.get("url"))
        form = given.get("requestedSchema")
        if not isinstance(form, dict) or form.get("type") != "object" or not isinstance(form.get("properties"), dict):
            raise Fault("protocol", "its form is not an object with properties")
        if len(json.dumps(form)) > _LONGEST_FORM:
            raise Fault("protocol", f"its form has more than {_LONGEST_FORM:,} characters")
        return ServerQuestion(message=shown(message), form=shown_form(form), opens="")

    async def _asked(self, ask: Ask, question: ServerQuestion) -> dict[str, object]:
        try:
            async with asyncio.timeout(_SECONDS):
                given = await ask(question["message"], question["form"])
        except TimeoutError:
            return {"action": "cancel"}
        return server_answer(question, given.get("content")) if given.get("action") == "accept" else given


def server_answer(question: ServerQuestion, values: object) -> dict[str, object]:
    """Returns the answer to a question of a server, as an ``ElicitResult``, from the values that a person gave."""
    if not question["opens"]:
        return {"action": "accept", "content": values}
    # What happens on the page, the client does not learn: the answer only says whether the person opens it.
    opens = isinstance(values, Mapping) and values.get(OPENED) is True
    return {"action": "accept" if opens else "decline"}


def _page(message: str, address: object) -> ServerQuestion:
    """Makes the question whether a person opens a page, with its host and its whole address.

    Nothing here opens the page, or reads it.
    """
    url = address if isinstance(address, str) and shown(address, most=_LONGEST_URL) == address else ""
    host = ""
    if is_address(url):
        with suppress(ValueError):
            host = urlsplit(url).hostname or ""
    if not host:
        raise Fault("protocol", "it wants a page to be opened, and its address is not one with http:// or https://")
    field = {"type": "boolean", "title": "Opened", "description": "true when you have opened the page, false if not."}
    form: dict[str, object] = {"type": "object", "properties": {OPENED: field}, "required": [OPENED]}
    return ServerQuestion(message=f"{message} (open this page on {host}: {url} )", form=form, opens=url)
