"""Questions about calls as MCP's elicitation forms, and their answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import types

from callsheet.graphs import shown
from callsheet.orchestrator.server.gateway.question_relay import SERVER_QUESTION
from callsheet.orchestrator.server.gateway.supervised_calls import Waiting

_TITLES = {
    "approve": "Send this call",
    "reject": "Do not send it",
    "done": "The call took effect",
    "not_done": "It did not: send it again",
    "give_up": "Leave it",
}
_OTHERWISE = {"tool_approval": "reject", "unknown_outcome": "give_up"}
_LONGEST = 4_000


def elicitation(waiting: Waiting) -> types.ElicitRequestFormParams:
    """The question as a form with one choice and a remark.

    A form has no place for arguments, so the answer cannot change them.
    """
    asked = waiting.question
    if asked["type"] == SERVER_QUESTION:
        message = f"The server {shown(asked['agent'])!r} asks: {asked['message']}"
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


def decision(waiting: Waiting, answer: object) -> dict[str, Any]:
    """The answer to a question, from the result of its form; whoever declines or dismisses it rejects the call."""
    if waiting.question["type"] == SERVER_QUESTION:
        given = answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel")
        return given.model_dump(mode="json", by_alias=True, include={"action", "content"}, exclude_none=True)
    otherwise = _OTHERWISE[waiting.question["type"]]
    if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
        return {"type": otherwise, "hash": waiting.question["hash"]}
    content = answer.content or {}
    message = content.get("message")
    said = {"message": message} if isinstance(message, str) and message else {}
    chosen = content.get("decision", otherwise)
    offered = chosen in waiting.question["decisions"] and chosen in _TITLES
    return {"type": chosen if offered else f"({chosen})", "hash": waiting.question["hash"], **said}


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether a client shows forms; one that says nothing about modes does."""
    able = capabilities.elicitation if capabilities else None
    return able is not None and (able.form is not None or able.url is None)


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
