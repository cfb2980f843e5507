"""The task of a worker, and how its model is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.models.prompts import BY_REFERENCE, SKILL
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.work.context import reported, reports


@dataclass(frozen=True, slots=True)
class Brief:
    """One step for a worker.

    Attributes:
        text: What to do.
        request: The whole request.
        skills: Name of a skill -> its instructions, as far as the budget allows.
        inputs: Results of the steps that it depends on, directly or indirectly.
        before: The result of an earlier attempt at this step; None for the first.
        place: Its place in the plan, as text for a model; empty for a plan of one step.
        about: Date, people and folders, as text for a model.
        item: The item that the step is done for, as JSON; empty if there is none.
        given: Tool id -> parameter -> value that a person entered for this step; under "", what the worker asked for.
    """

    text: str = ""
    request: str = ""
    skills: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[StepResult, ...] = ()
    before: StepResult | None = None
    place: str = ""
    about: str = ""
    item: str = ""
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def calls_before(self) -> int:
        """Number of calls of an earlier attempt."""
        return len(self.before.calls) if self.before else 0

    def opening(self) -> str:
        """The first message to a worker: its step, and what it should know to do it."""
        whole, before = self.request.strip(), self.before
        given = [f"{name}: {value}" for values in self.given.values() for name, value in values.items()]
        parts = (
            self.text,
            *(f"{SKILL.format(name=name)}\n{text}" for name, text in self.skills.items()),
            f"The item:\n{self.item}" if self.item else "",
            f"The whole request{', of which this is one step' if self.place else ''}:\n{whole}"
            if whole and whole != self.text.strip()
            else "",
            self.place,
            f"Results of earlier steps:\n{reports(self.inputs)}\n{BY_REFERENCE}" if self.inputs else "",
            f"This step was begun before. What was done and what came of it:\n{reported(before)}\nYour next call is "
            f"c{self.calls_before + 1}. Do not repeat what took effect." if before else "",
            "A person has said:\n" + "\n".join(given) if given else "",
            self.about,
        )  # fmt: skip
        return "\n\n".join(filter(None, parts))
