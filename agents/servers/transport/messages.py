"""Messages of JSON-RPC, read from text that may be anything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, TypeVar

from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from callsheet.graphs.text.sanitizing import clean

_LONGEST_ID = 256
_MANY, _LONG = 1_000, 65_536  # values, and characters of a text
Result = TypeVar("Result")


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


async def beside_if_large(act: Callable[[Any], Result], value: Any) -> Result:
    """Applies a function to a JSON value; in a thread if the value is large, so that the loop is not blocked."""
    left, waiting = _MANY, [value]
    while waiting and left > 0:
        match waiting.pop():
            case str() as text:
                left -= 1 + len(text) * _MANY // _LONG
            case dict() as members:
                left -= 1 + len(members)
                waiting += members.values() if left > 0 else ()
            case list() as items:
                left -= 1 + len(items)
                waiting += items if left > 0 else ()
    return await asyncio.to_thread(act, value) if left <= 0 else act(value)
