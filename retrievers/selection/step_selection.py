"""Selects the tools for the steps of a plan: those that it names, their dependencies, and the best of each step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from callsheet.graphs import SettingsError, evidence, needs
from callsheet.graphs.catalog.model import Provenance
from callsheet.retrievers.selection.budget import Budget
from callsheet.retrievers.selection.decision import ToolJudge
from callsheet.retrievers.selection.result import Cut, PickedAgent, PickedSkill, PickedTool, Selection
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Draft, Selector

FLOOR = 0.0005
"""Minimum expected use, relative to the best tool, of a tool that is selected for a step."""
FLOOR_BESIDE_NAMED = 0.01
"""This minimum for a step whose tools the plan names: the plan has probably named all that are needed."""

LACKING = 3_000
"""Tokens of the additional call in which a worker asks for a missing tool."""
CALLS = 4
"""The usual number of calls of a worker."""


@dataclass(frozen=True, slots=True)
class StepNeed:
    """A step of a plan, and the tools that the plan names for it.

    Attributes:
        text: What is to be done, worded as the description of a tool.
        tools: Ids of the tools and skills that the plan names, the most needed first.
    """

    text: str
    tools: tuple[str, ...] = ()


def select_steps(
    selector: Selector,
    steps: Sequence[StepNeed],
    judge: ToolJudge | None = None,
    *,
    fill: int = 10,
    tools: int = 15,
    schema_tokens: int | None = 8_000,
    **changes: Any,
) -> tuple[Selection, ...]:
    """Selects the tools of all steps of one worker together, and returns one selection for each step.

    First come all tools that the plan names, in its order and whatever their scores; then what these tools, and the
    skills that the plan names, declare to need; then the best tools of each step in turn, until there are ``fill``
    tools. A tool that several steps use counts once. What the plan names and does not get is in ``trace.cut``.

    Args:
        selector: Selects from what the user may see.
        steps: The steps, in the order of the plan.
        judge: Judges the tools of steps of which the plan names none.
        fill: Number of tools up to which the steps' best are added.
        tools: Maximum number of tools of all steps.
        schema_tokens: Maximum tokens of the schemas of all steps.
        changes: Further fields of ``SelectSettings``; a shortlist of tools of any number of agents is the default.

    Raises:
        SettingsError: A setting is unknown or invalid.
        RequestError: The text of a step is too long.
    """
    if not isinstance(fill, int) or fill < 0:
        raise SettingsError(f"fill must be a whole number of at least 0, not {fill!r}")
    common = {"agents": None, "shortlist": True, "floor": FLOOR, **changes, "schema_tokens": schema_tokens}
    limits = selector.settings.changed({**common, "tools": tools})
    budget = Budget(tools, schema_tokens, selector.tokens)
    ranked = [_RankedStep.of(selector, limits, step, judge, {**common, "tools": max(1, fill)}) for step in steps]
    for one in ranked:
        one.take_named(budget)
    for one in ranked:
        one.take_required(budget)
    budget.tools = max(min(fill, tools), len(budget.taken))
    for one in ranked:
        one.take_optional(budget)
    _take_in_turn(ranked, budget)
    return tuple(one.selection() for one in ranked)


def _take_in_turn(steps: Iterable[_RankedStep], budget: Budget) -> None:
    """Gives each step its best tool, then each its second, and so on, until the places are taken.

    In each round, the steps of which the plan names no tool come first.
    """
    waiting = [(step, step.likely()) for step in sorted(steps, key=lambda step: bool(step.named))]
    while waiting:
        still = []
        for step, likely in waiting:
            if step.take_next(likely, budget):
                still.append((step, likely))
        waiting = still


@dataclass(slots=True)
class _RankedStep:
    """A step with the selection by its text alone, and what it is given.

    Attributes:
        limits: The settings of the selection of all steps.
        alone: The selection by the text.
        named, skills: Ids of the tools and skills that the plan names, as far as there are any, in its order.
        taken: Id of a tool -> the agent that it is given to, and the tool.
    """

    selector: Selector
    limits: SelectSettings
    draft: Draft
    alone: Selection
    named: tuple[str, ...]
    skills: tuple[str, ...]
    taken: dict[str, tuple[str, PickedTool]] = field(default_factory=dict)
    cut: dict[str, Cut] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        selector: Selector,
        limits: SelectSettings,
        step: StepNeed,
        judge: ToolJudge | None,
        changes: Mapping[str, Any],
    ) -> _RankedStep:
        """Selects for the text of a step; a judge is asked only if the plan names no tool of it."""
        named, skills, cut = _resolved(selector, limits, step.tools)
        draft = selector.draft(step.text, judge, **{**changes, **({"judged": 0} if named or skills else {})})
        made = cls(selector, limits, draft, draft.selection(), named, skills)
        made.cut.update((one.id, one) for one in cut)
        return made

    def take_named(self, budget: Budget) -> None:
        """Takes the tools that the plan names, each that still fits."""
        for place, tool in enumerate(self.named, 1):
            self._take(budget, self._owner(tool), [replace(self._tool((tool,)), named=place)])

    def take_required(self, budget: Budget) -> None:
        """Takes the tools that the named skills name, and those that named tools require, each that still fits."""
        for skill in self.skills:
            for tool in self.selector.catalog.skills_by_id[skill].tools:
                self._take(budget, self._owner(tool), [self._tool((skill, tool))])
        for source in list(self.taken):
            agent, needing = self.taken[source]
            for path in self.selector.required(source).values():
                self._take(budget, agent, [self._tool((*needing.via, *path[1:]), needed=True)])

    def take_optional(self, budget: Budget) -> None:
        """Takes what a person or a run says that named tools may need, each with what it requires, or not at all."""
        for source in self.named:
            for edge in needs(self.selector.graph, source) if source in self.taken else ():
                if edge.provenance is not Provenance.PROPOSED and edge.tool not in self.taken:
                    path = (source, edge.tool)
                    self._take(budget, self._owner(source), [self._tool(path), *self._required(path)])

    def likely(self) -> Iterator[PickedTool]:
        """Yields the tools of the selection by the text, best first, that are likely enough to be used."""
        ordered = sorted(self.alone.tools, key=lambda tool: (-tool.use, -tool.score))
        return (tool for tool in ordered if tool.use >= self._least and self._is_worth(tool))

    def _is_worth(self, tool: PickedTool) -> bool:
        """Returns whether a tool beside named ones is likely enough to be used for what its schema costs.

        A tool that is given for nothing costs its schema in each call of the worker, and one that is lacking costs a
        call: p * lacking > calls * schema. A step of which the plan names no tool has nothing else.
        """
        if not self.named or tool.probability is None:
            return True
        return tool.probability * LACKING >= CALLS * self.selector.tokens.count([tool.id])

    @property
    def _least(self) -> float:
        """The minimum of the expected use of what is added."""
        best = max((tool.use for tool in self.alone.tools), default=0.0)
        return FLOOR_BESIDE_NAMED * best if self.named else 0.0

    def _why_not(self, tool: PickedTool) -> str:
        """Returns why a tool of the selection by the text is not given, unless there is another reason."""
        if tool.use < self._least:
            return f"expected use {tool.use:.2g}, the minimum beside named tools is {self._least:.2g}"
        if not self._is_worth(tool):
            return f"its schema costs more than it is likely to help beside named tools ({tool.probability:.2g})"
        return "the budget is spent"

    def take_next(self, likely: Iterator[PickedTool], budget: Budget) -> bool:
        """Takes the next tool that no step has, with what it requires; False if there is none, or no place for it."""
        agents = {tool.id: agent.id for agent in self.alone.agents for tool in agent.tools}
        for tool in likely:
            if tool.id in budget.taken:
                self._take(budget, agents[tool.id], [tool])  # of another step: it takes no place
                continue
            if budget.full:
                return False
            why = self.selector.repeated(tool.id, budget.taken)
            if why:
                self.cut[tool.id] = Cut(tool.id, tool.score, why)
                continue
            self._take(budget, agents[tool.id], [tool, *self._required(tool.via)])
            if tool.id in self.taken:
                return True
        return False

    def selection(self) -> Selection:
        """Returns the selection of this step."""
        taken = self.taken
        ranked = self.draft.ranked
        nodes = self.alone.trace.nodes if ranked is None else self.selector.evidence(ranked, set(taken))
        unlikely = [Cut(tool.id, tool.score, self._why_not(tool)) for tool in self.alone.tools]
        cut = {one.id: one for one in (*self.alone.trace.cut, *unlikely, *self.cut.values())}
        named = any(tool.named for _, tool in taken.values()) or bool(self.skills)
        trace = replace(
            self.alone.trace,
            settings=self.limits.to_dict(),
            nodes=nodes,
            cut=tuple(one for one in cut.values() if one.id not in taken),
            verdict="the plan names what is needed" if named else self.alone.trace.verdict,
        )
        selection = replace(self.alone, agents=self._agents(), skills=self._picked_skills(), trace=trace)
        return replace(selection, verdict="found", probability=None) if named else selection

    def _agents(self) -> tuple[PickedAgent, ...]:
        """Returns the agents of the tools: those of named tools first, then as the text ranks them."""
        given = dict.fromkeys(agent for agent, _ in self.taken.values())
        of_named = [agent for agent, tool in self.taken.values() if tool.named]
        by_text = [agent.id for agent in self.alone.agents if agent.id in given]
        order = dict.fromkeys([*of_named, *by_text, *given])
        return tuple(
            PickedAgent(agent, self._score(agent), tuple(tool for to, tool in self.taken.values() if to == agent))
            for agent in order
        )

    def _picked_skills(self) -> tuple[PickedSkill, ...]:
        """The skills that the plan names, then those that fit the text, with their tools as far as they are given."""
        order = dict.fromkeys([*self.skills, *(skill.id for skill in self.alone.skills)])
        scores = {skill.id: skill.score for skill in self.alone.skills}
        known = self.selector.catalog.skills_by_id
        return tuple(
            PickedSkill(one, scores.get(one, self._score(one)), tuple(t for t in known[one].tools if t in self.taken))
            for one in order
        )

    def _take(self, budget: Budget, agent: str, group: Sequence[PickedTool]) -> None:
        """Takes a group of tools if the budget has them or has room for all of them; notes why others are cut."""
        budget.offer(agent, group)
        for tool in group:
            if tool.id in budget.taken:
                self.taken.setdefault(tool.id, (agent, tool))
            else:
                self.cut.setdefault(tool.id, budget.cut[tool.id])

    def _required(self, path: tuple[str, ...]) -> list[PickedTool]:
        """Returns the tools that the last tool of a path requires."""
        further = self.selector.required(path[-1]).values()
        return [self._tool((*path[:-1], *more), needed=True) for more in further]

    def _tool(self, path: tuple[str, ...], *, needed: bool = False) -> PickedTool:
        if self.draft.ranked is None:  # a step without text
            always = self.selector.catalog.tools[path[-1]].always
            return PickedTool(path[-1], 0.0, path, needed, inferred=evidence(self.selector.graph, path), always=always)
        return self.selector.tool(self.draft.ranked, path, needed=needed)

    def _owner(self, tool: str) -> str:
        return self.selector.catalog.tool(tool).agent

    def _score(self, node: str) -> float:
        ranked = self.draft.ranked
        return 0.0 if ranked is None else float(ranked.scores[self.selector.ranker.row[node]])


def _resolved(
    selector: Selector, settings: SelectSettings, names: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], list[Cut]]:
    """Returns the tools and the skills among the names of a plan, and why the other names give nothing."""
    catalog = selector.catalog
    tools: list[str] = []
    skills: list[str] = []
    cut: list[Cut] = []
    for name in dict.fromkeys(names):
        if name in catalog.skills_by_id and settings.skills:
            skills.append(name)
        elif name in catalog.skills_by_id:
            cut.append(Cut(name, 0.0, "skills are turned off"))
        elif name in catalog.by_id:
            cut.append(Cut(name, 0.0, "an agent, not a tool"))
        elif name not in catalog.tools:
            cut.append(Cut(name, 0.0, "unknown"))
        elif catalog.tool(name).agent in settings.without:
            cut.append(Cut(name, 0.0, "its agent is left out"))
        else:
            tools.append(name)
    return tuple(tools), tuple(skills), cut
