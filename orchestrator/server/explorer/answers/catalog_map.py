"""All agents, tools and dependencies in few bytes, for the map of the page; and examples of requests."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from callsheet.graphs import Agent, Provenance, Tool
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.answers.json_answers import Agents, Overview, shown_line, shown_text
from callsheet.orchestrator.server.explorer.answers.search_results import beside
from callsheet.orchestrator.server.explorer.site import Seen

_EXAMPLES = 4
_ORIGIN = {Provenance.PROPOSED: 1, Provenance.OBSERVED: 2}
_SENTENCE = re.compile(r"[A-Z][a-z]+ [^.!?\n]{10,44}(?=[.!?\n]|$)")
_ES = ("sses", "shes", "ches", "xes", "zes", "oes")


@dataclass(frozen=True, slots=True)
class CatalogMap:
    """The catalog as numbers and names.

    Attributes:
        agents: Id of each agent.
        tools: Of each tool its name without the agent, the number of its agent, and 1 if it is a core tool.
        edges: Of each dependency the numbers of the tool and of the needed tool, and its origin: 0 declared or
            reviewed, 1 inferred, 2 observed.
        skills: Of each skill its id and the numbers of the tools that it names.
        labels: Ids that are displayed otherwise than they are.
    """

    agents: tuple[str, ...]
    tools: tuple[tuple[str, int, int], ...]
    edges: tuple[tuple[int, int, int], ...]
    skills: tuple[tuple[str, tuple[int, ...]], ...]
    labels: dict[str, str]
    examples: tuple[str, ...]


def catalog_map(seen: Seen) -> CatalogMap:
    """The part of the catalog that a user may see."""
    catalog = seen.catalog
    number_of = {agent.id: number for number, agent in enumerate(catalog.agents)}
    tools = {tool: number for number, tool in enumerate(catalog.tools)}
    shown = {node: shown_line(node) for node in (*number_of, *tools, *catalog.skills_by_id)}
    return CatalogMap(
        agents=tuple(number_of),
        tools=tuple((tool.name, number_of[tool.agent], int(tool.core)) for tool in catalog.tools.values()),
        edges=tuple(
            (tools[tool.id], tools[edge.tool], _ORIGIN.get(edge.provenance, 0))
            for tool in catalog.tools.values()
            for edge in tool.depends_on
        ),
        skills=tuple(
            (skill.id, tuple(tools[tool] for tool in skill.tools if tool in tools)) for skill in catalog.skills
        ),
        labels={node: label for node, label in shown.items() if node != label},
        examples=tuple(dict.fromkeys(_examples(seen)))[:_EXAMPLES],
    )


def _examples(seen: Seen) -> Iterator[str]:
    """One request an agent, from a tool that may be called without approval."""
    for agent in seen.catalog.agents:
        fitting = (request for tool in agent.tools if _harmless(seen, tool) and (request := _request(tool)))
        yield from [request] if (request := next(fitting, "")) else []


def _harmless(seen: Seen, tool: Tool) -> bool:
    known = seen.registry.assurance(tool.id)
    return known.callable and not known.why("risky")


def _request(tool: Tool) -> str:
    """The first sentence of a description as an order: "Converts a length." -> "Convert a length"; or nothing."""
    match = _SENTENCE.match(tool.description.strip())
    if match is None:
        return ""
    verb, _, rest = match[0].partition(" ")
    if verb.endswith("ies"):
        verb = f"{verb[:-3]}y"
    elif verb.endswith(_ES):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    return shown_line(f"{verb} {rest}")


PART = 60
"""Number of agents per page of the list."""


def overview(seen: Seen, *, runs: bool, asks: bool) -> Overview:
    """The catalog in numbers, as far as the user may see it."""
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
