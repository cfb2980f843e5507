"""Pairs of similar sets of words, without comparing all pairs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

_ROUNDING = 1e-9


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """All pairs of sets with at least this Jaccard similarity; empty sets are similar to none.

    ::

        J(x, y) = |x & y| / |x | y|

    Two such sets share one of the rarest ``|x| - ceil(least |x|) + 1`` words of either, so only sets that share one
    of these are compared.

    Source: Bayardo, Ma and Srikant, Scaling Up All Pairs Similarity Search (2007), prefix filtering.

    Args:
        words: Sets by key.
        least: 0 < least <= 1.
    """
    count = Counter(word for members in words.values() for word in members)
    holders: defaultdict[str, list[str]] = defaultdict(list)
    for key, members in words.items():
        rarest = sorted(members, key=lambda word: (count[word], word))
        prefix = rarest[: len(members) - math.ceil(least * len(members) - _ROUNDING) + 1]
        for other in dict.fromkeys(other for word in prefix for other in holders[word]):
            if len(members & words[other]) >= least * len(members | words[other]):
                yield other, key
        for word in prefix:
            holders[word].append(key)
