"""How cuts of requests are counted; the share that is right is reported, not demanded."""

from __future__ import annotations

from pathlib import Path

from request_splits import SplitCounts, SplitRecord, count_splits, read_splits


def record(*orders: str) -> SplitRecord:
    return SplitRecord(id="1", source="s", licence="l", request=" ".join(orders), steps=len(orders), orders=orders)


def test_case_punctuation_and_a_leading_connective_do_not_count() -> None:
    found = count_splits(
        [
            (record("Read it", "then print it."), ("read it,", "print it")),
            (record("Read it", "print it"), ("Read", "it print it")),
            (record("Read it", "print it"), ("Read it print it",)),
            (record("Read it"), ("Read", "it")),
        ]
    )
    assert found == SplitCounts(requests=4, steps=2, over=1, under=1, spans=1)


def test_every_order_stands_in_its_request_in_this_order() -> None:
    for each in read_splits(Path(__file__).parent / "splits.jsonl"):
        rest = each.request
        for order in each.orders:
            assert order in rest, each.id
            rest = rest.partition(order)[2]
        assert each.steps == len(each.orders), each.id
