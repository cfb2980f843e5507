from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.capabilities.taxonomy import default_taxonomy
from callsheet.graphs.lint import Rule, Subject

Found = list[tuple[str, str, str]]


@pytest.fixture
def finds() -> Callable[..., Found]:
    """What a rule finds in agents given as ``name={tool: fields}``: (agent, tool, message) of each."""

    def look(
        rule: Rule, /, about: dict[str, dict[str, str]] | None = None, **agents: dict[str, dict[str, Any]]
    ) -> Found:
        made = tuple(
            Agent(
                id=agent,
                tools=tuple(Tool(agent=agent, name=name, **fields) for name, fields in tools.items()),
                **(about or {}).get(agent, {}),
            )
            for agent, tools in agents.items()
        )
        subject = Subject(Catalog(agents=made), default_taxonomy())
        return [(finding.agent, finding.tool, finding.message) for finding in rule.findings(subject)]

    return look
