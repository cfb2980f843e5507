"""Counts of the catalog, and the list of agents."""

from __future__ import annotations

from collections import Counter

from callsheet.graphs import Agent
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.answers.json_answers import Agents, Overview, shown_line, shown_text
from callsheet.orchestrator.server.explorer.answers.search_results import beside
from callsheet.orchestrator.server.explorer.site import Seen

PART = 60
"""Number of agents per page of the list."""


def overview(seen: Seen, *, runs: bool, asks: bool) -> Overview:
    """The catalog in numbers, as far as the user may see it.

    Args:
        seen: What the user may see.
        runs: Whether past runs are shown.
        asks: Whether requests can be run.
    """
    catalog = seen.catalog
    withheld = (
        f"the policy shows {len(catalog.tools):,} of {counted(len(seen.retriever.selector.catalog.tools), 'tool')}"
    )
    seen.knowledge.capabilities()
    held = Counter(edge.holds for tool in catalog.tools.values() for edge in tool.depends_on)
    return Overview(
        user=shown_line(seen.user.id),
        agents=len(catalog.agents),
        tools=len(catalog.tools),
        skills=len(catalog.skills),
        dependencies=held[True],
        inferred=held[False],
        policy="" if seen.whole else withheld,
        left_out=tuple(shown_text(str(problem)) for problem in seen.problems),
        runs=runs,
        asks=asks,
        quarantined=sum(change.quarantines for change in seen.reviewable),
    )


def list_agents(seen: Seen, words: str, start: int) -> Agents:
    """A page of the list of agents: those with all these words in id, name or description, from ``start``."""
    wanted = words.casefold().split()
    found = [agent for agent in seen.catalog.agents if all(word in _text(agent) for word in wanted)]
    items = (
        beside(agent.id, seen.catalog, "", counted(len(agent.tools), "tool")) for agent in found[start : start + PART]
    )
    return Agents(len(found), tuple(items))


def _text(agent: Agent) -> str:
    return f"{agent.id} {agent.name} {agent.description}".casefold()
