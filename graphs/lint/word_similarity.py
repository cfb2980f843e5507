"""Pairs of similar sets of words, without comparing all pairs."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

_ROUNDING, _SHARED = 1e-9, 4


def similar_pairs(words: Mapping[str, frozenset[str]], least: float) -> Iterator[tuple[str, str]]:
    """All pairs of sets with at least this Jaccard similarity; empty sets are similar to none.

    ::

        J(x, y) = |x & y| / |x | y|

    Two such sets share l of the rarest ``|x| - ceil(least |x|) + l`` words of either, for each l up to
    ``ceil(least |x|)``. Only sets that share four of these are compared.

    Source: Wang, Li and Feng, Can We Beat the Prefix Filtering? (2012), l-prefix scheme.

    Args:
        words: Sets by key.
        least: 0 < least <= 1.
    """
    import numpy as np

    keys, count = list(words), Counter(word for members in words.values() for word in members)
    rarity = {word: rank for rank, word in enumerate(sorted(count, key=lambda word: (count[word], word)))}
    common = [math.ceil(least * len(members) - _ROUNDING) for members in words.values()]
    holders: defaultdict[str, list[int]] = defaultdict(list)
    prefixes = list[list[str]]()
    for i, members in enumerate(words.values()):
        prefixes.append(sorted(members, key=rarity.__getitem__)[: len(members) - common[i] + _SHARED])
        for word in prefixes[i]:
            holders[word].append(i)
    places = {word: np.array(found, np.int32) for word, found in holders.items()}
    for i, key in enumerate(keys):
        before = [places[word][: places[word].searchsorted(i)] for word in prefixes[i]]
        shared = np.bincount(np.concatenate(before)) if before else np.empty(0)
        for j in np.flatnonzero(shared >= min(_SHARED, common[i])).tolist():
            both = len(words[key] & words[keys[j]])
            if both >= least * (len(words[key]) + len(words[keys[j]]) - both):
                yield keys[j], key
