"""What the rules for arguments look at: evidence, earlier results, the tool's other parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.entities.result_values import read
from callsheet.agents.keyless.slots.slot import Slot
from callsheet.agents.planning.plan import StepResult

CONTENT = ("content", "contents", "text", "body", "data", "message", "note", "insight", "observation", "summary")
"""Names of parameters that take what was found."""

_REFERS = re.compile(
    r"\b(?:it|its|that|this|them|those|these|both|result|results|answer|answers|all|each|value|values|output|summary|translation"
    r"|report|average|total|sum|time|text|list|number|content|contents|lines)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules look at.

    Attributes:
        pool: The step's evidence.
        inputs: Finished results that it builds on.
        slots: All slots of the tool, so that a rule can see its rivals.
        filled: What the object has so far; a rule may fill a slot's rivals along with it.
        depth: How deep in nested objects.
    """

    pool: Pool
    inputs: tuple[StepResult, ...]
    slots: Sequence[Slot]
    filled: dict[str, Any] = field(default_factory=dict)
    depth: int = 0

    @property
    def open(self) -> list[Slot]:
        """The required slots that have no value yet."""
        return [slot for slot in self.slots if slot.required and slot.name not in self.filled]

    @property
    def numbers(self) -> list[float | int]:
        """The numbers that earlier results come to."""
        return [r.number for r in (read(done.result) for done in self.inputs) if r.number is not None]

    @property
    def refers(self) -> bool:
        """Whether the text points at the results it builds on."""
        return bool(self.inputs) and bool(_REFERS.search(self.pool.bare) or not self.pool.free(Kind.QUOTED))


Rule = Callable[[Slot, Context], Any]
"""Gives a slot's value, or None where it has no evidence."""
