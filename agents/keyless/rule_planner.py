"""The rule-based planner: splits a request into steps with dependencies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from callsheet.agents.keyless.accounting import ambiguous, computed
from callsheet.agents.keyless.language.clauses import Clause, Link, clauses, words
from callsheet.agents.keyless.language.lexicon import MOST, PATH
from callsheet.agents.keyless.language.references import refers_back, refers_to_one, refers_to_several
from callsheet.agents.planning.plan import Plan, Step
from callsheet.agents.safety.tool_effects import changes, is_act
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
