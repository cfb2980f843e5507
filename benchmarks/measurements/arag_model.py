"""A-RAG with a chat model: the loop as it ships, on some questions of HotpotQA, beside the answers without a model."""

from __future__ import annotations

import asyncio
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from langchain_core.messages import ToolMessage

from benchmarks.bootstrap import Interval, cell, short
from benchmarks.measurements.arag import Question, hotpotqa
from benchmarks.search import vectors_of_this_run
from callsheet.agents import ModelError
from callsheet.agents.calls.token_usage import usage_of
from callsheet.orchestrator import create_arag
from callsheet.orchestrator.apps.model_evaluation import digest_of_parts
from callsheet.retrievers.documents import DocumentIndex

DRAWS = 2
DRAWN = 20
"""Questions of a draw: one more draw keeps those of the draws before."""
SEED = 20_261_128
"""Seed of every draw; it was chosen before any question was asked."""
AT_ONCE = 10
ATTEMPTS = Path(".callsheet") / "benchmarks" / "reader-attempts"
COLUMNS = (
    "", "n", "Contain-Acc", "answer in what was read", "recall", "retrieved tokens", "chunks read", "searches",
    "model calls", "input", "output", "characters",
)  # fmt: skip
_ABOUT = (
    f"`callsheet documents ask` as it ships, over the 1,000 paragraphs of HotpotQA's 100 questions: {DRAWS * DRAWN} of "
    f"the 95 questions with a short answer, drawn with the seed {SEED}. Contain-Acc: the share of answers that contain "
    "the right one, without case, articles and punctuation, with Wilson's 95 % interval. Recall: the share of a "
    "question's supporting paragraphs that were read whole. The other columns are means of a question; input and "
    "output are tokens, as the model's endpoint counts them. The model may know the questions from its training"
)


@dataclass(frozen=True, slots=True)
class Answered:
    """What the graph did for one question: its answer, the chunks that it read, and what that cost."""

    question: str
    answer: str
    chunks: Sequence[str]
    retrieved_tokens: int
    searches: int
    model_calls: int
    input_tokens: int
    output_tokens: int


class _Judged(NamedTuple):
    """One question, in numbers."""

    contained: float
    read: float
    recall: float
    retrieved_tokens: float
    chunks: float
    searches: float
    model_calls: float
    input_tokens: float
    output_tokens: float
    characters: float


def measure(data: Path, model: str) -> Mapping[str, object]:
    """Returns the body of the results file. Answers are stored, so a run that was ended goes on.

    Raises:
        ModelError: The model gave no answer to a question.
    """
    with hotpotqa(data) as (index, questions):
        asked = sample([question for question in questions if question.answers])
        texts = {chunk.id: chunk.text for chunk in index.chunks()}
        rows: list[list[str]] = []
        for title, name in (("without a model", None), (model, model)):
            answers = asyncio.run(_answers(index, asked, name))
            judged = [_judged(question, texts, one) for question, one in zip(asked, answers, strict=True)]
            rows.append([title, *_cells(judged)])
    return {"about": _ABOUT, "model": model, "columns": list(COLUMNS), "rows": rows}


def sample(questions: Sequence[Question]) -> list[Question]:
    """Returns the questions that are asked, in the order of the draws."""
    left = list(questions)
    asked: list[Question] = []
    for _ in range(DRAWS):
        drawn = random.Random(SEED).sample(left, min(DRAWN, len(left)))
        asked += drawn
        left = [question for question in left if question not in drawn]
    return asked


async def _answers(index: DocumentIndex, questions: Sequence[Question], model: str | None) -> list[Answered]:
    """Asks the graph every question, a few at once."""
    # The same place has the same vectors: nothing is embedded a second time.
    arag = create_arag(index.folder, model=model, embeddings=vectors_of_this_run(), index=index.place)
    app: Any = arag.compile(name="arag")
    turn = asyncio.Semaphore(AT_ONCE)

    async def answered(question: Question) -> Answered:
        file = ATTEMPTS / f"{digest_of_parts(model or '', question.text)}.json"
        if model is not None and file.exists():
            return Answered(**json.loads(file.read_bytes()))
        async with turn:
            answer = _of_state(question.text, await app.ainvoke({"messages": [("user", question.text)]}))
        if model is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(asdict(answer), ensure_ascii=False, indent=1), encoding="utf-8")
        return answer

    return list(await asyncio.gather(*map(answered, questions)))


def _of_state(question: str, state: Mapping[str, Any]) -> Answered:
    messages = state["messages"]
    error = messages[-1].additional_kwargs["arag"].get("error")
    if error:
        raise ModelError(f"no answer to {question!r}: {error}")
    results = [message for message in messages if isinstance(message, ToolMessage)]
    chunks = dict.fromkeys(chunk for result in results for chunk in (result.artifact or {}).get("chunks", ()))
    usage = usage_of(messages)
    return Answered(
        question=question,
        answer=messages[-1].text,
        chunks=list(chunks),
        retrieved_tokens=state["retrieved_tokens"],
        searches=sum(result.name != "chunk_read" for result in results),
        model_calls=usage.calls,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
    )


def _judged(question: Question, texts: Mapping[str, str], one: Answered) -> _Judged:
    read = " ".join(texts[chunk] for chunk in one.chunks)
    return _Judged(
        contained=question.contained(one.answer),
        read=question.contained(read),
        recall=question.recall(one.chunks),
        retrieved_tokens=one.retrieved_tokens,
        chunks=len(one.chunks),
        searches=one.searches,
        # Without a model, the messages that look like its own are made by the graph.
        model_calls=one.model_calls if one.input_tokens else 0,
        input_tokens=one.input_tokens,
        output_tokens=one.output_tokens,
        characters=len(one.answer),
    )


def _cells(judged: Sequence[_Judged]) -> list[str]:
    mean = _Judged(*np.mean(judged, axis=0).tolist())
    right = sum(bool(one.contained) for one in judged)
    return [
        str(len(judged)),
        cell(wilson(right, len(judged))),
        short(mean.read),
        short(mean.recall),
        f"{mean.retrieved_tokens:,.0f}",
        f"{mean.chunks:.1f}",
        f"{mean.searches:.1f}",
        f"{mean.model_calls:.1f}",
        f"{mean.input_tokens:,.0f}",
        f"{mean.output_tokens:,.0f}",
        f"{mean.characters:,.0f}",
    ]


def wilson(right: int, n: int, z: float = 1.96) -> Interval:
    """Returns a share with its 95 % interval; of so few questions, a bootstrap of all or none right has no width.

    Source: Wilson, *Probable Inference, the Law of Succession, and Statistical Inference* (JASA 22, 1927).
    """
    share = right / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return Interval(share, middle - half, middle + half)
