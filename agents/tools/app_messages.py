"""Converts a request to an app's input, and its output to text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.tools import ToolException


def input_of(field: str | None, request: str) -> Any:
    """A request as the input of an app: in ``field``, or as the input itself if None."""
    match field:
        case None:
            return request
        case "messages":
            return {"messages": [{"role": "user", "content": request}]}
        case _:
            return {field: request}


def answer_of(output: object) -> tuple[str, Any]:
    """Text and structured part of an app's output."""
    match output:
        case str():
            return output, None
        case BaseMessage():
            return output.text, None
        case {"__interrupt__": [*asked]}:
            raise unanswerable(asked)
        case {"messages": [*_, (BaseMessage() | dict()) as last], **rest}:
            return convert_to_messages([last])[0].text, rest or None
        case Mapping() | list():
            return json.dumps(output, ensure_ascii=False, default=str), output
        case _:
            return str(output), None


def unanswerable(asked: Iterable[Any]) -> ToolException:
    """The error of an app whose questions nobody can answer."""
    questions = "; ".join(str(getattr(question, "value", question)) for question in asked)
    return ToolException(
        f"it asks a person, who can answer only if the workflow is compiled with a checkpointer: {questions}"
    )
