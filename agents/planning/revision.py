"""Checks a model's revision of a running plan and applies it; makes one step per item of a mapped step."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, ConfigDict, Field

from callsheet.agents.calls.plan import (
    GAVE,
    Plan,
    Question,
    ResultValueError,
    Step,
    StepResult,
    named_value,
    plan_errors,
    source_of,
)
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.models.prompts import REVISER
from callsheet.agents.planning.planner import (
    PlanRevision,
    check_number,
    drafted_step,
    name_problems,
    read_draft,
)
from callsheet.agents.work.context import plan_lines, reports
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.names import named_tools
from callsheet.graphs.errors import PlanError


class Revision(BaseModel):
    """The changes that a revision made to a plan after a number of waves; steps are named by their ids.

    Attributes:
        changed: Steps with a new text or new dependencies, or replaced by one step per item.
        refused: Whether nothing was changed, because the model returned no revision that could be applied.
        texts: Step id -> text, of all steps that were added, changed or dropped.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    wave: int
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    reason: str = ""
    refused: bool = False
    texts: dict[str, str] = Field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Returns whether the revision changed anything."""
        return bool(self.added or self.changed or self.dropped)


def revise_plan(
    plan: Plan,
    draft: PlanRevision,
    results: Mapping[str, StepResult],
    catalog: Catalog,
    *,
    wave: int,
    request: str = "",
    max_steps: int = 12,
    earlier: Collection[str] = (),
) -> tuple[Plan, Revision]:
    """Applies a model's draft of a revision; returns the new plan and the changes.

    A step that is done does not change: a new step with its id gets another id. A failed step may get a new text, or be
    replaced: dropped together with new steps. A failed step that is only dropped stays, so that its failure is
    reported. Steps that depend on a replaced step then depend on the new ones.

    Raises:
        PlanError: A step repeats another one or has an unknown dependency, or there is a cycle.
        TooManyStepsError: The plan would grow beyond ``max_steps``.
    """
    done = {name for name, result in results.items() if result.status in GAVE}
    failed = set(results) - done
    known = [step.id for step in plan.steps]
    with plan_errors():
        drafted = [drafted_step(step, catalog, request, earlier, known) for step in draft.steps]
        new, changed = _new_and_changed(plan, drafted, done)
    added = [] if draft.done else new

    # A failed step goes only if new steps take its place; what waited for it then waits for the last ones of these.
    protected = {*done, *changed} if new else {*done, *changed, *failed}
    unneeded = set(known) - set(results) - set(changed) if draft.done else set[str]()
    dropped = set(known).intersection(draft.drop) - protected | unneeded
    instead = _last_ones(new) if dropped & failed else []
    steps = [_relinked(changed.get(step.id, step), dropped, instead) for step in plan.steps if step.id not in dropped]

    _check_repeats([step for step in plan.steps if step.id not in changed], [*added, *changed.values()])
    if len(steps) + len(added) > len(plan.steps):
        check_number(len(steps) + len(added), max_steps)
    with plan_errors():
        after = Plan(**{**dict(plan), "steps": (*steps, *added)})
    return after, _revision(plan, draft, added=added, changed=changed, dropped=dropped, wave=wave)


def _revision(
    plan: Plan,
    draft: PlanRevision,
    *,
    added: Sequence[Step],
    changed: Mapping[str, Step],
    dropped: Collection[str],
    wave: int,
) -> Revision:
    """Records what a draft changes in a plan."""
    texts = {step.id: step.text for step in [*plan.steps, *changed.values(), *added]}
    added_ids = tuple(step.id for step in added)
    dropped_ids = tuple(step.id for step in plan.steps if step.id in dropped)
    return Revision(
        wave=wave,
        added=added_ids,
        changed=tuple(changed),
        dropped=dropped_ids,
        reason=draft.reason.strip(),
        texts={name: texts[name] for name in [*added_ids, *changed, *dropped_ids]},
    )


def _new_and_changed(plan: Plan, drafted: Sequence[Step], done: Collection[str]) -> tuple[list[Step], dict[str, Step]]:
    """Divides the drafted steps into new ones, and (by id) unfinished ones that change; the rest is as before."""
    new: list[Step] = []
    changed: dict[str, Step] = {}
    renamed: dict[str, str] = {}
    for draft in drafted:
        known = plan.step(draft.id)
        waits: list[str] = []
        for name in draft.depends_on:
            waits += _parts(plan, renamed.get(name, name))
        step = draft.model_copy(update={"depends_on": tuple(dict.fromkeys(waits))})
        if known is None:
            new.append(step)
        elif known.id not in done:
            if step != known:
                changed[known.id] = step
        elif not _same(step.text, known.text):
            # The model has given a new step the id of one that is done.
            taken = {one.id for one in [*plan.steps, *new]}
            renamed[step.id] = next(name for name in map(str, count(1)) if name not in taken)
            new.append(step.model_copy(update={"id": renamed[step.id]}))
    return new, changed


def _parts(plan: Plan, name: str) -> list[str]:
    """Returns the id of a step; or, if it was split, the ids of its steps per item."""
    if plan.step(name):
        return [name]
    parts = [step.id for step in plan.steps if step.item and step.id.startswith(f"{name}.")]
    return parts or [name]


def _last_ones(steps: Sequence[Step]) -> list[str]:
    """Returns the ids of the steps that no other one of them depends on."""
    waited_for = {name for step in steps for name in step.depends_on}
    return [step.id for step in steps if step.id not in waited_for]


def _check_repeats(steps: Sequence[Step], others: Sequence[Step]) -> None:
    """Raises a PlanError if one of the other steps repeats a step, or another one of them."""
    seen = list(steps)
    for step in others:
        for known in seen:
            if _repeats(step, known):
                raise PlanError(f"step {step.id} repeats step {known.id} ({known.text!r})")
        seen.append(step)


def _repeats(step: Step, other: Step) -> bool:
    """Returns whether a step does the same as another one; or, for a mapped step, the same as one of its items.

    Only the text of a step with a worker of its own says all that is done; those of others may be alike.
    """
    if step.for_each != other.for_each or not (step.apart or step.for_each):
        return False
    if other.item and not step.item:
        return _same(item_text(step.text, json.loads(other.item)), other.text)
    return step.item == other.item and _same(step.text, other.text)


def _same(text: str, other: str) -> bool:
    return _normalized(text) == _normalized(other)


def _normalized(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!")


def _relinked(step: Step, dropped: Collection[str], instead: Sequence[str]) -> Step:
    """Returns the step with the steps ``instead`` in place of dropped ones that it depended on."""
    remaining = [name for name in step.depends_on if name not in dropped]
    if len(remaining) == len(step.depends_on):
        return step
    return step.model_copy(update={"depends_on": tuple(dict.fromkeys([*remaining, *instead]))})


_LONGEST_LABEL = 200
"""Characters of an item in the text of its step."""
_PLACE = "{item}"
_NAME_KEYS = ("name", "title", "id", "path", "key", "url")
"""Keys of an object whose value may name it, the best first."""
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
NO_ITEMS = "There are no items."
"""The result of a mapped step without items."""


def item_text(text: str, item: object) -> str:
    """Returns the text of a step with an item in place of ``{item}``, or appended if there is no such place."""
    label = _label(item)
    return text.replace(_PLACE, label) if _PLACE in text else f"{text}: {label}"


def _label(item: object) -> str:
    """Returns a short label for an item: the item itself, or its name."""
    if isinstance(item, dict):
        names = (item.get(key) for key in _NAME_KEYS)
        item = next((name for name in names if isinstance(name, str | int)), item)
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_LABEL else f"{line[:_LONGEST_LABEL]}…"


def items_of(step: Step, *sources: StepResult, max_items: int = 20) -> list[Any]:
    """Reads the items of a mapped step from the result of the step that it refers to.

    The items are a JSON list at the path of the step in the result, the only list in a JSON object, or the lines of a
    text; if some lines have a bullet or a number, only these. An empty text has no items. If the other step was itself
    done once per item, each of its results (``sources``) is an item unless it is a list.

    Raises:
        PlanError: There is no list, or it is too long.
    """
    name = source_of(step.for_each, [source.id for source in sources])
    path = step.for_each.removeprefix(name).lstrip(".")
    items: list[Any] = []
    for source in sources:
        if source.result == NO_ITEMS:
            continue
        try:
            value = named_value(source.id, path, [source])
        except ResultValueError as error:
            raise _unreadable_items(step, error) from error
        values = _list_in(value)
        if values is not None:
            items += values
        elif source.id == name:
            raise _unreadable_items(step, f"the result of step {source.id} is not a list")
        else:
            items.append(value)
    if len(items) > max_items:
        raise PlanError(
            f"step {step.id} would be done for {len(items)} items, at most {max_items} are allowed: "
            "ask for fewer at once, or raise max_items"
        )
    return items


def _unreadable_items(step: Step, why: object) -> PlanError:
    return PlanError(f"the items of step {step.id} cannot be read: {why}")


def _list_in(value: object) -> list[Any] | None:
    """Returns the list that a result is, or holds; None if there is none, or several."""
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        values = list(value.values())
        lists = [inner for inner in values if isinstance(inner, list)]
        if values == [""]:
            return []
        return lists[0] if len(lists) == 1 else None
    return _lines_in(value) if isinstance(value, str) else None


def _lines_in(text: str) -> list[Any] | None:
    """Returns the lines of a text, those with a bullet or number if there are any; None if it is one other line."""
    if not text:
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    items = [_BULLET.sub("", line).strip() for line in lines if _BULLET.match(line)]
    if items:
        return items
    return [line.strip() for line in lines] if len(lines) > 1 else None


def expand_items(plan: Plan, step: Step, items: Sequence[object], *, wave: int) -> tuple[Plan, Revision]:
    """Replaces a mapped step by one step per item; steps that depend on it then depend on all of these."""
    taken = {one.id for one in plan.steps}
    names = (f"{step.id}.{number}" for number in count(1))
    free = (name for name in names if name not in taken)
    parts: list[Step] = []
    for name, item in zip(free, items, strict=False):
        text = item_text(step.text, item)
        stored = json.dumps(item, ensure_ascii=False)
        parts.append(step.model_copy(update={"id": name, "text": text, "item": stored}))
    ids = tuple(part.id for part in parts)

    steps: list[Step] = []
    for one in plan.steps:
        if one.id == step.id:
            steps += parts
            continue
        waits: list[str] = []
        for name in one.depends_on:
            waits += ids if name == step.id else (name,)
        steps.append(one.model_copy(update={"depends_on": tuple(waits)}))

    source = source_of(step.for_each, step.depends_on)
    why = f"step {step.id} is done once for each of {len(items)} items of step {source}"
    texts = {part.id: part.text for part in parts} | {step.id: step.text}
    revision = Revision(wave=wave, added=ids, changed=(step.id,), reason=why, texts=texts)
    return plan.model_copy(update={"steps": tuple(steps)}), revision


@dataclass(frozen=True, slots=True)
class Revised:
    """The result of a request for a revision: the new plan, with what was changed or why nothing was."""

    plan: Plan
    revision: Revision
    ask: Question | None = None
    usage: Usage = field(default_factory=Usage)


def reason_to_revise(plan: Plan, results: Mapping[str, StepResult], wave: Collection[str]) -> str | None:
    """Returns why a model should revise a plan after these steps: a worker asks for it, or the plan is open."""
    requests = [name for name in wave if name in results and results[name].replan]
    if requests:
        return f"the worker of step {', '.join(requests)} asks for another plan"
    return "the plan is open: it depends on what was found" if plan.open else None


async def revise(
    plan: Plan,
    results: Mapping[str, StepResult],
    request: str,
    model: BaseChatModel,
    catalog: Catalog,
    *,
    why: str,
    wave: int,
    prompt: str = REVISER,
    context: str = "",
    replaced: Sequence[StepResult] = (),
    answers: Sequence[str] = (),
    earlier: Collection[str] = (),
    max_steps: int = 12,
) -> Revised:
    """Asks a model to revise a plan after some of its steps.

    A revision that cannot be applied may be corrected once. After that, or if the model does not answer, the plan is
    not changed and the revision says why.

    Args:
        plan: The plan so far.
        results: The results of its steps, by their ids.
        request: The user's message.
        model: The planner's model.
        catalog: The agents that the user may see.
        why: The reason, from ``reason_to_revise``.
        wave: Number of waves that have run.
        prompt: The system prompt, which ends with the roster.
        context: What the model should know besides the plan.
        replaced: Results of steps that earlier revisions replaced.
        answers: Questions that the user answered, with the answers.
        earlier: Ids of results of earlier requests.
        max_steps: Maximum number of steps.
    """
    ended = [*replaced, *(results[step.id] for step in plan.steps if step.id in results)]
    known = {result.id for result in ended}
    left = plan_lines(step for step in plan.steps if step.id not in known)
    parts = (
        request,
        "\n".join(answers),
        f"You are asked because {why}.",
        f"Results so far:\n\n{reports(ended)}",
        f"Steps that have not run:\n{left or 'none'}",
        context,
    )
    message = "\n\n".join(part for part in parts if part)

    corrected = False

    def read(draft: PlanRevision) -> Revised:
        nonlocal corrected
        named = named_tools(catalog, (name for step in draft.steps for name in step.tools))
        # Names that are unknown after a correction stay: the worker sees them, and may look for others.
        if not corrected and (wrong := name_problems(named, catalog)):
            corrected = True
            raise PlanError(wrong)
        after, revision = revise_plan(
            plan, draft, results, catalog, request=request, wave=wave, max_steps=max_steps, earlier=earlier
        )
        stays = plan.open if draft.open is None else draft.open
        return Revised(after.model_copy(update={"open": stays}), revision, draft.ask)

    revision, error, usage = await read_draft(model, PlanRevision, prompt, message, read)
    if revision is not None:
        return replace(revision, usage=usage)
    reason = f"not revised, although {why}: {error}"
    incomplete = plan.model_copy(update={"incomplete": reason})
    return Revised(incomplete, Revision(wave=wave, reason=reason, refused=True), None, usage)
