"""Options of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import ComputedFieldInfo, FieldInfo

from callsheet.graphs import SettingsError

_MOST = ("tools", "schema_tokens")
_RANKING = (
    "agents", "tool_floor", "lexical_weight", "capability_weight",
    "search", "ranking", "agent_weight", "tool_weight", "rrf_k", "pool", "expansion",
)  # fmt: skip
TOOL_FLOOR = 0.0005
"""Default of ``tool_floor``; docs/concepts/retrieval.md has the measurement."""
Planning = Literal["auto", "none"]


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """The error for an unknown setting, with the most similar name, and all names."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no setting {name!r}{meant}; there are: {', '.join(names)}"


def _said(error: Mapping[str, Any]) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return unknown_setting(name, Settings.model_fields)
    return f"setting {name!r}: {error['msg']}, not {error['input']!r}"


def _option(default: Any, *nodes: str, prompt: bool = False, **bounds: Any) -> Any:
    """A setting that Studio shows at these nodes; the attribute's docstring is its description."""
    shown: dict[str, Any] = {"langgraph_nodes": list(nodes), **({"langgraph_type": "prompt"} if prompt else {})}
    return Field(default=default, json_schema_extra=shown, **bounds)


_FIRST = ("model", "approval", "planning", "tools", "token_budget")
"""What people change first: Studio shows these as they are, and the others as advanced ones of their node."""


def _title(name: str, field: FieldInfo | ComputedFieldInfo) -> str:
    words, shown = name.replace("_", " ").capitalize(), field.json_schema_extra
    nodes = shown.get("langgraph_nodes") if isinstance(shown, dict) else None
    return words if name in _FIRST or not isinstance(nodes, list) else f"Advanced, {nodes[0]}: {words}"


class Settings(BaseModel):
    """Options of one run; Studio and ``langgraph_sdk`` pass them as ``context``.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, field_title_generator=_title)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError("; ".join(map(_said, error.errors()))) from error

    model: str | None = _option(None, "plan", "worker", "answer")
    """Chat model for planner, workers and answer, as ``provider:model``; without one, a step must name a tool and all
    its values."""
    approval: Literal["always", "ask", "never"] = _option("ask", "worker")
    """Which calls a person must approve: ``always`` all, ``ask`` those of tools that are not known to be harmless,
    ``never`` only those that may delete or overwrite something."""
    planning: Planning = _option("auto", "plan", "revise")
    """Whether a model plans a request: ``auto`` (but for a single small agent), or ``none`` (a worker does all of it,
    and sees the names of all tools itself)."""
    tools: int = _option(15, "retriever", ge=1, le=128)
    """Maximum tools per worker; those that a plan does not name fill at most ten places."""
    token_budget: int | None = _option(None, "dispatch", "worker", ge=1)
    """Tokens after which no step starts and no worker continues; no limit if empty."""
    planner_model: str | None = _option(None, "plan", "revise")
    """Another model for plans and their revisions."""
    worker_model: str | None = _option(None, "worker")
    """Another model for the workers."""
    answer_model: str | None = _option(None, "answer")
    """Another model for the answer."""
    decision_model: str | None = _option(None, "retriever")
    """Chat model that judges the first tools of each step, in one call: their order, and whether one of them fits."""
    roster_tokens: int = _option(4_000, "plan", "worker", ge=100, le=200_000)
    """Tokens up to which the names of all tools stand in the planner's prompt; of a larger catalog, the agents, and the
    tools of those that fit."""
    agents: int = _option(50, "retriever", ge=1, le=50)
    """Maximum agents of a step."""
    tool_floor: float = _option(TOOL_FLOOR, "retriever", ge=0, le=1)
    """A tool is left out if its expected use is below this share of the best tool's; 0 gives a worker all ``tools``."""
    schema_tokens: int | None = _option(8_000, "retriever", ge=1, le=1_000_000)
    """Maximum tokens of the schemas of a worker's tools; no limit if empty."""
    learn: bool = _option(True, "retriever", "answer")
    """Whether to count how the calls of each tool end (``callsheet forget`` deletes the counts), and to rank a tool
    that failed behind others that fit equally."""
    skill_tokens: int = _option(5_000, "retriever", "worker", ge=0, le=200_000)
    """Maximum tokens of the skills that a worker gets, which need a model; 0 switches skills off."""
    ranking: Literal["scores", "agent_as_a_graph"] | None = _option(None, "retriever")
    """How agents and tools are ranked; the retriever's own way if empty."""
    lexical_weight: float | None = _option(None, "retriever", ge=0, le=2)
    """Weight of a perfect match by words, relative to meaning; the retriever's own if empty."""
    capability_weight: float | None = _option(None, "retriever", ge=0, le=2)
    """Score that a confident match of capabilities adds; the retriever's own if empty."""
    agent_weight: float | None = _option(None, "retriever", ge=0, le=10)
    """Weight of agents, for the ranking ``agent_as_a_graph``."""
    tool_weight: float | None = _option(None, "retriever", ge=0, le=10)
    """Weight of tools, for the ranking ``agent_as_a_graph``."""
    rrf_k: int | None = _option(None, "retriever", ge=1, le=1_000)
    """The k of reciprocal rank fusion, for the ranking ``agent_as_a_graph``."""
    pool: int | None = _option(None, "retriever", ge=1, le=10_000)
    """N, the nodes of the merged list, for the ranking ``agent_as_a_graph``."""
    search: Literal["scores", "dense", "bm25", "hybrid", "weighted_hybrid"] | None = _option(None, "retriever")
    """How nodes are scored: ``scores`` is ours, the others are the plain searches that the papers start from; the
    retriever's own way if empty."""
    expansion: Literal["expected_use", "graph_rag_tool_fusion", "none"] | None = _option(None, "retriever")
    """How dependencies of the tools found are added: by expected use, by Algorithm 1 of Graph RAG-Tool Fusion, or not
    at all; the retriever's own way if empty."""
    planner_prompt: str | None = _option(None, "plan", prompt=True)
    """System prompt of the planner's model; the supervisor's own if empty."""
    worker_prompt: str | None = _option(None, "worker", prompt=True)
    """System prompt of the workers' model; the supervisor's own if empty."""
    answer_prompt: str | None = _option(None, "answer", prompt=True)
    """System prompt of the answer's model; the supervisor's own if empty."""
    max_steps: int = _option(12, "plan", "revise", ge=1, le=50)
    """Maximum steps of a plan, including added ones."""
    max_items: int = _option(20, "dispatch", ge=1, le=100)
    """Maximum items of a step that runs once per item (``for_each``)."""
    max_waves: int = _option(16, "revise", ge=1, le=50)
    """Maximum waves of workers that a plan may take."""
    max_request: int = _option(32_000, "plan", ge=100)
    """Maximum characters of a request."""
    conversation_tokens: int = _option(2_000, "plan", "worker", "answer", ge=0, le=200_000)
    """Maximum tokens of earlier turns of the conversation in the prompts of planner, workers and answer."""
    run_seconds: float | None = _option(None, "dispatch", gt=0)
    """Seconds after which no step starts, including the time that the run waits for a person; no limit if empty."""
    max_turns: int = _option(24, "worker", ge=1, le=50)
    """Maximum model calls of a worker for one step."""
    max_calls: int = _option(64, "worker", ge=1, le=1_000)
    """Maximum tool calls of a worker for one step."""
    code_mode: bool = _option(True, "worker")
    """Whether a worker's model may also write programs that call its tools, in a sandbox."""
    step_seconds: float = _option(600, "worker", gt=0, le=86_400)
    """Timeout of a step in seconds, which undoes no effect before it."""
    model_seconds: float = _option(600, "plan", "revise", "worker", "answer", gt=0, le=86_400)
    """Timeout of one model call in seconds, after which the request is one step, or the results are listed, and the
    answer says so."""
    allow: tuple[str, ...] = _option((), "worker")
    """Tools, as ``agent/tool``, whose calls need no approval in this run; without a model, a person confirms the calls
    of all others that are not known to be harmless."""
    transcript: Literal["answer", "calls"] = _option("calls", "answer")
    """What a run adds to ``messages``: its ``answer`` alone, or, before it, the plan and the ``calls`` with the
    beginnings of their results."""
    attended: bool = _option(True, "plan", "worker")
    """Whether a person can answer questions during the run; if not, models are told to ask nothing."""
    documents: str | None = _option(None, "prepare")
    """For ``arag``: a folder within ``CALLSHEET_DOCUMENTS``."""
    max_loops: int = _option(15, "think", ge=1, le=100)
    """For ``arag``: maximum model calls before the answer."""
    max_tokens: int = _option(128_000, "think", ge=1_000, le=2_000_000)
    """For ``arag``: tokens of the conversation after which the model must answer."""

    @field_validator(
        "model", "planner_model", "worker_model", "answer_model", "decision_model",
        "planner_prompt", "worker_prompt", "answer_prompt",
    )  # fmt: skip
    @classmethod
    def _empty_is_none(cls, text: str | None) -> str | None:
        return (text or "").strip() or None

    def over(self, defaults: Settings) -> Settings:
        """The defaults, overridden by what was set here explicitly."""
        return defaults.model_copy(update=self.model_dump(exclude_unset=True))

    def reach(self, fields: Collection[str] | None = None, *, most: bool = True) -> dict[str, Any]:
        """The options for a selection; by default, for the shortlist of a worker.

        Args:
            fields: Only these settings; by default all.
            most: Include the limits on tools and schema tokens.
        """
        told = [*_RANKING, *(_MOST if most else ())]
        reach = {
            "floor" if name == "tool_floor" else name: value
            for name in told
            if (fields is None or name in fields) and (value := getattr(self, name)) is not None
        }
        if fields is None:
            reach["shortlist"] = True
        return reach if self.learn else {**reach, "learned": False}


def _documented() -> str:
    fields = "\n".join(f"        {name}: {field.description}" for name, field in Settings.model_fields.items())
    return f"{Settings.__doc__}\n    Attributes:\n{fields}\n    "


Settings.__doc__ = _documented()
