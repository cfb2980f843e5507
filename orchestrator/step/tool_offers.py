"""The offers of tools to a worker."""

from __future__ import annotations

from collections.abc import Mapping

from callsheet.agents import ApprovalPolicy, BoundTool, Offer, ToolRegistry, checkpointer


def offers_of(
    registry: ToolRegistry,
    bound: Mapping[str, BoundTool],
    scores: Mapping[str, float],
    policy: ApprovalPolicy,
    *,
    by_rules: bool,
) -> tuple[Offer, ...]:
    """The offers of a step, with what a call may do and whether it needs approval, which rules depend on.

    Args:
        registry: All tools.
        bound: The tools by the names that the worker sees.
        scores: The retriever's score by tool id.
        policy: Which calls of the run need approval.
        by_rules: Whether rules choose the calls, without a model.
    """
    names = {tool.id: name for name, tool in bound.items()}
    can_ask = checkpointer() is not None
    offers = []
    for name, tool in bound.items():
        offer = Offer(name=name, tool=tool.id, score=scores[tool.id])
        if tool.id in registry.catalog.tools:  # otherwise its server has just withdrawn it, and a call fails
            assured = registry.assurance(tool.id)
            asks = can_ask and bool(assured.why(policy, by_rules=by_rules))
            sources = _sources(registry, tool.id, names)
            offer = offer.model_copy(update={"harm": assured.harm, "confirmed": asks, "sources": sources})
        offers.append(offer)
    return tuple(offers)


def _sources(registry: ToolRegistry, tool: str, names: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Parameter -> offered tools that provide its value, by the catalog's dependencies."""
    sources: dict[str, tuple[str, ...]] = {}
    for edge in registry.catalog.tool(tool).depends_on:
        if edge.holds and edge.tool in names:
            key = edge.parameter or ""
            sources[key] = (*sources.get(key, ()), names[edge.tool])
    return sources
