"""Makes the JSON that the page shows of the catalog: search results with reasons, the map, and nodes in detail.

A neighbour is a link with its ``relation`` (``td``, ``ti``, ``pd``, ``pi`` for the kinds of dependency, ``owner``,
``capability``, ``broader``, or ``agents`` for dependencies between agents), the same in ``words``, and whether no
person has reviewed it yet. A fact is a term with its text, and further lines such as a diff.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from callsheet.agents.no_model.wording import examples
from callsheet.graphs import (
    Agent,
    Dependency,
    DependencyKind,
    Parameter,
    Provenance,
    Skill,
    Tool,
    dependency_counts,
    dependency_edges,
    describe_change,
    diff_of,
    needed_by,
    needs,
    owner,
    used_by,
)
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.server.page_requests import Parameters
from callsheet.orchestrator.server.visible_catalog import Json, NodeName, VisibleCatalog, fit, page_text, shown_line
from callsheet.retrievers import Evidence, PickedTool, Selection, explain_tool
from callsheet.retrievers.capabilities import Assigned, Assignments

Side = Literal["above", "before", "after", "below"]
_MOST = 200  # neighbours of one kind
_LARGEST = 100_000
_KINDS: Mapping[DependencyKind, tuple[str, str]] = {
    DependencyKind.TOOL_DIRECTLY: ("td", "needs the tool"),
    DependencyKind.TOOL_INDIRECTLY: ("ti", "may need the tool"),
    DependencyKind.PARAMETER_DIRECTLY: ("pd", "needs it for a parameter"),
    DependencyKind.PARAMETER_INDIRECTLY: ("pi", "may need it for a parameter"),
}
"""The relation of a neighbour for a kind of dependency, and its meaning."""
_NOT_PINNED = "no pin: its definition was read from a file or is part of this program, and does not come from a server"


_Text = Annotated[str, Field(max_length=10_000)]


class SearchQuery(Parameters):
    """A query, with the maximum numbers of agents and tools."""

    q: _Text
    agents: Annotated[int, Field(ge=1, le=1_000)] | None = None
    tools: Annotated[int, Field(ge=1, le=128)] = 10


class AgentList(Parameters):
    """The part of the list of agents that a request asks for."""

    words: _Text = ""
    start: Annotated[int, Field(ge=0)] = 0


class Id(Parameters):
    """The id of the node that a request asks for."""

    id: Annotated[str, Field(max_length=2_000)]


def neighbour(visible: VisibleCatalog, node: str, relation: str, words: str, *, unreviewed: bool = False) -> Json:
    """Returns an agent, a tool or a skill as a neighbour of a node."""
    return {**visible.link(node), "relation": relation, "words": words, "unreviewed": unreviewed}


def node(visible: VisibleCatalog, given: Id) -> Json:
    """Returns the details of an agent, a tool or a skill.

    Raises:
        UnknownNameError: There is none with this id, or it is hidden from the user.
    """
    tool = visible.catalog.tools.get(given.id)
    if tool is not None:
        return _tool(visible, tool)
    skill = visible.catalog.skills_by_id.get(given.id)
    if skill is not None:
        return _skill(visible, skill)
    return _agent(visible, visible.catalog.agent(given.id))


def capability(visible: VisibleCatalog, given: Id) -> Json:
    """Returns the details of a capability, with the tools that have it or a narrower one.

    Raises:
        UnknownNameError: It is not in the taxonomy.
    """
    known = visible.knowledge.capabilities
    entry = known.taxonomy.capability(given.id)
    broader = [_capability(known, entry.broader, "broader", "")] if entry.broader else []
    narrower = [
        _capability(known, other.id, "broader", counted(len(known.tools_of[other.id]), "tool"))
        for other in known.taxonomy.capabilities
        if other.broader == entry.id
    ]

    def how_sure(tool: str) -> str:
        return next((_by(one) for one in known.of[tool] if one.capability == entry.id), "by a part of it")

    tools = [neighbour(visible, tool, "capability", how_sure(tool)) for tool in known.tools_of[entry.id]]
    return _node(
        "capability",
        entry.name,
        entry.definition,
        ("above", "Part of", broader),
        ("below", "Parts of it", narrower),
        ("after", "Tools that can do it", tools),
        facts=_facts({"Asked for as": page_text("\n".join(entry.examples))}),
    )


def _tool(visible: VisibleCatalog, tool: Tool) -> Json:
    graph = visible.knowledge.graph
    known = visible.knowledge.capabilities
    outgoing = [_edge(visible, edge.tool, edge) for edge in needs(graph, tool.id)]
    incoming = [_edge(visible, other, edge) for other, edge in needed_by(graph, tool.id)]
    incoming += [neighbour(visible, skill, "ti", "names it") for skill in used_by(graph, tool.id)]
    can = [_capability(known, entry.capability, "capability", _by(entry)) for entry in known.of.get(tool.id, ())]
    digest = visible.loaded.digest(tool)
    schemas = {"Input schema": _schema(tool.input_schema), "Output schema": _schema(tool.output_schema)}
    hints = ", ".join(f"{name}: {value}" for name, value in tool.annotations.items())
    facts = {
        "Core tool": "many tools depend on it" if tool.core else "",
        "Always": "comes with every other tool of its agent" if tool.always else "",
        "Hints of its author": page_text(hints),
        "Calls": _calls(visible, tool.id),
        "Accepted": f"SHA-256 {digest}" if digest else _NOT_PINNED,
    }
    return _node(
        "tool",
        tool.id,
        tool.description,
        ("above", "Owner", [neighbour(visible, tool.agent, "owner", "owns it")]),
        ("before", "Needed by", incoming),
        ("after", "Needs", outgoing),
        ("below", "Can do", can),
        title=shown_line(tool.title),
        owner=visible.link(tool.agent),
        facts=_facts(facts),
        parameters=[_field(one) for one in tool.parameters],
        outputs=[_field(one) for one in tool.outputs],
        schemas=_facts(schemas),
    )


def _skill(visible: VisibleCatalog, skill: Skill) -> Json:
    names = [neighbour(visible, tool, "ti", "names it") for tool in skill.tools]
    facts = {"Instructions": page_text(skill.text, most=_LARGEST)}
    entry = visible.registry.loaded.served.get(skill.agent, {}).get(skill.id)
    if entry is not None:
        files = "\n".join(file.uri for file in entry.resources)
        facts = {"Served by": shown_line(skill.agent), "Files": page_text(files, most=_LARGEST)}
    return _node("skill", skill.id, skill.description, ("after", "Names", names), facts=_facts(facts))


def _agent(visible: VisibleCatalog, agent: Agent) -> Json:
    graph = visible.knowledge.graph
    known = visible.knowledge.capabilities
    outgoing = Counter(owner(graph, edge.tool) for tool in agent.tools for edge in needs(graph, tool.id))
    incoming = Counter(owner(graph, other) for tool in agent.tools for other, _ in needed_by(graph, tool.id))
    since = shown_line(visible.registry.loaded.down.get(agent.id, ""))
    can = Counter(entry.capability for tool in agent.tools for entry in known.of.get(tool.id, ()))
    facts = {
        "Instructions": page_text(agent.instructions),
        "Down": since and f"it did not answer when last asked; its tools are as of {since}",
        "Not called for now": page_text(visible.registry.unavailable().get(agent.id, "")),
    }

    def agents(counts: Counter[str]) -> list[Json]:
        named = ((one, counted(n, "dependency", "dependencies")) for one, n in counts.most_common() if one != agent.id)
        return [neighbour(visible, one, "agents", words) for one, words in named]

    above = [_capability(known, name, "capability", f"{n:,} of its tools") for name, n in can.most_common()]
    changes = [
        {
            "term": "In quarantine" if change.quarantines else "Changed",
            "text": page_text(describe_change(change)),
            "detail": page_text(diff_of(change)),
        }
        for change in visible.reviewable
        if change.agent == agent.id
    ]
    return _node(
        "agent",
        agent.id,
        agent.description,
        ("above", "Can do", above),
        ("before", "Needed by", agents(incoming)),
        ("after", "Needs", agents(outgoing)),
        ("below", "Tools", [neighbour(visible, tool.id, "owner", "") for tool in agent.tools]),
        title=shown_line(agent.name) if agent.name != agent.id else "",
        facts=[*_facts(facts), *changes],
    )


def _node(kind: NodeName, label: str, about: str, *groups: tuple[Side, str, Sequence[Json]], **more: Any) -> Json:
    """Returns a node with its groups of neighbours, of each the total number and the first of them."""
    return {
        "label": shown_line(label),
        "kind": kind,
        "about": page_text(about),
        "groups": [
            {"side": side, "title": title, "total": len(items), "items": items[:_MOST]}
            for side, title, items in groups
            if items
        ],
        "title": "",
        "owner": None,
        **{name: [] for name in ("facts", "parameters", "outputs", "schemas")},
        **more,
    }


def _facts(texts: Mapping[str, str]) -> list[Json]:
    return [{"term": term, "text": text} for term, text in texts.items() if text]


def _edge(visible: VisibleCatalog, tool: str, edge: Dependency) -> Json:
    relation, meaning = _KINDS[edge.kind]
    words = [f"{meaning}: {shown_line(edge.parameter)}" if edge.parameter else meaning]
    if edge.provenance is not Provenance.DECLARED:
        words.append(f"{edge.provenance}, {edge.confidence:.0%} sure")
    if edge.reason:
        words.append(shown_line(edge.reason))
    return neighbour(visible, tool, relation, "; ".join(words), unreviewed=not edge.holds)


def _capability(known: Assignments, name: str, relation: str, words: str) -> Json:
    entry = known.taxonomy.by_id.get(name)
    label, about = (entry.name, entry.definition) if entry else (name, "")
    link = {"id": name, "label": shown_line(label), "kind": "capability", "about": shown_line(about)}
    return {**link, "relation": relation, "words": words, "unreviewed": False}


def _by(entry: Assigned) -> str:
    if entry.by == "declared":
        return "according to its author"
    return f"according to its text, {entry.confidence:.0%} confidence"


def _field(parameter: Parameter) -> Json:
    values = ", ".join(map(str, parameter.enum[:20]))
    lines = (
        parameter.description,
        f"one of: {values}" if values else "",
        f"format: {parameter.format}" if parameter.format else "",
        "" if parameter.default is None else f"default: {parameter.default!r}",
    )
    about = page_text("\n".join(filter(None, lines)))
    named = {"name": shown_line(parameter.name), "type": shown_line(parameter.type)}
    return {**named, "required": parameter.required, "about": about}


def _calls(visible: VisibleCatalog, tool: str) -> str:
    if tool not in visible.registry.catalog.tools:
        return "none: its server has changed it, or does not offer it any more"
    assured = visible.registry.assurance(tool)
    if not assured.callable:
        return "none: it is known from a manifest only"
    refusal = assured.refusal("ask")
    return f"need approval: {refusal}" if refusal else "need no approval"


def _schema(value: Mapping[str, Any] | None) -> str:
    text = "" if value is None else json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return page_text(text, most=_LARGEST)


INTRODUCE = "What can you do?"
"""A request that works with every catalog."""
PART = 60
"""The number of agents per page of the list."""
_ORIGIN = {Provenance.PROPOSED: 1, Provenance.OBSERVED: 2}


def search(visible: VisibleCatalog, given: SearchQuery) -> Json:
    """Finds agents, tools and skills for a query; each kind is sorted, best first.

    Unless the result ``fits``, these are only the nearest. ``asked`` are the parts of the query; ``probability`` is how
    likely something fits, and ``reason`` says why. ``considered`` are all nodes with their scores and ranks by meaning
    and by words, and ``cut`` are the tools that were left out.
    """
    selection = visible.retriever.select(given.q, agents=given.agents, tools=given.tools, equip=True)
    link = visible.link
    trace = selection.trace
    judged = selection.decision.summary if selection.decision else ""
    evidence = {node.id: node for node in trace.nodes}
    measures = ("score", "cosine", "cosine_rank", "words", "words_rank", "use")
    return {
        "verdict": selection.verdict,
        "agents": [
            {
                "link": link(agent.id),
                "why": _why(evidence.get(agent.id)),
                "score": agent.score,
                "tools": [_picked(tool, selection, visible) for tool in agent.tools],
            }
            for agent in selection.agents
        ],
        "skills": [{"link": link(skill.id), "score": skill.score} for skill in selection.skills],
        "asked": [{"kind": unit.kind, "text": page_text(unit.text)} for unit in trace.units],
        "probability": selection.probability,
        "order": page_text(selection.order_note),
        "reason": page_text(trace.verdict or "nothing is selected"),
        "considered": [
            {"link": link(node.id), **{name: getattr(node, name) for name in measures}} for node in trace.nodes
        ],
        "cut": [{"link": link(one.id), "score": one.score, "reason": page_text(one.reason)} for one in trace.cut],
        "notes": [page_text(note) for note in (judged, trace.policy) if note],
    }


def overview(visible: VisibleCatalog, *, runs: bool) -> Json:
    """Returns the numbers of the catalog, as far as the user may see it.

    Dependencies are counted by origin, as on the map; ``quarantined`` counts the changes of servers that a person has
    to accept.
    """
    catalog, everything = visible.catalog, visible.retriever.selector.catalog
    withheld = f"the policy shows {len(catalog.tools):,} of {counted(len(everything.tools), 'tool')}"
    return {
        "user": shown_line(visible.user.id),
        "agents": len(catalog.agents),
        "tools": len(catalog.tools),
        "skills": len(catalog.skills),
        **dependency_counts(visible.knowledge.graph),
        "policy": "" if visible.whole else withheld,
        "left_out": [page_text(str(problem)) for problem in visible.loaded.problems] if visible.whole else [],
        "runs": runs,
        "quarantined": sum(change.quarantines for change in visible.reviewable),
    }


def list_agents(visible: VisibleCatalog, given: AgentList) -> Json:
    """Returns a page of the list of agents that have all these words in id, name or description, from ``start``."""
    wanted = given.words.casefold().split()
    texts = ((agent, f"{agent.id} {agent.name} {agent.description}".casefold()) for agent in visible.catalog.agents)
    agents = [agent for agent, text in texts if all(word in text for word in wanted)]
    part = agents[given.start : given.start + PART]
    items = [neighbour(visible, one.id, "", counted(len(one.tools), "tool")) for one in part]
    return {"total": len(agents), "items": items}


def catalog_map(visible: VisibleCatalog) -> Json:
    """Returns the visible part of the catalog in a compact form of numbers and names.

    A tool is its name, the number of its agent, and 1 if it is a core tool. An edge is the numbers of both tools, and
    its origin (0 declared or reviewed, 1 inferred, 2 observed). A skill is its id, the numbers of the tools that it
    names, and the number of the agent whose server serves it, or None. ``labels`` are for ids that are displayed in
    another form.
    """
    catalog = visible.catalog
    select = visible.retriever.select
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
        "skills": [
            (skill.id, [tools[tool] for tool in skill.tools if tool in tools], number_of.get(skill.agent))
            for skill in catalog.skills
        ],
        "labels": {node: label for node, label in labels.items() if node != label},
        "examples": [*map(shown_line, works), INTRODUCE][:3],
    }


def _picked(tool: PickedTool, selection: Selection, visible: VisibleCatalog) -> Json:
    via = [visible.link(node) for node in tool.via[:-1]]
    reason = explain_tool(tool.id, selection)
    return {
        "link": visible.link(tool.id),
        "why": page_text(reason if via else f"{fit(tool.score)}: {reason}"),
        "score": tool.score,
        "required": tool.required,
        "via": via,
        "inferred": shown_line(tool.inferred),
    }


def _why(known: Evidence | None) -> str:
    """Returns why an agent was selected; because of its tools if it is not in the trace itself."""
    if known is None:
        return "by its tools"
    reasons = [] if known.cosine is None else [f"meaning {known.cosine:.2f} (#{known.cosine_rank})"]
    if known.words is not None:
        reasons.append(f"words {known.words:.1f} (#{known.words_rank})")
    return ", ".join(reasons)
