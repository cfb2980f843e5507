"""Ranks agents and tools for a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import (
    DependencyKind,
    KnowledgeGraph,
    NodeKind,
    Reached,
    SettingsError,
    View,
    dependency_edges,
    knowledge_graph,
    split_name,
    strongest,
)
from callsheet.graphs.dependencies import Outcomes
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.index.indexes import LexicalIndex, Matches, PartOfIndex
from callsheet.retrievers.index.node_texts import IDENTIFIER, Node, VectorIndex, identifiers
from callsheet.retrievers.papers.agent_graph import AgentRanking, rank_agents
from callsheet.retrievers.papers.first_search import first_search
from callsheet.retrievers.papers.mcp_zero import mcp_zero
from callsheet.retrievers.papers.rank_fusion import RankContribution
from callsheet.retrievers.selection import scoring
from callsheet.retrievers.selection.copies import Copies
from callsheet.retrievers.selection.result import Ranked
from callsheet.retrievers.selection.scoring import Rows, Scores
from callsheet.retrievers.selection.select_settings import PublishedSearch, SelectSettings, Unit, spans_of, units_of

BEHIND = np.float32(0.1)
"""How far the score of a copy is lowered below its original; at the default temperature, its odds fall to a twelfth."""


def _strongest(
    graph: KnowledgeGraph,
    tool: str,
    *,
    of_tool: float,
    of_parameter: float,
    listing: float,
    proposed: float,
    inferred: bool,
) -> tuple[tuple[Reached, float], ...]:
    weights = {kind: of_tool if kind.startswith("tool") else of_parameter for kind in DependencyKind}
    return strongest(graph, tool, weights, listing=listing, proposed=proposed, inferred=inferred)


def _node_scores(matches: Sequence[tuple[Scores, Matches]], weight: float) -> list[Scores]:
    """Returns the scores of all nodes for each unit: the cosines, and with this ``weight``, the match of words."""
    scored: list[Scores] = []
    for cosines, words in matches:
        scored.append(scoring.node_scores(cosines, words.scores, coverage=words.coverage, weight=weight))
    return scored


def _number_of_own(units: Sequence[Unit]) -> int:
    """Returns the number of units that are parts of the query itself; units that it only implies come after them."""
    return sum(unit.kind != "implied" for unit in units)


def _parts(general: Scores, weight: float) -> dict[int, float]:
    """Returns the weighted probability of each general tool (see ``CapabilityIndex.general``), by the tool's row."""
    return {row: weight * float(general[row]) for row in np.flatnonzero(general).tolist()}


def _best(scores: Scores) -> float:
    return float(scores.max()) if len(scores) else 0.0


class Ranker:
    """Ranks the agents and tools of one graph; the arguments are those of ``Selector``."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        nodes: Sequence[Node],
        vectors: VectorIndex,
        lexical: LexicalIndex,
        capabilities: CapabilityIndex | None,
        outcomes: Callable[[], Mapping[str, Outcomes]],
        copies: Copies,
    ) -> None:
        self.graph = graph
        self.nodes = nodes
        self.copies = copies
        self.row = {node.id: i for i, node in enumerate(nodes)}
        self._vectors = vectors
        self._lexical = lexical
        kinds = np.array([node.kind for node in nodes])
        self._is_agent = kinds == "agent"
        self._agent_rows: Rows = np.flatnonzero(self._is_agent)
        self._tool_rows: Rows = np.flatnonzero(kinds == "tool")
        self._skill_rows: Rows = np.flatnonzero(kinds == "skill")
        position = {nodes[row].id: i for i, row in enumerate(self._agent_rows.tolist())}
        self._owners: Rows = np.array([position.get(node.owner, -1) for node in nodes], np.intp)
        self._with_needs = {self.row[tool] for tool, _ in dependency_edges(graph)}
        self._strongest = cache(partial(_strongest, graph))
        self._implied: dict[str, tuple[Scores, Matches]] = {}
        self._named = identifiers(nodes)
        self._capabilities = capabilities
        self._outcomes = outcomes
        here = self.row.keys()
        pairs = [(copy, first) for copy, first in copies.originals.items() if copy in here and first in here]
        self._copies: Rows = np.array([self.row[copy] for copy, _ in pairs], np.intp)
        self._originals: Rows = np.array([self.row[first] for _, first in pairs], np.intp)
        # Many tools that are each a little behind add up to an agent, so those of an imitator are last.
        last = [nodes[row].owner in copies.imitators for row in self._copies.tolist()]
        self._distances = np.where(np.array(last, bool), np.float32(2), BEHIND)
        honest = {nodes[row].owner for row in self._copies.tolist()} - copies.imitators
        self._agents_by_word: dict[str, list[tuple[str, frozenset[str]]]] = {}
        for agent in sorted(honest):
            words = frozenset(tokens(split_name(agent)))
            if words:
                self._agents_by_word.setdefault(max(words, key=len), []).append((agent, words))

    def within(self, view: View) -> Ranker:
        """Returns a ranker restricted to the nodes of a view."""
        rows = [row for row, node in enumerate(self.nodes) if node.id in view]
        return Ranker(
            knowledge_graph(view.catalog),
            [self.nodes[row] for row in rows],
            PartOfIndex(self._vectors, rows),
            self._lexical.part(rows),
            self._capabilities and self._capabilities.part(rows),
            self._outcomes,
            self.copies,
        )

    @property
    def capabilities(self) -> CapabilityIndex:
        """Returns the capabilities of the tools; raises a ``SettingsError`` if there is no ``CapabilityIndex``."""
        if self._capabilities is None:
            raise SettingsError("capabilities are not known: give the Selector a CapabilityIndex")
        return self._capabilities

    def rank(self, query: str, settings: SelectSettings) -> Ranked:
        """Ranks all agents and tools for a query, except those of ``settings.without``."""
        units = units_of(query, clauses=settings.clauses, implied=settings.implied)
        if settings.search != "scores":
            return self._searched(query, units[:1], settings.search, settings)
        matches = self._matches(query, units)
        left_out = self._left_out(settings)
        scored = _node_scores(matches, settings.lexical_weight)
        own_units = _number_of_own(units)
        everything = scored[:own_units]
        outcomes = self._outcomes() if settings.learned else {}
        scored = self._with_copies_behind(query, scored, left_out, outcomes)
        by_agent = self._by_agent(scored)
        strength = max(map(_best, by_agent[:own_units]))
        demand = self.capabilities.asked(query, spans_of(units)) if settings.capability_weight else None
        adjusted = self._adjusted(scored, demand, outcomes, settings)
        if adjusted is not scored:
            scored = adjusted
            by_agent = self._by_agent(adjusted)
        by_tool = self._by_tool(scored, by_agent, settings.context)
        whole = scored[0].copy()
        whole[self._tool_rows] = by_tool[0]
        best = max(float(scores.max(initial=0.0)) for scores in by_tool[:own_units])
        weight, general = self._general(query, units, best, whole, settings)
        named = self._named_in(query, whole, left_out)
        weights = [*(unit.weight for unit in units), weight]
        use, source, first = self._uses(by_tool, general, weights, settings, named)
        order = sorted(use, key=lambda row: (row not in named, row not in first, -round(use[row], 9)))
        nearest = self._tool_rows[scoring.best_rows(by_tool[0], settings.pool)].tolist()
        order += [row for row in nearest if row not in use]
        skills = self._skills(everything, settings, named)
        return Ranked(
            units=units,
            cosines=matches[0][0],
            words=matches[0][1].scores,
            coverage=matches[0][1].coverage,
            scores=whole,
            strength=max([strength, *(score for _, score in skills)]),
            agents=self._agents(scored[0], by_agent, general, weights, settings, named, left_out[self._agent_rows]),
            # A tool of an agent that is left out stays as a dependency of another.
            tools=tuple(row for row in order if source.get(row, row) != row or not left_out[row]),
            use=use,
            source=source,
            named=frozenset(self.nodes[row].id for row in named),
            skills=skills,
            outcomes=outcomes,
            general=_parts(general, weight),
            likely=None if demand is None else self.capabilities.likely(demand.max(axis=0), use),
        )

    def _uses(
        self,
        by_tool: Sequence[Scores],
        general: Scores,
        weights: Sequence[float],
        settings: SelectSettings,
        named: Collection[int],
    ) -> tuple[dict[int, float], dict[int, int], Collection[int]]:
        """Returns the expected use by tool, the candidate that contributes most to it, and the tools to rank first."""
        shares = self._shares(by_tool, general, settings)
        tools = [row for row in named if self._owners[row] >= 0 and not self._is_agent[row]]
        if tools:
            shares.append((np.array(tools, np.intp), np.ones(len(tools), np.float32)))
            weights = [*weights, 1.0]
        found = self._tool_use(shares, weights, settings, inferred=False)
        if not found[0]:
            return {}, {}, ()
        if settings.shortlist:
            found = scoring.siblings_raised(found, self._owners)
        if not settings.proposed:
            return *found, found[0]
        uses = self._tool_use(shares, weights, settings, inferred=True)
        return scoring.found_first(uses, found, settings.floor)

    def _searched(
        self, query: str, units: tuple[Unit, ...], search: PublishedSearch, settings: SelectSettings
    ) -> Ranked:
        """Ranks the tools by a published search; also the agents, if the settings name a published ranking for them."""
        ((cosines, matched),) = self._matches(query, units)
        scores = np.zeros(len(self.nodes), np.float32)
        rows = self._tool_rows[~self._left_out(settings)[self._tool_rows]]
        agents = self._agent_rows
        if search == "mcp_zero":
            tools = self._by_mcp_zero(cosines, rows, scores, settings)
        else:
            _, scores[agents] = first_search(search, cosines[agents], matched.scores[agents])
            found, scores[rows] = first_search(search, cosines[rows], matched.scores[rows])
            tools = rows[found].tolist()
        strength = max(0.0, float(scores.max()))
        by_rank: tuple[tuple[int, float], ...] = ()
        terms: Mapping[str, tuple[RankContribution, ...]] = {}
        if settings.ranking != "scores":
            by_rank, terms = self._as_published(settings.ranking, scores, settings)
        use = {row: float(len(tools) - place) for place, row in enumerate(tools)}
        return Ranked(
            units=units,
            cosines=cosines,
            words=matched.scores,
            coverage=matched.coverage,
            scores=scores,
            strength=strength,
            agents=by_rank,
            tools=tuple(tools),
            use=use,
            source={},
            contributions=terms,
        )

    def _by_mcp_zero(self, cosines: Scores, rows: Rows, scores: Scores, settings: SelectSettings) -> list[int]:
        """Returns the rows of the tools that MCP-Zero finds, best first; writes the scores of agents and tools."""
        agents = self._agent_rows[~self._left_out(settings)[self._agent_rows]]
        scores[agents] = cosines[agents]
        of_servers = {self.nodes[row].id: float(cosines[row]) for row in agents.tolist()}
        of_tools = {self.nodes[row].id: float(cosines[row]) for row in rows.tolist()}
        hits = mcp_zero(of_servers, of_tools, self.graph)
        tools = [self.row[hit.id] for hit in hits]
        scores[tools] = [hit.score for hit in hits]
        return tools

    def link(self, row: int, ranked: Ranked) -> float:
        """Returns how strongly a tool is linked to the likely capabilities, .1 to 1; 1 if capabilities are not used."""
        return 1.0 if ranked.likely is None else self.capabilities.link(row, ranked.likely)

    def needs(self, row: int, settings: SelectSettings, *, inferred: bool = True) -> tuple[tuple[Reached, float], ...]:
        """Returns the dependencies of a tool with the weights of their strongest paths, cached."""
        if row not in self._with_needs:
            return ()
        return self._strongest(
            self.nodes[row].id,
            of_tool=settings.tool_dependency,
            of_parameter=settings.parameter_dependency,
            listing=settings.listing,
            proposed=settings.proposed,
            inferred=inferred,
        )

    def _matches(self, query: str, units: Sequence[Unit]) -> list[tuple[Scores, Matches]]:
        """Returns for each unit the cosines and the word matches of all nodes.

        Implied units come last; their results are cached.
        """
        meanings = self._vectors.scores(query, spans_of(units))
        own = [(cosines, self._lexical.scores(unit.text)) for unit, cosines in zip(units, meanings, strict=False)]
        implied = [unit.text for unit in units[len(own) :]]
        for text in implied:
            if text not in self._implied:
                self._implied[text] = (self._vectors.scores(text)[0], self._lexical.scores(text))
        return [*own, *map(self._implied.__getitem__, implied)]

    def _by_agent(self, scored: Sequence[Scores]) -> list[Scores]:
        nodes = len(self.nodes) - len(self._skill_rows)  # skills come last
        return [scoring.agent_scores(s[:nodes], self._owners[:nodes], self._is_agent[:nodes]) for s in scored]

    def _by_tool(self, scored: Sequence[Scores], by_agent: Sequence[Scores], context: float) -> list[Scores]:
        """Returns the scores of the tools, each with ``context`` times the score of its agent added."""
        rows = self._tool_rows
        owners = self._owners[self._tool_rows]
        sums = (scores[rows] + context * agents[owners] for scores, agents in zip(scored, by_agent, strict=True))
        return [of_tools.astype(np.float32, copy=False) for of_tools in sums]

    def _skills(
        self, scored: list[Scores], settings: SelectSettings, named: Collection[int]
    ) -> tuple[tuple[int, float], ...]:
        """Returns the skills that fit, compared with all tools, including those of agents that are left out."""
        if not len(self._skill_rows) or not settings.skills:
            return ()
        tools = self._by_tool(scored, self._by_agent(scored), settings.context)
        best = [float(scores.max(initial=-np.inf)) for scores in tools]
        return scoring.fitting_skills(scored, best, self._skill_rows, settings, named)[: settings.skills]

    def _general(
        self, query: str, units: Sequence[Unit], best: float, whole: Scores, settings: SelectSettings
    ) -> tuple[float, Scores]:
        """Returns the weight of all general tools together, and the share of each node in it, as ``(n,)``."""
        weight = scoring.general_weight(best, even=settings.general) if settings.general and self._capabilities else 0.0
        if self._capabilities is None or weight < scoring.LEAST_WEIGHT or not len(self._tool_rows):
            return 0.0, np.zeros(len(self.nodes), np.float32)
        return weight, self._capabilities.general(query, spans_of(units), whole)

    def _adjusted(
        self,
        scored: list[Scores],
        demand: Scores | None,
        outcomes: Mapping[str, Outcomes],
        settings: SelectSettings,
    ) -> list[Scores]:
        """Adds the evidence of capabilities to the scores, and reduces the scores of tools whose calls have failed.

        Returns the same list if there are neither capabilities nor outcomes. The verdict uses the original scores.
        """
        if demand is not None:
            weight = np.float32(settings.capability_weight)
            more = [weight * self.capabilities.evidence(q, sure=settings.capability_sure) for q in demand]
            raised = [(s + evidence).astype(np.float32) for s, evidence in zip(scored, more, strict=False)]
            scored = [*raised, *scored[len(raised) :]]
        if outcomes:
            shift = np.zeros(len(self.nodes), np.float32)
            for tool, counts in outcomes.items():
                row = self.row.get(tool)
                if row is not None:
                    shift[row] = scoring.outcome_shift(counts.done, counts.failed, temperature=settings.temperature)
            scored = [scores + shift for scores in scored]
        return scored

    def _shares(
        self, by_tool: Sequence[Scores], general: Scores, settings: SelectSettings
    ) -> list[tuple[Rows, Scores]]:
        """Returns the rows and shares of each unit's candidates, and at the end those of the general tools."""
        shares = []
        for scores in by_tool:
            rows, parts = scoring.share(scores, temperature=settings.temperature, most=settings.candidates)
            shares.append((self._tool_rows[rows], parts))
        rows = np.flatnonzero(general)
        shares.append((rows, general[rows]))
        return shares

    def _tool_use(
        self,
        shares: Sequence[tuple[Rows, Scores]],
        weights: Sequence[float],
        settings: SelectSettings,
        *,
        inferred: bool,
    ) -> tuple[dict[int, float], dict[int, int]]:
        """Returns the expected use by tool, and the candidate that contributes most to it.

        ``inferred`` is whether inferred dependencies count.
        """
        candidates = {row for rows, _ in shares for row in rows.tolist()}
        closures = {
            row: {self.row[reached.tool]: weight for reached, weight in self.needs(row, settings, inferred=inferred)}
            for row in candidates & self._with_needs
        }
        return scoring.expected_use(shares, weights, closures)

    def _agents(
        self,
        scores: Scores,
        by_agent: Sequence[Scores],
        general: Scores,
        weights: Sequence[float],
        settings: SelectSettings,
        named: Collection[int],
        left_out: NDArray[np.bool_],
    ) -> tuple[tuple[int, float], ...]:
        if settings.ranking != "scores":
            return self._as_published(settings.ranking, scores, settings)[0]
        shares = [scoring.share(s, temperature=settings.temperature, most=settings.candidates) for s in by_agent]
        rows = np.flatnonzero(general)
        by_owner = np.bincount(self._owners[rows], general[rows], len(self._agent_rows)).astype(np.float32)
        shares.append((np.flatnonzero(by_owner), by_owner[by_owner > 0]))
        use, _ = scoring.expected_use(shares, weights)
        called = {int(self._owners[row]) for row in named if self._owners[row] >= 0}
        use |= {i: use.get(i, 0.0) for i in sorted(called)}
        whole = by_agent[0]
        most = len(whole) if settings.agents is None else settings.agents + len(use) + int(left_out.sum())
        first = sorted(use, key=lambda i: (i not in called, -round(use[i], 9), -whole[i]))
        rest = scoring.best_rows(whole, most)
        order = np.concatenate([np.array(first, np.intp), rest[~np.isin(rest, first)]])
        order = order[~left_out[order]]
        return tuple(zip(self._agent_rows[order].tolist(), whole[order].tolist(), strict=True))

    def _left_out(self, settings: SelectSettings) -> NDArray[np.bool_]:
        if not settings.without:
            return np.zeros(len(self.nodes), bool)
        rows = [row for agent in settings.without if (row := self.row.get(agent)) is not None and self._is_agent[row]]
        return np.isin(self._owners, self._owners[rows])

    def _with_copies_behind(
        self, query: str, scored: list[Scores], left_out: NDArray[np.bool_], outcomes: Mapping[str, Outcomes]
    ) -> list[Scores]:
        """Sets the scores of nodes that are left out to -1, and lowers the scores of copies below their originals.

        A copy keeps its score if its original is left out or fails often, or if the query names the copy's agent.
        """
        serves = ~left_out
        failing = [tool for tool, counts in outcomes.items() if counts.failed > counts.done + 2]
        serves[[self.row[tool] for tool in failing if tool in self.row]] = False
        behind = serves[self._originals]
        called = [self.row[agent] for agent in self._agents_called(query) if agent in self.row]
        behind &= ~np.isin(self._owners[self._copies], self._owners[called])
        copies = self._copies[behind]
        if not len(copies) and not left_out.any():
            return scored
        changed = [np.where(left_out, np.float32(-1), scores) for scores in scored]
        for scores in changed:
            scores[copies] = np.minimum(scores[copies], scores[self._originals[behind]] - self._distances[behind])
        return changed

    def _agents_called(self, query: str) -> set[str]:
        """Returns the agents that a query names by the agent's id or by the id of one of its tools.

        A query with all words of an agent's id names the agent too. This does not hold for agents that imitate others,
        because an attacker would choose common words.
        """
        words = {word.casefold() for word in IDENTIFIER.findall(query)}
        asked = frozenset(tokens(query))
        agents: set[str] = set()
        for word in asked & self._agents_by_word.keys():
            agents.update(agent for agent, its in self._agents_by_word[word] if its <= asked)
        for word in words:
            for row in self._named.get(word, ()):
                node = self.nodes[row]
                if node.kind == "agent" or node.id.casefold() in words:
                    agents.add(node.owner)
        return agents

    def _as_published(
        self, ranking: AgentRanking, scores: Scores, settings: SelectSettings
    ) -> tuple[tuple[tuple[int, float], ...], dict[str, tuple[RankContribution, ...]]]:
        """Returns the agents and scores of a published ranking, and for each agent the terms of its score."""
        by_node = {}
        for row in np.argsort(-scores, kind="stable").tolist():
            node = self.nodes[row]
            if self._owners[row] >= 0 and node.owner not in settings.without:
                by_node[node.id] = float(scores[row])
        weights: Mapping[NodeKind, float] = {"agent": settings.agent_weight, "tool": settings.tool_weight}
        how: dict[str, Any] = {"n": settings.pool, "agents": settings.agents, "weights": weights, "k": settings.rrf_k}
        hits = rank_agents(ranking, by_node, self.graph, **how)
        return tuple((self.row[hit.id], hit.score) for hit in hits), {hit.id: hit.contributions for hit in hits}

    def _named_in(self, query: str, scores: Scores, left_out: NDArray[np.bool_]) -> list[int]:
        """Returns the rows of the agents, tools and skills that the query names exactly.

        If several nodes of one kind have the name, it returns the one with the best score.
        """
        best: set[int] = set()
        for word in {word.casefold() for word in IDENTIFIER.findall(query)}:
            named = [row for row in self._named.get(word, ()) if not left_out[row]]
            for kind in ("agent", "tool", "skill"):
                rows = [row for row in named if self.nodes[row].kind == kind]
                best.update([max(rows, key=lambda row: float(scores[row]))] if rows else ())
        return sorted(best)
