"""Finds the words of capabilities in names and texts of tools, and in requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Capability, Tool, split_name
from callsheet.retrievers.index.lexical_index import tokens
from callsheet.retrievers.index.node_texts import first_sentence

_NAME, _TEXT, _PARAMETERS = 1.0, 0.6, 0.4
_MAX_PARAMETERS, _MAX_WORDS, _FIRST = 12, 200, 4


class Signs:
    """Finds the words of capabilities in texts.

    Args:
        capabilities: The capabilities, in the order of the columns.
    """

    def __init__(self, capabilities: Sequence[Capability]) -> None:
        self._count = len(capabilities)
        words = [{sign for word in entry.words if (sign := tuple(tokens(word)))} for entry in capabilities]
        shared = Counter(sign for signs in words for sign in signs)
        self._by_first: defaultdict[str, list[tuple[tuple[str, ...], int, float]]] = defaultdict(list)
        for column, signs in enumerate(words):
            for sign in sorted(signs):
                self._by_first[sign[0]].append((sign, column, 1 / shared[sign]))

    def of_tool(self, tool: Tool) -> NDArray[np.float32]:
        """The evidence of a tool's words for each capability, ``(c,)`` between 0 and 1.

        A sign counts 1 in the name, .6 in the first sentence, .4 in the names of parameters, divided by the number of
        capabilities that share it; the best sign of each capability counts.
        """
        parameters = " ".join(split_name(parameter.name) for parameter in tool.parameters[:_MAX_PARAMETERS])
        sentence = first_sentence(tool.description)
        return self._best(((split_name(tool.name), _NAME), (sentence, _TEXT), (parameters, _PARAMETERS)))

    def of_request(self, text: str) -> NDArray[np.float32]:
        """The same for a request: a sign counts 1 in the first four words, which have the verb, and .6 after them."""
        words = text.split(None, _FIRST)
        return self._best(((" ".join(words[:_FIRST]), _NAME), (text, _TEXT)))

    def _best(self, parts: Iterable[tuple[str, float]]) -> NDArray[np.float32]:
        best = np.zeros(self._count, np.float32)
        for text, weight in parts:
            for column, worth in self._occurrences(tokens(text)[:_MAX_WORDS]):
                best[column] = max(best[column], weight * worth)
        return best

    def _occurrences(self, words: Sequence[str]) -> Iterator[tuple[int, float]]:
        for place, word in enumerate(words):
            for sign, column, worth in self._by_first.get(word, ()):
                if tuple(words[place : place + len(sign)]) == sign:
                    yield column, worth
