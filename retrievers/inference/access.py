"""What tools need, and which of those that return an identifier are called to get it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ask
from callsheet.retrievers.inference.term_similarity import Floats
from callsheet.retrievers.inference.word_roles import (
    CALLER,
    FINDING,
    IDENTIFIER,
    OWN,
    SEARCHING,
    head_of,
    name_of,
)

_RELATED, _LISTED = 0.8, 0.9
_COMMON, _FEW = 0.9, 5


@dataclass(frozen=True, slots=True)
class Access:
    """What the tools of a catalog need.

    Attributes:
        ids: Row of a tool -> the words of each identifier that it requires, but for those that nearly all require.
        finds: ``(n,)``: whether a tool finds records by what people know, such as a name, or because they are theirs.
        makes: ``(n,)``: whether a tool makes records, whose identifiers it returns.
        worth: ``(n,)``: factor for the confidence that a tool is called to get an identifier: 1 for a tool that finds,
            .9 for one that lists, .8 for one that needs another identifier.
        systems: The system of each tool.
        names: The words in the name of each tool.
        heads: The last specific noun in the name of each tool.
        found: System -> the words in the names of its tools that find.
    """

    ids: dict[int, frozenset[frozenset[str]]]
    finds: NDArray[np.bool_]
    makes: NDArray[np.bool_]
    worth: Floats
    systems: Sequence[str]
    names: Sequence[frozenset[str]]
    heads: Sequence[frozenset[str]]
    found: dict[str, frozenset[str]]

    @classmethod
    def of(cls, tools: Sequence[Tool], asks: Sequence[Ask], systems: Sequence[str]) -> Access:
        """Derives it from the names and the required inputs of tools."""
        ids: defaultdict[int, set[frozenset[str]]] = defaultdict(set)
        finds = np.zeros(len(tools), bool)
        common = _common(asks, systems)
        for ask in asks:
            if ask.required and ask.identifier and (systems[ask.tool], ask.words) not in common:
                ids[ask.tool].add(ask.words)
            finds[ask.tool] |= ask.required and bool(ask.words & FINDING)
        names = [name_of(tool.name) for tool in tools]
        for row, name in enumerate(names):
            finds[row] |= bool(name.words & (SEARCHING | OWN)) or name.words >= CALLER
            finds[row] &= name.act in ("read", "compute") and row not in ids
        worth = np.where(finds, 1.0, _LISTED).astype(np.float32)
        worth[list(ids)] = _RELATED
        known = {row: frozenset(words) for row, words in ids.items()}
        found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for row in np.flatnonzero(finds).tolist():
            found[systems[row]] |= names[row].words
        makes = np.array([name.act == "store" for name in names], bool)
        heads = [head_of(tool.name) for tool in tools]
        return cls(known, finds, makes, worth, systems, [name.words for name in names], heads, dict(found))

    def sources(self, ask: Ask, tools: Sequence[int], lists: Collection[int] = ()) -> set[int]:
        """Those of the tools whose results fit an input that are called to get it.

        If a tool needs only other identifiers of the same call, as the show of a season, only such tools are sources of
        what the call requires, unless none of them lists records and another tool reads what the identifier names. If a
        tool of the system finds records by what people know, those that only list such records are not, nor are
        those that need the same identifier, or one whose records no tool finds. If none finds them, but one reads what
        the identifier names, as ``get_users`` for ``user_id``, those that only hold it are not. If a tool reaches
        such records by other identifiers, a tool for something else that takes no identifier is not.

        Args:
            ask: The input.
            tools: Rows of the tools.
            lists: Rows of those whose fitting value is in a list.
        """
        parents = {tool for tool in tools if self.is_parent(tool, ask)}
        free = any(not self.makes[tool] for tool in self._about(ask, tools))
        if parents and ask.required and (parents & {*lists} or not free):
            return parents
        if ask.identifier and (best := self._readers(ask, tools)):
            return {tool for tool in tools if tool in best or self.makes[tool] or self._is_near(tool, ask)}
        if ask.identifier and any(self._is_near(tool, ask) for tool in tools):
            return {tool for tool in tools if tool in self.ids or self.names[tool] & ask.specific}
        return set(tools)

    def is_parent(self, tool: int, ask: Ask) -> bool:
        """Whether a tool needs only other identifiers of the same call, at least one."""
        return tool in self.ids and self.ids[tool] <= self.ids.get(ask.tool, frozenset()) - {ask.words}

    def _readers(self, ask: Ask, tools: Sequence[int]) -> set[int]:
        """Those of the tools that find records, or else that read what an identifier names without another one."""
        found = {tool for tool in tools if self.finds[tool]}
        if any(self.systems[tool] == self.systems[ask.tool] for tool in found):
            return found
        about = self._about(ask, tools)
        read = any(self.systems[tool] == self.systems[ask.tool] and not self.makes[tool] for tool in about)
        return found | about if read else set()

    def _about(self, ask: Ask, tools: Sequence[int]) -> set[int]:
        """The tools that need no identifier and whose main noun is the identifier's record."""
        return {tool for tool in tools if self.heads[tool] & ask.words and tool not in self.ids}

    def finders(self, system: str, words: frozenset[str]) -> list[int]:
        """Rows of the tools of a system that find records with these words."""
        rows = np.flatnonzero(self.finds).tolist()
        return [row for row in rows if self.systems[row] == system and words <= self.names[row]]

    def _is_near(self, tool: int, ask: Ask) -> bool:
        """Whether a tool needs other identifiers only, and those of records that a tool of its system finds."""
        needed = self.ids.get(tool, frozenset())
        found = self.found.get(self.systems[tool], frozenset())
        return bool(needed) and ask.words not in needed and all(words & found - IDENTIFIER for words in needed)


def _common(asks: Sequence[Ask], systems: Sequence[str]) -> set[tuple[str, frozenset[str]]]:
    """System and words of identifiers that nearly all of its tools require, as a tenant: they tell no records apart."""
    tools = Counter(systems)
    needed = Counter({(systems[ask.tool], ask.words, ask.tool) for ask in asks if ask.required and ask.identifier})
    counts = Counter((system, words) for system, words, _ in needed)
    return {key for key, count in counts.items() if count > _FEW and count > _COMMON * tools[key[0]]}
