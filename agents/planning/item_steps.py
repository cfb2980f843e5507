"""Splits a step that is done for each item of a result into one step per item."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import count
from typing import Any

from callsheet.agents.planning.item_texts import item_text
from callsheet.agents.planning.plan import Plan, Step, StepResult
from callsheet.agents.planning.planner import source_of
from callsheet.agents.planning.revision import Revision
from callsheet.agents.work.value_references import ResultValueError, value_at, value_of
from callsheet.graphs.catalog.errors import PlanError

_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")


class ItemsError(PlanError):
    """The items of a step cannot be read, or are too many."""


def items_of(step: Step, *sources: StepResult, max_items: int = 20) -> list[Any]:
    """The items of a mapped step.

    They are a JSON list at the step's path in the result, the only list in a JSON object, or the lines of a text: only
    those with a bullet or number, if some have one. An empty text has no items. If the source was itself done once per
    item, each of its results counts as an item unless it is a list.

    Args:
        step: Its ``for_each`` names the result, with an optional path.
        sources: That result; or the results of a step that was done once per item.
        max_items: Maximum number of items.

    Raises:
        ItemsError: There is no list, or it is too long.
    """
    name = source_of(step.for_each, [source.id for source in sources])
    path = step.for_each.removeprefix(name).lstrip(".")
    items: list[Any] = []
    for source in sources:
        try:
            value = value_at(value_of(source), path)
        except ResultValueError as error:
            raise ItemsError(f"the items of step {step.id} cannot be read: {error}") from error
        listed = _listed(value)
        if listed is None and source.id == name:
            why = f"the result of step {source.id} is not a list"
            raise ItemsError(f"the items of step {step.id} cannot be read: {why}")
        items += [value] if listed is None else listed
    if len(items) > max_items:
        raise ItemsError(
            f"step {step.id} would be done for {len(items)} items, at most {max_items} are allowed: "
            "ask for fewer at once, or raise max_items"
        )
    return items


def expanded(plan: Plan, step: Step, items: Sequence[Any], *, wave: int) -> tuple[Plan, Revision]:
    """The plan with one step per item in place of a step; steps that depended on it depend on all of them."""
    taken = {one.id for one in plan.steps}
    names = (f"{step.id}.{number}" for number in count(1))
    free = (name for name in names if name not in taken)
    parts = [_for_item(step, name, item) for name, item in zip(free, items, strict=False)]
    ids = tuple(part.id for part in parts)
    steps: list[Step] = []
    for one in plan.steps:
        if one.id == step.id:
            steps += parts
        else:
            waits = tuple(name for old in one.depends_on for name in (ids if old == step.id else (old,)))
            steps.append(one.model_copy(update={"depends_on": waits}))
    source = source_of(step.for_each, step.depends_on)
    why = f"step {step.id} is done once for each of {len(items)} items of step {source}"
    texts = {part.id: part.text for part in parts} | {step.id: step.text}
    return plan.model_copy(update={"steps": tuple(steps)}), Revision(
        wave=wave, added=ids, changed=(step.id,), reason=why, texts=texts
    )


def _for_item(step: Step, name: str, item: Any) -> Step:
    whole = json.dumps(item, ensure_ascii=False)
    return step.model_copy(update={"id": name, "text": item_text(step.text, item), "item": whole})


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        if list(value.values()) == [""]:
            return []
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        return lists[0] if len(lists) == 1 else None
    if isinstance(value, list):
        return value
    lines = [line for line in value.splitlines() if line.strip()] if isinstance(value, str) else []
    if value == "":
        return []
    if marked := [line for line in lines if _BULLET.match(line)]:
        return [_BULLET.sub("", line).strip() for line in marked]
    return [line.strip() for line in lines] if len(lines) > 1 else None
