"""The calls that rules send for a request to given tools, without servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.agents.keyless import split, unclear_steps
from callsheet.agents.keyless.slots.slot import words_of
from callsheet.agents.keyless.tool_choice import candidates
from callsheet.agents.planning.plan import Step, StepResult
from callsheet.agents.safety.tool_effects import alike, harm_of, verb_of
from callsheet.agents.work.brief import Brief, Offer
from callsheet.graphs import Tool

WHOLE, NUMBER, TEXT, FLAG = {"type": "integer"}, {"type": "number"}, {"type": "string"}, {"type": "boolean"}
DAY, TEXTS = {"type": "string", "format": "date"}, {"type": "array", "items": TEXT}
CLOCK = {"type": "string", "format": "time"}
Calls = list[tuple[str, dict[str, Any]]]


def one_of(*values: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(values)}


def tool(name: str, description: str, required: str = "", results: str = "", /, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    told = {"type": "object", "properties": dict.fromkeys(results.split(), NUMBER)} if results else None
    return Tool(agent="house", name=name, description=description, input_schema=schema, output_schema=told)


class World:
    """Some tools, as a worker is offered them."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = tools
        self._functions = {
            t.name: {"name": t.name, "description": t.description, "parameters": t.input_schema} for t in tools
        }

    def _offers(self, text: str) -> tuple[Offer, ...]:
        """The tools whose words are in a step, as a retriever would find them, best first."""
        said = set(text.lower().replace("?", "").split())
        about = {t.name: {*t.description.lower().rstrip(".").split(), *words_of(t.name)} for t in self._tools}
        scores = {name: len(said & known) - len(known) / 100 for name, known in about.items()}
        found = sorted(self._tools, key=lambda t: -scores[t.name])[:12]
        others = [t for t in self._tools if t not in found]
        return tuple(
            Offer(
                name=t.name,
                tool=t.id,
                score=scores[t.name],
                harm=harm_of(t, trusted=False),
                confirmed=True,
                results=tuple(output.name for output in t.outputs),
                rivals=sum(verb_of(other.name) in alike(verb_of(t.name)) for other in others),
            )
            for t in found
        )

    def _offered(self, step: Step) -> tuple[tuple[Offer, ...], Mapping[str, Any]]:
        return self._offers(step.text), self._functions

    def calls(self, request: str, before: Sequence[StepResult] = ()) -> Calls:
        """The calls for the steps of a request, all of which may use these results, and no other."""
        calls: Calls = []
        plan = split(request, [result.id for result in before])
        earlier = {result.id: result for result in before}
        unclear = unclear_steps(plan, self._offered, earlier) if len(plan.steps) > 1 else None
        for step in plan.steps:
            others = None if unclear is None else tuple(text for text in unclear if text != step.text)
            offers = self._offers(step.text)
            brief = Brief(text=step.text, request=request, offers=offers, inputs=tuple(before), unclear=others)
            best = next(iter(candidates(brief, self._functions)), None)
            if best is not None and best.ready:
                calls += [(best.offer.name, call.args) for call in best.calls]
        return calls
