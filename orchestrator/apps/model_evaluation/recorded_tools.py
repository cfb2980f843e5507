"""A catalog whose tools record calls and do nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.arguments import fit_of
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs import Agent, Loaded, Tool

RECORDED = "The call was recorded."
"""The result of every call."""


def recorded(loaded: Loaded) -> Loaded:
    """The same catalog and policy, with tools that validate their arguments and do nothing: no server is called."""
    connections = {agent.id: InProcess(_RecordedTools(agent)) for agent in loaded.catalog.agents}
    return replace(loaded, connections=connections, digests={}, live={}, resources={})


class _RecordedTools(Mapping[str, BaseTool]):
    """The tools of an agent, made when they are looked up: of thousands, a few are called."""

    def __init__(self, agent: Agent) -> None:
        self._tools = {tool.name: tool for tool in agent.tools}

    def __getitem__(self, name: str) -> BaseTool:
        return _recorded_tool(self._tools[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


def _recorded_tool(tool: Tool) -> BaseTool:
    async def record(**args: Any) -> str:
        if misfit := fit_of(tool.input_schema, args).misfit:
            raise Fault("refused", misfit, effect="none")
        return RECORDED

    return StructuredTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=dict(tool.input_schema) or {"type": "object", "properties": {}},
        coroutine=record,
    )
