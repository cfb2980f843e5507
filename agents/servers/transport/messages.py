"""Parses messages of JSON-RPC from untrusted text."""

from __future__ import annotations

import json
import re
from itertools import groupby
from typing import Any

from mcp.types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

from callsheet.graphs.text.unicode import clean

_LONGEST_ID = 256
LARGE = 65_536
"""Characters or bytes from which on a message is parsed in a thread."""
_MANY_BLOCKS = 1_000
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]|[^"\[\]{}]+')
"""A string, a bracket, or what stands between these, in JSON."""
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_message(text: str) -> Any | None:
    """Parses a text as a JSON-RPC message; returns None for anything else, such as a line of a log."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    if len(text) > LARGE and (answer := _large_answer(text)) is not None:
        return answer
    try:
        message = jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _rescued(text)
    # What asks under a long id would have it sent back, again and again.
    return None if len(str(getattr(message, "id", ""))) > _LONGEST_ID else message


def _large_answer(text: str) -> JSONRPCResponse | None:
    """Parses a large text as an answer; returns None if it is another message, or not valid.

    The library would build it several times, once for each kind of message; and thousands of small texts cost more than
    one large one wherever they are looked at.
    """
    if _SURROGATE.search(text):
        return None
    try:
        value = json.loads(text)
        result = value.get("result")
        is_answer = isinstance(result, dict) and "method" not in value and "error" not in value
        if not is_answer or len(str(value.get("id"))) > _LONGEST_ID:
            return None
        if isinstance(content := result.get("content"), list) and len(content) > _MANY_BLOCKS:
            result["content"] = _joined(content)
        return JSONRPCResponse.model_validate(value, by_name=False)
    except (ValueError, RecursionError):
        return None


def _joined(content: list[Any]) -> list[Any]:
    """Joins content blocks of text that follow each other, which makes no difference to a reader."""
    joined = list[Any]()
    for is_text, blocks in groupby(content, _is_text):
        if is_text:
            joined.append({"type": "text", "text": "\n".join(block["text"] for block in blocks)})
        else:
            joined.extend(blocks)
    return joined


def _is_text(block: object) -> bool:
    """Returns whether a block is a text; nobody reads what else it has, such as annotations."""
    return isinstance(block, dict) and block.get("type") == "text" and type(block.get("text")) is str


def reply_to(asked: Any, text: str) -> bytes:
    """Returns the answer to the request with this id; an error if the text is none, so its caller does not wait."""
    message = parse_message(text)
    if isinstance(message, JSONRPCError) and message.id is None:
        message.id = asked
    if not isinstance(message, JSONRPCResponse | JSONRPCError) or str(message.id) != str(asked):
        message = _unreadable(asked)
    return json.dumps(message.model_dump(by_alias=True, exclude_unset=True)).encode()


def _rescued(text: str) -> Any | None:
    """Repairs an invalid message: removes lone surrogates, or makes an error of an answer that is none."""
    is_nested = False
    try:
        value = json.loads(text)
    except RecursionError:
        value = _outline(text)
        is_nested = True
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    is_answer = isinstance(value.get("id"), int | str) and "method" not in value
    if is_nested:
        return _unreadable(value["id"], "its answer is nested too deeply") if is_answer else None
    try:
        return jsonrpc_message_adapter.validate_python(clean(value), by_name=False)
    except ValueError:
        return _unreadable(value["id"]) if is_answer else None


def _outline(text: str) -> Any:
    """Returns an object of JSON with null in place of each object and list in it; None for any other text."""
    depth = 0
    parts: list[str] = []
    for found in _TOKEN.finditer(text):
        token = found.group()
        opens = token in ("{", "[")
        closes = token in ("}", "]")
        if opens and depth == 1:
            parts.append("null")
        elif depth - closes == 0 or (depth == 1 and not opens):
            parts.append(token)
        depth += opens - closes
    try:
        return json.loads("".join(parts))
    except ValueError:
        return None


def _unreadable(asked: object, why: str = "its answer is not a JSON-RPC response") -> JSONRPCError:
    data = {"code": -32603, "message": why}
    return JSONRPCError.model_validate(clean({"jsonrpc": "2.0", "id": asked, "error": data}))
