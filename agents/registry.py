"""Tool objects for what was selected, each able to call its own agent and no other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool, ToolException

from callsheet.agents import local
from callsheet.agents.arguments import misfit
from callsheet.agents.calls import Limits, Outcome, failed
from callsheet.agents.local import InProcess
from callsheet.agents.sessions import SessionPool
from callsheet.graphs.catalog import Catalog, Tool
from callsheet.graphs.mcp import ServerConfig
from callsheet.graphs.text import shown, shown_schema

NEED_TOOL = "need_tool"
"""The name by which a worker asks for a tool; no tool of the catalog is shown under it."""
_LONGEST_NAME, _DIGEST = 64, 8
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
_FAILURES: ContextVar[list[dict[str, Any]] | None] = ContextVar("callsheet_failures", default=None)


class BoundTool(StructuredTool):
    """A tool of the catalog as a LangChain tool that calls its own agent.

    A success is content with an artifact; a failure is a ``ToolMessage`` with ``status="error"``
    whose text names agent and tool. The artifact of both is ``{"tool", "structured", "seconds",
    "kind"}``, where kind says the sort of trouble.

    Attributes:
        id: The tool's id in the catalog.
        agent: Id of its owner.
    """

    id: str
    agent: str

    # Positional-only and without named parameters, for a tool may have arguments named self or config.
    def _run(self, /, *args: Any, **kwargs: Any) -> Any:
        return self.func(*args, **kwargs) if self.func else None

    async def _arun(self, /, *args: Any, **kwargs: Any) -> Any:
        return await self.coroutine(*args, **kwargs) if self.coroutine else None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As LangChain's own, but a failure keeps its artifact."""
        with _failures() as failures:
            return _with_artifact(super().run(*args, **kwargs), failures)

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """As LangChain's own, but a failure keeps its artifact."""
        with _failures() as failures:
            return _with_artifact(await super().arun(*args, **kwargs), failures)


class ToolRegistry:
    """Binds tools of a catalog to what can call them.

    Args:
        catalog: All agents and tools.
        connections: Agent id -> ``ServerConfig`` or ``InProcess``; an agent without one is known
            from a manifest only, and its tools answer that they cannot be called.
        pool: The MCP sessions; one of its own by default.
        limits: Bounds of time and size of a call.
    """

    def __init__(
        self,
        catalog: Catalog,
        connections: Mapping[str, object],
        *,
        pool: SessionPool | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._catalog, self._connections = catalog, connections
        self._limits = limits or (pool.limits if pool else Limits())
        self._pool = pool or SessionPool(limits=self._limits)

    def bind(self, tool_ids: Sequence[str], run_id: str, *, beside: Collection[str] = ()) -> dict[str, BoundTool]:
        """Tool objects for these tools and no others, by the unique name that a model sees.

        Args:
            tool_ids: Ids in the catalog; repeated ones count once.
            run_id: The run whose MCP sessions they share.
            beside: Names that other tools of the same worker have already.

        Raises:
            UnknownNameError: The catalog does not hold one of them.
        """
        tools = [self._catalog.tool(tool_id) for tool_id in dict.fromkeys(tool_ids)]
        names = model_names(tools, beside=beside)
        return {name: self._bound(name, tool, run_id) for name, tool in zip(names, tools, strict=True)}

    async def close_run(self, run_id: str) -> None:
        """Ends the MCP sessions of one run."""
        await self._pool.close_run(run_id)

    def close(self, run_id: str | None = None) -> None:
        """As ``close_run`` for callers without an event loop; without a run, ends all MCP sessions."""
        self._pool.close(run_id)

    def _bound(self, name: str, tool: Tool, run_id: str) -> BoundTool:
        connection = self._connections.get(tool.agent)

        def call(**arguments: Any) -> tuple[str, dict[str, Any]]:
            if (outcome := self._refused(tool, connection, arguments)) is not None:
                return _delivered(tool, outcome)
            if isinstance(connection, ServerConfig):
                return _delivered(tool, self._pool.call_blocking(run_id, tool.agent, connection, tool.name, arguments))
            return _delivered(tool, local.call_blocking(tool.agent, _local(connection, tool), arguments, self._limits))

        async def acall(**arguments: Any) -> tuple[str, dict[str, Any]]:
            if (outcome := self._refused(tool, connection, arguments)) is not None:
                return _delivered(tool, outcome)
            if isinstance(connection, ServerConfig):
                return _delivered(tool, await self._pool.call(run_id, tool.agent, connection, tool.name, arguments))
            return _delivered(tool, await local.call(tool.agent, _local(connection, tool), arguments, self._limits))

        return _bound_tool(name, tool, call, acall)

    def _refused(self, tool: Tool, connection: object, arguments: Mapping[str, Any]) -> Outcome | None:
        """Why a call is not even sent; None if it is."""
        if isinstance(connection, InProcess):
            if tool.name in connection.tools:
                return None  # LangChain checks, and converts, the arguments of its own tools
            return failed(tool.agent, tool.name, "start", "the agent's connection does not hold this tool")
        if not isinstance(connection, ServerConfig):
            return failed(
                tool.agent,
                tool.name,
                "start",
                f"agent {tool.agent!r} is known from a manifest only, so its tools can be found but not called: "
                "connect it by an mcp.json with a server of that name",
            )
        trouble = misfit(tool.input_schema, arguments)
        return failed(tool.agent, tool.name, "tool", trouble) if trouble else None


def model_names(tools: Sequence[Tool], *, beside: Collection[str] = ()) -> list[str]:
    """A unique name for each tool that every model provider accepts: ``^[a-zA-Z0-9_-]{1,64}$``.

    The tool's own name where it is unique among these and those beside them, else ``agent__tool``; a digest of
    the id is added where that is still not unique, or too long.
    """
    bare = [_fit(tool.name, tool.id) for tool in tools]
    taken = (*beside, NEED_TOOL)
    seen = Counter((*bare, *taken))
    names = [
        name if seen[name] == 1 else _fit(f"{tool.agent}__{tool.name}", tool.id)
        for name, tool in zip(bare, tools, strict=True)
    ]
    seen = Counter((*names, *taken))
    return [name if seen[name] == 1 else _digested(name, tool.id) for name, tool in zip(names, tools, strict=True)]


def _fit(name: str, tool_id: str) -> str:
    fit = _UNFIT.sub("_", name)
    return fit if len(fit) <= _LONGEST_NAME else _digested(fit, tool_id)


def _digested(name: str, tool_id: str) -> str:
    digest = sha256(tool_id.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST_NAME - _DIGEST - 1]}_{digest}"


def _local(connection: object, tool: Tool) -> Any:
    return connection.tools[tool.name] if isinstance(connection, InProcess) else None


def _bound_tool(name: str, tool: Tool, call: Callable[..., Any], acall: Callable[..., Any]) -> BoundTool:
    return BoundTool(
        name=name,
        description=_description(tool),
        args_schema=_object_schema(shown_schema(tool.input_schema)),
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
        id=tool.id,
        agent=tool.agent,
        metadata={"callsheet_tool": tool.id, "annotations": tool.annotations},
    )


def _description(tool: Tool) -> str:
    said = (tool.description, tool.title, f"{tool.name} of {tool.agent}")
    return next(filter(None, (shown(text.strip()).strip() for text in said)), "a tool")


def _object_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as model providers demand it: an object with properties."""
    properties = schema.get("properties")
    if schema.get("type", "object") != "object" or not isinstance(properties, dict | None):
        return {"type": "object", "properties": {}}
    return {**schema, "type": "object", "properties": properties or {}}


def _delivered(tool: Tool, outcome: Outcome) -> tuple[str, dict[str, Any]]:
    artifact = {
        "tool": tool.id,
        "structured": outcome.structured,
        "seconds": outcome.seconds,
        "kind": outcome.kind,
    }
    if not outcome.error:
        return outcome.text or "(no output)", artifact
    if (failures := _FAILURES.get()) is not None:
        failures.append(artifact)
    raise ToolException(outcome.error)


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
