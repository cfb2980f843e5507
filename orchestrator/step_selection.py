"""The selection for one step of a plan, with notes for a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from callsheet.retrievers import Selection

_BESIDE = ("left_out", "down", "not_given", "why")


@dataclass(frozen=True, slots=True)
class StepSelection:
    """The selection for one step, and what happened when it was made.

    Attributes:
        selection: The agents, tools and skills; empty if nothing could be retrieved.
        left_out: Agent id -> the reason why the agent was left out of the search.
        down: Selected agent id -> the time of its last list of tools, if it did not answer when it was last asked.
        not_given: Id of a tool or skill that the plan names but the worker does not get -> the reason.
        why: Tool id -> the reason why it was selected.
        error: Why nothing could be retrieved; empty if something could.
    """

    selection: Selection
    left_out: Mapping[str, str] = field(default_factory=dict)
    down: Mapping[str, str] = field(default_factory=dict)
    not_given: Mapping[str, str] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    error: str = ""

    @property
    def agent_ids(self) -> list[str]:
        """Returns the ids of the selected agents."""
        return [agent.id for agent in self.selection.agents]

    @property
    def tool_ids(self) -> list[str]:
        """Returns the ids of the selected tools, each once, agent by agent."""
        return list(dict.fromkeys(tool.id for agent in self.selection.agents for tool in agent.tools))

    def to_dict(self) -> dict[str, Any]:
        """Returns the selection as JSON values for the state of a graph."""
        if self.error:
            return {"error": self.error}
        beside = {name: dict(getattr(self, name)) for name in _BESIDE}
        return {**self.selection.to_dict(), **{name: known for name, known in beside.items() if known}}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | None) -> StepSelection:
        """Reads the result of ``to_dict``; without a value, the selection is empty.

        A state may be written by hand: if a selection cannot be read, its ``error`` says why.
        """
        if not value or value.get("error"):
            return cls(Selection(""), error=str((value or {}).get("error") or ""))
        beside: dict[str, Any] = {name: value.get(name) or {} for name in _BESIDE}
        try:
            return cls(_selections().validate_python(value), **beside)
        except ValidationError as error:
            return cls(Selection(""), error=f"what was selected cannot be read: {error.errors()[0]['msg']}")


@cache
def _selections() -> TypeAdapter[Selection]:
    return TypeAdapter(Selection)
