"""The task of a worker in a structured form."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.tool_effects import Harm


class Offer(BaseModel):
    """A tool of the worker.

    Attributes:
        name: The unique name that the model sees.
        tool: Id in the catalog.
        score: The retriever's score for this step; higher is better.
        harm: What a call may do, as far as known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    tool: str
    score: float = 0.0
    harm: Harm = "change"


class SkillText(BaseModel):
    """The instructions of a skill.

    Attributes:
        name: Name of the skill.
        text: Its text, as far as the budget allows.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    text: str


class Brief(BaseModel):
    """One step for a worker, passed in ``HumanMessage.additional_kwargs["brief"]``.

    Attributes:
        text: What to do.
        request: The whole request.
        offers: The tools, best first.
        skills: Instructions for this kind of step.
        inputs: Results of the steps that it depends on, directly or indirectly.
        before: The result of an earlier attempt at this step; None for the first.
        place: Its place in the plan, as text for a model; empty for a plan of one step.
        about: Date, people and folders, as text for a model.
        item: The item that the step is done for, as JSON; empty if there is none.
        given: Tool id -> parameter -> value that a person entered for this step; under "", what the worker asked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    request: str = ""
    offers: tuple[Offer, ...] = ()
    skills: tuple[SkillText, ...] = ()
    inputs: tuple[StepResult, ...] = ()
    before: StepResult | None = None
    place: str = ""
    about: str = ""
    item: str = ""
    given: dict[str, dict[str, Any]] = Field(default_factory=dict)
