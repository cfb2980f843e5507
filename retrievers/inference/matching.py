"""Matches the inputs of tools with the outputs of tools, by words and by meaning, in blocks of arrays."""

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
from callsheet.retrievers.inference.term_similarity import Floats, Postings, Terms
from callsheet.retrievers.inference.word_roles import name_of

Embed = Callable[[Sequence[str]], Floats]
"""From n texts to ``(n, d) float32``, rows unit length."""
_BLOCK = 256
_WORDS, _ALIKE, _CONTEXT = 0.5, 0.1, 0.1
_WIDTH = 0.12
_MARGIN, _ALTERNATIVES, _MOST, _INSPECTED = 0.08, 3, 20, 300


@dataclass(frozen=True, slots=True)
class Hint:
    """Evidence that one tool needs another.

    Attributes:
        source: Row of the tool that needs the other.
        target: Row of the needed tool.
        parameter: The argument concerned; None if the hint concerns the whole call.
        confidence: Probability that the edge is right, 0 to 1.
        direct: Whether the source can hardly work without the target.
        evidence: Reason in one line.
    """

    source: int
    target: int
    parameter: str | None
    confidence: float
    direct: bool
    evidence: str


@dataclass(frozen=True)
class Ends:
    """The inputs and outputs of all tools of a catalog.

    Attributes:
        tools: The tools; rows are indexes of this sequence.
        asks: Their inputs.
        gives: Their outputs, by tool; of output fields, only those that share a specific word with an input.
        terms: Weights of the words.
    """

    tools: Sequence[Tool]
    asks: Sequence[Ask]
    gives: Sequence[Give]
    terms: Terms

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Ends:
        """Derives them from names, schemas and descriptions."""
        asks = [ask for row, tool in enumerate(tools) for ask in asks_of(row, tool)]
        specific = frozenset(word for ask in asks for word in ask.specific)
        gives = [
            give.among(specific)
            for row, tool in enumerate(tools)
            for give in gives_of(row, tool)
            if give.source != "output" or give.words & specific
        ]
        return cls(tools, asks, gives, Terms([name_of(tool.name).words for tool in tools]))


def matches(
    ends: Ends, embed: Embed, *, least: float, progress: Callable[[int, int], None] | None = None
) -> list[Hint]:
    """The tools whose outputs match the inputs of tools.

    ::

        score      = cos(ask, give) + .5 * fit of their words + .1 * similarity of the tools' names
                     + .1 if the tool needs no input
        confidence = worth of the ask * part of the tool * 1 / (1 + exp((even - score) / .12))

    where ``even`` depends on the source of the output, and the part is less for tools that change things, that
    need the same value as input, or that belong to another agent.

    Args:
        ends: The inputs and outputs.
        embed: Embeds texts.
        least: Minimum confidence.
        progress: Called with the number of processed inputs and the number of all inputs.

    Returns:
        For each input at most 20 tools; of tools that match only by name or description, the best three.
    """
    match = _Match(ends, embed, least)
    hints: list[Hint] = []
    processed = 0
    for block in match.blocks():
        for ask, cosines in block:
            hints.extend(match.hints(ask, cosines))
            processed += 1
        if progress:
            progress(processed, len(match.asks))
    return hints


class _Match:
    """The arrays for the comparison, without inputs and outputs that cannot reach the minimum confidence."""

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
        self.ask_vectors = vectors[[rows[ask.text] for ask in self.asks]]
        self.give_vectors = vectors[[rows[give.text] for give in self.gives]]

    def blocks(self) -> Iterator[list[tuple[Ask, Floats]]]:
        """Blocks of inputs with their cosines to every output."""
        for start in range(0, len(self.asks), _BLOCK):
            cosines = self.ask_vectors[start : start + _BLOCK] @ self.give_vectors.T
            yield list(zip(self.asks[start : start + _BLOCK], cosines, strict=True))

    def hints(self, ask: Ask, cosines: Floats) -> Iterator[Hint]:
        """The likeliest outputs of different tools for one input."""
        rows, scores, confidence = self._likely(ask, cosines)
        tops: dict[bool, float] = {}
        counts: Counter[bool] = Counter()
        targets: set[int] = set()
        for i in np.argsort(-confidence, kind="stable")[:_INSPECTED].tolist():
            row, score = int(rows[i]), float(scores[i])
            tool, made = int(self.columns.tool[row]), bool(self.columns.made[row])
            if len(targets) == _MOST:
                return
            if tool in targets:
                continue
            if not self.columns.output[row]:
                if score < tops.setdefault(made, score) - _MARGIN or counts[made] == _ALTERNATIVES:
                    continue
                counts[made] += 1
            targets.add(tool)
            yield Hint(ask.tool, tool, ask.parameter, float(confidence[i]), ask.required, _why(ask, self.gives[row]))

    def _likely(self, ask: Ask, cosines: Floats) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Rows of the outputs with at least the minimum confidence, with score and confidence."""
        columns = self.columns
        plain = cosines + _WORDS * self.words.fit(ask.words)
        bound = columns.even + _WIDTH * math.log(self.least / (1 - self.least)) - _ALIKE - _CONTEXT
        near = np.flatnonzero((plain >= bound) & (columns.tool != ask.tool))
        alike = self.names.cosine(self.own_words[ask.tool])[columns.tool[near]]
        scores = (plain[near] + _ALIKE * alike + _CONTEXT * columns.context[near]).astype(np.float32)
        confidence = ask.worth * columns.part[near] / (1 + np.exp((columns.even[near] - scores) / _WIDTH))
        confidence *= columns.sorts(ask, near) if ask.identifier else columns.kinds(ask, near)
        confidence = (confidence * self._echo(ask, near) * self._near_by(ask, near)).astype(np.float32)
        sufficient = confidence >= self.least
        return near[sufficient], scores[sufficient], confidence[sufficient]

    def _echo(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """A factor below 1 for a tool that needs the same input, unless it returns a list."""
        factor = np.ones(len(near), np.float32)
        for required, value in ((False, 0.7), (True, 0.3)):
            if (askers := self.askers.get((ask.words, required))) is not None:
                factor[np.isin(self.columns.tool[near], askers) & ~self.columns.many[near]] = value
        return factor

    def _near_by(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """A factor below 1 for a tool of another agent, unless the agent of the input has only one tool."""
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
