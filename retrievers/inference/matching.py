"""What tools ask for against what tools give: by words and by meaning, all pairs in blocks of arrays."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ask, Give, asks_of, gives_of
from callsheet.retrievers.inference.output_columns import Columns, part_of
from callsheet.retrievers.inference.signal import Hint
from callsheet.retrievers.inference.term_similarity import Floats, Postings, Terms
from callsheet.retrievers.inference.word_roles import name_of

Embed = Callable[[Sequence[str]], Floats]
"""From n texts to ``(n, d) float32``, rows unit length."""
_BLOCK = 256
_WORDS, _ALIKE, _CONTEXT = 0.5, 0.1, 0.1
_WIDTH = 0.12
_MARGIN, _ALTERNATIVES, _MOST, _LOOKED_AT = 0.08, 3, 20, 300


@dataclass(frozen=True)
class Ends:
    """Everything that the tools of a catalog ask for and give.

    Attributes:
        tools: The tools; a row is a place in this.
        asks: What they ask for.
        gives: What they give, by tool; of output fields only those that share a telling word with some ask.
        terms: Weights of the words.
    """

    tools: Sequence[Tool]
    asks: Sequence[Ask]
    gives: Sequence[Give]
    terms: Terms

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Ends:
        """Reads them off names, schemas and descriptions."""
        asks = [ask for row, tool in enumerate(tools) for ask in asks_of(row, tool)]
        asked = frozenset(word for ask in asks for word in ask.specific)
        gives = [
            give.among(asked)
            for row, tool in enumerate(tools)
            for give in gives_of(row, tool)
            if give.source != "output" or give.words & asked
        ]
        return cls(tools, asks, gives, Terms([name_of(tool.name).words for tool in tools]))


def matches(
    ends: Ends, embed: Embed, *, least: float, progress: Callable[[int, int], None] | None = None
) -> list[Hint]:
    """The tools that give what tools ask for.

    ::

        score      = cos(ask, give) + .5 * fit of their words + .1 * alikeness of the tools' names
                     + .1 where the tool needs nothing to tell it
        confidence = worth of the ask * part of the tool * 1 / (1 + exp((even - score) / .12))

    where ``even`` depends on where the give is said, and the part is less for tools that change things, that ask
    for the same value themselves, or that belong to another agent.

    Args:
        ends: What is asked for and given.
        embed: Turns texts into vectors.
        least: The least confidence.
        progress: Called with how many asks are done and how many there are.

    Returns:
        For each ask at most 20 tools; of those that only their name or description speaks for, the best three.
    """
    match = _Match(ends, embed, least)
    found: list[Hint] = []
    done = 0
    for block in match.blocks():
        for ask, cosines in block:
            found.extend(match.hints(ask, cosines))
            done += 1
        if progress:
            progress(done, len(match.asks))
    return found


class _Match:
    """What all asks are compared with. Asks and gives that cannot become likely enough are left out."""

    def __init__(self, ends: Ends, embed: Embed, least: float) -> None:
        self.least = least
        self.asks = [ask for ask in ends.asks if ask.worth >= least]
        self.gives = [give for give in ends.gives if part_of(give, ends.tools[give.tool]) >= least]
        self.columns = Columns.of(self.gives, ends.tools)
        self.words = Postings([give.words for give in self.gives], ends.terms)
        self.own_words = [name_of(tool.name).words for tool in ends.tools]
        self.names = Postings(self.own_words, ends.terms)
        agents = {agent: i for i, agent in enumerate(dict.fromkeys(tool.agent for tool in ends.tools))}
        self.agent = np.array([agents[tool.agent] for tool in ends.tools], np.intp)
        self.alone = np.bincount(self.agent, minlength=1)[self.agent] == 1
        askers: defaultdict[tuple[frozenset[str], bool], list[int]] = defaultdict(list)
        for ask in ends.asks:
            askers[ask.words, ask.required].append(ask.tool)
        self.askers = {key: np.array(rows, np.intp) for key, rows in askers.items()}
        self._embed(embed)

    def _embed(self, embed: Embed) -> None:
        texts = dict.fromkeys([*(ask.text for ask in self.asks), *(give.text for give in self.gives)])
        rows = {text: row for row, text in enumerate(texts)}
        vectors = embed(list(texts))
        self.asked = vectors[[rows[ask.text] for ask in self.asks]]
        self.given = vectors[[rows[give.text] for give in self.gives]]

    def blocks(self) -> Iterator[list[tuple[Ask, Floats]]]:
        """The asks with their cosines to every give, so many at a time."""
        for start in range(0, len(self.asks), _BLOCK):
            cosines = self.asked[start : start + _BLOCK] @ self.given.T
            yield list(zip(self.asks[start : start + _BLOCK], cosines, strict=True))

    def hints(self, ask: Ask, cosines: Floats) -> Iterator[Hint]:
        """The likeliest gives of different tools for one ask."""
        rows, scores, confidence = self._likely(ask, cosines)
        tops: dict[bool, float] = {}
        counts: Counter[bool] = Counter()
        taken: set[int] = set()
        for i in np.argsort(-confidence, kind="stable")[:_LOOKED_AT].tolist():
            row, score = int(rows[i]), float(scores[i])
            tool, made = int(self.columns.tool[row]), bool(self.columns.made[row])
            if len(taken) == _MOST:
                return
            if tool in taken:
                continue
            if not self.columns.output[row]:
                if score < tops.setdefault(made, score) - _MARGIN or counts[made] == _ALTERNATIVES:
                    continue
                counts[made] += 1
            taken.add(tool)
            yield Hint(ask.tool, tool, ask.parameter, float(confidence[i]), ask.required, _why(ask, self.gives[row]))

    def _likely(self, ask: Ask, cosines: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Rows of the gives that are likely enough, with score and confidence."""
        columns = self.columns
        plain = cosines + _WORDS * self.words.fit(ask.words)
        bound = columns.even + _WIDTH * math.log(self.least / (1 - self.least)) - _ALIKE - _CONTEXT
        near = np.flatnonzero((plain >= bound) & (columns.tool != ask.tool))
        alike = self.names.cosine(self.own_words[ask.tool])[columns.tool[near]]
        scores = (plain[near] + _ALIKE * alike + _CONTEXT * columns.context[near]).astype(np.float32)
        confidence = ask.worth * columns.part[near] / (1 + np.exp((columns.even[near] - scores) / _WIDTH))
        confidence *= columns.sorts(ask, near) if ask.identifier else columns.kinds(ask, near)
        confidence = (confidence * self._echo(ask, near) * self._near_by(ask, near)).astype(np.float32)
        kept = confidence >= self.least
        return near[kept], scores[kept], confidence[kept]

    def _echo(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """Less for a tool that asks for the same itself, unless it answers with a list of others."""
        factor = np.ones(len(near), np.float32)
        for required, left in ((False, 0.7), (True, 0.3)):
            if (asking := self.askers.get((ask.words, required))) is not None:
                factor[np.isin(self.columns.tool[near], asking) & ~self.columns.many[near]] = left
        return factor

    def _near_by(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """Less for a tool of another agent; an agent of one tool has no others of its own to ask."""
        if self.alone[ask.tool]:
            return np.ones(len(near), np.float32)
        elsewhere = self.agent[self.columns.tool[near]] != self.agent[ask.tool]
        return np.where(elsewhere, ask.elsewhere, 1).astype(np.float32)


def _why(ask: Ask, give: Give) -> str:
    match give.source:
        case "output":
            return f"its result holds {give.field}, which fits {ask.parameter}"
        case "returns":
            return f"it says that it returns {give.text[:80]!r}, which fits {ask.parameter}"
        case _:
            return f"its name and description fit {ask.parameter}"
