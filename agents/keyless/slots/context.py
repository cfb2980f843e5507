"""What the rules for slots read and fill."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.entities.result_values import composed, reading
from callsheet.agents.keyless.language.references import refers_back, with_value
from callsheet.agents.keyless.slots.slot import Slot, stem, words_of
from callsheet.agents.keyless.slots.value_formats import is_formatted
from callsheet.agents.planning.plan import StepResult

_REFERS = re.compile(
    r"\b(?:it|its|that|this|them|those|these|both|all|each|results?|answers?|values?|output|summary|translation|report"
    r"|average|total|sum|time|text|list|number|contents?|lines)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules read and fill.

    Attributes:
        pool: The step's evidence.
        inputs: Finished results that the step refers to.
        slots: All slots of the tool, because slots compete for evidence.
        filled: Values so far; a rule may fill several slots at once.
    """

    pool: Pool
    inputs: tuple[StepResult, ...]
    slots: Sequence[Slot]
    filled: dict[str, Any] = field(default_factory=dict)

    @property
    def open(self) -> list[Slot]:
        """Required slots without a value."""
        return [slot for slot in self.slots if slot.required and slot.name not in self.filled]

    @property
    def loose(self) -> list[Slot]:
        """Required slots without a value that take any text."""
        return [s for s in self.open if s.textual and not s.vocabulary and not is_formatted(s)]

    @property
    def texts(self) -> list[Evidence]:
        """The unused quotations, and the names that are no words of the tool, in text order."""
        own = {stem(word) for slot in self.slots[:1] for word in words_of(slot.about.split(". ")[0])}
        own |= {stem(word) for slot in self.slots for word in slot.words}
        found = self.pool.free(Kind.QUOTED, Kind.NAME)
        return [i for i in found if i.kind is Kind.QUOTED or own.isdisjoint(map(stem, words_of(str(i.value))))]

    @property
    def numbers(self) -> list[float | int]:
        """The numbers in the earlier results; none if the text has numbers and refers to no result."""
        if any(item.kind is Kind.NUMBER for item in self.pool.items) and not refers_back(self.pool.bare):
            return []
        texts = [(done, said) for done in with_value(self.inputs) for said in (self.pool.bare, done.text)]
        found: dict[str, float | int] = {}
        for done, said in texts:
            if done.id not in found and (number := reading(done, said).number) is not None:
                found[done.id] = number
        return list(found.values())

    @property
    def composed(self) -> str | None:
        """The results as text, which are then used; None if one was cut."""
        self.pool.uses_results = True
        return composed(with_value(self.inputs))

    @property
    def refers(self) -> bool:
        """Whether the text refers to the results that the step uses."""
        return bool(self.inputs) and bool(_REFERS.search(self.pool.bare) or not self.pool.free(Kind.QUOTED))
