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
    read_draft,
    unresolved,
)
from callsheet.agents.work.context import plan_lines, reports
from callsheet.graphs.catalog.errors import PlanError
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.names import named_tools


class Revision(BaseModel):
    """A change of a plan after a number of waves; its steps by their ids.

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
        """Whether it changed anything."""
        return bool(self.added or self.changed or self.dropped)


def revised(
    plan: Plan,
    draft: PlanRevision,
    results: Mapping[str, StepResult],
    catalog: Catalog,
    *,
    request: str = "",
    wave: int,
    max_steps: int = 12,
    earlier: Collection[str] = (),
) -> tuple[Plan, Revision]:
    """The plan after a revision, and what changed.

    A step that is done does not change: a new step with its id gets another id. A failed step may get a new text, or be
    replaced: dropped together with new steps. A failed step that is only dropped stays, so that its failure is
    reported. Steps that depend on a replaced step then depend on the new ones. A step that repeats another one or has
    an unknown dependency, too many steps, and a cycle raise a PlanError.
    """
    done = {name for name, result in results.items() if result.status in GAVE}
    with plan_errors():
        drafted = [
            drafted_step(step, catalog, request, earlier, [one.id for one in plan.steps]) for step in draft.steps
        ]
        new, changed = _sorted(plan, drafted, done)
    left_over = {step.id for step in plan.steps if draft.done and step.id not in results}
    failed = set(results) - done
    named = {name for name in draft.drop if plan.step(name)} - done - (set() if new else failed)
    dropped = (named | left_over) - set(changed)
    kept = [changed.get(step.id, step) for step in plan.steps if step.id not in dropped]
    ends = [step.id for step in new if not any(step.id in other.depends_on for other in new)]
    steps = [_relinked(step, dropped, ends if dropped & failed else []) for step in kept]
    added = [step for step in new if not draft.done]
    seen = [step for step in plan.steps if step.id not in changed]
    for step in [*added, *changed.values()]:
        if twin := next((other for other in seen if _repeats(step, other)), None):
            raise PlanError(f"step {step.id} repeats step {twin.id} ({twin.text!r})")
        seen.append(step)
    if len(steps) + len(added) > len(plan.steps):
        check_number(len(steps) + len(added), max_steps)
    texts = {step.id: step.text for step in [*plan.steps, *changed.values(), *added]}
    told = [*(step.id for step in added), *changed, *dropped]
    with plan_errors():
        after = Plan(**{**dict(plan), "steps": (*steps, *added)})
    return after, Revision(
        wave=wave,
        added=tuple(step.id for step in added),
        changed=tuple(changed),
        dropped=tuple(step.id for step in plan.steps if step.id in dropped),
        reason=draft.reason.strip(),
        texts={name: texts[name] for name in told},
    )


def _sorted(plan: Plan, steps: Sequence[Step], done: Collection[str]) -> tuple[list[Step], dict[str, Step]]:
    """The new ones of these steps, and by id the unfinished steps that change."""
    new: list[Step] = []
    changed: dict[str, Step] = {}
    renamed: dict[str, str] = {}
    for drafted in steps:
        known = plan.step(drafted.id)
        waits = [one for name in drafted.depends_on for one in _parts(plan, renamed.get(name, name))]
        step = drafted.model_copy(update={"depends_on": tuple(dict.fromkeys(waits))})
        if known is None:
            new.append(step)
        elif known.id not in done:
            if step != known:
                changed[known.id] = step
        elif _same(step.text, known.text):
            continue
        else:
            taken = {one.id for one in [*plan.steps, *new]}
            renamed[step.id] = next(name for name in map(str, count(1)) if name not in taken)
            new.append(step.model_copy(update={"id": renamed[step.id]}))
    return new, changed


def _parts(plan: Plan, name: str) -> list[str]:
    """A step; or its steps per item, if it was split."""
    parts = [step.id for step in plan.steps if step.item and step.id.startswith(f"{name}.")]
    return [name] if plan.step(name) else parts or [name]


def _repeats(step: Step, other: Step) -> bool:
    """Whether a step does the same as another one; or, for a mapped step, the same as one of its items.

    Only the text of a step with a worker of its own says all that is done; those of others may be alike.
    """
    if step.for_each != other.for_each or not (step.apart or step.for_each):
        return False
    part = bool(other.item) and not step.item
    text = item_text(step.text, json.loads(other.item)) if part else step.text
    return _same(text, other.text) and (part or step.item == other.item)


def _same(text: str, other: str) -> bool:
    one, two = (" ".join(words.casefold().split()).strip(" .!") for words in (text, other))
    return one == two


def _relinked(step: Step, dropped: Collection[str], instead: Sequence[str]) -> Step:
    kept = [name for name in step.depends_on if name not in dropped]
    if len(kept) == len(step.depends_on):
        return step
    return step.model_copy(update={"depends_on": tuple(dict.fromkeys([*kept, *instead]))})


_LABEL, _PLACE, _NAMES = 200, "{item}", ("name", "title", "id", "path", "key", "url")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
NO_ITEMS = "There are no items."
"""The result of a mapped step without items."""


def item_text(text: str, item: Any) -> str:
    """A step's text with an item in place of ``{item}``, or else at the end."""
    label = _label(item)
    return text.replace(_PLACE, label) if _PLACE in text else f"{text}: {label}"


def _label(item: Any) -> str:
    """A short label for an item: the item itself, or its name."""
    if isinstance(item, dict):
        item = next((item[name] for name in _NAMES if isinstance(item.get(name), str | int)), item)
    text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= _LABEL else f"{line[:_LABEL]}…"


def items_of(step: Step, *sources: StepResult, max_items: int = 20) -> list[Any]:
    """The items of a mapped step; a PlanError if there is no list, or it is too long.

    They are a JSON list at the step's path in the result, the only list in a JSON object, or the lines of a text: only
    those with a bullet or number, if some have one. An empty text has no items. If the source was itself done once per
    item, each of its results (``sources``) counts as an item unless it is a list.
    """
    name = source_of(step.for_each, [source.id for source in sources])
    path = step.for_each.removeprefix(name).lstrip(".")
    items: list[Any] = []
    for source in (source for source in sources if source.result != NO_ITEMS):
        try:
            value = named_value(source.id, path, [source])
            if (listed := _listed(value)) is None and source.id == name:
                raise ResultValueError(f"the result of step {source.id} is not a list")
        except ResultValueError as error:
            raise PlanError(f"the items of step {step.id} cannot be read: {error}") from error
        items += [value] if listed is None else listed
    if len(items) > max_items:
        raise PlanError(
            f"step {step.id} would be done for {len(items)} items, at most {max_items} are allowed: "
            "ask for fewer at once, or raise max_items"
        )
    return items


def expanded(plan: Plan, step: Step, items: Sequence[Any], *, wave: int) -> tuple[Plan, Revision]:
    """The plan with one step per item in place of a step; steps that depended on it depend on all of them."""
    taken = {one.id for one in plan.steps}
    free = (name for number in count(1) if (name := f"{step.id}.{number}") not in taken)
    parts = [
        step.model_copy(
            update={"id": name, "text": item_text(step.text, item), "item": json.dumps(item, ensure_ascii=False)}
        )
        for name, item in zip(free, items, strict=False)
    ]
    ids = tuple(part.id for part in parts)
    steps: list[Step] = []
    for one in plan.steps:
        waits = tuple(name for old in one.depends_on for name in (ids if old == step.id else (old,)))
        steps += parts if one.id == step.id else [one.model_copy(update={"depends_on": waits})]
    source = source_of(step.for_each, step.depends_on)
    why = f"step {step.id} is done once for each of {len(items)} items of step {source}"
    texts = {part.id: part.text for part in parts} | {step.id: step.text}
    return plan.model_copy(update={"steps": tuple(steps)}), Revision(
        wave=wave, added=ids, changed=(step.id,), reason=why, texts=texts
    )


def _listed(value: Any) -> list[Any] | None:
    match value:
        case list():
            return value
        case "":
            return []
        case dict():
            lists = [inner for inner in value.values() if isinstance(inner, list)]
            return [] if list(value.values()) == [""] else lists[0] if len(lists) == 1 else None
        case str():
            lines = [line for line in value.splitlines() if line.strip()]
            if marked := [line for line in lines if _BULLET.match(line)]:
                return [_BULLET.sub("", line).strip() for line in marked]
            return [line.strip() for line in lines] if len(lines) > 1 else None
        case _:
            return None


@dataclass(frozen=True, slots=True)
class Revised:
    """The outcome of asking a model for a revision: the plan after it, and what was changed or why nothing was."""

    plan: Plan
    revision: Revision
    ask: Question | None = None
    usage: Usage = field(default_factory=Usage)


def reason_to_revise(plan: Plan, results: Mapping[str, StepResult], wave: Collection[str]) -> str | None:
    """Why a model should revise a plan after these steps: a worker says so, or the plan is open; None if neither."""
    asked = [name for name in wave if name in results and results[name].replan]
    if asked:
        return f"the worker of step {', '.join(asked)} asks for another plan"
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

    ``why`` is the reason, as of ``reason_to_revise``, and ``wave`` the number of waves that have run. ``context`` is
    what the model should know besides the plan, ``replaced`` holds results of steps that earlier revisions replaced,
    ``answers`` the questions that the user answered, with the answers, ``earlier`` ids of results of earlier requests.
    """
    run = [*replaced, *(results[step.id] for step in plan.steps if step.id in results)]
    known = {result.id for result in run}
    left = plan_lines(step for step in plan.steps if step.id not in known)
    parts = (
        request,
        "\n".join(answers),
        f"You are asked because {why}.",
        f"Results so far:\n\n{reports(run)}",
        f"Steps that have not run:\n{left or 'none'}",
        context,
    )
    told = "\n\n".join(filter(None, parts))

    corrected = False

    def read(draft: PlanRevision) -> Revised:
        nonlocal corrected
        named = named_tools(catalog, (name for step in draft.steps for name in step.tools))
        if not corrected and (wrong := unresolved(named, catalog)):
            corrected = True
            raise PlanError(wrong)
        limits: dict[str, Any] = {"wave": wave, "max_steps": max_steps, "earlier": earlier}
        after, revision = revised(plan, draft, results, catalog, request=request, **limits)
        stays = plan.open if draft.open is None else draft.open
        return Revised(after.model_copy(update={"open": stays}), revision, draft.ask)

    revision, error, usage = await read_draft(model, PlanRevision, prompt, told, read)
    if revision is not None:
        return replace(revision, usage=usage)
    reason = f"not revised, although {why}: {error}"
    ended = plan.model_copy(update={"incomplete": reason})
    return Revised(ended, Revision(wave=wave, reason=reason, refused=True), None, usage)
