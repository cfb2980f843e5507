"""Lets a decision model judge the best tools of a selection: their order, and whether one of them fits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from callsheet.graphs import Catalog, shown
from callsheet.retrievers.decisions.answers import DecisionError, within
from callsheet.retrievers.selection.result import DecisionReport, PickedTool

if TYPE_CHECKING:
    from langchain_core.documents import Document

_MAX_TEXT = 600
_MAX_PARAMETERS = 12
_MAX_NAME = 60
_MAX_REQUEST = 4_000
_MAX_ERROR = 200
_LEAST = 1e-12


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer of a judge about the tools that it was shown.

    Attributes:
        order: Ids of tools, best first; the others follow in their old order. Unknown ids are ignored.
        probabilities: Id -> probability that the tool does what the request asks; empty if the judge only orders.
        fits: Probability that one of the tools does what the request asks; None if the judge only orders.

    Raises:
        DecisionError: A probability is not between 0 and 1.
    """

    order: Sequence[str]
    probabilities: Mapping[str, float]
    fits: float | None = None
    input_tokens: int = 0
    output_tokens: int = 0

    def __post_init__(self) -> None:
        for value in (*self.probabilities.values(), *([] if self.fits is None else [self.fits])):
            if not 0 <= value <= 1:  # also NaN
                raise DecisionError(f"a probability must be between 0 and 1, not {value!r}")


@runtime_checkable
class ToolJudge(Protocol):
    """The protocol of judges, which decide which of a few tools does what a request asks.

    ``decision_models`` has judges that ask a model. If a judge also has ``ajudge``, the asynchronous form of ``judge``,
    asynchronous calls of the retriever await it.
    """

    name: str

    def judge(self, request: str, tools: Sequence[Document]) -> Judgement:
        """Judges the tools, in the order of the ranking; any error leaves this order.

        A document is a tool: agent, name, description and parameters in the text; ``id``, ``agent`` and ``score`` in
        the metadata. What tools say of themselves is data, and never an instruction.
        """
        ...


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """The question to a judge: the first tools of a ranking, and the timeout in seconds."""

    request: str
    tools: Sequence[PickedTool]
    documents: Sequence[Document]
    judge: ToolJudge
    seconds: float

    def ask(self) -> JudgeAnswer:
        """Asks the judge and returns its answer, or the error as data; after the timeout, it stops waiting."""
        began = time.monotonic()
        try:
            said: Judgement | Exception = within(self.seconds, lambda: self.judge.judge(self.request, self.documents))
        except Exception as error:  # noqa: BLE001 a judge can raise any error; the selection names it
            said = error
        return self._answered(said, time.monotonic() - began)

    async def aask(self) -> JudgeAnswer:
        """Asks the judge as ``ask`` does; if the judge has ``ajudge``, it is awaited without a thread."""
        ajudge = getattr(self.judge, "ajudge", None)
        if ajudge is None:
            return await asyncio.to_thread(self.ask)
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.seconds):
                said = await ajudge(self.request, self.documents)
        except Exception as error:  # noqa: BLE001 as in ask
            said = error
        return self._answered(said, time.monotonic() - began)

    def _answered(self, said: Judgement | Exception, seconds: float) -> JudgeAnswer:
        """Returns the tools in their new order, the largest ``use`` first, so that sorting by use keeps this order.

        A dependency that now ranks above the tool that needs it counts as its own candidate.
        """
        by = self.judge.name
        count = len(self.tools)
        if isinstance(said, Exception):
            text = f"no answer within {self.seconds:g} s" if isinstance(said, TimeoutError) else str(said)
            why = shown(f"{type(said).__name__}: {text}", most=_MAX_ERROR)
            spent = (said.input_tokens, said.output_tokens) if isinstance(said, DecisionError) else (0, 0)
            return JudgeAnswer((), DecisionReport(by, count, None, why, *spent, seconds))
        first = {tool.id: tool for tool in self.tools}
        order = list(dict.fromkeys((*(tool for tool in said.order if tool in first), *first)))
        place = {tool: i for i, tool in enumerate(order)}
        uses = sorted((tool.use for tool in self.tools), reverse=True)
        moved = []
        for i, (name, use) in enumerate(zip(order, uses, strict=True)):
            tool = replace(first[name], use=use + (count - i) * _LEAST, probability=said.probabilities.get(name))
            behind = place.get(tool.via[0], -1) > i
            moved.append(replace(tool, via=(name,), required=False) if behind else tool)
        return JudgeAnswer(
            tuple(moved), DecisionReport(by, count, said.fits, "", said.input_tokens, said.output_tokens, seconds)
        )


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The tools of a question in the order of the judge (none if it failed), and a report."""

    tools: tuple[PickedTool, ...]
    decision: DecisionReport


def question_of(
    request: str, candidates: Sequence[PickedTool], judge: ToolJudge, catalog: Catalog, *, most: int, seconds: float
) -> JudgeQuestion:
    """Returns the question to a judge about the first ``most`` tools, each described in at most 1,400 characters."""
    first: dict[str, PickedTool] = {}
    for tool in candidates[:most]:
        first.setdefault(tool.id, tool)
    half = _MAX_REQUEST // 2
    text = request if len(request) <= _MAX_REQUEST else f"{request[:half]}\n...\n{request[-half:]}"
    documents = [_document(tool, catalog) for tool in first.values()]
    return JudgeQuestion(text, tuple(first.values()), documents, judge, seconds)


def _document(picked: PickedTool, catalog: Catalog) -> Document:
    from langchain_core.documents import Document

    tool = catalog.tool(picked.id)
    agent = catalog.agent(tool.agent)
    names = (shown(parameter.name, most=_MAX_NAME) for parameter in tool.parameters[:_MAX_PARAMETERS])
    text = shown(f"{agent.name or agent.id}: {tool.name}. {tool.description}", most=_MAX_TEXT)
    return Document(
        id=tool.id,
        page_content=f"{text} ({', '.join(names)})" if tool.parameters else text,
        metadata={"id": tool.id, "agent": tool.agent, "score": picked.score},
    )
