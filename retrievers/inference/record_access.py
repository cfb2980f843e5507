"""What a caller must know before a tool returns records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ask
from callsheet.retrievers.inference.term_similarity import Floats
from callsheet.retrievers.inference.word_roles import FINDING, IDENTIFIER, SEARCHING, name_of

_RELATED, _LISTED = 0.8, 0.9


@dataclass(frozen=True, slots=True)
class Access:
    """What the tools of a catalog need.

    Attributes:
        ids: Row of a tool -> the words of each identifier that it requires.
        finds: ``(n,)``: whether a tool finds records by what people know, such as a name.
        worth: ``(n,)``: factor for the confidence that a tool is called to get an identifier: 1 for a tool that finds,
            .9 for one that lists, .8 for one that needs another identifier.
        agent: The agent of each tool.
        found: Agent -> the words in the names of its tools that find.
    """

    ids: dict[int, frozenset[frozenset[str]]]
    finds: NDArray[np.bool_]
    worth: Floats
    agent: Sequence[str]
    found: dict[str, frozenset[str]]

    @classmethod
    def of(cls, tools: Sequence[Tool], asks: Sequence[Ask]) -> Access:
        """Derives it from the names and the required inputs of tools."""
        ids: defaultdict[int, set[frozenset[str]]] = defaultdict(set)
        finds = np.zeros(len(tools), bool)
        for ask in asks:
            if ask.required and ask.identifier:
                ids[ask.tool].add(ask.words)
            finds[ask.tool] |= ask.required and bool(ask.words & FINDING)
        for row, name in enumerate(name_of(tool.name) for tool in tools):
            finds[row] |= bool(name.words & SEARCHING)
            finds[row] &= name.act in ("read", "compute", "") and row not in ids
        worth = np.where(finds, 1.0, _LISTED).astype(np.float32)
        worth[list(ids)] = _RELATED
        known = {row: frozenset(words) for row, words in ids.items()}
        found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for row in np.flatnonzero(finds).tolist():
            found[tools[row].agent] |= name_of(tools[row].name).words
        return cls(known, finds, worth, [tool.agent for tool in tools], dict(found))

    def sources(self, ask: Ask, tools: Sequence[int]) -> set[int]:
        """Those of the tools whose results fit an input that are called to get it.

        If a tool needs only other identifiers of the same call, as the show of a season, only such tools are. If a
        tool of the agent finds records by what people know, those that only list such records are not, nor are
        those that need the same identifier, or one whose records no tool finds.
        """
        others = self.ids.get(ask.tool, frozenset()) - {ask.words}
        parents = {tool for tool in tools if tool in self.ids and self.ids[tool] <= others}
        if parents:
            return parents
        if ask.identifier and any(self.finds[tool] and self.agent[tool] == self.agent[ask.tool] for tool in tools):
            return {tool for tool in tools if self.finds[tool] or self._is_near(tool, ask)}
        return set(tools)

    def _is_near(self, tool: int, ask: Ask) -> bool:
        """Whether a tool needs other identifiers only, and those of records that a tool of its agent finds."""
        needed = self.ids.get(tool, frozenset())
        found = self.found.get(self.agent[tool], frozenset())
        return bool(needed) and ask.words not in needed and all(words & found - IDENTIFIER for words in needed)
