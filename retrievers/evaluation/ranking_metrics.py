"""How good a ranking is: one function a metric, with the names and definitions of the field.

``ranked`` holds ids, best first; an id that comes again is passed over. ``gold`` holds one element for each wanted
item: the set of its alternatives, any one of which satisfies it. Equal elements count once. A ranked item is
*relevant* when it satisfies an element that nothing before it has satisfied: a second alternative of the same
element is not. Every value lies between 0 and 1.

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
    """The share of wanted items that the first k hold: ``R@k = |satisfied by the first k| / |gold|``.

    Source: Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, section 8.3, at a cut-off.

    Args:
        ranked: Ids, best first.
        gold: One set of alternatives a wanted item.
        k: How many ranked items count.

    Raises:
        SettingsError: ``gold`` is empty or holds plain text or an empty set, or k is below 1.
    """
    satisfied, wanted = _satisfied(ranked, gold, k)
    return sum(satisfied) / wanted


def average_precision(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``AP@k = 1 / min(|gold|, k) * sum over i <= k of P@i * rel(i)``; its mean over queries is mAP@k.

    P@i is the share of relevant items in the first i, rel(i) is 1 where item i is relevant, else 0.

    Source: Manning, Raghavan and Schütze, section 8.4. The divisor min(|gold|, k) instead of |gold|
    lets a perfect ranking score 1 at every k; trec_eval's ``map_cut`` divides by |gold|.

    Args:
        ranked: Ids, best first.
        gold: One set of alternatives a wanted item.
        k: How many ranked items count.

    Raises:
        SettingsError: As for ``recall``.
    """
    satisfied, wanted = _satisfied(ranked, gold, k)
    total, relevant = 0.0, 0
    for place, new in enumerate(satisfied, 1):
        if new:
            relevant += 1
            total += relevant / place
    return total / min(wanted, k)


def ndcg(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``nDCG@k = sum over i <= k of rel(i) / log2(i + 1)``, divided by the same sum for a perfect ranking.

    The gains are binary; a perfect ranking has relevant items in its first min(|gold|, k) places.

    Source: Järvelin and Kekäläinen, *Cumulated Gain-Based Evaluation of IR Techniques* (TOIS 2002), with the
    discount log2(i + 1) that trec_eval's ``ndcg_cut`` takes.

    Args:
        ranked: Ids, best first.
        gold: One set of alternatives a wanted item.
        k: How many ranked items count.

    Raises:
        SettingsError: As for ``recall``.
    """
    satisfied, wanted = _satisfied(ranked, gold, k)
    gain = sum(1 / log2(place + 1) for place, new in enumerate(satisfied, 1) if new)
    return gain / sum(1 / log2(place + 1) for place in range(1, min(wanted, k) + 1))


def complete(ranked: Sequence[str], gold: Gold, k: int) -> float:
    """``COMP@k``: 1.0 if the first k satisfy every wanted item, else 0.0.

    A request that needs three tools is served by three of them and not by two, which recall does not show.

    Source: Qu et al., *Towards Completeness-Oriented Tool Retrieval for Large Language Models* (CIKM 2024),
    where it is named COMP@K.

    Args:
        ranked: Ids, best first.
        gold: One set of alternatives a wanted item.
        k: How many ranked items count.

    Raises:
        SettingsError: As for ``recall``.
    """
    satisfied, wanted = _satisfied(ranked, gold, k)
    return float(sum(satisfied) == wanted)


def _satisfied(ranked: Sequence[str], gold: Gold, k: int) -> tuple[list[int], int]:
    """How many elements each of the first k satisfies that were open before it, and how many elements there are."""
    if k < 1:
        raise SettingsError(f"k must be at least 1, not {k}")
    for element in gold:
        if isinstance(element, str) or not element:
            raise SettingsError(f"an element of gold must be a set of one or more ids, not {element!r}")
    every = set(map(frozenset, gold))
    if not every:
        raise SettingsError("gold is empty: where nothing is wanted, nothing can be measured")
    still, counts = every, []
    for item in islice(dict.fromkeys(ranked), k):
        left = {element for element in still if item not in element}
        counts.append(len(still) - len(left))
        still = left
    return counts, len(every)


def rounded(value: Any) -> Any:
    """A report with every number to four digits after the point."""
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: rounded(item) for key, item in value.items()}
        case list() | tuple():
            return [rounded(item) for item in value]
        case _:
            return value
