"""Discovers tools by capabilities, as ToolKG does, but without a language model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from callsheet.graphs import Catalog
from callsheet.retrievers.capabilities.capability_index import LIKELY
from callsheet.retrievers.selection.result import PickedTool, Selection, Verdict

if TYPE_CHECKING:
    from callsheet.retrievers.selection.selector import Selector

WEIGHT = 0.15
CUT = 0.0025
AGENTS = 10
INSPECTED = 3
_SOURCES = 5


@dataclass(frozen=True, slots=True)
class Inspected:
    """A tool that was considered: its expected use, its link to the likely capabilities, and why it was rejected."""

    id: str
    use: float
    link: float
    capabilities: tuple[str, ...]
    requires: tuple[str, ...]
    kept: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a request may need, and at most ``budget`` tools for it; everything is sorted by likelihood.

    Attributes:
        capabilities: Id of a capability that the request may need -> likelihood, 0 to 1.
        actions: The types of action of these: the next broader capability of each, or itself at the top.
        sources: Id of an agent that may serve the request -> share in the expected use of all considered tools, 0 to 1.
    """

    query: str
    budget: int
    capabilities: Mapping[str, float]
    actions: tuple[str, ...]
    sources: Mapping[str, float]
    inspected: tuple[Inspected, ...]
    candidates: tuple[PickedTool, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Returns the discovery as JSON values, for ``callsheet discover --json``."""
        return asdict(self)


def discover(selector: Selector, query: str, *, budget: int = 5, **changes: object) -> Discovery:
    """Finds a few tools for a request by the capabilities that it asks for.

    Source: *Representing Agentic Tools in Knowledge Graphs* (GenAIK-NORA 2026), the discovery workflow:

    1. From the query to the likely capabilities, data sources and types of action. Here: the confidence that the words
       of the query ask for a capability, and the capabilities of the tools that match its meaning
       (``CapabilityIndex.asked``, ``likely``); sources are agents by the expected use of their tools.
    2. From these to the linked tools and their servers. Here: a sure capability raises the score of its tools and so
       of their agents (``CapabilityIndex.evidence``).
    3. Inspection of a few tools. Here: the 3 B tools with the highest expected use, each with its link to the likely
       capabilities (``CapabilityIndex.link``) and its required parameters.
    4. The candidates under a tool budget B. Here: the tools with ``E(t) * l(t) >= .0025 / B^2`` and the tools that
       they require, at most B, at least one.

    In the paper, a language model does the steps, and tools without capabilities are lost. Here, a tool without
    capabilities is judged by its expected use alone: capabilities raise scores, and filter only because B is small.

    Args:
        selector: A selector with a ``CapabilityIndex``.
        query: The request.
        budget: B.
        changes: Fields of ``SelectSettings``, above all ``capability_weight``, ``capability_sure`` and ``cut``.

    Raises:
        SettingsError: A setting is invalid, or the selector has no ``CapabilityIndex``.
    """
    known = {"agents": max(AGENTS, budget), "tools": budget, "capability_weight": WEIGHT, "cut": CUT, "skills": 0}
    selection = selector.select(query, **{**known, **changes})
    uses = {node.id: node.use for node in selection.trace.nodes if node.kind == "tool" and node.use > 0}
    uses |= {tool.id: tool.use for tool in selection.tools}
    inspected = sorted(uses, key=lambda tool: -uses[tool])[: INSPECTED * budget]
    likely = dict(selection.trace.capabilities)
    capabilities = selector.capabilities.taxonomy.by_id
    return Discovery(
        query=selection.query,
        budget=budget,
        capabilities=likely,
        actions=tuple(dict.fromkeys(capabilities[name].broader or name for name in likely)),
        sources=_sources(uses, selector.catalog),
        inspected=tuple(_inspected(tool, uses[tool], selection, selector) for tool in inspected),
        candidates=selection.tools,
        verdict=selection.verdict,
    )


def _sources(uses: Mapping[str, float], catalog: Catalog) -> dict[str, float]:
    shares = defaultdict[str, float](float)
    total = sum(uses.values())
    for tool, use in uses.items():
        shares[catalog.tool(tool).agent] += use / total
    return dict(sorted(shares.items(), key=lambda one: -one[1])[:_SOURCES])


def _inspected(tool: str, use: float, selection: Selection, selector: Selector) -> Inspected:
    index = selector.capabilities
    kept = any(picked.id == tool for picked in selection.tools)
    has = index.of_tools[index.rows[tool]]
    reason = next((cut.reason for cut in selection.trace.cut if cut.id == tool), "the expected use is too small")
    return Inspected(
        id=tool,
        use=use,
        link=index.link(index.rows[tool], index.vector(selection.trace.capabilities)),
        capabilities=tuple(index.leaves[place] for place in np.argsort(-has, kind="stable") if has[place] >= LIKELY),
        requires=tuple(p.name for p in selector.catalog.tool(tool).parameters if p.required),
        kept=kept,
        why="" if kept else reason,
    )
