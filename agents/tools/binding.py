"""A tool of the catalog as a LangChain tool for a model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from itertools import count
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from callsheet.agents.tools.tool_result import Outcome
from callsheet.graphs.catalog.model import Tool
from callsheet.graphs.text.json_schema import shown_schema
from callsheet.graphs.text.sanitizing import shown

NEED_TOOL = "need_tool"
"""The tool by which a worker asks for more tools; no tool of the catalog gets this name."""
READ_RESULT = "read_result"
"""The tool by which a worker reads a long result; no tool of the catalog gets this name."""
RUN_PROGRAM = "run_program"
"""The tool by which a worker runs a program; no tool of the catalog gets this name."""
NO_OUTPUT = "(no output)"
"""The text of an empty result, for models that need one."""
_LONGEST_NAME, _DIGEST = 64, 16
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
# Otherwise a server could give a tool the name that another server's tool gets.
_DIGESTED = re.compile(r"_[0-9a-f]{16}$")


def model_names(tools: Sequence[Tool], *, beside: Collection[str] = ()) -> list[str]:
    """A unique name for each tool that every model provider accepts: ``^[a-zA-Z0-9_-]{1,64}$``.

    It is the tool's own name if that is unique among these tools and ``beside``, otherwise ``agent__tool``. A digest of
    the id is added if the name is still not unique, is too long, or ends like a digest.
    """
    bare = [_fit(tool.name, tool.id) for tool in tools]
    taken = (*beside, NEED_TOOL, READ_RESULT, RUN_PROGRAM)
    seen = Counter((*bare, *taken))
    names = [
        name if seen[name] == 1 else _fit(f"{tool.agent}__{tool.name}", tool.id)
        for name, tool in zip(bare, tools, strict=True)
    ]
    seen = Counter((*names, *taken))
    return [name if seen[name] == 1 else _digested(name, tool.id) for name, tool in zip(names, tools, strict=True)]


def names_of(agent: str, name: str) -> tuple[str, ...]:
    """All names that ``model_names`` may give to a tool."""
    tool_id = f"{agent}/{name}"
    bare, owned = _fit(name, tool_id), _fit(f"{agent}__{name}", tool_id)
    return bare, owned, _digested(owned, tool_id)


def _fit(name: str, tool_id: str) -> str:
    fit = _UNFIT.sub("_", name)
    return fit if len(fit) <= _LONGEST_NAME and not _DIGESTED.search(fit) else _digested(fit, tool_id)


def _digested(name: str, tool_id: str) -> str:
    digest = sha256(tool_id.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"


_MOST_NODES = 10_000
_UNSETTLED: ContextVar[list[str] | None] = ContextVar("callsheet_unsettled", default=None)
_FAILURES: ContextVar[list[dict[str, Any]] | None] = ContextVar("callsheet_failures", default=None)


class BoundTool(StructuredTool):
    """A tool of the catalog as a LangChain tool that calls its own agent.

    A success is content with an artifact; a failure is a ``ToolMessage`` with ``status="error"`` whose text names agent
    and tool. Both have the artifact ``{"tool", "structured", "media", "seconds", "kind", "effect"}``; for the last two
    see ``Outcome``.

    Attributes:
        id: The tool's id in the catalog.
        agent: Id of its agent.
        repeatable: Whether two calls have the same effect as one, according to a trusted source.
    """

    id: str
    agent: str
    repeatable: bool = False

    @cached_property
    def _injected_args_keys(self) -> frozenset[str]:
        # Its functions take what a model gives and nothing else; to find that out takes LangChain half a millisecond.
        return frozenset()

    # Positional-only and without named parameters: a tool may have arguments named self or config.
    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs) if self.func else None

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:
        return await self.coroutine(*args, **kwargs) if self.coroutine else None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As in LangChain, but a failure keeps its artifact."""
        with _failures() as failures:
            return _with_artifact(super().run(*args, **kwargs), failures)

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """As in LangChain, but a failure keeps its artifact."""
        with _failures() as failures:
            return _with_artifact(await super().arun(*args, **kwargs), failures)


def bound_tool(
    name: str,
    tool: Tool,
    call: Callable[[dict[str, Any]], Outcome],
    acall: Callable[[dict[str, Any]], Awaitable[Outcome]],
    *,
    repeatable: bool = False,
) -> BoundTool:
    """A tool under the name that a model sees; ``call`` and ``acall`` send a call."""

    def run(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _delivered(tool, call(arguments))

    async def arun(**arguments: Any) -> tuple[str, dict[str, Any]]:
        unsettled = _UNSETTLED.get()
        if unsettled is None or repeatable:
            return _delivered(tool, await acall(arguments))
        unsettled.append(tool.id)
        outcome = await acall(arguments)
        unsettled.remove(tool.id)
        return _delivered(tool, outcome)

    return BoundTool(
        name=name,
        description=_description(tool),
        args_schema=object_schema(shown_schema(tool.input_schema)),
        func=run,
        coroutine=arun,
        response_format="content_and_artifact",
        handle_tool_error=True,
        id=tool.id,
        agent=tool.agent,
        repeatable=repeatable,
        metadata={"callsheet_tool": tool.id, "annotations": tool.annotations},
    )


def _description(tool: Tool) -> str:
    said = (tool.description, tool.title, f"{tool.name} of {tool.agent}")
    return next(filter(None, (shown(text.strip()).strip() for text in said)), "a tool")


def object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema in the form that model providers demand: an object with properties."""
    properties = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(properties, dict | None):
        return {"type": "object", "properties": {}}
    return _resolvable({**schema, "type": "object", "properties": properties or {}})


def _resolvable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema; without its references if LangChain, which expands them, would fail or take too long."""
    try:
        _follow(schema, schema, frozenset(), count())
    except (LookupError, ValueError, TypeError, RecursionError):
        without: dict[str, Any] = _without_references(schema)
        return without
    return schema


def _follow(value: Any, whole: Mapping[str, Any], path: frozenset[str], steps: Iterator[int]) -> None:
    """Visits what LangChain visits when it expands references.

    Raises:
        LookupError: A reference has no target.
        ValueError: It leads out of the schema, or there are too many.
    """
    if next(steps) > _MOST_NODES:
        raise ValueError("the expanded schema is too large")
    match value:
        case {"$ref": str() as reference, **beside}:
            if reference not in path:
                _follow(_target(reference, whole), whole, path | {reference}, steps)
            _follow(beside, whole, path, steps)
        case dict():
            for key, item in value.items():
                if key != "$defs":
                    _follow(item, whole, path, steps)
        case list():
            for item in value:
                _follow(item, whole, path, steps)


def _target(reference: str, whole: Mapping[str, Any]) -> Any:
    start, *parts = reference.split("/")
    if start != "#":
        raise ValueError(f"{reference!r} leads out of the schema")
    found: Any = whole
    for part in parts:
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def _without_references(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_references(item) for key, item in value.items() if key != "$ref"}
        case list():
            return [_without_references(item) for item in value]
        case _:
            return value


def _delivered(tool: Tool, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    artifact = {
        "tool": tool.id,
        "structured": outcome.structured,
        "media": [asdict(kept) for kept in outcome.media],
        "seconds": outcome.seconds,
        "kind": outcome.kind,
        "effect": outcome.effect,
    }
    if not outcome.error:
        return outcome.text or NO_OUTPUT, artifact
    if (failures := _FAILURES.get()) is not None:
        failures.append(artifact)
    raise ToolException(outcome.error)


@contextmanager
def unsettled() -> Iterator[list[str]]:
    """Collects the ids of tools that were called in this block, must not be called twice, and have not answered."""
    calls: list[str] = []
    token = _UNSETTLED.set(calls)
    try:
        yield calls
    finally:
        _UNSETTLED.reset(token)


@contextmanager
def _failures() -> Iterator[list[dict[str, Any]]]:
    """Collects what ``ToolException`` cannot carry; the call runs in a copy of this context."""
    failures: list[dict[str, Any]] = []
    token = _FAILURES.set(failures)
    try:
        yield failures
    finally:
        _FAILURES.reset(token)


def _with_artifact(answer: Any, failures: list[dict[str, Any]]) -> Any:
    if failures and isinstance(answer, ToolMessage) and answer.artifact is None:
        answer.artifact = failures[0]
    return answer
