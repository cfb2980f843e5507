"""What a selection can be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from callsheet.graphs import SettingsError
from callsheet.retrievers.papers.agent_graph import PUBLISHED_WEIGHTS
from callsheet.retrievers.papers.rank_fusion import RRF_K

Ranking = Literal["scores", "agent_as_a_graph"]
Expansion = Literal["expected_use", "graph_rag_tool_fusion"]
_SHARES = ("tool_dependency", "parameter_dependency", "listing", "proposed", "capability_weight", "capability_sure")


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """How agents and tools are picked; one set of defaults serves every catalog.

    Attributes:
        agents: K, at most how many agents are picked.
        tools: At most how many tools in all.
        schema_tokens: At most how many tokens the tools' schemas may cost a model; no bound where None.
        without: Ids of agents that are not to be picked.
        max_query: Characters that a query may have; a longer one is refused.
        lexical_weight: What a perfect word match is worth, in cosine; 0 leaves words out.
        context: How much an agent's score counts for its tools.
        temperature: T of the shares, in score: the lower, the more the best candidate of each unit decides.
        candidates: How many candidates share in a unit.
        implied: Whether typed evidence (paths, addresses, relative dates) counts as a step that is asked for.
        tool_dependency: Share of its use that a tool passes on to one it depends on.
        parameter_dependency: The same for one that gives a parameter's value.
        listing: What is left of that for each dependency that its author lists before it.
        proposed: What a dependency is worth that is only proposed or observed, 0 to 1; its confidence counts too, and
            it never makes a tool required.
        capability_weight: What a sure match of capabilities adds to a score, in cosine; 0 leaves capabilities out.
        capability_sure: How sure it must be that a request asks for a capability for that to count, 0 to 1.
        cut: A tool is left out if its expected use, times its link to the likely capabilities where these count, is
            below ``cut / tools ** 2``: the smaller the budget, the more a place in it is worth. 0 fills the budget.
        threshold: Below this score of the best agent nothing fits.
        rerank: How many tools a reranker is shown, where there is one.
        ranking: ``scores`` or ``agent_as_a_graph`` (the paper's type-weighted rank fusion).
        agent_weight: alpha of agents, for ``agent_as_a_graph``.
        tool_weight: alpha of tools, for ``agent_as_a_graph``.
        rrf_k: k of Eq. 3, for ``agent_as_a_graph``.
        pool: N, how many nodes are merged, for ``agent_as_a_graph``; also how far down tools are listed.
        expansion: ``expected_use`` or ``graph_rag_tool_fusion`` (the paper's walk from the first tools found).
        expand: How many tools the walk starts from, for ``graph_rag_tool_fusion``.
        direct_first: Whether the walk takes direct dependencies first, for ``graph_rag_tool_fusion``.
    """

    agents: int = 5
    tools: int = 10
    schema_tokens: int | None = None
    without: tuple[str, ...] = ()
    max_query: int = 100_000
    lexical_weight: float = 0.3
    context: float = 0.2
    temperature: float = 0.04
    candidates: int = 30
    implied: bool = True
    tool_dependency: float = 0.8
    parameter_dependency: float = 0.95
    listing: float = 0.97
    proposed: float = 0.0
    capability_weight: float = 0.0
    capability_sure: float = 0.9
    cut: float = 0.0
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
        """The same with these fields.

        Raises:
            SettingsError: A field is unknown or has a value that cannot work.
        """
        if unknown := sorted(set(changes) - set(_NAMES)):
            raise SettingsError(f"unknown setting {', '.join(unknown)}: there are {', '.join(_NAMES)}")
        return replace(self, **changes)  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return {name: getattr(self, name) for name in _NAMES}


_NAMES = tuple(field.name for field in fields(SelectSettings))


def text_query(query: object) -> str:
    """A query as it was given.

    Raises:
        SettingsError: It is no text.
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
