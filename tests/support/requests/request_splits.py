"""How requests of public data sets are cut into steps: ``python tests/support/requests/request_splits.py FILE.jsonl``.

One request a line: ``{"id": "", "source": "", "licence": "", "request": "", "steps": 2, "orders": ["", ""]}``, where
``orders`` are the texts of the separate orders, as one person read them. It prints counts and no request, so that
whoever changes the rules can run a set that they are not to read.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click
from pydantic import BaseModel, ConfigDict

_LEADING = frozenset({"and", "then", "also", "please", "finally"})


class SplitRecord(BaseModel):
    """A request and the orders in it; see the head of this file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    source: str
    licence: str
    request: str
    steps: int
    orders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """How many requests were cut into the right number of steps, and at the right places.

    Attributes:
        requests: All of them.
        steps: Those with the right number of steps.
        over: Those with more.
        under: Those with fewer.
        spans: Those with the right texts: case, punctuation and a leading connective do not count.
    """

    requests: int
    steps: int
    over: int
    under: int
    spans: int

    def __str__(self) -> str:
        shares = f"{self.steps / self.requests:.1%} of steps, {self.spans / self.requests:.1%} of spans"
        return (
            f"{self.requests} requests: right number of steps {self.steps} (more {self.over}, fewer {self.under}), "
            f"right spans {self.spans}; {shares}"
        )


def read_splits(path: Path) -> list[SplitRecord]:
    """The records of a JSON Lines file."""
    return [SplitRecord.model_validate_json(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def count_splits(cut: Iterable[tuple[SplitRecord, tuple[str, ...]]]) -> SplitCounts:
    """Counts over requests and the texts of the steps that they were cut into."""
    pairs = list(cut)
    differences = [len(texts) - record.steps for record, texts in pairs]
    return SplitCounts(
        requests=len(pairs),
        steps=differences.count(0),
        over=sum(difference > 0 for difference in differences),
        under=sum(difference < 0 for difference in differences),
        spans=sum([*map(_words, texts)] == [*map(_words, record.orders)] for record, texts in pairs),
    )


def _words(text: str) -> list[str]:
    words = re.sub(r"[^\w\s]", " ", text.casefold()).split()
    while words and words[0] in _LEADING:
        words = words[1:]
    return words


def main() -> None:
    """Cuts a file of requests into clauses and prints the counts."""
    from callsheet.graphs.text.words import clause_spans

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    records = read_splits(parser.parse_args().file)
    cut = ((one, clause_spans(one.request) or [(0, len(one.request))]) for one in records)
    click.echo(count_splits((one, tuple(one.request[start:end] for start, end in spans)) for one, spans in cut))


if __name__ == "__main__":
    main()
