"""Messages of JSON-RPC, read from text that may be anything."""

from __future__ import annotations

import json
from typing import Any

from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from callsheet.graphs.text.sanitizing import clean

_LONGEST_ID = 256


def parsed(text: str) -> Any | None:
    """A text as a JSON-RPC message; None for anything else, such as a line of log."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _rescued(text)
    # What asks under a long id would have it sent back, again and again.
    return None if len(str(getattr(message, "id", ""))) > _LONGEST_ID else message


def answer_to(asked: Any, text: str) -> bytes:
    """The answer to the request with this id, or the error that it is none: whoever waits would wait in vain."""
    message = parsed(text)
    if isinstance(message, JSONRPCError) and message.id is None:
        message.id = asked
    if not isinstance(message, JSONRPCResponse | JSONRPCError) or str(message.id) != str(asked):
        message = _unreadable(asked)
    return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()


def _rescued(text: str) -> Any | None:
    """What a message may still be that is not valid: one without lone surrogates, or an answer that is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    try:
        return jsonrpc_message_adapter.validate_python(clean(value), by_name=False)
    except ValueError:
        return _unreadable(value["id"]) if isinstance(value.get("id"), int | str) and "method" not in value else None


def _unreadable(asked: Any) -> JSONRPCError:
    data = {"code": -32603, "message": "its answer is not a JSON-RPC response"}
    return JSONRPCError.model_validate(clean({"jsonrpc": "2.0", "id": asked, "error": data}))
