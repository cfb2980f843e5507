"""Questions that a server asks in the middle of a call (MCP's elicitation), passed to whoever made the call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from callsheet.agents.calls.call_context import Ask
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.secrets import Redaction
from callsheet.graphs.text.json_schema import shown_schema
from callsheet.graphs.text.sanitizing import shown

if TYPE_CHECKING:
    from mcp.client.context import ClientRequestContext
    from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
MOST_QUESTIONS = 5
"""Questions in one call, after which further ones are refused."""
_SECONDS, _LONGEST_FORM = 300.0, 20_000
_NOBODY = "nobody can be asked: this call has no person behind it, or its client shows no forms"
_SEVERAL = "several calls are running, and nobody knows which one asks"
_FORMS_ONLY = "only questions in the form of a form can be passed on, no addresses to open"
_TOO_MANY = f"a call may ask {MOST_QUESTIONS} questions at most"
_METHOD = "elicitation/create"


@dataclass(slots=True, eq=False)
class _Call:
    ask: Ask | None
    timeout: asyncio.Timeout
    seconds: float
    asked: int = 0
    open: int = 0


class ServerQuestions:
    """The questions of one session with a server.

    A person has five minutes for an answer, in which the timeout of the call does not run.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._calls: list[_Call] = []

    async def answered(self, send: Send, params: Mapping[str, Any], seconds: float, ask: Ask | None) -> dict[str, Any]:
        """The final answer to a request, after the questions of the server.

        Args:
            send: Sends the request with these parameters.
            params: Its parameters.
            seconds: Timeout of the server, without the time of a person.
            ask: Asks the person.

        Raises:
            Fault: It asks for something that cannot be given.
            TimeoutError: The server did not answer.
        """
        for asked in range(MOST_QUESTIONS + 1):
            async with asyncio.timeout(seconds) as timeout:
                with self._during(ask, timeout, seconds):
                    answer = await send(params)
            if answer.get("resultType") != "input_required":
                return answer
            if asked < MOST_QUESTIONS:
                params = {**params, **await self._answers(answer, ask)}
        raise Fault("protocol", f"it asked more than {MOST_QUESTIONS} times for input")

    @contextmanager
    def _during(self, ask: Ask | None, timeout: asyncio.Timeout, seconds: float) -> Iterator[None]:
        """Passes on the questions of a server of the older protocol, which come while its call runs."""
        call = _Call(ask, timeout, seconds)
        self._calls.append(call)
        try:
            yield
        finally:
            self._calls.remove(call)

    async def elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answers ``elicitation/create``; what cannot be asked is an error that says why."""
        from mcp.types import INVALID_REQUEST, ElicitResult, ErrorData

        call = self._calls[0] if len(self._calls) == 1 else None
        if call is None or call.ask is None or call.timeout.expired():
            return ErrorData(code=INVALID_REQUEST, message=_SEVERAL if len(self._calls) > 1 else _NOBODY)
        call.asked += 1
        if call.asked > MOST_QUESTIONS:
            return ErrorData(code=INVALID_REQUEST, message=_TOO_MANY)
        call.open += 1
        call.timeout.reschedule(None)
        try:
            given = params.model_dump(mode="json", by_alias=True)
            return ElicitResult.model_validate(await self._asked(call.ask, given), by_name=False)
        except Fault as fault:
            return ErrorData(code=INVALID_REQUEST, message=str(fault))
        finally:
            call.open -= 1
            if call in self._calls and not call.open:
                call.timeout.reschedule(asyncio.get_running_loop().time() + call.seconds)

    async def _answers(self, result: Mapping[str, Any], ask: Ask | None) -> dict[str, Any]:
        """Parameters that send a call again, with the answers that an ``input_required`` result asks for."""
        requests, state = result.get("inputRequests"), result.get("requestState")
        found = list(requests.items()) if isinstance(requests, dict) else []
        if not found or len(found) > MOST_QUESTIONS or not all(isinstance(one, dict) for _, one in found):
            raise Fault("protocol", "it asks for more input in a form that is not supported", effect="unknown")
        others = {shown(str(one.get("method")), most=100) for _, one in found} - {_METHOD}
        if others:
            raise Fault("protocol", f"it asks for {', '.join(sorted(others))}, which is not supported")
        if ask is None:
            raise Fault("protocol", f"it asks a question, and {_NOBODY}")
        answers = {name: await self._asked(ask, one.get("params")) for name, one in found}
        return {"inputResponses": answers, **({"requestState": state} if isinstance(state, str) else {})}

    async def _asked(self, ask: Ask, params: Any) -> dict[str, Any]:
        given = self._redaction.value(params) if isinstance(params, dict) else {}
        message, form = given.get("message"), given.get("requestedSchema")
        if given.get("mode", "form") != "form" or not isinstance(message, str) or not isinstance(form, dict):
            raise Fault("protocol", _FORMS_ONLY)
        if form.get("type") != "object" or not isinstance(form.get("properties"), dict):
            raise Fault("protocol", "its form is not an object with properties")
        if len(json.dumps(form)) > _LONGEST_FORM:
            raise Fault("protocol", f"its form has more than {_LONGEST_FORM:,} characters")
        try:
            async with asyncio.timeout(_SECONDS):
                return await ask(shown(message), shown_schema(form))
        except TimeoutError:
            return {"action": "cancel"}
