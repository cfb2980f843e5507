"""The rule-based planner: splits a request into steps with dependencies."""

from __future__ import annotations

from collections.abc import Collection

from callsheet.agents.keyless.language.clauses import clauses
from callsheet.agents.keyless.language.spans import MOST
from callsheet.agents.keyless.language.step_links import dependencies, refers_back
from callsheet.agents.planning.plan import Plan, Step
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
            uses=tuple(earlier) if number == 1 and refers_back(clause) else (),
        )
        for number, (clause, needs) in enumerate(zip(found, waits, strict=True), start=1)
    )
    return Plan(steps=steps, note="planned by rules, without a model")
