"""What the search view and the map show, as JSON: results of a query with the reasons, agents, the whole catalog."""

from __future__ import annotations

import time
from collections import Counter

from callsheet.agents.no_model.no_model import examples
from callsheet.graphs import Provenance, dependency_edges
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.node_details import neighbour
from callsheet.orchestrator.server.visible_catalog import Json, VisibleCatalog, fit, shown_line, shown_text
from callsheet.retrievers import Evidence, PickedTool, Selection, explain_tool

INTRODUCE = "What can you do?"
"""A request that works on every catalog."""
PART = 60
"""Number of agents per page of the list."""
_ORIGIN = {Provenance.PROPOSED: 1, Provenance.OBSERVED: 2}


def search(visible: VisibleCatalog, query: str, *, agents: int, tools: int) -> Json:
    """Finds at most this many agents and tools for a query; each kind best first.

    If nothing ``fits``, they are only the nearest. ``asked`` are the parts of the query, ``probability`` is how likely
    something fits and ``reason`` why, ``considered`` are all nodes with their scores and ranks by meaning and by words,
    and ``cut`` the tools that were left out.
    """
    began = time.perf_counter()
    selection = visible.retriever.select(query, agents=agents, tools=tools, equip=True)
    took = 1000 * (time.perf_counter() - began)
    link, trace, judged = visible.link, selection.trace, selection.decision.summary if selection.decision else ""
    evidence = {node.id: node for node in trace.nodes}
    measures = ("score", "cosine", "cosine_rank", "words", "words_rank", "use")
    return {
        "fits": selection.verdict == "found",
        "milliseconds": round(took, 1),
        "agents": [
            {
                "link": link(agent.id),
                "why": _why(evidence.get(agent.id)),
                "score": agent.score,
                "tools": [_tool(tool, selection, visible) for tool in agent.tools],
            }
            for agent in selection.agents
        ],
        "skills": [{"link": link(skill.id), "score": skill.score} for skill in selection.skills],
        "asked": [{"kind": unit.kind, "text": shown_text(unit.text)} for unit in trace.units],
        "probability": selection.probability,
        "reason": shown_text(trace.verdict or "nothing is selected"),
        "considered": [
            {"link": link(node.id), **{name: getattr(node, name) for name in measures}} for node in trace.nodes
        ],
        "cut": [{"link": link(one.id), "score": one.score, "reason": shown_text(one.reason)} for one in trace.cut],
        "notes": [shown_text(note) for note in (judged, trace.policy) if note],
    }


def overview(visible: VisibleCatalog, *, runs: bool) -> Json:
    """The catalog in numbers, as far as the user may see it.

    ``dependencies`` are those that a person wrote or accepted, ``inferred`` all others; ``quarantined`` counts the
    changes of servers that somebody has to accept.
    """
    catalog, everything = visible.catalog, visible.retriever.selector.catalog
    held = Counter(edge.holds for _, edge in dependency_edges(visible.knowledge.graph))
    withheld = f"the policy shows {len(catalog.tools):,} of {counted(len(everything.tools), 'tool')}"
    return {
        "user": shown_line(visible.user.id),
        "agents": len(catalog.agents),
        "tools": len(catalog.tools),
        "skills": len(catalog.skills),
        "dependencies": held[True],
        "inferred": held[False],
        "policy": "" if visible.whole else withheld,
        "left_out": [shown_text(str(problem)) for problem in visible.problems],
        "runs": runs,
        "quarantined": sum(change.quarantines for change in visible.reviewable),
    }


def list_agents(visible: VisibleCatalog, words: str, start: int) -> Json:
    """A page of the list of agents: those with all these words in id, name or description, from ``start``."""
    wanted = words.casefold().split()
    texts = ((agent, f"{agent.id} {agent.name} {agent.description}".casefold()) for agent in visible.catalog.agents)
    agents = [agent for agent, text in texts if all(word in text for word in wanted)]
    part = [neighbour(visible, one.id, "", counted(len(one.tools), "tool")) for one in agents[start : start + PART]]
    return {"total": len(agents), "items": part}


def catalog_map(visible: VisibleCatalog) -> Json:
    """The part of the catalog that a user may see, as numbers and names, in few bytes.

    A tool is its name, the number of its agent, and 1 if it is a core tool; an edge the numbers of the tool and of the
    needed one, and its origin (0 declared or reviewed, 1 inferred, 2 observed); a skill its id and the numbers of the
    tools that it names. ``labels`` are of ids that are displayed otherwise than they are.
    """
    catalog, select = visible.catalog, visible.retriever.select
    works = examples(catalog, visible.registry, lambda text: [tool.id for tool in select(text, skills=0).tools])
    number_of = {agent.id: number for number, agent in enumerate(catalog.agents)}
    tools = {tool: number for number, tool in enumerate(catalog.tools)}
    labels = {node: shown_line(node) for node in (*number_of, *tools, *catalog.skills_by_id)}
    return {
        "agents": [*number_of],
        "tools": [(tool.name, number_of[tool.agent], int(tool.core)) for tool in catalog.tools.values()],
        "edges": [
            (tools[tool], tools[edge.tool], _ORIGIN.get(edge.provenance, 0))
            for tool, edge in dependency_edges(visible.knowledge.graph)
        ],
        "skills": [(skill.id, [tools[tool] for tool in skill.tools if tool in tools]) for skill in catalog.skills],
        "labels": {node: label for node, label in labels.items() if node != label},
        "examples": [*map(shown_line, works), INTRODUCE][:3],
    }


def _tool(tool: PickedTool, selection: Selection, visible: VisibleCatalog) -> Json:
    via = [visible.link(node) for node in tool.via[:-1]]
    reason = explain_tool(tool.id, selection)
    return {
        "link": visible.link(tool.id),
        "why": shown_text(reason if via else f"{fit(tool.score)}: {reason}"),
        "score": tool.score,
        "required": tool.required,
        "via": via,
        "inferred": shown_line(tool.inferred),
    }


def _why(known: Evidence | None) -> str:
    """Why an agent was selected; because of its tools if it is not in the trace itself."""
    if known is None:
        return "by its tools"
    reasons = [] if known.cosine is None else [f"meaning {known.cosine:.2f} (#{known.cosine_rank})"]
    if known.words is not None:
        reasons.append(f"words {known.words:.1f} (#{known.words_rank})")
    return ", ".join(reasons)
