"""Where the algorithms meet: from a query to agents with tools within a budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from callsheet.graphs import (
    Catalog,
    NodeKind,
    OwnershipGraph,
    Reached,
    SettingsError,
    kind_of,
    owner,
    ownership_graph,
    required,
    walk,
)
from callsheet.graphs.mcp import clean
from callsheet.retrievers.agent_graph import PUBLISHED_WEIGHTS, agent_as_a_graph, agents_by_score
from callsheet.retrievers.fusion import RRF_K, blend
from callsheet.retrievers.index import Hit, VectorIndex
from callsheet.retrievers.lexical import LexicalIndex
from callsheet.retrievers.selection import Cut, Evidence, PickedAgent, PickedTool, Selection, Trace

_TRACED = 50

Ranking = Literal["scores", "agent_as_a_graph"]


@dataclass(frozen=True, slots=True)
class SelectSettings:
    """What a selection can be told.

    Attributes:
        agents: K, at most how many agents are picked.
        tools: At most how many tools in all.
        pool: N, how many nodes each search gives; more is slower and loses less.
        lexical_weight: What a perfect word match is worth, in cosine; 0 leaves words out.
        ranking: ``scores`` (the default: smooth maximum over an agent's tools) or ``agent_as_a_graph``
            (the paper's type-weighted rank fusion).
        agent_weight: alpha of agents, for ``agent_as_a_graph``.
        tool_weight: alpha of tools, for ``agent_as_a_graph``.
        rrf_k: k of Eq. 3, for ``agent_as_a_graph``.
        expand: How many of the best tools bring their dependencies along, Graph RAG-Tool Fusion's k.
        direct_first: Whether direct dependencies come before indirect ones.
        threshold: Scores of the best tool below this mean that nothing fits.
        without: Ids of agents that are not to be picked.
    """

    agents: int = 5
    tools: int = 10
    pool: int = 200
    lexical_weight: float = 0.4
    ranking: Ranking = "scores"
    agent_weight: float = PUBLISHED_WEIGHTS["agent"]
    tool_weight: float = PUBLISHED_WEIGHTS["tool"]
    rrf_k: int = RRF_K
    expand: int = 3
    direct_first: bool = True
    threshold: float = 0.35
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("agents", "tools", "pool", "rrf_k"):
            _check_at_least(1, name, getattr(self, name))
        _check_at_least(0, "expand", self.expand)
        _check_ids("without", self.without)
        if self.ranking not in ("scores", "agent_as_a_graph"):
            raise SettingsError(f"ranking must be 'scores' or 'agent_as_a_graph', not {self.ranking!r}")


def _check_at_least(least: int, name: str, value: object) -> None:
    if not isinstance(value, int) or value < least:
        raise SettingsError(f"{name} must be a whole number of at least {least}, not {value!r}")


def _check_ids(name: str, value: object) -> None:
    if isinstance(value, str):
        raise SettingsError(f"{name} must be a sequence of agent ids, not the text {value!r}")


@dataclass(slots=True)
class _Budget:
    """The tools taken so far, in order, and those that did not fit."""

    most: int
    taken: dict[str, tuple[str, PickedTool]] = field(default_factory=dict)
    cut: dict[str, Cut] = field(default_factory=dict)

    def offer(self, agent: str, tools: Sequence[PickedTool]) -> None:
        """Takes these tools for an agent, all or none; the very first offer is taken as far as it fits."""
        new = [tool for tool in tools if tool.id not in self.taken]
        room = self.most - len(self.taken)
        fits = new if len(new) <= room else ([] if self.taken else new[:room])
        for tool in fits:
            self.taken[tool.id] = (agent, tool)
            self.cut.pop(tool.id, None)
        for tool in new[len(fits) :]:
            why = (
                "the budget is spent"
                if len(new) == 1 or not room
                else f"only {room} left, with its requirements {len(new)}"
            )
            self.cut.setdefault(tool.id, Cut(tool.id, tool.score, why))


class Selector:
    """Picks agents and tools of one catalog.

    Args:
        catalog: What there is.
        vectors: Finds nodes by meaning; it must hold the catalog's nodes already.
        lexical: Finds nodes by words.
        settings: What holds unless a call says otherwise.
    """

    def __init__(
        self, catalog: Catalog, vectors: VectorIndex, lexical: LexicalIndex, settings: SelectSettings | None = None
    ) -> None:
        self.catalog = catalog
        self.settings = settings or SelectSettings()
        self._vectors = vectors
        self._lexical = lexical
        self._graph: OwnershipGraph = ownership_graph(catalog)

    def select(self, query: str, **changes: object) -> Selection:
        """Picks agents and their tools for a query.

        Both searches' scores are blended, agents ranked, and the budget is spent in this order: the best tools
        with all that they require, then what those depend on indirectly, then the best tool of each agent
        that has none yet, then the others by score. A required tool is never cut before a weaker one.

        Args:
            query: What is to be done, in any words.
            changes: Fields of ``SelectSettings`` that hold for this call.

        Raises:
            SettingsError: A setting is unknown or has a value that cannot work.
        """
        settings = self._changed(changes)
        query = clean(query)
        found = self._vectors.search(query, settings.pool) if query.strip() else []
        dense = [hit for hit in found if hit.id in self._graph]
        matches = self._lexical.search(query, settings.pool)
        blended = blend(dense, matches.hits, weight=settings.lexical_weight, coverage=matches.coverage)
        nodes = [hit for hit in blended if owner(self._graph, hit.id) not in settings.without]
        agents = self._agents(nodes, settings)
        scores = {hit.id: hit.score for hit in nodes}
        budget = self._spend(query, agents, scores, settings)
        best = max((hit.score for hit in nodes if kind_of(self._graph, hit.id) == "tool"), default=0.0)
        picked = tuple(
            PickedAgent(hit.id, hit.score, tuple(tool for agent, tool in budget.taken.values() if agent == hit.id))
            for hit in agents
        )
        return Selection(
            query=query,
            agents=picked,
            verdict="found" if picked and best >= settings.threshold else "nothing_fits",
            trace=Trace(
                settings=asdict(settings),
                coverage=matches.coverage,
                nodes=self._evidence(nodes, dense, matches.hits, budget.taken),
                cut=tuple(budget.cut.values()),
            ),
        )

    def _changed(self, changes: Mapping[str, object]) -> SelectSettings:
        try:
            return replace(self.settings, **changes)  # type: ignore[arg-type]
        except TypeError as error:
            unknown = sorted(set(changes) - set(asdict(self.settings)))
            raise SettingsError(
                f"unknown setting {', '.join(unknown)}: there are {', '.join(asdict(self.settings))}"
            ) from error

    def _agents(self, nodes: Sequence[Hit], settings: SelectSettings) -> list[Hit]:
        if settings.ranking == "scores":
            return agents_by_score(nodes, self._graph, agents=settings.agents)
        weights: Mapping[NodeKind, float] = {"agent": settings.agent_weight, "tool": settings.tool_weight}
        merged = [hit.id for hit in nodes]
        return agent_as_a_graph(merged, self._graph, agents=settings.agents, weights=weights, k=settings.rrf_k)

    def _spend(
        self, query: str, agents: Sequence[Hit], scores: Mapping[str, float], settings: SelectSettings
    ) -> _Budget:
        budget = _Budget(settings.tools)
        own = self._own_tools(query, agents, scores)
        ranked = sorted(((score, tool) for tools in own.values() for tool, score in tools), key=lambda item: -item[0])
        found = {tool: PickedTool(tool, score, (tool,)) for score, tool in ranked}
        first = [tool for _, tool in ranked][: settings.expand]

        def with_required(tool: str) -> list[PickedTool]:
            return [found[tool], *self._reached(tool, found, settings, direct=True)]

        for tool in first:
            budget.offer(owner(self._graph, tool), with_required(tool))
        for tool in first:
            indirect = {reached.id: reached for reached in self._reached(tool, found, settings, direct=False)}
            for reached in indirect.values():
                if reached.via[-2] not in budget.taken:
                    continue
                needs = required(self.catalog, reached.id)
                budget.offer(owner(self._graph, tool), [reached, *(indirect[t] for t in indirect if t in needs)])
        for agent, tools in own.items():
            if tools and not any(owner(self._graph, taken) == agent for taken in budget.taken):
                budget.offer(agent, with_required(tools[0][0]))
        for _, tool in ranked:
            budget.offer(owner(self._graph, tool), with_required(tool))
        return budget

    def _own_tools(
        self, query: str, agents: Sequence[Hit], scores: Mapping[str, float]
    ) -> dict[str, list[tuple[str, float]]]:
        """Each agent's tools with their scores, best first: those that the search found, else the most similar one."""
        own: dict[str, list[tuple[str, float]]] = {}
        for agent in agents:
            tools = [tool.id for tool in self.catalog.agent(agent.id).tools]
            found = [(tool, scores[tool]) for tool in tools if tool in scores]
            own[agent.id] = sorted(found, key=lambda item: -item[1]) or self._most_similar(query, tools)
        return own

    def _most_similar(self, query: str, tools: Sequence[str]) -> list[tuple[str, float]]:
        everything = len(self.catalog.tools) + len(self.catalog.agents)
        wanted = set(tools)
        hits = (hit for hit in self._vectors.search(query, everything) if hit.id in wanted)
        return [(hit.id, hit.score) for hit in hits][:1]

    def _reached(
        self, tool: str, found: Mapping[str, PickedTool], settings: SelectSettings, *, direct: bool
    ) -> Iterator[PickedTool]:
        for reached in walk(self.catalog, tool, direct_first=settings.direct_first):
            if reached.direct == direct:
                yield self._brought(reached, found)

    @staticmethod
    def _brought(reached: Reached, found: Mapping[str, PickedTool]) -> PickedTool:
        known = found.get(reached.tool)
        return PickedTool(reached.tool, known.score if known else 0.0, reached.path, required=reached.direct)

    def _evidence(
        self, nodes: Sequence[Hit], dense: Sequence[Hit], lexical: Sequence[Hit], taken: Collection[str]
    ) -> tuple[Evidence, ...]:
        by_meaning = {hit.id: (hit.score, rank) for rank, hit in enumerate(dense, 1)}
        by_words = {hit.id: (hit.score, rank) for rank, hit in enumerate(lexical, 1)}
        return tuple(
            Evidence(
                hit.id,
                kind_of(self._graph, hit.id),
                hit.score,
                *by_meaning.get(hit.id, (None, None)),
                *by_words.get(hit.id, (None, None)),
            )
            for position, hit in enumerate(nodes)
            if position < _TRACED or hit.id in taken
        )
