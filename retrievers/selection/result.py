"""The result of the retriever: agents, their tools, and a trace that explains them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from callsheet.graphs.dependencies import Outcomes
from callsheet.graphs.text.messages import counted
from callsheet.retrievers.papers.rank_fusion import RankContribution
from callsheet.retrievers.selection.scoring import Scores, best_rows, fit_probability, ranks_of
from callsheet.retrievers.selection.select_settings import SelectSettings, Unit

if TYPE_CHECKING:
    from callsheet.retrievers.index.node_texts import Node

_TRACED = 50
_UNKNOWN = Outcomes()

Verdict = Literal["found", "unsure", "nothing_fits"]
"""The verdict on a selection; ``unsure`` if its best score does not show whether something fits."""
_SURE = 0.8
# From this probability on, .82 to .93 of the answers hold something that fits, on four sets of requests of which each
# is asked once without the agents that serve it; below it, at most .74 do (``benchmarks``, nothing-fits).


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranking of all agents and tools for one query; rows are in the order of the nodes.

    Attributes:
        cosines, words, scores: ``(n,)``, cosine, BM25 and score of every node for the whole query.
        agents, tools, skills: Rows, best first, with the scores of agents, and of the skills that fit.
        named: Ids of the nodes that the query names.
        use, source: Row of a tool -> its expected use, and the row of the candidate from which it comes: a dependent
            tool or itself.
        likely: Likelihood of each capability, by column; None if capabilities are not used.
        contributions: Agent id -> the terms of its score by a rank fusion of the literature; empty without one.
    """

    units: tuple[Unit, ...]
    cosines: Scores
    words: Scores
    coverage: float
    scores: Scores
    strength: float
    agents: tuple[tuple[int, float], ...]
    tools: tuple[int, ...]
    use: Mapping[int, float]
    source: Mapping[int, int]
    named: frozenset[str] = frozenset()
    skills: tuple[tuple[int, float], ...] = ()
    outcomes: Mapping[str, Outcomes] = field(default_factory=dict)
    general: Mapping[int, float] = field(default_factory=dict)
    likely: Scores | None = None
    contributions: Mapping[str, tuple[RankContribution, ...]] = field(default_factory=dict)

    def contributions_of(self, agents: Sequence[PickedAgent]) -> dict[str, tuple[RankContribution, ...]]:
        """Returns what brought these agents in a rank fusion of the literature, by agent; empty without one."""
        shown: dict[str, tuple[RankContribution, ...]] = {}
        for agent in agents:
            terms = self.contributions.get(agent.id)
            if terms:
                shown[agent.id] = terms
        return shown

    def evidence(self, nodes: Sequence[Node], row_of: Mapping[str, int], taken: set[str]) -> tuple[Evidence, ...]:
        """Returns the scores of the best nodes and of the selected tools."""
        rows = best_rows(self.scores, _TRACED).tolist()
        rows += [row for tool in sorted(taken) if (row := row_of[tool]) not in rows]
        considered = np.array(rows, np.intp)
        matching = considered[self.words[considered] > 0]
        by_words = dict(zip(matching.tolist(), ranks_of(self.words, matching), strict=True))
        values = [channel[considered].tolist() for channel in (self.scores, self.cosines, self.words)]
        return tuple(
            Evidence(
                id=nodes[row].id,
                kind=nodes[row].kind,
                score=score,
                cosine=cosine,
                cosine_rank=rank,
                words=words or None,
                words_rank=by_words.get(row),
                use=self.use.get(row, 0.0),
                general=self.general.get(row, 0.0),
                calls=self.outcomes.get(nodes[row].id, _UNKNOWN).sent,
                failed=self.outcomes.get(nodes[row].id, _UNKNOWN).failed,
            )
            for row, score, cosine, words, rank in zip(rows, *values, ranks_of(self.cosines, considered), strict=True)
        )

    def fit(
        self,
        nodes: Sequence[Evidence],
        tools: Collection[str],
        skills: Collection[PickedSkill],
        decision: DecisionReport | None,
        settings: SelectSettings,
    ) -> FitVerdict:
        """Judges whether the selected tools and skills fit the request.

        A decision model decides if there is one; it does not know skills. Otherwise, the scores decide.
        """
        if not tools and not skills:
            return FitVerdict("nothing_fits", 0.0, "nothing is selected")
        if decision and decision.fits is not None and not skills:
            by_model: Verdict = "found" if decision.fits >= settings.fits else "nothing_fits"
            return FitVerdict(by_model, decision.fits, f"by {decision.by}")
        if settings.search != "scores":
            return FitVerdict("found", None, "a published search has no verdict")
        likely = fit_probability(self.strength)
        why = f"by the best score, {self.strength:.2f}"
        general = [node.id for node in nodes if node.id in tools and node.is_general]
        if likely >= _SURE:
            return FitVerdict("found", likely, why)
        if likely >= settings.fits:
            return FitVerdict("unsure", likely, why)
        if general:
            reason = f"{why}; no tool seems to fit it, but {general[0]} serves any subject"
            return FitVerdict("unsure", likely, reason)
        return FitVerdict("nothing_fits", likely, why)


class FitVerdict(NamedTuple):
    """Whether a selected item does what the request asks, with the probability and the reason."""

    verdict: Verdict
    probability: float | None
    why: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The scores of one agent, tool or skill.

    Attributes:
        words, words_rank: BM25 score, and the rank by it, from 1; None if the node shares no word with the query.
        use: Expected use of a tool, over all units of the query.
        general: Expected use as a general tool, for a request that perhaps no other tool fits.
        calls, failed: How many earlier calls of the tool are known, and how many of them failed.
    """

    id: str
    kind: str
    score: float
    cosine: float | None = None
    cosine_rank: int | None = None
    words: float | None = None
    words_rank: int | None = None
    use: float = 0.0
    general: float = 0.0
    calls: int = 0
    failed: int = 0

    @property
    def is_general(self) -> bool:
        """Returns whether most of the expected use of a tool comes from its being general."""
        return self.general > self.use / 2


@dataclass(frozen=True, slots=True)
class PickedTool:
    """A selected tool.

    Attributes:
        via: Ids along the path of dependencies, from the tool or skill that needs this tool to itself; only its own id
            if the search found it.
        required: Whether the first tool of ``via`` requires this tool.
        use: Expected use, over all units of the query; tools are ordered by it.
        inferred: Evidence for the last dependency of ``via``, if no person wrote or accepted it; otherwise empty.
        probability: Probability that the tool does what the request asks, or a part of it: from the decision model, or
            else from ``scoring.tool_probability``; None if neither gives one.
        named: The place of the tool, from 1, among those that the plan names for the step; 0 if it is not named.
        always: Whether the tool comes with every other tool of its agent.
    """

    id: str
    score: float
    via: tuple[str, ...]
    required: bool = False
    use: float = 0.0
    inferred: str = ""
    probability: float | None = None
    named: int = 0
    always: bool = False


@dataclass(frozen=True, slots=True)
class PickedAgent:
    """A selected agent, with its selected tools and the tools of any agent that these depend on, best first."""

    id: str
    score: float
    tools: tuple[PickedTool, ...] = ()


@dataclass(frozen=True, slots=True)
class PickedSkill:
    """A selected skill, with its score on the scale of tools, and the selected tools that it names."""

    id: str
    score: float
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """A candidate that was not selected, with the reason."""

    id: str
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class DecisionReport:
    """Reports what a decision model did in a selection.

    Attributes:
        by: The model.
        tools: Number of tools that the model was shown.
        fits: Probability that one of them does what the request asks; None if the model only orders, or failed.
        error: The reason why the answer of the model is not used, so that the ranking stays; empty if it is used.
    """

    by: str
    tools: int
    fits: float | None = None
    error: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """Returns the report as one line for people."""
        if self.error:
            return f"not judged, {self.by} failed: {self.error}"
        fits = "" if self.fits is None else f", {self.fits:.2f} that one fits"
        return f"the first {counted(self.tools, 'tool')}, by {self.by}{fits}"


@dataclass(frozen=True, slots=True)
class Trace:
    """An explanation of a selection.

    Attributes:
        verdict: The reason for the verdict, in words.
        strength: The best score of an agent for the query or a clause, of which ``Selection.probability`` is made.
        coverage: Share of the query's words in the best match by words, 0 to 1.
        nodes, cut: The best nodes, with the selected tools, and candidates that were not selected.
        policy: What a policy hides; empty if it hides nothing.
        capabilities: Likelihoods of capabilities from .1, highest first; empty if capabilities are not used.
        contributions: Agent id -> what brought it in a rank fusion of the literature: the nodes, with their ranks and
            weights; empty without one.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    units: tuple[Unit, ...] = ()
    verdict: str = ""
    strength: float = 0.0
    coverage: float = 0.0
    nodes: tuple[Evidence, ...] = ()
    cut: tuple[Cut, ...] = ()
    policy: str = ""
    capabilities: Mapping[str, float] = field(default_factory=dict)
    contributions: Mapping[str, tuple[RankContribution, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected agents, each with its tools, and the selected skills for one query, best first.

    Agents of tools that a selected skill names are at the end. ``probability`` is how likely something selected does
    what is asked, by the decision model, or else by ``scoring.fit_probability``, None for a published search. The
    verdict is ``nothing_fits`` if it is too small, unless a tool that serves any subject is selected, and ``unsure`` if
    no decision model was asked and the score does not tell. ``trace.verdict`` says why.
    """

    query: str
    agents: tuple[PickedAgent, ...] = ()
    verdict: Verdict = "nothing_fits"
    trace: Trace = field(default_factory=Trace)
    skills: tuple[PickedSkill, ...] = ()
    probability: float | None = None
    decision: DecisionReport | None = None

    @property
    def tools_of(self) -> Mapping[str, tuple[str, ...]]:
        """Maps the id of each selected agent to the ids of its selected tools."""
        return {agent.id: tuple(tool.id for tool in agent.tools) for agent in self.agents}

    @property
    def tools(self) -> tuple[PickedTool, ...]:
        """Returns all selected tools once: those that the plan names in its order, then the others by expected use."""
        unique = {tool.id: tool for agent in reversed(self.agents) for tool in reversed(agent.tools)}
        return tuple(sorted(unique.values(), key=lambda tool: (not tool.named, tool.named, -tool.use)))

    @property
    def order_note(self) -> str:
        """Returns why the agents are not in the order of their scores, for people; empty if they are.

        A published search has no such order of its own.
        """
        scores = [agent.score for agent in self.agents]
        if self.probability is None or scores == sorted(scores, reverse=True):
            return ""
        order = "how likely a part of the request needs the agent"
        if self.decision and not self.decision.error:
            order = f"the judgement by {self.decision.by}"
        return f"Order: {order}; the score compares with the whole request."

    def to_dict(self, *, trace: bool = False) -> dict[str, Any]:
        """Returns the selection as JSON values, for ``callsheet retrieve --json`` and for the state of a graph."""
        plain = asdict(self)
        if not trace:
            del plain["trace"]
        return plain


def explain_tool(tool_id: str, selection: Selection) -> str:
    """Returns one line that explains why a tool is in a selection."""
    picked = next(tool for tool in selection.tools if tool.id == tool_id)
    if picked.named:
        return "named in the plan"
    if picked.always and len(picked.via) > 1:
        return f"always, with {picked.via[-2]}"
    if len(picked.via) > 1:
        word = "required" if picked.required else "used"
        why = f"; inferred: {picked.inferred}" if picked.inferred else ""
        return f"{word} by {' > '.join(picked.via[:-1])}{why}"
    evidence = next(node for node in selection.trace.nodes if node.id == tool_id)
    parts = [f"score {evidence.score:.2f}"]
    if evidence.cosine is not None:
        parts.append(f"meaning {evidence.cosine:.2f} (#{evidence.cosine_rank})")
    if evidence.words is not None:
        parts.append(f"words {evidence.words:.1f} (#{evidence.words_rank})")
    if evidence.is_general:
        parts.append("serves any subject, where perhaps no tool is about it")
    if evidence.failed:
        parts.append(f"failed in {evidence.failed} of {counted(evidence.calls, 'earlier call')}")
    return ", ".join(parts)
