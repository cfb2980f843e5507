"""A step that is done once for each item of a result becomes as many steps."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from callsheet.agents.planning.plan import Plan, Step, StepResult
from callsheet.agents.planning.planner import source_of
from callsheet.agents.planning.revision import Revision
from callsheet.agents.work.value_references import ResultValueError, value_at, value_of
from callsheet.graphs.catalog.errors import PlanError

_LABEL = 200
_PLACE = "{item}"
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_NAMES = ("name", "title", "id", "path", "key", "url")


class ItemsError(PlanError):
    """The items of a step cannot be read, or are too many."""


def items_of(step: Step, source: StepResult, *, max_items: int = 20) -> list[Any]:
    """The items that a step is done for.

    They are a JSON list at the step's path in the result, the only list of a JSON object, or the lines of a text of
    several lines: those with a bullet or number, where some have one.

    Args:
        step: Its ``for_each`` names the result, and a path in it.
        source: That result.
        max_items: Maximum number of items.

    Raises:
        ItemsError: There is no list, or it is too long.
    """
    path = step.for_each.removeprefix(source.id).lstrip(".")
    try:
        value = value_at(value_of(source), path)
    except ResultValueError as error:
        raise ItemsError(f"the items of step {step.id} cannot be read: {error}") from error
    items = _listed(value)
    if items is None:
        raise ItemsError(f"the items of step {step.id} cannot be read: the result of step {source.id} holds no list")
    if len(items) > max_items:
        raise ItemsError(
            f"step {step.id} would be done for {len(items)} items, at most {max_items} are allowed: "
            "ask for fewer at once, or raise max_items"
        )
    return items


def expanded(plan: Plan, step: Step, items: Sequence[Any], *, wave: int) -> tuple[Plan, Revision]:
    """The plan with a step for each item in place of a step; whatever waited for it waits for all of them.

    Args:
        plan: The plan.
        step: Which of its steps.
        items: At least one.
        wave: Number of waves that have run.
    """
    parts = [_for_item(step, number, item) for number, item in enumerate(items, 1)]
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


def _for_item(step: Step, number: int, item: Any) -> Step:
    label = _label(item)
    text = step.text.replace(_PLACE, label) if _PLACE in step.text else f"{step.text}: {label}"
    whole = json.dumps(item, ensure_ascii=False)
    return step.model_copy(update={"id": f"{step.id}.{number}", "text": text, "item": whole})


def _label(item: Any) -> str:
    """An item in few words: itself where it is short, else its name."""
    if isinstance(item, dict):
        item = next((item[name] for name in _NAMES if isinstance(item.get(name), str | int)), item)
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[:_LABEL]}…"


def _listed(value: Any) -> list[Any] | None:
    if isinstance(value, dict):
        lists = [inner for inner in value.values() if isinstance(inner, list)]
        return lists[0] if len(lists) == 1 else None
    if isinstance(value, list):
        return value
    lines = [line for line in value.splitlines() if line.strip()] if isinstance(value, str) else []
    if marked := [line for line in lines if _BULLET.match(line)]:
        return [_BULLET.sub("", line).strip() for line in marked]
    return [line.strip() for line in lines] if len(lines) > 1 else None
