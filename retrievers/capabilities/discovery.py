"""From a request by way of the graph to a few candidates: the discovery of ToolKG, without a language model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from callsheet.retrievers.capabilities.assignment import LIKELY
from callsheet.retrievers.selection.result import PickedTool, Selection, Verdict

if TYPE_CHECKING:
    from callsheet.retrievers.selection.selector import Selector

WEIGHT, CUT = 0.15, 0.0025
AGENTS, INSPECTED, _NAMED = 10, 3, 5


@dataclass(frozen=True, slots=True)
class LikelyCapability:
    """A capability that a request may need.

    Attributes:
        id: Its id.
        action: The type of action it is: its wider capability under the cluster.
        likelihood: How likely it is needed, 0 to 1.
        tools: How many tools are linked to it, at least .5 sure.
        agents: How many agents own those.
    """

    id: str
    action: str
    likelihood: float
    tools: int
    agents: int


@dataclass(frozen=True, slots=True)
class LikelySource:
    """An agent that may hold what is asked for.

    Attributes:
        id: Its id.
        share: Its share in the expected use of all tools that were looked at, 0 to 1.
    """

    id: str
    share: float


@dataclass(frozen=True, slots=True)
class Inspected:
    """A tool that was looked at.

    Attributes:
        id: Its id.
        use: How often it is expected to be needed, over all that is asked for.
        link: How closely it is linked to the likely capabilities, .1 to 1.
        capabilities: What it is at least .5 sure to be able to do, the surest first.
        requires: The parameters that a call must give.
        kept: Whether it is among the candidates.
        why: Why it is not; empty where it is.
    """

    id: str
    use: float
    link: float
    capabilities: tuple[str, ...]
    requires: tuple[str, ...]
    kept: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What came of a discovery.

    Attributes:
        query: The request.
        budget: B, at most how many candidates.
        capabilities: What it may need, the likeliest first.
        sources: Who may hold it, the likeliest first.
        inspected: The tools that were looked at, the likeliest first.
        candidates: What is left, best first.
        verdict: ``nothing_fits`` when even the best is too far from the request to be of use.
    """

    query: str
    budget: int
    capabilities: tuple[LikelyCapability, ...]
    sources: tuple[LikelySource, ...]
    inspected: tuple[Inspected, ...]
    candidates: tuple[PickedTool, ...]
    verdict: Verdict

    @property
    def actions(self) -> tuple[str, ...]:
        """The types of action that may be needed, the likeliest first."""
        return tuple(dict.fromkeys(capability.action for capability in self.capabilities))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as ``callsheet discover --json`` prints them."""
        return {**asdict(self), "actions": list(self.actions)}


def discover(selector: Selector, query: str, *, budget: int = 5, **changes: object) -> Discovery:
    """The few tools that a request needs, by way of the capabilities that it asks for.

    Source: *Representing Agentic Tools in Knowledge Graphs* (GenAIK-NORA 2026), the discovery workflow:

    1. From the query to the likely capabilities, data sources and types of action. Here: how sure it is that the words
       of the query ask for a capability, and which capabilities the tools have that its meaning leads to
       (``CapabilityIndex.asked``, ``likely``); sources are agents by the expected use of their tools.
    2. From these to the tools that are linked to them and to their servers. Here: a sure capability raises the score
       of its tools and so of their agents (``CapabilityIndex.evidence``).
    3. Inspection of a few. Here: the three times B tools that are expected to be used most, each with its link to the
       likely capabilities (``CapabilityIndex.link``) and what a call must give.
    4. The candidates under a tool budget B. Here: those of them that are worth a place,
       ``E(t) * l(t) >= .0025 / B^2``, with what they cannot do without, at most B; at least one.

    Where the paper lets a language model do the steps and loses the tools that have no capability, a tool without one
    is here judged by its expected use alone: capabilities may raise, and filter only because B is small.

    Args:
        selector: Finds and knows the tools of a catalog; it must have been given its capabilities.
        query: The request.
        budget: B.
        changes: Fields of ``SelectSettings``, above all ``capability_weight``, ``capability_sure`` and ``cut``.

    Raises:
        SettingsError: A setting cannot work, or the selector knows no capabilities.
    """
    settings = {"agents": max(AGENTS, budget), "tools": budget, "capability_weight": WEIGHT, "cut": CUT, **changes}
    selection = selector.select(query, **settings)
    likely = selection.trace.capabilities
    uses = {node.id: node.use for node in selection.trace.nodes if node.kind == "tool" and node.use > 0}
    uses |= {tool.id: tool.use for tool in selection.tools}
    looked_at = sorted(uses, key=lambda tool: -uses[tool])[: INSPECTED * budget]
    return Discovery(
        query=selection.query,
        budget=budget,
        capabilities=tuple(_linked(name, share, selector) for name, share in likely.items()),
        sources=_sources(uses, selector),
        inspected=tuple(_inspected(tool, selection, selector) for tool in looked_at),
        candidates=selection.tools,
        verdict=selection.verdict,
    )


def _linked(name: str, likelihood: float, selector: Selector) -> LikelyCapability:
    tools = selector.capabilities.having(name, at_least=LIKELY)
    owners = {selector.catalog.tool(tool).agent for tool in tools}
    action = selector.capabilities.taxonomy.at(1, name)
    return LikelyCapability(name, action, likelihood, len(tools), len(owners))


def _sources(uses: Mapping[str, float], selector: Selector) -> tuple[LikelySource, ...]:
    total = sum(uses.values())
    shares: dict[str, float] = {}
    for tool, use in uses.items():
        agent = selector.catalog.tool(tool).agent
        shares[agent] = shares.get(agent, 0.0) + use / total
    best = sorted(shares, key=lambda agent: -shares[agent])[:_NAMED]
    return tuple(LikelySource(agent, shares[agent]) for agent in best)


def _inspected(tool: str, selection: Selection, selector: Selector) -> Inspected:
    index = selector.capabilities
    has = index.of_tools[index.rows[tool]]
    able = [index.leaves[place] for place in np.argsort(-has, kind="stable").tolist() if has[place] >= LIKELY]
    kept = next((picked for picked in selection.tools if picked.id == tool), None)
    use = kept.use if kept else next(node.use for node in selection.trace.nodes if node.id == tool)
    cut = next((left.reason for left in selection.trace.cut if left.id == tool), "not worth a place")
    return Inspected(
        id=tool,
        use=use,
        link=index.link(index.rows[tool], index.vector(selection.trace.capabilities)),
        capabilities=tuple(able),
        requires=tuple(p.name for p in selector.catalog.tool(tool).parameters if p.required),
        kept=kept is not None,
        why="" if kept else cut,
    )
