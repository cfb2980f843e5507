"""The settings of a selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from callsheet.graphs import SettingsError
from callsheet.retrievers.papers.agent_graph import PUBLISHED_WEIGHTS
from callsheet.retrievers.papers.rank_fusion import RRF_K

Ranking = Literal["scores", "agent_as_a_graph"]
Expansion = Literal["expected_use", "graph_rag_tool_fusion"]
_SHARES = (
    "tool_dependency",
    "parameter_dependency",
    "listing",
    "proposed",
    "capability_weight",
    "capability_sure",
    "floor",
)


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """Settings of a selection; the defaults are the same for every catalog.

    Attributes:
        agents: K, maximum number of agents.
        tools: Maximum number of tools.
        schema_tokens: Maximum number of tokens of the tools' schemas; None: no maximum.
        skills: Maximum number of skills; 0 ignores skills.
        without: Ids of agents to leave out.
        wanted: Ids of tools that come first, as if the query named them.
        max_query: Maximum number of characters of a query.
        lexical_weight: Value of a perfect match by words, in cosine; 0 ignores words.
        context: Weight of an agent's score for its tools.
        temperature: T of the shares, in score: the lower it is, the more the best candidate of each unit counts.
        candidates: Maximum number of candidates per unit.
        implied: Whether paths, URLs and relative dates count as implied steps.
        tool_dependency: Share of its use that a tool passes on to a tool that it depends on.
        parameter_dependency: The same for a tool that returns the value of a parameter.
        listing: Factor for each dependency that the author lists earlier.
        proposed: Factor for dependencies that are only proposed or observed, 0 to 1, times how likely they are used
            (``graphs.dependencies.traversal.strongest``); they never make a tool required.
        learned: Whether outcomes of earlier calls count: of tools that fit about equally, one whose calls failed more
            often comes later.
        capability_weight: Value of a sure match of capabilities, in cosine; 0 ignores capabilities.
        capability_sure: Minimum confidence that a request asks for a capability, 0 to 1.
        cut: A tool is left out if its expected use, times its link to the likely capabilities if these are used, is
            below ``cut / tools ** 2``: the smaller the budget, the higher the minimum. 0 fills the budget.
        floor: A tool is left out if its expected use is below this share of the best tool's; 0 fills the budget.
        shortlist: Whether the tools are for one model, which reads every schema. Then tools of the best tool's agent
            come before others of about equal expected use (``scoring.shortlisted``), dependencies that nobody has
            reviewed come after all tools that the search finds, of equal tools of several agents only the best is
            taken, and agents without a taken tool are left out.
        threshold: Minimum score of the best agent; below it nothing fits.
        rerank: Maximum number of tools that a reranker is shown.
        ranking: ``scores`` or ``agent_as_a_graph`` (the paper's type-weighted rank fusion).
        agent_weight: alpha of agents, for ``agent_as_a_graph``.
        tool_weight: alpha of tools, for ``agent_as_a_graph``.
        rrf_k: k of Eq. 3, for ``agent_as_a_graph``.
        pool: N, number of merged nodes, for ``agent_as_a_graph``; also the maximum length of the list of tools.
        expansion: ``expected_use`` or ``graph_rag_tool_fusion`` (the paper's walk from the first tools).
        expand: Number of tools where the walk starts, for ``graph_rag_tool_fusion``.
        direct_first: Whether the walk follows direct dependencies first, for ``graph_rag_tool_fusion``.
    """

    agents: int = 5
    tools: int = 10
    schema_tokens: int | None = None
    skills: int = 2
    without: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    max_query: int = 100_000
    lexical_weight: float = 0.3
    context: float = 0.2
    temperature: float = 0.04
    candidates: int = 30
    implied: bool = True
    tool_dependency: float = 0.8
    parameter_dependency: float = 0.95
    listing: float = 0.97
    proposed: float = 0.75
    learned: bool = True
    capability_weight: float = 0.0
    capability_sure: float = 0.9
    cut: float = 0.0
    floor: float = 0.0
    shortlist: bool = False
    threshold: float = 0.3
    rerank: int = 20
    ranking: Ranking = "scores"
    agent_weight: float = PUBLISHED_WEIGHTS["agent"]
    tool_weight: float = PUBLISHED_WEIGHTS["tool"]
    rrf_k: int = RRF_K
    pool: int = 200
    expansion: Expansion = "expected_use"
    expand: int = 3
    direct_first: bool = True

    def __post_init__(self) -> None:
        for name in ("agents", "tools", "max_query", "candidates", "rerank", "pool", "rrf_k", "expand"):
            _check_at_least(1, name, getattr(self, name))
        _check_at_least(0, "skills", self.skills)
        if self.schema_tokens is not None:
            _check_at_least(1, "schema_tokens", self.schema_tokens)
        for name in _SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise SettingsError(f"{name} must be between 0 and 1, not {getattr(self, name)!r}")
        if not self.cut >= 0:
            raise SettingsError(f"cut must be 0 or more, not {self.cut!r}")
        if not self.temperature > 0:
            raise SettingsError(f"temperature must be above 0, not {self.temperature!r}")
        if isinstance(self.without, str):  # type: ignore[unreachable]
            raise SettingsError(f"without must be a sequence of agent ids, not the text {self.without!r}")
        _check_one_of("ranking", self.ranking, ("scores", "agent_as_a_graph"))
        _check_one_of("expansion", self.expansion, ("expected_use", "graph_rag_tool_fusion"))

    def changed(self, changes: Mapping[str, object]) -> SelectSettings:
        """The settings with these changes.

        Raises:
            SettingsError: A field is unknown or has an invalid value.
        """
        if unknown := sorted(set(changes) - set(_NAMES)):
            raise SettingsError(f"unknown setting {', '.join(unknown)}: there are {', '.join(_NAMES)}")
        return replace(self, **changes) if changes else self  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """The settings by name."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(SelectSettings))


def text_query(query: object) -> str:
    """The query, if it is a text.

    Raises:
        SettingsError: It is not a text.
    """
    if not isinstance(query, str):
        raise SettingsError(f"the query must be a text such as 'convert 3 miles to km', not {type(query).__name__}")
    return query


def _check_at_least(least: int, name: str, value: object) -> None:
    if not isinstance(value, int) or value < least:
        raise SettingsError(f"{name} must be a whole number of at least {least}, not {value!r}")


def _check_one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise SettingsError(f"{name} must be {' or '.join(map(repr, known))}, not {value!r}")
