"""What a run can be told, and where a program finds its catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict


def _shown(nodes: list[str], **more: Any) -> dict[str, Any]:
    """Where Studio shows a setting."""
    return {"langgraph_nodes": nodes, **more}


class Settings(BaseModel):
    """Options of one run; Studio and ``langgraph_sdk`` pass them as ``context``.

    Attributes:
        model: Chat model for planner, worker and answer, ``provider:model``; none works without any model.
        planner_model: Another one for the planner.
        worker_model: Another one for workers.
        answer_model: Another one for the answer.
        agents: How many agents are picked for a step.
        tools: How many tools a worker gets at most.
        max_steps: How many steps a plan may have.
        replans: How many times a failed step is given to other agents.
        max_turns: How many times a worker may ask its model.
        tool_requests: How many times a worker may ask for tools that it lacks.
        approval: Which calls a person is asked about first: ``always`` all, ``risky`` those of tools that are not known
            to be harmless, ``never`` none.
        step_seconds: How long a worker may take for a step; what it did until then stays done.
        documents: For ``arag``: a folder within the configured one.
        naive: For ``arag``: one tool that searches by meaning and reads, in the place of the three.
        max_loops: For ``arag``: how many times the model may be asked before it must answer.
        max_tokens: For ``arag``: how many tokens the conversation may have before the model must answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str | None = Field(
        default=None,
        description="Chat model for planner, workers and answer, as provider:model; empty works without a model.",
        json_schema_extra=_shown(["plan", "step", "answer"]),
    )
    planner_model: str | None = Field(
        default=None, description="Another model for the plan.", json_schema_extra=_shown(["plan"])
    )
    worker_model: str | None = Field(
        default=None, description="Another model for the workers.", json_schema_extra=_shown(["step"])
    )
    answer_model: str | None = Field(
        default=None, description="Another model for the answer.", json_schema_extra=_shown(["answer"])
    )
    agents: int = Field(
        default=5, ge=1, le=50, description="Agents picked for a step.", json_schema_extra=_shown(["step"])
    )
    tools: int = Field(
        default=10, ge=1, le=128, description="Tools that a worker gets at most.", json_schema_extra=_shown(["step"])
    )
    max_steps: int = Field(
        default=12, ge=1, le=50, description="Steps that a plan may have.", json_schema_extra=_shown(["plan"])
    )
    replans: int = Field(
        default=1,
        ge=0,
        le=5,
        description="Times that a failed step is given to other agents.",
        json_schema_extra=_shown(["dispatch"]),
    )
    max_turns: int = Field(
        default=8, ge=1, le=50, description="Times that a worker may ask its model.", json_schema_extra=_shown(["step"])
    )
    tool_requests: int = Field(
        default=2,
        ge=0,
        le=10,
        description="Times that a worker may ask for tools that it lacks.",
        json_schema_extra=_shown(["step"]),
    )
    step_seconds: float = Field(
        default=600, gt=0, le=86_400, description="Seconds that a step may take.", json_schema_extra=_shown(["step"])
    )
    approval: Literal["always", "risky", "never"] = Field(
        default="risky",
        description="Which calls a person is asked about: always, of risky tools, or never.",
        json_schema_extra=_shown(["step"]),
    )
    documents: str | None = Field(
        default=None, description="A folder within CALLSHEET_DOCUMENTS.", json_schema_extra=_shown(["prepare"])
    )
    naive: bool = Field(
        default=False, description="One searching tool in the place of three.", json_schema_extra=_shown(["think"])
    )
    max_loops: int = Field(
        default=15, ge=1, le=100, description="Times that the model is asked.", json_schema_extra=_shown(["think"])
    )
    max_tokens: int = Field(
        default=128_000,
        ge=1_000,
        le=2_000_000,
        description="Tokens of the conversation after which the model must answer.",
        json_schema_extra=_shown(["think"]),
    )

    @field_validator("model", "planner_model", "worker_model", "answer_model")
    @classmethod
    def _empty_is_none(cls, name: str | None) -> str | None:
        return (name or "").strip() or None

    def over(self, defaults: Settings) -> Settings:
        """The defaults with what was set here explicitly."""
        return defaults.model_copy(update=self.model_dump(exclude_unset=True))


class Environment(BaseSettings):
    """What the environment says: each attribute is the variable ``CALLSHEET_`` with its name in capitals.

    Attributes:
        catalog: One or more catalogs, separated by commas.
        model: Chat model, ``provider:model``.
        index: Folder of the index, or the address of ``chroma run``.
        embeddings: Embedder, ``minilm`` or ``provider:model``.
        documents: Folder of documents, for ``arag``.
        approval: Which calls a person is asked about: ``always``, ``risky`` or ``never``.
    """

    model_config = SettingsConfigDict(env_prefix="CALLSHEET_", extra="ignore", frozen=True)

    catalog: str = ""
    model: str | None = None
    index: str | None = None
    embeddings: str = "minilm"
    documents: str | None = None
    approval: str = "risky"

    def catalogs(self) -> tuple[str, ...]:
        """The catalogs named."""
        if Path(self.catalog).exists():
            return (self.catalog,) if self.catalog else ()
        return tuple(filter(None, map(str.strip, self.catalog.split(","))))
