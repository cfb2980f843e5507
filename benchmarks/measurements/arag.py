"""A-RAG without a language model: what is read for each retrieved token, with and without each interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measurements.interface_rules import Call, Interface, Rules, asked_for, moves
from benchmarks.report.statistics import Bootstrap, Interval
from benchmarks.sets.reading import BEARING, Collected, hotpotqa, medical
from callsheet.retrievers.documents import (
    DocumentIndex,
    Hits,
    Reading,
    chunk_read,
    estimated_tokens,
    keyword_search,
    names,
    search_and_read,
    semantic_search,
)

TOP_K = 5
COLUMNS = (
    "",
    "recall",
    "complete",
    "full - this, recall",
    "recall, tuning half",
    "recall, other half",
    "retrieved tokens",
    "of these snippets",
    "chunks read",
    "calls",
)
_ROUNDS = 6


@dataclass(frozen=True, slots=True)
class Played:
    """What one method did for one question.

    Attributes:
        read: The chunks whose whole text it got.
        tokens: All tokens that it got, snippets included.
        snippets: Those of the snippets.
        calls: How many calls it made.
    """

    read: tuple[str, ...]
    tokens: int
    snippets: int = 0
    calls: int = 1


Method = Callable[[str], Played]


def on_hotpotqa(data: Path) -> Mapping[str, object]:
    """The body of the results file for HotpotQA."""
    about = (
        "HotpotQA, distractor setting: 100 questions, their 1,000 paragraphs pooled. Recall: the share of a question's "
        "two supporting paragraphs that were read whole; complete: both. The rules stop at {} retrieved tokens; their "
        "weights were chosen on the even questions (tuning half), the odd ones are the other half. No language model"
    )
    return _measured(hotpotqa(data), Rules(tokens=600), about)


def on_medical(data: Path) -> Mapping[str, object]:
    """The body of the results file for GraphRAG-Bench medical."""
    about = (
        "GraphRAG-Bench, medical: the first 200,000 characters in chunks of about 1,000 tokens, and at most 100 of "
        f"the questions of which a chunk bears the answer: it holds {BEARING:.0%} of its words. Recall: the share of "
        "these words in what was read; complete: a chunk that bears the answer was read. The rules stop at {} "
        "retrieved tokens and are those of HotpotQA: nothing was tuned here, the halves are two samples. "
        "No language model"
    )
    return _measured(medical(data), Rules(tokens=4_000), about)


def _measured(opening: AbstractContextManager[Collected], rules: Rules, about: str) -> Mapping[str, object]:
    with opening as collected:
        played = {
            name: [method(question.text) for question in collected.questions]
            for name, method in methods(collected, rules).items()
        }
    recalls = {
        name: [q.recall(one.read) for q, one in zip(collected.questions, runs, strict=True)]
        for name, runs in played.items()
    }
    completes = {
        name: [q.complete(one.read) for q, one in zip(collected.questions, runs, strict=True)]
        for name, runs in played.items()
    }
    bootstrap = Bootstrap([str(place) for place in range(len(collected.questions))])
    full = recalls[FULL]
    figures = {name: _figures(played[name], recalls[name], completes[name], full, bootstrap) for name in played}
    return {
        "about": about.format(f"{rules.tokens:,}"),
        "columns": list(COLUMNS),
        "rows": [_row(name, found) for name, found in figures.items()],
        "n": len(collected.questions),
        "methods": figures,
    }


FULL = "A-RAG, all interfaces"


def methods(collected: Collected, rules: Rules) -> Mapping[str, Method]:
    """Every method by name: the baselines, the loop by rules, and the loop without each interface."""
    index = collected.index
    return {
        f"naive RAG, top {TOP_K} chunks": _naive(collected),
        f"A-RAG (Naive), top {TOP_K} by best sentence": lambda question: _read_at_once(index, question),
        FULL: lambda question: by_rules(index, question, rules),
        "without keyword search": lambda question: by_rules(index, question, rules, ("semantic_search", "chunk_read")),
        "without semantic search": lambda question: by_rules(index, question, rules, ("keyword_search", "chunk_read")),
        "without chunk read": lambda question: _without_reading(index, question, rules),
    }


def _naive(collected: Collected) -> Method:
    """One vector a chunk, the nearest five in one go."""
    chunks = list(collected.index.chunks())
    matrix = collected.vectors.encode([chunk.text for chunk in chunks])

    def method(question: str) -> Played:
        best = np.argsort(-(matrix @ collected.vectors.encode([question])[0]), kind="stable")[:TOP_K]
        return Played(tuple(chunks[i].id for i in best), sum(estimated_tokens(chunks[i].text) for i in best))

    return method


def _read_at_once(index: DocumentIndex, question: str) -> Played:
    reading = search_and_read(index, question, top_k=TOP_K)
    return Played(tuple(reading.read), reading.tokens)


def by_rules(
    index: DocumentIndex, question: str, rules: Rules, interfaces: Sequence[Interface] | None = None
) -> Played:
    """The loop by rules, each call carried out."""
    playing = moves(question, index, rules, **({"interfaces": interfaces} if interfaces else {}))
    read: list[str] = []
    tokens = snippets = calls = 0
    call = next(playing, None)
    while call is not None:
        result = _result(index, call)
        calls, tokens = calls + 1, tokens + result.tokens
        if isinstance(result, Reading):
            read += result.read
        else:
            snippets += result.tokens
        try:
            call = playing.send(result.tokens)
        except StopIteration:
            break
    return Played(tuple(read), tokens, snippets, calls)


def _result(index: DocumentIndex, call: Call) -> Hits | Reading:
    match call.name:
        case "keyword_search":
            return keyword_search(index, call.args["keywords"], top_k=call.args["top_k"], sentences=1)
        case "semantic_search":
            return semantic_search(index, call.args["query"], top_k=call.args["top_k"], sentences=1)
        case _:
            return chunk_read(index, call.args["chunk_ids"])


def _without_reading(index: DocumentIndex, question: str, rules: Rules) -> Played:
    """The searches give whole chunks: in turn by words, by meaning, and by the names in what came."""
    read: dict[str, str] = {}
    keywords = asked_for(question)
    tokens = calls = 0
    for top_k in range(1, _ROUNDS):
        for found in (keyword_search(index, keywords, top_k=top_k), semantic_search(index, question, top_k=top_k)):
            reading = chunk_read(index, [hit.chunk for hit in found.hits], read=read) if found.hits else Reading(())
            read.update(reading.read)
            calls, tokens = calls + 1, tokens + reading.tokens
            if tokens >= rules.tokens and len(read) >= rules.least:
                return Played(tuple(read), tokens, calls=calls)
            keywords = [name for part in reading.parts for name in names(part.text)] or keywords
    return Played(tuple(read), tokens, calls=calls)


def _figures(
    runs: Sequence[Played],
    recall: Sequence[float],
    complete: Sequence[bool],
    full: Sequence[float],
    bootstrap: Bootstrap,
) -> dict[str, object]:
    values: dict[str, Interval] = {
        "recall": bootstrap.mean(recall),
        "complete": bootstrap.mean(complete),
        "full_minus_this": bootstrap.difference(full, recall),
        "tokens": bootstrap.mean([one.tokens for one in runs]),
    }
    plain = {name: {"mean": v.mean, "low": v.low, "high": v.high} for name, v in values.items()}
    means = {
        "recall_even": float(np.mean(recall[::2])),
        "recall_odd": float(np.mean(recall[1::2])),
        "snippets": float(np.mean([one.snippets for one in runs])),
        "read": float(np.mean([len(one.read) for one in runs])),
        "calls": float(np.mean([one.calls for one in runs])),
    }
    return {**plain, **means}


def _row(name: str, found: Mapping[str, object]) -> list[str]:
    apart = "" if name == FULL else _interval(found["full_minus_this"], "+.3f")  # type: ignore[arg-type]
    return [
        name,
        _interval(found["recall"]),  # type: ignore[arg-type]
        _interval(found["complete"]),  # type: ignore[arg-type]
        apart,
        *(_short(found[half], ".3f") for half in ("recall_even", "recall_odd")),
        f"{found['tokens']['mean']:,.0f}",  # type: ignore[index]
        f"{found['snippets']:,.0f}",
        f"{found['read']:.1f}",
        f"{found['calls']:.1f}",
    ]


def _interval(value: Mapping[str, float], form: str = ".3f") -> str:
    mean, low, high = (_short(value[key], form) for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"


def _short(value: object, form: str) -> str:
    return format(value, form).replace("0.", ".", 1)
