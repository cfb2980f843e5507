"""Detects errors that a tool returns as a normal text or object, marked as success by the protocol."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool

from callsheet.graphs.text.sanitizing import clean, split_name

_COMMUNITY = "langchain_community.tools."
_EXCEPTION = r"[A-Z]\w*(?:Error|Exception)"
_ERROR = re.compile(
    rf"(?:[❌⚠⛔🚫]\ufe0f? *)?(?:\*\*|__)?(?:Error|ERROR)(?: (?:\w+ing|in|on|at|from|during|while) [^\n:]{{0,80}})?"
    rf"(?::(?: *(?:\*\*|__))?|(?:\*\*|__):) *\S"
    r"|Failed to [a-z]+ [^\n:]{0,80}: *\S"
    rf"|(?:[a-z_]\w*\.)*{_EXCEPTION}(?:: |\(['\"])|Traceback \(most recent call last\):"
)
_MISSING = re.compile(
    r"(?:The )?(?:document|file|directory|folder|path)s? [^\n]{1,400}? (?:does not|doesn't) exist\.?", re.IGNORECASE
)
"""A whole text; no tool that reads a file returns just this."""
_REFUSED = re.compile(
    r"(?:sorry[,.] )?(?:access denied|can(?:no|')t|could not|insufficient|invalid"
    r"|not (?:allowed|enough|found|permitted)|permission denied|unable to)\b[^\n]{0,200}",
    re.IGNORECASE,
)
"""A whole text of one line."""
_REPR = re.compile(rf"{_EXCEPTION}\(.*\)", re.DOTALL)
# These tools return foreign texts, which may begin with any word.
_READERS = re.compile(
    r"(?:^|[\W_])(?:cat|chunks?|comments?|contents?|diff|documents?|download|fetch|grep|head|history|issues?|logs?|mails?"
    r"|messages?|notes?|pages?|print|query|read|search|show|tail|text|transcript|view)(?:$|[\W_])"
)
_RESULT = frozenset(("content", "isError", "structuredContent", "_meta"))
_BESIDE = frozenset(("code", "detail", "details", "hint", "message", "ok", "status", "success", "traceback", "type"))


def is_error(name: str, text: str, structured: Any | None = None) -> bool:
    """Whether an answer reports a failure although the protocol marks it as a success.

    An object does if it has a non-empty ``error`` and no field that would be a result, or if it also says that it was
    not successful. A text does by its beginning, or as such an object; except for tools that return the text of
    something, according to their names: a log, a file or a message may begin with any word. Some servers put a whole
    MCP result into their text or object; then that result counts.
    """
    reads = _READERS.search(split_name(name)) is not None
    told = structured if structured is not None or reads else _object(text)
    if isinstance(told, Mapping):
        if (inner := _inner_text(told)) is not None:
            return told.get("isError") is True or (not reads and _ERROR.match(inner) is not None)
        if set(told) != {"result"}:
            return _is_error_object(told)
        if isinstance(told["result"], Mapping):
            return _is_error_object(told["result"])
    whole = text.strip()
    if _MISSING.fullmatch(whole) is not None:
        return True
    return not reads and (_ERROR.match(text) is not None or _REFUSED.fullmatch(whole) is not None)


def is_error_of(tool: BaseTool, arguments: Mapping[str, Any], text: str, structured: Any | None = None) -> bool:
    """As ``is_error`` for a LangChain tool; the error formats of the community's tools are known."""
    modules = (kind.__module__ for kind in type(tool).__mro__)
    match next((name.removeprefix(_COMMUNITY) for name in modules if name.startswith(_COMMUNITY)), ""):
        case "file_management.read":
            return text.startswith("Error: ") and not _is_content(tool, arguments, text)
        case "file_management.list_dir" | "file_management.file_search":
            # Otherwise file names, one per line.
            return text.startswith("Error: ") and "\n" not in text
        case "sql_database.tool":
            return text.startswith("Error: ")
        case "json.tool":
            return _REPR.fullmatch(text) is not None
        case _:
            return is_error(tool.name, text, structured)


def _object(text: str) -> Any:
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _inner_text(told: Mapping[str, Any]) -> str | None:
    """The first text of an MCP result that is the content of another one; None for any other object."""
    match told:
        case {"content": [{"type": "text", "text": str() as text}, *_]} if set(told) <= _RESULT:
            return text
        case _:
            return None


def _is_error_object(told: Mapping[str, Any]) -> bool:
    error = told.get("error")
    if not isinstance(error, str | Mapping) or not error:
        return False
    failed = told.get("success") is False or told.get("ok") is False or told.get("status") in ("error", "failed")
    return failed or set(told) <= {"error", *_BESIDE}


def _is_content(tool: Any, arguments: Mapping[str, Any], text: str) -> bool:
    """Whether the text is the content of the file that was to be read."""
    try:
        content = tool.get_relative_path(str(arguments["file_path"])).read_text(encoding="utf-8")
    except (KeyError, OSError, ValueError):
        return False
    return bool(clean(content) == text)
