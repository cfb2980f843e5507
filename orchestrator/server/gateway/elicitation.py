"""Questions about calls as MCP's elicitation, by forms and pages, and their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from mcp import types
from mcp.server.context import ServerRequestContext

from callsheet.agents.approval.decisions import SIGN_IN
from callsheet.agents.servers.oauth.stored_tokens import SignInError
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
_PATIENCE = 45.0
"""Seconds for which a request waits for a person on a page; clients give requests a minute or more."""
_APPROVAL, _CODE = "approval", "code"
_CODE_FORM = types.ElicitRequestFormParams(
    message="Give the code that the page shows after the sign-in.",
    requested_schema={
        "type": "object",
        "properties": {"code": {"type": "string", "title": "Code"}},
        "required": ["code"],
    },
)
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
        if waiting.sign_in and _accepted(answers.get(SIGN_IN)):
            try:
                await self._gateway.signed_in(waiting, seconds=_PATIENCE)
            except SignInError:
                self._gateway.drop(waiting, caller)
                raise
        return await self._gateway.answer(waiting.id, decision(waiting, answers), caller)

    async def settled(
        self, answer: ToolMessage | Waiting, context: Context, caller: Caller
    ) -> ToolMessage | types.InputRequiredResult:
        """The answer of a call after the questions about it are answered, or the question that the client is to ask.

        Raises:
            SettingsError: The call needs approval or a sign-in, and nobody can be asked.
            SignInError: A sign-in has failed.
        """
        while isinstance(answer, Waiting):
            said: dict[str, types.ElicitResult] = {}
            if not can_ask(context.session.client_capabilities, answer):
                if why := _refusal(answer):
                    self._gateway.drop(answer, caller)
                    raise SettingsError(why)
            elif not context.session.can_send_request:
                asked = {name: types.ElicitRequest(params=params) for name, params in _requests(answer).items()}
                return types.InputRequiredResult(input_requests={**asked}, request_state=answer.id)
            else:
                said = await self._elicited(answer, context, caller)
            answer = await self._gateway.answer(answer.id, decision(answer, said), caller)
        return answer

    async def _elicited(self, waiting: Waiting, context: Context, caller: Caller) -> dict[str, types.ElicitResult]:
        session, request, said = context.session, context.request_id, dict[str, types.ElicitResult]()
        try:
            for name, params in _requests(waiting).items():
                if isinstance(params, types.ElicitRequestURLParams):
                    said[name] = await session.elicit_url(params.message, params.url, waiting.sign_in, request)
                    if _accepted(said[name]) and await self._gateway.signed_in(waiting):
                        await session.send_elicit_complete(waiting.sign_in, request)
                else:
                    said[name] = await session.elicit_form(params.message, params.requested_schema, request)
                if not _accepted(said[name]):
                    break
        except BaseException:  # the client has gone, or called the request off; or the sign-in has failed
            self._gateway.drop(waiting, caller)
            raise
        return said


def decision(waiting: Waiting, answers: Mapping[str, object]) -> dict[str, Any]:
    """The answer to a question, from the results of its requests; whoever declines or dismisses one refuses."""
    if waiting.sign_in:
        if not all(_accepted(answers.get(name)) for name in _requests(waiting)):
            return {"type": "decline"}
        return {"type": "signed_in", "code": _text_of(answers.get(_CODE), "code")}
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


def can_ask(capabilities: types.ClientCapabilities | None, waiting: Waiting | None = None) -> bool:
    """Whether a client shows what a question needs, by default a form; if it names no modes, it shows forms."""
    able = capabilities.elicitation if capabilities else None
    if able is None:
        return False
    shows_forms = able.form is not None or able.url is None
    if waiting is None or not waiting.sign_in:
        return shows_forms
    return able.url is not None and (shows_forms or not waiting.question["confirm"])


def _requests(waiting: Waiting) -> dict[str, types.ElicitRequestParams]:
    """What a client is to ask, by name, in this order: one form; or a page, and perhaps the code that it shows."""
    if not waiting.sign_in:
        return {_APPROVAL: _form(waiting)}
    asked = waiting.question
    lines = [f"{asked['agent']} needs a sign-in, at {asked['issuer']}.", asked.get("problem", "")]
    message = shown("\n".join(filter(None, lines)))
    page = types.ElicitRequestURLParams(message=message, url=asked["url"], elicitation_id=waiting.sign_in)
    return {SIGN_IN: page, **({_CODE: _CODE_FORM} if asked["confirm"] else {})}


def _refusal(waiting: Waiting) -> str:
    """Why a call is not made if the client cannot ask; empty for a question that has an answer without a person."""
    asked = waiting.question
    if waiting.sign_in:
        return f"{asked['why']}. This client cannot open its page (it does not support elicitation of addresses)"
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
