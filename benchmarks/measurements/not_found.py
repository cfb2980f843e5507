"""Whether documents that do not answer a question are told from those that do, by rules, without a language model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measurements.arag import by_rules
from benchmarks.report.statistics import Bootstrap, Interval
from benchmarks.sets.reading import hotpotqa, hotpotqa_without_support
from callsheet.retrievers.documents import DocumentIndex, Rules, answer_from
from callsheet.retrievers.documents.rules.quoted_answer import ENOUGH

COLUMNS = (
    "questions",
    "n",
    "AUROC",
    "answered, paragraphs there",
    "answered, taken out",
    "precision of answering",
)
_ABOUT = (
    "HotpotQA, distractor setting: 100 questions against their 1,000 paragraphs pooled, and against the same without "
    "the paragraphs that support any of them. Answered: the share for which something is quoted; taken out, each of "
    "these is an error. Precision: of all that is answered, the share whose paragraphs are there. AUROC: of coverage, "
    "0 where a name, a number or the kind asked for is left out. The threshold, {}, was chosen on the even questions; "
    "the odd ones are held out. The rules read up to {:,} tokens. No language model"
)
_SHOWN = ("auroc", "answered_there", "answered_away", "precision")


@dataclass(frozen=True, slots=True)
class Tried:
    """One question against one collection.

    Attributes:
        coverage: The share of its parts accounted for; 0 where one that is required is left out.
        answered: Whether something was quoted.
    """

    coverage: float
    answered: bool


def on_hotpotqa(data: Path) -> Mapping[str, object]:
    """The body of the results file."""
    rules = Rules()
    with hotpotqa(data) as whole, hotpotqa_without_support(data) as rest:
        there = [tried(question.text, whole.index, rules) for question in whole.questions]
        away = [tried(question.text, rest.index, rules) for question in whole.questions]
    found = {
        "even, threshold chosen": figures(there[::2], away[::2]),
        "odd, held out": figures(there[1::2], away[1::2]),
    }
    return {
        "about": _ABOUT.format(ENOUGH, rules.tokens),
        "columns": list(COLUMNS),
        "rows": [_row(name, kept) for name, kept in found.items()],
        "sets": found,
    }


def tried(question: str, index: DocumentIndex, rules: Rules) -> Tried:
    """What the rules answer from what they read."""
    answer = answer_from(question, index, by_rules(index, question, rules).read)
    return Tried(answer.coverage if answer.complete else 0.0, bool(answer.quotes))


def figures(there: Sequence[Tried], away: Sequence[Tried]) -> dict[str, object]:
    """AUROC and shares with their intervals, as plain values; the two are of the same questions."""
    bootstrap = Bootstrap([str(place) for place in range(len(there))])
    right, wrong = [float(one.answered) for one in there], [float(one.answered) for one in away]
    values: dict[str, Interval] = {
        "auroc": bootstrap.auroc([one.coverage for one in there], [one.coverage for one in away]),
        "answered_there": bootstrap.mean(right),
        "answered_away": bootstrap.mean(wrong),
        "precision": bootstrap.ratio(right, [a + b for a, b in zip(right, wrong, strict=True)]),
    }
    plain = {name: {"mean": v.mean, "low": v.low, "high": v.high} for name, v in values.items()}
    return {"n": len(there), **plain}


def _row(name: str, found: Mapping[str, object]) -> list[str]:
    return [name, f"{found['n']}", *(_interval(found[key]) for key in _SHOWN)]  # type: ignore[arg-type]


def _interval(value: Mapping[str, float]) -> str:
    mean, low, high = (f"{value[key]:.3f}".removeprefix("0") for key in ("mean", "low", "high"))
    return f"{mean} [{low}, {high}]"
