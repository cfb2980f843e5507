"""Chooses the tool of a step: the best one that all of the step goes into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callsheet.agents.no_model.filling import Filled, fill
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.tools.registry import ToolRegistry
from callsheet.graphs.catalog.model import Tool


@dataclass(frozen=True, slots=True)
class StepReading:
    """A step with the tool for it.

    Attributes:
        text: The text of the step.
        tool: The tool; without one that fits, the nearest.
        filled: What the step gives to it.
        harmless: Whether the tool is known to change nothing.
        others: Ids of other tools that the step fits as well, if no word of it names one.
    """

    text: str
    tool: Tool
    filled: Filled
    harmless: bool
    others: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the tool is clear, nothing is missing and nothing is left over."""
        return self.filled.complete and not self.others

    @property
    def certain(self) -> bool:
        """Whether it is complete by values and names, not as a question, which any words are."""
        return self.complete and not self.filled.question


def read_step(
    text: str, tools: Sequence[str], registry: ToolRegistry, results: Sequence[StepResult] = ()
) -> StepReading | None:
    """The reading of a step with the best of its tools; None without tools.

    Args:
        text: The text of the step.
        tools: Ids of its tools, best first.
        registry: The tools, and what is known about them.
        results: The results of earlier steps.
    """
    readings = [_reading(text, tool_id, registry, results) for tool_id in tools if tool_id in registry.catalog.tools]
    complete = [reading for reading in readings if reading.complete]
    named = [reading for reading in complete if reading.filled.named]
    if best := next((r for r in named if r.certain), next(iter(named), None)):
        return best
    if alone := [reading for reading in complete if reading.harmless and reading.certain]:
        first, *others = alone
        return StepReading(text, first.tool, first.filled, first.harmless, tuple(other.tool.id for other in others))
    if asked := [reading for reading in complete if reading.filled.question]:
        return asked[0]
    return min(
        readings, key=lambda r: len(r.filled.unused) + len(r.filled.missing) + (not r.filled.named), default=None
    )


def _reading(text: str, tool_id: str, registry: ToolRegistry, results: Sequence[StepResult]) -> StepReading:
    tool = registry.catalog.tool(tool_id)
    harmless = registry.assurance(tool_id).harm == "none"
    agent = registry.catalog.agent(tool.agent)
    return StepReading(text, tool, fill(tool, agent, text, results, harmless=harmless), harmless)
