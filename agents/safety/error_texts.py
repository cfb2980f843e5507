"""Errors that a tool answers as an ordinary text or object, where the protocol would have said success."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool

from callsheet.graphs.text.sanitizing import clean

_COMMUNITY = "langchain_community.tools."
_EXCEPTION = r"[A-Z]\w*(?:Error|Exception)"
_ERROR = re.compile(
    rf"(?:Error|ERROR)(?: (?:\w+ing|in|on|at|from|during|while) [^\n:]{{0,80}})?: *\S"
    rf"|(?:[a-z_]\w*\.)*{_EXCEPTION}(?:: |\(['\"])|Traceback \(most recent call last\):"
)
_REPR = re.compile(rf"{_EXCEPTION}\(.*\)", re.DOTALL)
# What such tools give is somebody else's text, which may begin with any word.
_READERS = re.compile(
    r"(?:^|[\W_])(?:cat|chunks?|comments?|contents?|diff|documents?|download|fetch|grep|head|history|issues?|logs?|mails?"
    r"|messages?|notes?|pages?|print|query|read|search|show|tail|text|transcript|view)(?:$|[\W_])"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BESIDE = frozenset(("code", "detail", "details", "hint", "message", "ok", "status", "success", "traceback", "type"))


def is_error(name: str, text: str, structured: Any | None = None) -> bool:
    """Whether an answer tells of a failure, though the protocol calls it a success.

    An object is one if it has an ``error`` that is not empty and nothing else that would be a result, or if it says
    besides that it had no success. A text is one by how it begins, or as such an object, but for tools whose name says
    that they give the text of something: a log, a file and a message may begin with any word.

    Args:
        name: The tool's own name.
        text: What it answered.
        structured: The structured part of that.
    """
    reads = _READERS.search(_CAMEL.sub("_", name).lower()) is not None
    told = structured if structured is not None or reads else _object(text)
    if isinstance(told, Mapping):
        if set(told) != {"result"}:
            return _is_error_object(told)
        if isinstance(told["result"], Mapping):
            return _is_error_object(told["result"])
    return not reads and _ERROR.match(text) is not None


def is_error_of(tool: BaseTool, arguments: Mapping[str, Any], text: str, structured: Any | None = None) -> bool:
    """The same for a LangChain tool; of the community's own it is known how they tell errors.

    Args:
        tool: The tool.
        arguments: What it was called with.
        text: What it answered.
        structured: The structured part of that.
    """
    modules = (kind.__module__ for kind in type(tool).__mro__)
    match next((name.removeprefix(_COMMUNITY) for name in modules if name.startswith(_COMMUNITY)), ""):
        case "file_management.read":
            return text.startswith("Error: ") and not _is_content(tool, arguments, text)
        case "file_management.list_dir" | "file_management.file_search":
            # Otherwise names of files, one a line.
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


def _is_error_object(told: Mapping[str, Any]) -> bool:
    error = told.get("error")
    if not isinstance(error, str | Mapping) or not error:
        return False
    failed = told.get("success") is False or told.get("ok") is False or told.get("status") in ("error", "failed")
    return failed or set(told) <= {"error", *_BESIDE}


def _is_content(tool: Any, arguments: Mapping[str, Any], text: str) -> bool:
    """Whether the text is what stands in the file that was to be read."""
    try:
        content = tool.get_relative_path(str(arguments["file_path"])).read_text(encoding="utf-8")
    except (KeyError, OSError, ValueError):
        return False
    return bool(clean(content) == text)
