"""Selects agents and tools for a query, within a budget of tools and of tokens of their schemas."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from callsheet.graphs import Catalog, SettingsError, View, evidence, knowledge_graph, required_paths
from callsheet.graphs.dependencies import Outcomes
from callsheet.graphs.text.arguments import bounded
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.index.indexes import LexicalIndex
from callsheet.retrievers.index.node_texts import Node, VectorIndex, nodes_of
from callsheet.retrievers.papers.tool_fusion import first_within_tokens, graph_rag_tool_fusion
from callsheet.retrievers.selection.budget import Budget, SchemaTokens
from callsheet.retrievers.selection.copies import Copies
from callsheet.retrievers.selection.decision import JudgeAnswer, JudgeQuestion, ToolJudge, question_of
from callsheet.retrievers.selection.ranking import Ranker
from callsheet.retrievers.selection.result import (
    Evidence,
    PickedAgent,
    PickedSkill,
    PickedTool,
    Ranked,
    Selection,
    Trace,
)
from callsheet.retrievers.selection.scoring import tool_probability
from callsheet.retrievers.selection.select_settings import SelectSettings

_MAX_CUT = 10


@dataclass(frozen=True, slots=True)
class Draft:
    """A ranking before a judge decides: the candidates in order, and the question to the judge, if there is one."""

    selector: Selector
    query: str
    settings: SelectSettings
    ranked: Ranked | None = None
    candidates: Iterable[PickedTool] = ()
    question: JudgeQuestion | None = None

    def selection(self) -> Selection:
        """Asks the judge and returns the selection."""
        return self.selector.finish(self, self.question.ask() if self.question else None)

    async def aselection(self) -> Selection:
        """Asks the judge asynchronously and returns the selection; all other work runs in a thread."""
        answer = await self.question.aask() if self.question else None
        return await asyncio.to_thread(self.selector.finish, self, answer)


class Selector:
    """Selects agents and tools of one catalog.

    Args:
        catalog: The agents and tools.
        vectors: The index for search by meaning, already filled with the catalog's nodes (``nodes_of``).
        lexical: The index for search by words.
        settings: Default settings; a call can override them.
        nodes: The nodes of the indexes; by default, made from the catalog.
        judge: Judges the first tools; None: the ranking alone decides.
        capabilities: Required if ``capability_weight`` is not 0.
        outcomes: Returns the outcomes of earlier calls by tool; by default, none are used.
        copies: The tools that repeat others; none by default.
    """

    def __init__(
        self,
        catalog: Catalog,
        vectors: VectorIndex,
        lexical: LexicalIndex,
        settings: SelectSettings | None = None,
        *,
        nodes: Sequence[Node] | None = None,
        judge: ToolJudge | None = None,
        capabilities: CapabilityIndex | None = None,
        outcomes: Callable[[], Mapping[str, Outcomes]] = dict,
        copies: Copies | None = None,
    ) -> None:
        nodes = nodes_of(catalog) if nodes is None else nodes
        graph = knowledge_graph(catalog)
        copies = copies or Copies()
        self.settings = settings or SelectSettings()
        self._judge = judge
        self._policy_summary = ""
        self._search(catalog, Ranker(graph, nodes, vectors, lexical, capabilities, outcomes, copies))

    def _search(self, catalog: Catalog, ranker: Ranker) -> None:
        """Selects from this catalog from now on."""
        self.catalog = catalog
        self.graph = ranker.graph
        self.ranker = ranker
        self.tokens = SchemaTokens(catalog)
        self.required = cache(partial(required_paths, self.graph))
        self._parts: WeakKeyDictionary[View, Selector] = WeakKeyDictionary()

    @property
    def capabilities(self) -> CapabilityIndex:
        """Returns the capabilities of the tools; raises a ``SettingsError`` if there is no ``CapabilityIndex``."""
        return self.ranker.capabilities

    def within(self, view: View) -> Selector:
        """Returns the selector restricted to a view, cached for each view."""
        if view.catalog is self.catalog:
            return self
        part = self._parts.get(view)
        if part is None:
            part = copy(self)
            part._search(view.catalog, self.ranker.within(view))
            part._policy_summary = view.summary(len(self.catalog.tools))
            self._parts[view] = part
        return part

    def select(self, query: str, **changes: object) -> Selection:
        """Selects agents and their tools for a query.

        Tools are added by expected use, each with everything that it requires, as long as all of them fit into the
        budget. So a required tool is never cut before a weaker one. A tool of an agent that is not selected is
        included only if a selected tool depends on it.

        Changes are fields of ``SelectSettings`` for this call.

        Raises:
            SettingsError: The query is not a text, or a setting is unknown or invalid.
            RequestError: The query is too long.
        """
        return self.draft(query, None, **changes).selection()

    def draft(self, query: str, judge: ToolJudge | None, **changes: object) -> Draft:
        """Ranks the tools for a query and prepares the question to a judge; ``finish`` makes the selection of it.

        ``judge`` replaces the selector's own judge.
        """
        settings = self.settings.changed(changes)
        if not isinstance(query, str):
            raise SettingsError(f"the query must be a text such as 'convert 3 miles to km', not {type(query).__name__}")
        if settings.texts != self.settings.texts:
            raise SettingsError(
                f"texts cannot be {settings.texts!r} for one query, because the index was made with "
                f"{self.settings.texts!r}: make another retriever with this setting"
            )
        query = bounded(query, settings.max_query, "max_query")
        if not query.strip() or not self.ranker.nodes:
            return Draft(self, query, settings)
        ranked = self.ranker.rank(query, settings)
        judge = (judge or self._judge) if settings.judged else None
        asks = judge is not None
        found = self._found(ranked) if settings.in_order else self._candidates(ranked, settings, every=asks)
        if judge is None or not (candidates := list(found)):
            return Draft(self, query, settings, ranked, found)
        most = settings.judged
        seconds = settings.decision_seconds
        question = question_of(query, candidates, judge, self.catalog, most=most, seconds=seconds)
        return Draft(self, query, settings, ranked, candidates, question)

    def finish(self, draft: Draft, answer: JudgeAnswer | None = None) -> Selection:
        """Makes the selection from a draft and the answer of the judge, if there is one."""
        query = draft.query
        settings = draft.settings
        ranked = draft.ranked
        if ranked is None:
            return Selection(query, trace=Trace(settings=settings.to_dict(), policy=self._policy_summary))
        budget = Budget(settings.tools, settings.schema_tokens, self.tokens)
        skills = self._skills(budget, ranked, settings)
        judged = answer is not None and bool(answer.tools)
        if settings.in_order:
            candidates, ordered = self._published(answer, ranked, draft)
            self._take_in_order(budget, candidates)
        else:
            candidates, ordered = self._judged(answer, ranked, draft)
            selected = self._selected(ordered, settings)
            self._spend(budget, candidates, ordered, selected, settings)
            equipped = selected if settings.agents else selected & ranked.named
            if settings.equip and settings.tools >= 2 * len(equipped) and not judged:
                self._equip(budget, equipped, ordered)
        agents = self._first_agents(budget, ranked, ordered, settings)
        # A judge has said itself how likely each tool is; the order of a published method says nothing of that.
        picked = self._picked(budget, agents, estimated=not settings.in_order and not judged)
        if settings.shortlist:
            picked = tuple(agent for agent in picked if agent.tools) or picked
        nodes = self.evidence(ranked, set(budget.taken))
        decision = answer.decision if answer else None
        fit = ranked.fit(nodes, budget.taken, skills, decision, settings)
        return Selection(
            query=query,
            agents=picked,
            verdict=fit.verdict,
            skills=skills,
            probability=fit.probability,
            decision=decision,
            trace=replace(
                self._trace(ranked, settings),
                verdict=fit.why,
                nodes=nodes,
                cut=tuple(budget.cut.values())[:_MAX_CUT],
                contributions=ranked.contributions_of(picked),
            ),
        )

    def _trace(self, ranked: Ranked, settings: SelectSettings) -> Trace:
        """Returns what a ranking says of itself, without what was selected from it."""
        return Trace(
            settings=settings.to_dict(),
            units=ranked.units,
            strength=ranked.strength,
            coverage=ranked.coverage,
            capabilities={} if ranked.likely is None else self.capabilities.named(ranked.likely),
            policy=self._policy_summary,
        )

    def _first_agents(
        self, budget: Budget, ranked: Ranked, ordered: Ranked, settings: SelectSettings
    ) -> tuple[tuple[int, float], ...]:
        """Returns the rows and scores of the best agents, then of those whose tools a skill has brought.

        Without a maximum, these are the agents of the selected tools and those that the query names.
        """
        agents = ordered.agents[: settings.agents]
        owners = dict.fromkeys(owner for owner, _ in budget.taken.values())
        if settings.agents is None and owners:
            shown = ranked.named | owners.keys()
            agents = tuple(one for one in agents if self.ranker.nodes[one[0]].id in shown)
        known = dict(agents)
        for owner in owners:
            row = self.ranker.row[owner]
            if row not in known:
                known[row] = float(ranked.scores[row])
                agents += ((row, known[row]),)
        return agents

    def _selected(self, ordered: Ranked, settings: SelectSettings) -> set[str]:
        """Returns the ids of the agents whose tools may be selected."""
        return {self.ranker.nodes[row].id for row, _ in ordered.agents[: settings.agents]}

    def _take_in_order(self, budget: Budget, candidates: Iterable[PickedTool]) -> None:
        """Takes tools in their order, each alone, where the path to it is there, as far as their tokens fit."""
        listed = list(candidates)
        cost = self.tokens.count
        fitting = first_within_tokens([tool.id for tool in listed], cost, tokens=budget.schema_tokens)
        for tool in listed[:fitting]:
            if budget.taken.keys() >= {*tool.via[:-1]}:
                budget.offer(self._owner(self.ranker.row[tool.via[0]]), [tool])
        for tool in listed[fitting:]:
            budget.leave_out(tool, f"the list is cut at {budget.schema_tokens} tokens of schemas")

    def _picked(
        self, budget: Budget, agents: Sequence[tuple[int, float]], *, estimated: bool
    ) -> tuple[PickedAgent, ...]:
        """Returns the agents with their tools, those of the highest expected use first.

        ``estimated``: each tool has the probability that follows from its score and its use.
        """
        tools_of: dict[str, list[PickedTool]] = {}
        for owner, tool in sorted(budget.taken.values(), key=lambda item: -item[1].use):
            likely = tool_probability(tool.score, tool.use) if estimated else tool.probability
            tools_of.setdefault(owner, []).append(replace(tool, probability=likely))
        picked: list[PickedAgent] = []
        for row, score in agents:
            agent = self.ranker.nodes[row].id
            picked.append(PickedAgent(agent, score, tuple(tools_of.get(agent, ()))))
        return tuple(picked)

    def evidence(self, ranked: Ranked, tools: set[str]) -> tuple[Evidence, ...]:
        """Returns the scores of the best nodes and of these tools."""
        return ranked.evidence(self.ranker.nodes, self.ranker.row, tools)

    def _skills(self, budget: Budget, ranked: Ranked, settings: SelectSettings) -> tuple[PickedSkill, ...]:
        """The skills that fit; the tools that they name, with what these require, get at most half of the budget.

        So a skill that was found by mistake cannot displace all tools that the search finds.
        """
        picked: list[PickedSkill] = []
        for row, score in ranked.skills:
            skill = self.catalog.skills_by_id[self.ranker.nodes[row].id]
            for tool_row in sorted(map(self.ranker.row.__getitem__, skill.tools), key=lambda r: -ranked.scores[r]):
                tool = self.tool(ranked, (skill.id, self.ranker.nodes[tool_row].id))
                if self._owner(tool_row) in settings.without:
                    budget.leave_out(tool, "its agent is left out")
                elif len(budget.taken.keys() | {tool.id, *self.required(tool.id)}) > settings.tools // 2:
                    budget.leave_out(tool, "tools that skills name get half of the budget")
                else:
                    self._offer(budget, self._owner(tool_row), tool, ranked)
            picked.append(PickedSkill(skill.id, score, tuple(tool for tool in skill.tools if tool in budget.taken)))
        return tuple(picked)

    def _judged(self, answer: JudgeAnswer | None, ranked: Ranked, draft: Draft) -> tuple[Iterable[PickedTool], Ranked]:
        """The candidates and the ranking after a judgement; agents are reordered, in their places, by their first tool.

        A tool of an agent that is still not selected counts as before.
        """
        if answer is None or not answer.tools:
            return draft.candidates, ranked
        candidates = list(draft.candidates)
        settings = draft.settings
        owners = dict.fromkeys(self._row_of_owner(tool) for tool in answer.tools if tool.via == (tool.id,))
        scores = dict(ranked.agents)
        turn = iter([row for row in owners if row in scores])
        agents = tuple((new := next(turn) if row in owners else row, scores[new]) for row in scores)
        picked = {row for row, _ in agents[: settings.agents]}
        before = {tool.id: tool for tool in reversed(candidates)}
        tools = [
            tool
            if self._row_of_owner(tool) in picked
            else replace(before[tool.id], use=tool.use, probability=tool.probability)
            for tool in (*answer.tools, *candidates[settings.judged :])
        ]
        return tools, replace(ranked, agents=agents, use={**ranked.use, **self._uses(tools)})

    def _uses(self, tools: Sequence[PickedTool]) -> dict[int, float]:
        return {self.ranker.row[tool.id]: tool.use for tool in reversed(tools)}

    def _row_of_owner(self, tool: PickedTool) -> int:
        return self.ranker.row[self._owner(self.ranker.row[tool.id])]

    def _spend(
        self,
        budget: Budget,
        candidates: Iterable[PickedTool],
        ranked: Ranked,
        picked: set[str],
        settings: SelectSettings,
    ) -> None:
        least = settings.cut / settings.tools**2
        for place, candidate in enumerate(candidates):
            if not place:
                least = max(least, settings.floor * candidate.use)
            if (budget.full or candidate.use < least) and len(budget.cut) >= _MAX_CUT:
                return
            why = self._too_weak(candidate, ranked, least) if budget.taken else ""
            why = why or ("" if budget.full else self.repeated(candidate.id, budget.taken))
            if why:
                budget.leave_out(candidate, why)
                continue
            needing = candidate.via[0]
            if needing != candidate.id:
                source = self.ranker.row[needing]
                if self._owner(source) in picked and ranked.use.get(source, 0.0) >= least:
                    self._offer(budget, self._owner(source), self.tool(ranked, (needing,)), ranked)
                if needing in budget.taken:
                    self._attach(budget, candidate, ranked)
                    continue
            owner = self._owner(self.ranker.row[candidate.id])
            if owner in picked:
                self._offer(budget, owner, replace(candidate, via=(candidate.id,), required=False), ranked)

    def _equip(self, budget: Budget, agents: set[str], ranked: Ranked) -> None:
        """Gives each agent without a tool its best one, in the place of the weakest that nothing else needs."""
        best = {self._owner(row): row for row in reversed(ranked.tools)}
        picked = [tool for _, tool in budget.taken.values()]
        needed = ranked.named.union(*(self.required(tool.id) for tool in picked), *(tool.via[:-1] for tool in picked))
        for agent in sorted(agents & best.keys() - {owner for owner, _ in budget.taken.values()}):
            owners = Counter(owner for owner, _ in budget.taken.values())
            spare = [tool for owner, tool in budget.taken.values() if owners[owner] > 1 and tool.id not in needed]
            if budget.full and spare:
                del budget.taken[(weakest := min(spare, key=lambda tool: tool.use)).id]
                budget.leave_out(weakest, "its place went to an agent without a tool")
            self._offer(budget, agent, self.tool(ranked, (self.ranker.nodes[best[agent]].id,)), ranked)

    def repeated(self, tool: str, taken: Collection[str]) -> str:
        """Returns the reason why a tool repeats one of the tools in ``taken``; empty if it does not."""
        copied = self.tokens.copied(tool, taken)
        return f"it is the same tool as {copied}" if copied else ""

    def _too_weak(self, tool: PickedTool, ranked: Ranked, least: float) -> str:
        """Returns why a tool is too weak for the budget; empty if it is not."""
        if not least:
            return ""
        link = self.ranker.link(self.ranker.row[tool.id], ranked)
        worth = f"expected use {tool.use:.2g}" + (f" x link {link:.2g}" if ranked.likely is not None else "")
        return f"{worth}, the minimum is {least:.2g}" if tool.use * link < least else ""

    def _attach(self, budget: Budget, tool: PickedTool, ranked: Ranked) -> None:
        """Adds a dependency of a selected tool with the tools on the path between them, or not at all."""
        agent = budget.taken[tool.via[0]][0]
        needed = self.required(tool.via[0])
        for end in range(2, len(tool.via)):
            between = tool.via[:end]
            self._offer(budget, agent, self.tool(ranked, between, needed=between[-1] in needed), ranked)
            if between[-1] not in budget.taken:
                return
        self._offer(budget, agent, tool, ranked)

    def _offer(self, budget: Budget, agent: str, tool: PickedTool, ranked: Ranked) -> None:
        """Adds a tool with everything that it requires, whatever the rank."""
        paths = ((*tool.via[:-1], *path) for path in self.required(tool.id).values())
        budget.offer(agent, [tool, *(self.tool(ranked, path, needed=True) for path in paths)])

    def _owner(self, row: int) -> str:
        return self.ranker.nodes[row].owner

    def _candidates(self, ranked: Ranked, settings: SelectSettings, *, every: bool) -> Iterator[PickedTool]:
        """Yields the tools in the order of the budget, each with its path.

        Without a judge, which can reorder agents, tools of agents that are not selected are skipped: not ``every``.
        """
        picked = None if every or settings.agents is None else self._selected(ranked, settings)
        for row in ranked.tools:
            source = ranked.source.get(row, row)
            if source == row and picked is not None and self._owner(row) not in picked:
                continue
            path: tuple[str, ...] = (self.ranker.nodes[row].id,)
            needed = False
            if source != row:
                reached = next(r for r, _ in self.ranker.needs(source, settings) if r.tool == path[0])
                path = reached.path
                needed = reached.direct
            yield self.tool(ranked, path, needed=needed)

    def _found(self, ranked: Ranked) -> Iterator[PickedTool]:
        """Yields the tools that a plain search found, in its order."""
        for row in sorted(ranked.tools, key=lambda row: -ranked.scores[row]):
            yield self.tool(ranked, (self.ranker.nodes[row].id,))

    def _published(
        self, answer: JudgeAnswer | None, ranked: Ranked, draft: Draft
    ) -> tuple[Iterable[PickedTool], Ranked]:
        """Returns the tools of a published method in its order, and the ranking with its agents.

        The judge comes before the walk, as in lines 7 to 11 of Algorithm 1 of Graph RAG-Tool Fusion. Its agents, and
        those of a plain search, are the owners of the tools that the search found.
        """
        nodes = self.ranker.nodes
        row_of = self.ranker.row
        settings = draft.settings
        rows = sorted(ranked.tools, key=lambda row: -ranked.scores[row])
        told = {tool.id: tool.probability for tool in answer.tools} if answer else {}
        rows[: len(told)] = [row_of[tool] for tool in told]
        walks = settings.expansion == "graph_rag_tool_fusion"
        agents = ranked.agents
        if settings.ranking == "scores":
            best = dict[int, float]()
            for row in rows[: settings.expand] if walks else rows:
                best.setdefault(row_of[self._owner(row)], float(ranked.scores[row]))
            agents = tuple(best.items())
        # Algorithm 1 of Graph RAG-Tool Fusion ranks no agents, so a maximum of agents does not change its list.
        most = None if walks else settings.agents
        picked = {nodes[row].id for row, _ in agents[:most]}
        found = [nodes[row].id for row in rows if self._owner(row) in picked]
        count, limit = (settings.expand, settings.d_limit) if walks else (settings.tools, 0)
        how: dict[str, Any] = {"limit": settings.tools, "d_limit": limit, "direct_first": settings.direct_first}
        tools = []
        for place, one in enumerate(graph_rag_tool_fusion(found[:count], self.graph, **how)):
            tool = self.tool(ranked, one.path, needed=one.direct and len(one.path) > 1)
            tools.append(replace(tool, use=float(settings.tools - place), probability=told.get(one.tool)))
        return tools, replace(ranked, agents=agents, use=self._uses(tools))

    def tool(self, ranked: Ranked, path: tuple[str, ...], *, needed: bool = False) -> PickedTool:
        """Returns the last tool on a path of dependencies, with its scores."""
        row = self.ranker.row[path[-1]]
        score = float(ranked.scores[row])
        use = ranked.use.get(row, 0.0)
        always = self.catalog.tools[path[-1]].always
        return PickedTool(path[-1], score, path, needed, use, evidence(self.graph, path), always=always)
