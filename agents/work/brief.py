"""What a worker is told beside the step's text, in a form that a rule-based worker can read too."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.tool_effects import Harm


class Offer(BaseModel):
    """One tool that the worker was given.

    Attributes:
        name: The unique name under which the model sees and calls it.
        tool: Its id in the catalog.
        score: The retriever's score of it for this step; higher is better.
        harm: What a call of it may do, as far as that is known.
        confirmed: Whether a person is asked before any call of it is sent.
        sources: Parameter -> model-facing names of offered tools that a dependency edge names as
            the source of its value. The key ``""`` holds tools that must run first for other reasons.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    tool: str
    score: float = 0.0
    harm: Harm = "change"
    confirmed: bool = False
    sources: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class Brief(BaseModel):
    """One step as a worker receives it; travels in ``HumanMessage.additional_kwargs["brief"]``.

    Attributes:
        text: What to do.
        request: The whole request that it is a step of; empty where it is all of it.
        offers: The tools given, best first.
        inputs: Results of the steps that this one builds on, directly or through others.
        item: The item that the step is done for, as JSON; empty where it is done for none.
        given: Tool id -> parameter -> value, as a person gave them for this step.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str
    request: str = ""
    offers: tuple[Offer, ...] = ()
    inputs: tuple[StepResult, ...] = ()
    item: str = ""
    given: dict[str, dict[str, Any]] = Field(default_factory=dict)
