"""What there is: counts, and the list of agents."""

from __future__ import annotations

from collections import Counter

from callsheet.graphs import Agent
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.json_answers import Agents, Neighbour, Overview, shown_line, shown_text
from callsheet.orchestrator.server.explorer.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen

PART = 60
"""How many agents are listed at once."""


def overview(seen: Seen, *, runs: bool) -> Overview:
    """What a user may see, in numbers.

    Args:
        seen: What may be seen.
        runs: Whether past runs are shown.
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
        dependencies=held[True],
        inferred=held[False],
        policy="" if seen.whole else withheld,
        left_out=tuple(shown_text(str(problem)) for problem in seen.problems),
        runs=runs,
    )


def list_agents(seen: Seen, words: str, start: int) -> Agents:
    """A part of the list of agents.

    Args:
        seen: What may be seen.
        words: Each must stand in an agent's id, name or description.
        start: How many are passed over.
    """
    wanted = words.casefold().split()
    found = [agent for agent in seen.catalog.agents if all(word in _text(agent) for word in wanted)]
    return Agents(len(found), tuple(_line(seen, agent) for agent in found[start : start + PART]))


def _text(agent: Agent) -> str:
    return f"{agent.id} {agent.name} {agent.description}".casefold()


def _line(seen: Seen, agent: Agent) -> Neighbour:
    to, n = link(agent.id, seen.catalog), len(agent.tools)
    return Neighbour(to.id, to.label, to.kind, to.about, words=counted(n, "tool"))
