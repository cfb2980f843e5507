"""The tools that a selection may hold: so many, and so many tokens of schemas."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from callsheet.retrievers.selection.result import Cut, PickedTool
from callsheet.retrievers.selection.schema_tokens import SchemaTokens


@dataclass(slots=True)
class Budget:
    """The tools taken so far, in order, and those that did not fit.

    Attributes:
        tools: At most how many.
        schema_tokens: At most how many tokens their schemas may cost; no bound where None.
        count: Counts those tokens.
        taken: Tool id -> the agent it was taken for, and the tool.
        cut: Tool id -> what did not fit, and why.
    """

    tools: int
    schema_tokens: int | None
    count: SchemaTokens
    taken: dict[str, tuple[str, PickedTool]] = field(default_factory=dict)
    cut: dict[str, Cut] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether no tool fits any more, however small."""
        return len(self.taken) >= self.tools

    def offer(self, agent: str, group: Sequence[PickedTool]) -> None:
        """Takes these tools for an agent, all or none; the very first group is taken as far as it fits."""
        new = list({tool.id: tool for tool in group if tool.id not in self.taken}.values())
        if not new:
            return
        trouble = self._trouble(new)
        while trouble and not self.taken and len(new) > 1:
            self.leave_out(new.pop(), trouble)
            trouble = self._trouble(new)
        for tool in new:
            if trouble:
                self.leave_out(tool, trouble)
            else:
                self.taken[tool.id] = (agent, tool)
                self.cut.pop(tool.id, None)

    def leave_out(self, tool: PickedTool, why: str) -> None:
        """Notes why a tool is not taken; the first reason stays."""
        self.cut.setdefault(tool.id, Cut(tool.id, tool.score, why))

    def _trouble(self, new: Sequence[PickedTool]) -> str:
        room = self.tools - len(self.taken)
        if len(new) > room:
            return (
                f"only {room} left, with its requirements {len(new)}"
                if room and len(new) > 1
                else "the budget is spent"
            )
        if self.schema_tokens is None:
            return ""
        cost = self.count.count([*self.taken, *(tool.id for tool in new)])
        return f"{cost} tokens of schemas, {self.schema_tokens} are allowed" if cost > self.schema_tokens else ""
