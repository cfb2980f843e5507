"""Draws pairs of a text and what represents a tool in the index."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.encoder.source import Example, Source
from callsheet.graphs import Agent, Tool, split_name
from callsheet.retrievers.index.node_texts import agent_text, tool_text

BATCH = 64
_JOINTS = (". ", ", then ", " and ", ". After that, ", "; ", ", and also ")
_SHORT = 140


@dataclass(frozen=True, slots=True)
class Pair:
    """A part of a request, the text of a tool that it wants, and the text of one that it does not.

    Attributes:
        text: The whole request.
        span: Start and end of the part, in characters; None is the whole.
        wanted: Ids of all tools that answer the part.
        tool: The id of the one whose text this is.
        shown: Its text in one of the forms of the index.
        other: The id and text of another tool of the same agent, or of one that was offered with it.
    """

    text: str
    span: tuple[int, int] | None
    wanted: frozenset[str]
    tool: str
    shown: str
    other: tuple[str, str] | None


class Pairs:
    """Draws pairs from the sources, each by its share."""

    def __init__(self, sources: Sequence[tuple[Source, float]], seed: int) -> None:
        self._random = random.Random(seed)
        self._agents = {owner: agent for source, _ in sources for owner, agent in source.catalog().items()}
        self._tools = {tool.id: tool for agent in self._agents.values() for tool in agent.tools}
        self._pools = {source.name: source.examples for source, _ in sources}
        self._left: dict[str, list[Example]] = {name: [] for name in self._pools}
        self._shares = [share for _, share in sources]

    def batch(self) -> list[Pair]:
        """Pairs for one step: a third of the short requests are joined two by two, as parts of one request."""
        drawn = [
            self._pair(self._example(name)) for name in self._random.choices([*self._pools], self._shares, k=BATCH)
        ]
        short = [i for i, pair in enumerate(drawn) if len(pair.text) <= _SHORT]
        joined = self._random.sample(short, len(short) // 3 // 2 * 2)
        for i, j in zip(joined[::2], joined[1::2], strict=True):
            drawn[i], drawn[j] = self._together(drawn[i], drawn[j])
        return drawn

    def _example(self, name: str) -> Example:
        if not self._left[name]:
            self._left[name] = self._random.sample(self._pools[name], len(self._pools[name]))
        return self._left[name].pop()

    def _pair(self, example: Example) -> Pair:
        tool = self._tools[self._random.choice(example.wanted)]
        agent = self._agents[tool.agent]
        near = [t.id for t in agent.tools if t.id not in example.wanted]
        offered = example.others if example.others and (not near or self._random.random() < 0.5) else near
        other = self._tools[self._random.choice(offered)] if offered else None
        hidden = example.documentation
        return Pair(
            example.query,
            None,
            frozenset(example.wanted),
            tool.id,
            self._shown(agent, tool, hidden=hidden),
            other and (other.id, self._plain(self._agents[other.agent], other, hidden=hidden)),
        )

    def _shown(self, agent: Agent, tool: Tool, *, hidden: bool) -> str:
        dice = self._random.random()
        if dice < 0.7:
            return self._plain(agent, tool, hidden=hidden)
        if dice < 0.8 and not hidden:
            return f"{split_name(tool.name)}: {' '.join(tool.description.split())[:600]}"
        if dice < 0.88 or len(agent.tools) < 3:
            return split_name(tool.name)
        few = self._random.sample(agent.tools, min(len(agent.tools), 12))
        return agent_text(agent.model_copy(update={"tools": tuple({t.id: t for t in (*few[1:], tool)}.values())}))

    @staticmethod
    def _plain(agent: Agent, tool: Tool, *, hidden: bool) -> str:
        return tool_text(agent, tool.model_copy(update={"description": ""}) if hidden else tool)

    def _together(self, one: Pair, two: Pair) -> tuple[Pair, Pair]:
        joint = self._random.choice(_JOINTS)
        text = f"{(start := one.text.rstrip(' .?!'))}{joint}{two.text}"
        begin = len(start) + len(joint)
        return replace(one, text=text, span=(0, len(start))), replace(two, text=text, span=(begin, len(text)))
