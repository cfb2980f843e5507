"""A decision model that follows a script."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.decisions import Answer, BaseDecisionModel, Choice, ChoiceAnswer, ClassifierResponse, NoulAnswer
from pydantic import Field


class Stub(BaseDecisionModel):
    """A decision model that gives these probabilities, or raises this error, and remembers what it was asked."""

    model: str = "stub-1"
    shares: Any = Field(default_factory=dict)
    seconds: float = 0.0
    usage: Any = None
    asked: list[Any] = Field(default_factory=list)
    by: list[str] = Field(default_factory=list)

    @property
    def _provider(self) -> str:
        return "stub"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.by.append("sync")
        time.sleep(self.seconds)
        return self._answer(state, questions)

    async def _aclassify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.by.append("async")
        await asyncio.sleep(self.seconds)
        return self._answer(state, questions)

    def _answer(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.asked.append((state, questions))
        if isinstance(self.shares, Exception):
            raise self.shares
        ((name, choice),) = questions.items()
        shares: Any = self.shares(choice) if callable(self.shares) else self.shares
        best = max(shares, key=lambda label: shares[label], default="none")
        answer = ChoiceAnswer(type="choice", choice=best, probabilities=dict(shares), confidence=0.5)
        return ClassifierResponse(model=self.model, answers={name: answer}, usage=self.usage)


class YesOrNo(BaseDecisionModel):
    """A decision model that answers pairs of tools by ``yes`` (None: not at all), and remembers what it was asked."""

    model: str = "yes-or-no"
    yes: Any
    asked: list[Any] = Field(default_factory=list)

    @property
    def _provider(self) -> str:
        return "stub"

    def _classify(self, state: Any, questions: dict[str, Any]) -> ClassifierResponse:
        self.asked.append((state, questions))
        answers: dict[str, Answer] = {}
        for label in questions:
            probability = self.yes(state["pairs"][label])
            if probability is not None:
                answers[label] = NoulAnswer(type="noul", noul=probability)
        return ClassifierResponse(model=self.model, answers=answers)


def of(**by_name: float) -> Callable[[Choice], Mapping[str, float]]:
    """Probabilities by the names of tools; what is left is that of ``none``."""

    def shares(choice: Choice) -> Mapping[str, float]:
        told = {
            label: by_name[name]
            for label, about in choice.criteria.items()
            for name in by_name
            if f": {name}. " in str(about)
        }
        return {**told, "none": 1 - sum(told.values())}

    return shares
