"""The options of a run: one class for each graph, which Studio shows as a form."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue

from callsheet.graphs import SettingsError
from callsheet.retrievers.selection.select_settings import Expansion, Ranking, Scoring

_MOST = ("tools", "schema_tokens")
_RANKING = (
    "agents", "tool_floor", "lexical_weight", "capability_weight",
    "search", "ranking", "agent_weight", "tool_weight", "rrf_k", "pool", "expansion",
)  # fmt: skip
_STAGES = ("plan", "dispatch", "worker", "revise", "answer", "retriever")
"""The stages of a supervisor in the order in which Studio shows their settings; what few people change comes last."""
TOOL_FLOOR = 0.0005
"""The default of ``tool_floor``; docs/concepts/retrieval.md has the measurement."""
Planning = Literal["auto", "none"]


def _text_or_none(text: str | None) -> str | None:
    return (text or "").strip() or None


OptionalText: TypeAlias = Annotated[str | None, AfterValidator(_text_or_none)]
"""A text; Studio sends an empty one for a field that nobody has filled, which is None."""


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Returns the error for an unknown setting, with the most similar name and all names."""
    names = list(known)
    near = get_close_matches(name, names, n=1)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"there is no setting {name!r}{meant}; there are: {', '.join(names)}"


def _option(default: Any, *nodes: str, prompt: bool = False, **bounds: Any) -> Any:
    """Returns a setting that Studio shows at these nodes; the attribute's docstring is its description.

    ``bounds`` are the limits of its values, and its ``title``, if that is not the name.
    """
    shown: dict[str, Any] = {"langgraph_nodes": list(nodes)}
    if prompt:
        shown["langgraph_type"] = "prompt"
    return Field(default=default, json_schema_extra=shown, **bounds)


class GraphSettings(BaseModel):
    """Options of one run of a graph; Studio and ``langgraph_sdk`` pass them as ``context``.

    Attributes:
        FIRST: What people change first. Studio shows these at the top, and the others, node by node, as advanced ones.
        NODES: The nodes of the graph at which Studio shows all settings; by default, each has its own.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    FIRST: ClassVar[tuple[str, ...]] = ()
    NODES: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError("; ".join(self._problem(one) for one in error.errors())) from error

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Lists the settings in the docstring, for readers of the API."""
        super().__pydantic_init_subclass__(**kwargs)
        fields = "\n".join(f"        {name}: {field.description}" for name, field in cls.model_fields.items())
        cls.__doc__ = f"{cls.__doc__}\n    Attributes:\n{fields}\n    "

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Returns the schema of the form that Studio shows: the first settings first, then those of each stage."""
        schema = handler.resolve_ref_schema(handler(core_schema))
        properties: dict[str, Any] = schema["properties"]
        advanced = sorted((name for name in properties if name not in cls.FIRST), key=cls._place)
        form: dict[str, JsonSchemaValue] = {}
        for name in (*cls.FIRST, *advanced):
            form[name] = {**properties[name], "title": cls._title(name)}
            # Studio shows a description as it stands.
            form[name]["description"] = " ".join(form[name]["description"].replace("``", "`").split())
            if cls.NODES:
                form[name]["langgraph_nodes"] = list(cls.NODES)
        schema["properties"] = form
        return schema

    @classmethod
    def _title(cls, name: str) -> str:
        words = cls.model_fields[name].title or name.replace("_", " ").capitalize()
        return words if name in cls.FIRST else f"Advanced, {cls._stage(name)}: {words}"

    @classmethod
    def _stage(cls, name: str) -> str:
        """Returns the first node to which a setting belongs."""
        shown: Any = cls.model_fields[name].json_schema_extra
        return str(shown["langgraph_nodes"][0])

    @classmethod
    def _place(cls, name: str) -> int:
        stage = cls._stage(name)
        return _STAGES.index(stage) if stage in _STAGES else len(_STAGES)

    @classmethod
    def _problem(cls, error: Mapping[str, Any]) -> str:
        """Returns what is wrong with a setting, by an error of Pydantic."""
        name = ".".join(map(str, error["loc"]))
        if error["type"] == "extra_forbidden":
            return unknown_setting(name, cls.model_fields)
        return f"setting {name!r}: {error['msg']}, not {error['input']!r}"

    def over(self, defaults: Self) -> Self:
        """Returns the defaults, overridden by what was set here explicitly."""
        return defaults.model_copy(update=self.model_dump(exclude_unset=True))


class RankingSettings(GraphSettings):
    """Options of the retriever, in every graph that has one."""

    agents: int | None = _option(None, "retriever", ge=1, le=1_000)
    """Maximum agents of a selection; the retriever's own if empty, which is no limit."""
    decision_model: OptionalText = _option(None, "retriever")
    """Chat model that judges the first tools of a selection, in one call: their order, and whether one of them fits."""
    learn: bool = _option(True, "retriever")
    """Whether to count how the calls of each tool end, and to rank a tool that failed behind others that fit equally;
    ``callsheet forget`` deletes the counts."""
    lexical_weight: float | None = _option(None, "retriever", ge=0, le=2)
    """Weight of a perfect match by words, relative to meaning; the retriever's own if empty."""
    capability_weight: float | None = _option(None, "retriever", ge=0, le=2)
    """Score that a confident match of capabilities adds; the retriever's own if empty."""
    search: Scoring | None = _option(None, "retriever")
    """How nodes are scored: ``scores`` is ours, the others are the plain searches that the papers start from; the
    retriever's own way if empty."""
    ranking: Ranking | None = _option(None, "retriever")
    """How agents and tools are ranked; the retriever's own way if empty."""
    agent_weight: float | None = _option(None, "retriever", ge=0, le=10)
    """Weight of agents, for the ranking ``agent_as_a_graph``."""
    tool_weight: float | None = _option(None, "retriever", ge=0, le=10)
    """Weight of tools, for the ranking ``agent_as_a_graph``."""
    rrf_k: int | None = _option(None, "retriever", ge=1, le=1_000, title="RRF k")
    """The k of reciprocal rank fusion, for the ranking ``agent_as_a_graph``."""
    pool: int | None = _option(None, "retriever", ge=1, le=10_000)
    """N, the nodes of the merged list, for the ranking ``agent_as_a_graph``."""
    expansion: Expansion | None = _option(None, "retriever")
    """How dependencies of the tools found are added: by expected use, by Algorithm 1 of Graph RAG-Tool Fusion, or not
    at all; the retriever's own way if empty."""

    def reach(self, fields: Collection[str] | None = None, *, most: bool = True) -> dict[str, Any]:
        """Returns the options for a selection; by default, for the shortlist of a worker.

        Args:
            fields: Only these settings; by default all.
            most: Include the limits on tools and schema tokens.
        """
        names = [*_RANKING, *_MOST] if most else _RANKING
        reach: dict[str, Any] = {}
        for name in names:
            value = getattr(self, name)
            if value is not None and (fields is None or name in fields):
                reach[name] = value
        if "tool_floor" in reach:
            reach["floor"] = reach.pop("tool_floor")
        if fields is None:
            reach["shortlist"] = True
        if not self.learn:
            reach["learned"] = False
        return reach


class RetrieverSettings(RankingSettings):
    """Options of one run of the retriever; Studio and ``langgraph_sdk`` pass them as ``context``.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    FIRST: ClassVar[tuple[str, ...]] = ("tools", "schema_tokens", "agents", "search", "ranking")

    tools: int | None = _option(None, "retriever", ge=1, le=128)
    """Maximum tools of the selection; the retriever's own if empty, which are ten."""
    schema_tokens: int | None = _option(None, "retriever", ge=1, le=1_000_000)
    """Maximum tokens of the schemas of the selected tools; the retriever's own if empty, which is no limit."""
    tool_floor: float | None = _option(None, "retriever", ge=0, le=1)
    """A tool is left out if its expected use is below this share of the best tool's; the retriever's own if empty,
    which is 0."""


class AskSettings(RankingSettings):
    """Options of one run of ``ask``; Studio and ``langgraph_sdk`` pass them as ``context``.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    FIRST: ClassVar[tuple[str, ...]] = ("model", "approval", "planning", "tools", "token_budget")
    NODES: ClassVar[tuple[str, ...]] = ("supervisor",)

    tools: int = _option(15, "retriever", ge=1, le=128)
    """Maximum tools per worker; those that a plan does not name fill at most ten places."""
    schema_tokens: int | None = _option(8_000, "retriever", ge=1, le=1_000_000)
    """Maximum tokens of the schemas of a worker's tools; no limit if empty."""
    tool_floor: float = _option(TOOL_FLOOR, "retriever", ge=0, le=1)
    """A tool is left out if its expected use is below this share of the best tool's; 0 gives a worker all ``tools``."""
    model: OptionalText = _option(None, "plan", "worker", "answer")
    """Chat model for planner, workers and answer, as ``provider:model``; without one, a step must name a tool and all
    its values."""
    approval: Literal["always", "ask", "never"] = _option("ask", "worker")
    """Which calls need approval: ``always`` all, ``ask`` those of tools that are not known to be harmless, ``never``
    only those that may delete or overwrite something."""
    planning: Planning = _option("auto", "plan", "revise")
    """Whether a model plans a request: ``auto`` (but for a single small agent), or ``none`` (a worker does all of it,
    and sees the names of all tools itself)."""
    token_budget: int | None = _option(None, "dispatch", "worker", ge=1)
    """Tokens after which no step starts and no worker continues; no limit if empty."""
    planner_model: OptionalText = _option(None, "plan", "revise")
    """Another model for plans and their revisions."""
    worker_model: OptionalText = _option(None, "worker")
    """Another model for the workers."""
    answer_model: OptionalText = _option(None, "answer")
    """Another model for the answer."""
    roster_tokens: int = _option(4_000, "plan", "worker", ge=100, le=200_000)
    """Tokens up to which the names of all tools stand in the planner's prompt; of a larger catalog, the agents, and the
    tools of those that fit."""
    skill_tokens: int = _option(5_000, "retriever", "worker", ge=0, le=200_000)
    """Maximum tokens of the skills that a worker gets, which need a model; 0 switches skills off."""
    planner_prompt: OptionalText = _option(None, "plan", prompt=True)
    """System prompt of the planner's model; the supervisor's own if empty."""
    worker_prompt: OptionalText = _option(None, "worker", prompt=True)
    """System prompt of the workers' model; the supervisor's own if empty."""
    answer_prompt: OptionalText = _option(None, "answer", prompt=True)
    """System prompt of the answer's model; the supervisor's own if empty."""
    max_steps: int = _option(12, "plan", "revise", ge=1, le=50)
    """Maximum steps of a plan, including added ones."""
    max_items: int = _option(20, "dispatch", ge=1, le=100)
    """Maximum items of a step that runs once per item (``for_each``)."""
    max_waves: int = _option(16, "revise", ge=1, le=50)
    """Maximum waves of workers that a plan may take."""
    max_request: int = _option(32_000, "plan", ge=100)
    """Maximum characters of a request."""
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
    """Tools, as ``agent/tool``, whose calls need no approval in this run."""


class Settings(AskSettings):
    """Options of one run of the supervisor; Studio and ``langgraph_sdk`` pass them as ``context``.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    NODES: ClassVar[tuple[str, ...]] = ()

    conversation_tokens: int = _option(2_000, "plan", "worker", "answer", ge=0, le=200_000)
    """Maximum tokens of earlier turns of the conversation in the prompts of planner, workers and answer."""
    transcript: Literal["answer", "calls"] = _option("calls", "answer")
    """What a run adds to ``messages``: its ``answer`` alone, or, before it, the plan and the ``calls`` with the
    beginnings of their results."""
    questions: Literal["one", "all"] = _option("all", "worker")
    """Whether a run asks all its questions at once (``all``), or one after the other (``one``), for clients that answer
    without an id; on the LangGraph server of a checkout, ``one``."""
    attended: bool = _option(True, "plan", "worker")
    """Whether a person can answer questions during the run; if not, models are told to ask nothing."""


class ReaderSettings(GraphSettings):
    """Options of one run of ``arag``; Studio and ``langgraph_sdk`` pass them as ``context``.

    Raises:
        SettingsError: A setting is unknown, or a value is invalid; the message names every such setting.
    """

    FIRST: ClassVar[tuple[str, ...]] = ("model", "documents", "max_loops", "max_tokens", "max_request")

    model: OptionalText = _option(None, "think")
    """Chat model that searches and answers, as ``provider:model``; without one, the best sentences are quoted."""
    documents: str | None = _option(None, "prepare")
    """A folder within ``CALLSHEET_DOCUMENTS``."""
    max_loops: int = _option(15, "think", ge=1, le=100)
    """Maximum model calls before the answer."""
    max_tokens: int = _option(128_000, "think", ge=1_000, le=2_000_000)
    """Tokens of the conversation after which the model must answer."""
    max_request: int = _option(32_000, "prepare", ge=100)
    """Maximum characters of a question."""
