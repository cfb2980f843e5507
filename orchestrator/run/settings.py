"""What a run can be told, and where a program finds its catalog."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from callsheet.graphs import SettingsError

STUDIO = "https://smith.langchain.com"
"""Where the pages of LangGraph Studio come from."""
_MOST = ("tools", "schema_tokens")
_RANKING = ("agents", "ranking", "lexical_weight", "capability_weight", "agent_weight", "tool_weight")


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Says that there is no such setting, which is meant perhaps, and which there are."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no setting {name!r}{meant}; there are: {', '.join(names)}"


def _said(error: Mapping[str, Any]) -> str:
    """What is wrong with one setting."""
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return unknown_setting(name, Settings.model_fields)
    return f"setting {name!r}: {error['msg']}, not {error['input']!r}"


def _shown(nodes: list[str], **more: Any) -> dict[str, Any]:
    """Where Studio shows a setting."""
    return {"langgraph_nodes": nodes, **more}


class Settings(BaseModel):
    """Options of one run; Studio and ``langgraph_sdk`` pass them as ``context``.

    Attributes:
        model: Chat model for planner, worker and answer, ``provider:model``; none works without any model.
        planner_model: Another one for the planner.
        worker_model: Another one for workers.
        answer_model: Chat model for the answer instead.
        agents: How many agents are picked for a step.
        tools: How many tools a worker gets at most.
        schema_tokens: How many tokens the schemas of a worker's tools may cost; no bound where None.
        ranking: How agents and tools are ranked; here and below, what the retriever was made with where None.
        lexical_weight: What a perfect match of words is worth beside meaning.
        capability_weight: What a sure match of capabilities adds.
        agent_weight: Weight of agents, for ``agent_as_a_graph``.
        tool_weight: Weight of tools, for ``agent_as_a_graph``.
        planner_prompt: System prompt of the planner's model; here and below, the supervisor's own where None.
        worker_prompt: System prompt of the workers' model.
        answer_prompt: System prompt of the answer's model.
        max_steps: How many steps a plan may have.
        max_request: How many characters a request may have; a longer one is refused.
        replans: How many times a failed step is given to other agents.
        max_turns: How many times a worker may ask its model.
        max_calls: How many calls of tools a worker may make for a step.
        tool_requests: How many times a worker may ask for tools that it lacks.
        approval: Which calls a person is asked about first: ``always`` all, ``risky`` those of tools that are not known
            to be harmless, ``never`` none.
        step_seconds: How long a worker may take for a step; what it did until then stays done.
        documents: For ``arag``: a folder within the configured one.
        naive: For ``arag``: one tool that searches by meaning and reads, in the place of the three.
        max_loops: For ``arag``: how many times the model may be asked before it must answer.
        max_tokens: For ``arag``: how many tokens the conversation may have before the model must answer.

    Raises:
        SettingsError: There is no such setting, or a value cannot work; the message names all that are wrong.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError("; ".join(map(_said, error.errors()))) from error

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
    schema_tokens: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Tokens that the schemas of a worker's tools may cost; empty sets no bound.",
        json_schema_extra=_shown(["step"]),
    )
    ranking: Literal["scores", "agent_as_a_graph"] | None = Field(
        default=None,
        description="How agents and tools are ranked; here and below, empty keeps what the retriever was made with.",
        json_schema_extra=_shown(["step"]),
    )
    lexical_weight: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="What a perfect match of words is worth beside meaning.",
        json_schema_extra=_shown(["step"]),
    )
    capability_weight: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="What a sure match of capabilities adds.",
        json_schema_extra=_shown(["step"]),
    )
    agent_weight: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Weight of agents, for the ranking agent_as_a_graph.",
        json_schema_extra=_shown(["step"]),
    )
    tool_weight: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="Weight of tools, for the ranking agent_as_a_graph.",
        json_schema_extra=_shown(["step"]),
    )
    planner_prompt: str | None = Field(
        default=None,
        description="System prompt of the planner's model; here and below, empty keeps the supervisor's own.",
        json_schema_extra=_shown(["plan"], langgraph_type="prompt"),
    )
    worker_prompt: str | None = Field(
        default=None,
        description="System prompt of the workers' model.",
        json_schema_extra=_shown(["step"], langgraph_type="prompt"),
    )
    answer_prompt: str | None = Field(
        default=None,
        description="System prompt of the answer's model.",
        json_schema_extra=_shown(["answer"], langgraph_type="prompt"),
    )
    max_steps: int = Field(
        default=12, ge=1, le=50, description="Steps that a plan may have.", json_schema_extra=_shown(["plan"])
    )
    max_request: int = Field(
        default=32_000, ge=100, description="Characters that a request may have.", json_schema_extra=_shown(["plan"])
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
    max_calls: int = Field(
        default=64,
        ge=1,
        le=1_000,
        description="Calls of tools that a worker may make for a step.",
        json_schema_extra=_shown(["step"]),
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

    @field_validator(
        "model", "planner_model", "worker_model", "answer_model", "planner_prompt", "worker_prompt", "answer_prompt"
    )
    @classmethod
    def _empty_is_none(cls, text: str | None) -> str | None:
        return (text or "").strip() or None

    def over(self, defaults: Settings) -> Settings:
        """The defaults with what was set here explicitly."""
        return defaults.model_copy(update=self.model_dump(exclude_unset=True))

    def reach(self, fields: Collection[str] | None = None, *, most: bool = True) -> dict[str, Any]:
        """What a selection is told.

        Args:
            fields: Only these; all by default.
            most: Whether it is told how many tools it may give, and how many tokens.
        """
        told = [*_RANKING, *(_MOST if most else ())]
        return {
            name: value
            for name in told
            if (fields is None or name in fields) and (value := getattr(self, name)) is not None
        }


class Environment(BaseSettings):
    """What the environment says: each attribute is the variable ``CALLSHEET_`` with its name in capitals.

    Attributes:
        catalog: One or more catalogs, separated by commas.
        model: Chat model, ``provider:model``.
        index: Folder of the index, or the address of ``chroma run``.
        embeddings: Embedder, ``minilm`` or ``provider:model``.
        documents: Folder of documents, for ``arag``.
        approval: Which calls a person is asked about: ``always``, ``risky`` or ``never``.
        reports: Reports of ``callsheet eval --json`` for the explorer, separated by commas.
        hosts: Names that the server answers to beside those of its machine, separated by commas; ``*`` for any.
        origins: Sites whose pages may use the server from browsers, separated by commas; LangGraph Studio's by default.
        sync_seconds: How often a server reads its catalogs anew; 0 leaves it at what servers say in their sessions.
    """

    model_config = SettingsConfigDict(env_prefix="CALLSHEET_", extra="ignore", frozen=True)

    catalog: str = ""
    model: str | None = None
    index: str | None = None
    embeddings: str = "minilm"
    documents: str | None = None
    approval: str = "risky"
    reports: str = ""
    hosts: str = ""
    origins: str = STUDIO
    sync_seconds: float = Field(default=0.0, ge=0)

    def catalogs(self) -> tuple[str, ...]:
        """The catalogs named."""
        return _named(self.catalog)

    def report_files(self) -> tuple[str, ...]:
        """The reports named."""
        return _named(self.reports)

    def host_names(self) -> tuple[str, ...]:
        """The names of the server."""
        return _listed(self.hosts)

    def page_origins(self) -> tuple[str, ...]:
        """The origins of other sites' pages."""
        return _listed(self.origins)


def _named(several: str) -> tuple[str, ...]:
    """What a variable names: one file, though it may have a comma in its name, or several."""
    if Path(several).exists():
        return (several,) if several else ()
    return _listed(several)


def _listed(several: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, several.split(","))))
