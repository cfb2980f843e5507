"""Which sets of words are alike, without comparing each with each."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

_ROUNDING = 1e-9


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """Every pair of sets whose Jaccard similarity is at least this; empty sets are like nothing.

    ::

        J(x, y) = |x & y| / |x | y|

    Two sets as similar as that share one of the rarest ``|x| - ceil(least |x|) + 1`` words of either, so only sets
    that share one of those are compared.

    Source: Bayardo, Ma and Srikant, Scaling Up All Pairs Similarity Search (2007), prefix filtering.

    Args:
        words: Set by key.
        least: 0 < least <= 1.
    """
    count = Counter(word for found in words.values() for word in found)
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for key, found in words.items():
        rarest = sorted(found, key=lambda word: (count[word], word))
        prefix = rarest[: len(found) - math.ceil(least * len(found) - _ROUNDING) + 1]
        for other in dict.fromkeys(other for word in prefix for other in holders[word]):
            if len(found & words[other]) >= least * len(found | words[other]):
                yield other, key
        for word in prefix:
            holders[word].append(key)
