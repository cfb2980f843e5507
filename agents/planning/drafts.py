"""Structured outputs of the planning model: a plan, and the revision of a running plan."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from callsheet.agents.calls.questions import Question


def _reference(value: Any) -> Any:
    """``{"$from": "1", "path": "items"}`` as ``1.items``; a number as a string."""
    if isinstance(value, dict) and "$from" in value:
        return ".".join(filter(None, (str(value["$from"]), str(value.get("path") or ""))))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _question(value: Any) -> Any:
    """A bare string as a question; an empty one as None."""
    if isinstance(value, str):
        return {"question": value} if value.strip() else None
    return value


class PlannedStep(BaseModel):
    """One step of a plan."""

    id: Annotated[str, BeforeValidator(_reference)] = Field(description='"1", "2", ...')
    text: str = Field(description="What to do, with every name, number, unit and path that it needs")
    depends_on: list[Annotated[str, BeforeValidator(_reference)]] = Field(
        default_factory=list, description="Ids of the steps whose results this one needs"
    )
    tools: list[str] = Field(
        default_factory=list,
        description="What it needs: agent/tool, or an agent",
    )
    for_each: Annotated[str | None, BeforeValidator(_reference)] = Field(
        default=None, description="Id of a step whose result is a list: this step is then done once for each item"
    )


class PlanDraft(BaseModel):
    """The steps that a request needs."""

    steps: list[PlannedStep] = Field(default_factory=list)
    open: bool = Field(
        default=False, description="True if further steps depend on results and can only be planned once they are known"
    )
    answer: str | None = Field(
        default=None, description="In place of steps: the answer to a greeting, or to a question on this conversation"
    )
    ask: Annotated[Question | None, BeforeValidator(_question)] = Field(
        default=None, description="In place of steps: one question to the user, only if nothing can be planned without"
    )


class PlanRevision(BaseModel):
    """What changes in a plan after the results so far."""

    done: bool = Field(default=False, description="True if the results answer the request: no other step is run")
    steps: list[PlannedStep] = Field(
        default_factory=list, description="New steps; or, under its id, another text for a step that is not done"
    )
    open: bool | None = Field(
        default=None, description="True if further steps are to be planned after these, False if not; null: as before"
    )
    drop: list[Annotated[str, BeforeValidator(_reference)]] = Field(
        default_factory=list, description="Ids of steps that have not run and are not needed any more"
    )
    ask: Annotated[Question | None, BeforeValidator(_question)] = Field(
        default=None, description="One question to the user, only if nothing can be done without the answer"
    )
    reason: str = Field(default="", description="Why, in one sentence")
