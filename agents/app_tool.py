"""A LangGraph app or any other runnable, as one tool that takes a request in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from pydantic import Field

from callsheet.graphs.errors import CatalogError

TOOL_NAME = "run"
Request = Annotated[str, Field(description="The whole request, in plain words.")]


def tool_of_app(agent_id: str, app: Runnable[Any, Any]) -> StructuredTool:
    """The tool ``run(request: str)`` that hands its request to the app.

    Args:
        agent_id: Name of the app's agent.
        app: Takes a string, messages, or an object with one required string.

    Raises:
        CatalogError: The app takes something else.
    """
    field = _field_for_request(agent_id, app)

    def run(request: Request) -> tuple[str, Any]:
        return _answer(app.invoke(_input(field, request)))

    async def arun(request: Request) -> tuple[str, Any]:
        return _answer(await app.ainvoke(_input(field, request)))

    return StructuredTool.from_function(
        func=run,
        coroutine=arun,
        name=TOOL_NAME,
        description=description_of(agent_id, app),
        response_format="content_and_artifact",
    )


def description_of(agent_id: str, app: Runnable[Any, Any]) -> str:
    """What the app says of itself: its description, else the names of its nodes."""
    if isinstance(said := getattr(app, "description", None), str) and said.strip():
        return said
    metadata = (getattr(app, "config", None) or {}).get("metadata") or {}
    if isinstance(said := metadata.get("description"), str) and said.strip():
        return said
    nodes = [name for name in getattr(app, "nodes", None) or () if not str(name).startswith("__")]
    name = getattr(app, "name", None)
    named = name if isinstance(name, str) and name not in ("", "LangGraph") else agent_id
    return f"Hands a request to {named}" + (f", which works in the steps {', '.join(nodes)}." if nodes else ".")


def _field_for_request(agent_id: str, app: Runnable[Any, Any]) -> str | None:
    """Name of the input field that takes the request; None where the input itself is the request."""
    schema = app.get_input_jsonschema()
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return None
    if "messages" in properties:
        return "messages"
    required = [name for name in schema.get("required") or properties if name in properties]
    if len(required) == 1:
        return str(required[0])
    raise CatalogError(
        f"agent {agent_id!r}: the app needs the inputs {', '.join(required)}, but it is handed one request in words: "
        "give it 'messages' or one string as input"
    )


def _input(field: str | None, request: str) -> Any:
    match field:
        case None:
            return request
        case "messages":
            return {"messages": [{"role": "user", "content": request}]}
        case _:
            return {field: request}


def _answer(output: object) -> tuple[str, Any]:
    match output:
        case str():
            return output, None
        case BaseMessage():
            return output.text, None
        case {"messages": [*_, BaseMessage() as last], **rest}:
            return last.text, rest or None
        case Mapping() | list():
            return json.dumps(output, ensure_ascii=False, default=str), output
        case _:
            return str(output), None
