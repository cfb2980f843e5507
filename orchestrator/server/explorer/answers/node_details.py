"""One agent, tool, skill or capability with its details and neighbours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from callsheet.agents import ToolRegistry
from callsheet.graphs import (
    Agent,
    Change,
    Dependency,
    DependencyKind,
    Parameter,
    Provenance,
    Skill,
    Tool,
    diff_of,
    told,
)
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.explorer.answers.json_answers import (
    Field,
    Group,
    Neighbour,
    Node,
    Said,
    Side,
    shown_line,
    shown_text,
)
from callsheet.orchestrator.server.explorer.answers.search_results import beside, link
from callsheet.orchestrator.server.explorer.site import Seen
from callsheet.retrievers.capabilities import Assigned, Assignments

MOST = 200
"""Maximum number of neighbours of one kind."""
_LARGEST = 100_000
_KINDS: Mapping[DependencyKind, tuple[str, str]] = {
    DependencyKind.TOOL_DIRECTLY: ("td", "needs the tool"),
    DependencyKind.TOOL_INDIRECTLY: ("ti", "may need the tool"),
    DependencyKind.PARAMETER_DIRECTLY: ("pd", "needs it for a parameter"),
    DependencyKind.PARAMETER_INDIRECTLY: ("pi", "may need it for a parameter"),
}
"""The relation of ``Neighbour`` for a kind of dependency, and its meaning."""
_NOT_PINNED = "no pin: its definition was read from a file or is part of this program, and does not come from a server"


def node(seen: Seen, node_id: str, known: Assignments) -> Node:
    """An agent, a tool or a skill, with the known capabilities.

    Raises:
        UnknownNameError: There is none with this id, or it is hidden from the user.
    """
    if node_id in seen.catalog.tools:
        return _tool(seen, seen.catalog.tools[node_id], known)
    if node_id in seen.catalog.skills_by_id:
        return _skill(seen, seen.catalog.skills_by_id[node_id])
    return _agent(seen, seen.catalog.agent(node_id), known)


def capability(seen: Seen, capability_id: str, known: Assignments) -> Node:
    """A capability, with the tools that have it or a narrower one.

    Raises:
        UnknownNameError: It is not in the taxonomy.
    """
    entry = known.taxonomy.capability(capability_id)
    broader = [_capability(known, entry.broader, "broader", "")] if entry.broader else []
    narrower = [
        _capability(known, other.id, "broader", counted(len(known.tools_of[other.id]), "tool"))
        for other in known.taxonomy.capabilities
        if other.broader == entry.id
    ]
    tools = [
        beside(tool, seen.catalog, "capability", _how_sure(known.of[tool], entry.id))
        for tool in known.tools_of[entry.id]
    ]
    return Node(
        id=entry.id,
        label=shown_line(entry.name),
        kind="capability",
        title="",
        about=shown_text(entry.definition),
        facts=(Said("Asked for as", shown_text("\n".join(entry.examples))),),
        groups=_groups(
            ("above", "Part of", broader), ("below", "Parts of it", narrower), ("after", "Tools that can do it", tools)
        ),
    )


def _tool(seen: Seen, tool: Tool, known: Assignments) -> Node:
    needs = [_edge(seen, edge.tool, edge, _KINDS[edge.kind][1]) for edge in tool.depends_on]
    needed = [
        _edge(seen, other.id, edge, _KINDS[edge.kind][1]) for other, edge in seen.knowledge.needed_by.get(tool.id, ())
    ]
    naming = [skill.id for skill in seen.catalog.skills if tool.id in skill.tools]
    needed += [beside(skill, seen.catalog, "ti", "names it") for skill in naming]
    can = [_capability(known, entry.capability, "capability", _by(entry)) for entry in known.of.get(tool.id, ())]
    digest = seen.digest(tool.id)
    return Node(
        id=tool.id,
        label=shown_line(tool.id),
        kind="tool",
        title=shown_line(tool.title),
        about=shown_text(tool.description),
        owner=link(tool.agent, seen.catalog),
        facts=tuple(_facts_of_tool(seen, tool)),
        parameters=tuple(map(_field, tool.parameters)),
        outputs=tuple(map(_field, tool.outputs)),
        schemas=tuple(_schemas(tool)),
        pins=(Said("Accepted", f"SHA-256 {digest}" if digest else _NOT_PINNED),),
        groups=_groups(
            ("above", "Owner", [beside(tool.agent, seen.catalog, "owner", "owns it")]),
            ("before", "Needed by", needed),
            ("after", "Needs", needs),
            ("below", "Can do", can),
        ),
    )


def _skill(seen: Seen, skill: Skill) -> Node:
    names = [beside(tool, seen.catalog, "ti", "names it") for tool in skill.tools]
    return Node(
        id=skill.id,
        label=shown_line(skill.id),
        kind="skill",
        title="",
        about=shown_text(skill.description),
        facts=(Said("Instructions", shown_text(skill.text, most=_LARGEST)),),
        groups=_groups(("after", "Names", names)),
    )


def _agent(seen: Seen, agent: Agent, known: Assignments) -> Node:
    own = {tool.id for tool in agent.tools}
    needs = Counter(seen.catalog.tools[e.tool].agent for t in agent.tools for e in t.depends_on if e.tool not in own)
    needed = Counter(
        other.agent for tool in own for other, _ in seen.knowledge.needed_by.get(tool, ()) if other.agent != agent.id
    )
    since = shown_line(seen.registry.down.get(agent.id, ""))
    can = Counter(entry.capability for tool in agent.tools for entry in known.of.get(tool.id, ()))
    facts = (
        ("Instructions", shown_text(agent.instructions)),
        ("Category", shown_line(agent.category)),
        ("Down", f"it did not answer when last asked; its tools are as of {since}" if since else ""),
        ("Not called for now", shown_text(seen.registry.unavailable().get(agent.id, ""))),
    )
    return Node(
        id=agent.id,
        label=shown_line(agent.id),
        kind="agent",
        title=shown_line(agent.name) if agent.name != agent.id else "",
        about=shown_text(agent.description),
        facts=tuple(Said(term, text) for term, text in facts if text),
        pins=tuple(map(_change, seen.changes(agent.id))),
        groups=_groups(
            ("above", "Can do", [_capability(known, name, "capability", _tools(n)) for name, n in can.most_common()]),
            ("before", "Needed by", _agents(seen, needed)),
            ("after", "Needs", _agents(seen, needs)),
            ("below", "Tools", [beside(tool.id, seen.catalog, "owner", "") for tool in agent.tools]),
        ),
    )


def _agents(seen: Seen, found: Counter[str]) -> list[Neighbour]:
    """Agents by their number of dependencies, highest first."""
    return [beside(agent, seen.catalog, "agents", _dependencies(n)) for agent, n in found.most_common()]


def _change(change: Change) -> Said:
    term = "In quarantine" if change.quarantines else "Changed"
    return Said(term, shown_text(told(change)), shown_text(diff_of(change)))


def _groups(*given: tuple[Side, str, list[Neighbour]]) -> tuple[Group, ...]:
    return tuple(Group(side, title, len(items), tuple(items[:MOST])) for side, title, items in given if items)


def _edge(seen: Seen, tool: str, edge: Dependency, meaning: str) -> Neighbour:
    said = [meaning if not edge.parameter else f"{meaning}: {shown_line(edge.parameter)}"]
    if edge.provenance is not Provenance.DECLARED:
        said.append(f"{edge.provenance}, {edge.confidence:.0%} sure")
    if edge.reason:
        said.append(shown_line(edge.reason))
    return beside(tool, seen.catalog, _KINDS[edge.kind][0], "; ".join(said), unreviewed=not edge.holds)


def _capability(known: Assignments, name: str, relation: str, words: str) -> Neighbour:
    entry = known.taxonomy.by_id.get(name)
    label, about = (entry.name, entry.definition) if entry else (name, "")
    return Neighbour(name, shown_line(label), "capability", shown_line(about), relation=relation, words=words)


def _by(entry: Assigned) -> str:
    if entry.by == "declared":
        return "according to its author"
    return f"according to {'its text' if entry.by == 'text' else 'a model'}, {entry.confidence:.0%} confidence"


def _how_sure(entries: Iterable[Assigned], capability_id: str) -> str:
    exact = next((entry for entry in entries if entry.capability == capability_id), None)
    return _by(exact) if exact else "by a part of it"


def _field(parameter: Parameter) -> Field:
    values = ", ".join(map(str, parameter.enum[:20]))
    said = (
        parameter.description,
        f"one of: {values}" if values else "",
        f"format: {parameter.format}" if parameter.format else "",
        "" if parameter.default is None else f"default: {parameter.default!r}",
    )
    about = shown_text("\n".join(filter(None, said)))
    return Field(shown_line(parameter.name), shown_line(parameter.type), parameter.required, about)


def _facts_of_tool(seen: Seen, tool: Tool) -> Iterator[Said]:
    if tool.core:
        yield Said("Core tool", "many tools depend on it")
    if tool.annotations:
        claimed = ", ".join(f"{name}: {value}" for name, value in tool.annotations.items())
        yield Said("Hints of its author", shown_text(claimed))
    yield Said("Calls", _calls(seen.registry, tool.id))


def _calls(registry: ToolRegistry, tool: str) -> str:
    """Whether a tool can be called, and whether that needs approval."""
    if tool not in registry.catalog.tools:
        return "none: its server has changed it, or does not offer it any more"
    assured = registry.assurance(tool)
    if not assured.callable:
        return "none: it is known from a manifest only"
    why = assured.why("risky")
    return f"need approval: {why}" if why else "need no approval"


def _schemas(tool: Tool) -> Iterator[Said]:
    yield Said("Input schema", _json(tool.input_schema))
    if tool.output_schema is not None:
        yield Said("Output schema", _json(tool.output_schema))


def _json(value: Mapping[str, Any]) -> str:
    return shown_text(json.dumps(value, ensure_ascii=False, indent=2, default=str), most=_LARGEST)


def _tools(n: int) -> str:
    return f"{n:,} of its tools" if n > 1 else "one of its tools"


def _dependencies(n: int) -> str:
    return counted(n, "dependency", "dependencies")
