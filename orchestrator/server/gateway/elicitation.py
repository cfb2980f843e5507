"""Questions about calls as MCP's elicitation, by forms, and their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from mcp import types
from mcp.server.context import ServerRequestContext

from callsheet.graphs import SettingsError, shown
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway
from callsheet.orchestrator.server.gateway.supervised_calls import SERVER_QUESTION, Waiting

Context = ServerRequestContext[Any, Any]
_TITLES = {
    "approve": "Send this call",
    "reject": "Do not send it",
    "done": "The call took effect",
    "not_done": "It did not: send it again",
    "give_up": "Leave it",
}
_OTHERWISE = {"tool_approval": "reject", "unknown_outcome": "give_up"}
_LONGEST = 4_000
_APPROVAL = "approval"
_NOBODY = (
    "It needs the approval of a person, and this client cannot ask one (it does not support elicitation). Nothing was "
    "sent. To allow such calls, the owner of the catalog can {}set the approval of its server "
    '("callsheet": {{"approval": "never"}} in its entry of the mcp.json), or start this gateway with --approve never'
)
_TRUST = 'mark its server as trusted ("callsheet": {"trusted": true} in its entry of the mcp.json), '


class Asking:
    """Asks the persons behind clients: by ``input_required`` results, or in the middle of a request."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def answered(self, request: types.InputResponseRequestParams, caller: Caller) -> ToolMessage | Waiting:
        """The answer of a call that waits, after the same request came again with the answers to its question."""
        waiting = self._gateway.waiting(request.request_state or "", caller)
        answers = request.input_responses or {}
        return await self._gateway.answer(waiting.id, decision(waiting, answers), caller)

    async def settled(
        self, answer: ToolMessage | Waiting, context: Context, caller: Caller
    ) -> ToolMessage | types.InputRequiredResult:
        """The answer of a call after the questions about it are answered, or the question that the client is to ask.

        Raises:
            SettingsError: The call needs approval, and nobody can be asked.
        """
        while isinstance(answer, Waiting):
            said: dict[str, types.ElicitResult] = {}
            if not can_ask(context.session.client_capabilities):
                if why := _refusal(answer):
                    self._gateway.drop(answer, caller)
                    raise SettingsError(why)
            elif not context.session.can_send_request:
                asked = types.ElicitRequest(params=_form(answer))
                return types.InputRequiredResult(input_requests={_APPROVAL: asked}, request_state=answer.id)
            else:
                said = await self._elicited(answer, context, caller)
            answer = await self._gateway.answer(answer.id, decision(answer, said), caller)
        return answer

    async def _elicited(self, waiting: Waiting, context: Context, caller: Caller) -> dict[str, types.ElicitResult]:
        form = _form(waiting)
        try:
            answer = await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        except BaseException:  # the client has gone, or called the request off
            self._gateway.drop(waiting, caller)
            raise
        return {_APPROVAL: answer}


def decision(waiting: Waiting, answers: Mapping[str, object]) -> dict[str, Any]:
    """The answer to a question, from the result of its form; whoever declines or dismisses it refuses."""
    answer = answers.get(_APPROVAL)
    if waiting.question["type"] == SERVER_QUESTION:
        given = answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel")
        return given.model_dump(mode="json", by_alias=True, include={"action", "content"}, exclude_none=True)
    otherwise = _OTHERWISE[waiting.question["type"]]
    if not _accepted(answer):
        return {"type": otherwise, "hash": waiting.question["hash"]}
    chosen, message = _text_of(answer, "decision") or otherwise, _text_of(answer, "message")
    offered = chosen in waiting.question["decisions"] and chosen in _TITLES
    said = {"message": message} if message else {}
    return {"type": chosen if offered else f"({chosen})", "hash": waiting.question["hash"], **said}


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether a client shows forms; one that names no modes of elicitation does."""
    able = capabilities.elicitation if capabilities else None
    return able is not None and (able.form is not None or able.url is None)


def _refusal(waiting: Waiting) -> str:
    """Why a call is not made if the client cannot ask; empty for a question that has an answer without a person."""
    asked = waiting.question
    if asked["type"] != "tool_approval":
        return ""
    claimed = "not trusted" in asked["why"]  # trust changes nothing for a tool that makes no claim
    return f"{asked['tool']}: {asked['why']} {_NOBODY.format(_TRUST if claimed else '')}"


def _accepted(answer: object) -> bool:
    return isinstance(answer, types.ElicitResult) and answer.action == "accept"


def _text_of(answer: object, field: str) -> str:
    value = (answer.content or {}).get(field) if isinstance(answer, types.ElicitResult) else None
    return value if isinstance(value, str) else ""


def _form(waiting: Waiting) -> types.ElicitRequestFormParams:
    """The question as a form with one choice and a remark.

    A form has no place for arguments, so the answer cannot change them.
    """
    asked = waiting.question
    if asked["type"] == SERVER_QUESTION:
        # In one line: a new one could look like the question of somebody else.
        message = f"The server {shown(asked['agent'])!r} asks: {' '.join(asked['message'].split())}"
        return types.ElicitRequestFormParams(message=message, requested_schema=asked["form"])
    choices = [{"const": word, "title": _TITLES[word]} for word in asked["decisions"] if word in _TITLES]
    schema = {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "oneOf": choices},
            "message": {"type": "string", "title": "Remark", "description": "For the agent; may be empty."},
        },
        "required": ["decision"],
    }
    return types.ElicitRequestFormParams(message=_text(asked), requested_schema=schema)


def _both_ends(text: str) -> str:
    """A long text without its middle, which is said: what stands at the end must not be approved unseen."""
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    return f"{text[:half]}\n[ATTENTION: {len(text) - 2 * half:,} characters are not shown]\n{text[-half:]}"


def _text(asked: Mapping[str, Any]) -> str:
    arguments = json.dumps(asked["args"], ensure_ascii=False, indent=2, default=str)
    lines = [asked["description"], f"Arguments: {_both_ends(shown(arguments, most=None))}"]
    lines += [f"Note: {asked[name]}" for name in ("problem", "unchecked") if asked.get(name)]
    return "\n".join(lines)
