"""All agents, tools and dependencies in few bytes, for the map of the page; and examples of requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from callsheet.graphs import Provenance, Tool
from callsheet.orchestrator.server.explorer.answers.json_answers import shown_line
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
        examples: Requests in the words of the catalog.
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
