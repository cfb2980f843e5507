"""Ranking metrics, with the names and definitions of the field.

Each metric takes ``ranked`` (ids, best first; repeated ids are ignored), ``gold`` (one element per relevant item: the
set of its alternatives, any one of which satisfies it; equal elements count once) and ``k``, the number of ranked items
that count. A ranked item is *relevant* if it satisfies an element that no item before it satisfies. All values are
between 0 and 1. A metric raises ``SettingsError`` if ``gold`` is empty, holds plain text or an empty set, or if k is
below 1.

    >>> recall(["clock", "units"], [{"units", "scales"}, {"files"}], k=2)
    0.5
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from math import log2
from typing import Any

from callsheet.graphs import SettingsError

Gold = Sequence[Collection[str]]


def recall(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """The share of elements that the first k items satisfy: ``R@k = |satisfied by the first k| / |gold|``.

    Source: Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, section 8.3, at a cut-off.
    """
    gains, total = _gains(ranked, gold, k)
    return sum(gains) / total


def average_precision(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``AP@k = 1 / min(|gold|, k) * sum over i <= k of P@i * rel(i)``; its mean over queries is mAP@k.

    P@i is the share of relevant items in the first i, rel(i) is 1 where item i is relevant, else 0.

    Source: Manning, Raghavan and Schütze, section 8.4. The divisor min(|gold|, k) instead of |gold|
    lets a perfect ranking score 1 at every k; trec_eval's ``map_cut`` divides by |gold|.
    """
    gains, total = _gains(ranked, gold, k)
    precisions, relevant = 0.0, 0
    for place, gain in enumerate(gains, 1):
        if gain:
            relevant += 1
            precisions += relevant / place
    return precisions / min(total, k)


def ndcg(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``nDCG@k = sum over i <= k of rel(i) / log2(i + 1)``, divided by the same sum for a perfect ranking.

    The gains are binary; a perfect ranking has relevant items in its first min(|gold|, k) places.

    Source: Järvelin and Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques* (TOIS 2002), with the
    discount log2(i + 1) of trec_eval's ``ndcg_cut``.
    """
    gains, total = _gains(ranked, gold, k)
    dcg = sum(1 / log2(place + 1) for place, gain in enumerate(gains, 1) if gain)
    return dcg / sum(1 / log2(place + 1) for place in range(1, min(total, k) + 1))


def complete(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``COMP@k``: 1.0 if the first k items satisfy every element, otherwise 0.0.

    A request that needs three tools cannot be served by two, which recall does not show.

    Source: Qu et al., *Towards Completeness-Oriented Tool Retrieval for Large Language Models* (CIKM 2024),
    under the name COMP@K.
    """
    gains, total = _gains(ranked, gold, k)
    return float(sum(gains) == total)


def _gains(ranked: Sequence[str], gold: Gold, k: int) -> tuple[list[int], int]:
    """The number of elements that each of the first k items is the first to satisfy, and the number of elements."""
    if k < 1:
        raise SettingsError(f"k must be at least 1, not {k}")
    for element in gold:
        if isinstance(element, str) or not element:
            raise SettingsError(f"an element of gold must be a set of one or more ids, not {element!r}")
    every = set(map(frozenset, gold))
    if not every:
        raise SettingsError("gold is empty: there is nothing to measure")
    remaining, gains = every, []
    for item in islice(dict.fromkeys(ranked), k):
        unsatisfied = {element for element in remaining if item not in element}
        gains.append(len(remaining) - len(unsatisfied))
        remaining = unsatisfied
    return gains, len(every)


def rounded(value: Any) -> Any:
    """A report with all numbers rounded to four decimal places."""
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list() | tuple():
            return [rounded(item) for item in value]
        case _:
            return value
