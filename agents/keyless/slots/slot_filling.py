"""Arguments from a JSON Schema: each value has evidence in the text or in an earlier result, or is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.keyless.accounting import unused_words
from callsheet.agents.keyless.entities.evidence import Pool, with_digits
from callsheet.agents.keyless.entities.quantities import fill_quantities
from callsheet.agents.keyless.entities.result_values import read
from callsheet.agents.keyless.entities.time_zones import fill_zones
from callsheet.agents.keyless.slots.slot import slots_of
from callsheet.agents.keyless.slots.slot_rules import Context, apply
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.schema_validation import checked


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments found for a tool.

    Attributes:
        args: Arguments that have evidence and fit the schema.
        missing: Required parameters without evidence, in schema order.
        unused: Content words of the text that went into no argument, in text order.
    """

    args: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = field(default=(), compare=False)


def fill(schema: Mapping[str, Any], text: str, inputs: Sequence[StepResult] = (), *, plainly: bool = False) -> Filled:
    """Fills a tool's parameters from the text of a step and the results that it uses.

    No value is invented, and no sentence is used as a value: a required parameter without evidence is missing. Each
    piece of evidence is used once.

    Args:
        schema: JSON Schema of the arguments, with the tool's ``title`` and ``description`` at the top level.
        text: The text of the step.
        inputs: Results of the steps that it depends on.
        plainly: Whether question words count as content, as for a tool that may change something.

    Examples:
        >>> number = {"type": "number"}
        >>> fill({"properties": {"radius": number, "height": number}, "required": ["radius", "height"]}, "radius 5")
        Filled(args={'radius': 5}, missing=('height',))
    """
    text = with_digits(text)
    about = f"{schema.get('title') or ''}\n{schema.get('description') or ''}"
    pool = Pool.of(text)
    slots = slots_of(schema, about=about)
    done = tuple(given for given in inputs if given.status == "done")
    together = fill_zones(slots, pool) | fill_quantities(slots, pool, [read(given.result) for given in done])
    args = apply(Context(pool, done, slots, together))
    kept = {name: value for name, value in args.items() if _valid(name, value, schema)}
    ordered = {slot.name: kept[slot.name] for slot in slots if slot.name in kept}
    missing = tuple(s.name for s in slots if s.required and s.name not in kept)
    refused = tuple(f"{name} {value!r}" for name, value in args.items() if name not in kept)
    unused = unused_words(pool, about, slots, kept, builds_on=len(done), plainly=plainly)
    return Filled(ordered, missing, (*unused, *refused))


def _valid(name: str, value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value fits its property; an invalid schema rejects nothing but objects."""
    properties = schema.get("properties")
    spec = properties.get(name) if isinstance(properties, Mapping) else None
    if not isinstance(spec, Mapping):
        return False
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    found = checked({**shared, **spec}, value)
    return not isinstance(value, Mapping) if found.unchecked else not found.errors
