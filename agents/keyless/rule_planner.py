"""The rule-based planner: splits a request into steps with dependencies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from callsheet.agents.keyless.accounting import ambiguous, computed
from callsheet.agents.keyless.language.clauses import Clause, Link, clauses, words
from callsheet.agents.keyless.language.lexicon import MOST, NEUTRAL, PATH, RESULT_NOUNS
from callsheet.agents.keyless.language.references import refers_back, refers_to_one, refers_to_several
from callsheet.agents.keyless.tool_choice import candidates
from callsheet.agents.planning.plan import Plan, Step, StepResult
from callsheet.agents.safety.tool_effects import changes, is_act
from callsheet.agents.work.brief import Brief, Offer
from callsheet.graphs.catalog.errors import PlanError


def split(request: str, earlier: Collection[str] = ()) -> Plan:
    """Splits a request into steps by rules, in the request's own words.

    A step begins with each new imperative or question. It waits for earlier steps if an order word ("then", "after
    that") or a reference ("it", "both results") says so, or if both name the same file and one changes it. Otherwise
    steps are independent and may run in parallel.

    Args:
        request: What the user wrote.
        earlier: Ids of the results of the last request, for a first step that refers to a result.

    Returns:
        A plan of at least one step, in the words and the order of the request.

    Raises:
        PlanError: The request is empty, or too long for rules.

    Examples:
        >>> [(s.text, s.depends_on) for s in split("Read a.txt and email it to ann@example.com").steps]
        [('Read a.txt', ()), ('email it to ann@example.com', ('1',))]
    """
    if not request.strip():
        raise PlanError("the request is empty: say what is to be done")
    if len(request) > MOST:
        raise PlanError(
            f"without a model at most {MOST:,} characters of a request are read, and this has {len(request):,}: "
            "shorten it, put what is long into a file, or use a model"
        )
    found = clauses(request)
    if not found:
        return Plan(steps=(Step(id="1", text=request.strip()),), note="keyless: taken as one step")
    waits = dependencies(found)
    steps = tuple(
        Step(
            id=str(number),
            text=clause.text,
            depends_on=tuple(str(index + 1) for index in needs),
            uses=tuple(earlier) if number == 1 and refers_back(clause.masked) else (),
        )
        for number, (clause, needs) in enumerate(zip(found, waits, strict=True), start=1)
    )
    return Plan(steps=steps, note="planned by rules, without a model")


Offered = Callable[[Step], tuple[Sequence[Offer], Mapping[str, Mapping[str, Any]]]]
"""The tools for a step, and their functions in OpenAI's format by name."""


def unclear_steps(plan: Plan, offered: Offered, earlier: Mapping[str, StepResult]) -> tuple[str, ...]:
    """The texts of the steps that no tool does as they stand, so that rules must not change anything for the others.

    "Cancel order 5. Check with Ann first." would cancel the order otherwise. A missing value is no reason, because a
    person may give it.

    Args:
        plan: The steps of a request.
        offered: Finds the tools for a step.
        earlier: Results of earlier requests by id.
    """
    return tuple(step.text for step in plan.steps if not _is_clear(step, plan, offered, earlier))


def _is_clear(step: Step, plan: Plan, offered: Offered, earlier: Mapping[str, StepResult]) -> bool:
    offers, functions = offered(step)
    waits = (plan.step(name) for name in plan.ancestors(step.id))
    expected = [StepResult(id=one.id, text=one.text, result='{"id": 1}') for one in waits if one]
    inputs = (*(earlier[name] for name in step.uses if name in earlier), *expected)
    anyone = tuple(offer.model_copy(update={"confirmed": True, "sources": {}}) for offer in offers)
    best = next(iter(candidates(Brief(text=step.text, offers=anyone, inputs=inputs), functions)), None)
    if best is None or best.other or best.objection or best.invalid:
        return False
    unknown = {word.lower() for part in best.unused for word in words(part) or [part]}
    return unknown <= (_REFERENCES if expected else frozenset())


_REFERENCES = NEUTRAL | RESULT_NOUNS | frozenset("both each everything them".split())
"""Words for a result that is not known yet."""


def dependencies(found: Sequence[Clause]) -> list[tuple[int, ...]]:
    """For each clause, the indices of the earlier clauses that it uses or must wait for."""
    waits: list[tuple[int, ...]] = []
    makers: list[frozenset[str]] = []
    for index, clause in enumerate(found):
        used = {i for earlier in waits for i in earlier}
        needed = _same_objects(found, index)
        if clause.link is Link.LAST or refers_to_several(clause.masked):
            needed |= set(range(index)) - used
        elif clause.link is Link.THEN or refers_to_one(clause.masked):
            needed |= {index - 1} if index else set()
        if unclear := ambiguous(clause.masked, makers):
            needed |= {i for i, nouns in enumerate(makers) if nouns & unclear}
        makers.append(computed(clause.text))
        waits.append(tuple(sorted(needed)))
    return waits


def _same_objects(found: Sequence[Clause], index: int) -> set[int]:
    """Earlier steps to wait for, because one of the two changes what the other names, or lists everything."""
    paths, change = _paths_of(found[index]), _changes(found[index])
    looks = not change and "¤" not in found[index].masked and is_act(_verb(found[index]))
    return {
        i
        for i, earlier in enumerate(found[:index])
        if (_changes(earlier) and looks and _paths_of(earlier))
        or ((_changes(earlier) or change) and paths & _paths_of(earlier))
    }


def _paths_of(clause: Clause) -> set[str]:
    return {match.group().lower() for match in PATH.finditer(clause.text)}


def _changes(clause: Clause) -> bool:
    return changes(_verb(clause))


def _verb(clause: Clause) -> str:
    return next(iter(words(clause.masked)), "").lower()
