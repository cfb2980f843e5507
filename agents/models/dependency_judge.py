"""A chat model's opinion of proposed dependencies; the decision stays with a person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import JUDGE
from callsheet.graphs import Catalog, Tool, shown
from callsheet.graphs.dependencies import Proposal

_AT_ONCE, _DESCRIPTION, _PARAMETERS, _WHY = 20, 300, 12, 120
Progress = Callable[[int, int], None]


class Verdict(BaseModel):
    """What the model says to one edge."""

    edge: int = Field(description="The edge's number")
    right: bool = Field(description="Whether a call of the first tool really needs, or can use, the second one")
    why: str = Field(default="", description="Why, in a few words")


class Verdicts(BaseModel):
    """The model's answer."""

    verdicts: list[Verdict]


@dataclass(frozen=True, slots=True)
class Judged:
    """What came of it.

    Attributes:
        proposals: All proposals, in their order; those that were judged with another confidence and the model's words.
        judged: How many were judged.
        failed: Why it stopped before the end, in the model's or its provider's words; empty where it did not.
    """

    proposals: tuple[Proposal, ...]
    judged: int = 0
    failed: str = ""


async def judge_proposals(
    proposals: Sequence[Proposal], catalog: Catalog, model: BaseChatModel, *, progress: Progress | None = None
) -> Judged:
    """Asks a chat model which proposals are right, twenty at a time.

    ::

        confidence = (confidence + 1) / 2 where it agrees, confidence / 2 where it does not

    Its opinion is evidence like any other: no proposal is accepted, refused or left out by it.

    Args:
        proposals: Edges between tools of the catalog.
        catalog: The tools.
        model: What judges; it must be able to give structured output.
        progress: Called with how many were asked and how many there are.
    """
    done: list[Proposal] = []
    judged = 0
    for start in range(0, len(proposals), _AT_ONCE):
        batch = proposals[start : start + _AT_ONCE]
        try:
            said = await _asked(batch, catalog, model)
        except ModelError as error:
            return Judged((*done, *proposals[start:]), judged, str(error))
        done.extend(_weighed(edge, said.get(number)) for number, edge in enumerate(batch, 1))
        judged += len(said)
        if progress:
            progress(start + len(batch), len(proposals))
    return Judged(tuple(done), judged)


async def _asked(batch: Sequence[Proposal], catalog: Catalog, model: BaseChatModel) -> dict[int, Verdict]:
    structured = model.with_structured_output(Verdicts, include_raw=True)
    answer: Any = await answered(structured.ainvoke([SystemMessage(JUDGE), HumanMessage(_question(batch, catalog))]))
    parsed = answer.get("parsed")
    if not isinstance(parsed, Verdicts):
        raise ModelError(f"the model did not answer in the asked form ({answer.get('parsing_error') or 'no verdicts'})")
    return {verdict.edge: verdict for verdict in parsed.verdicts if 1 <= verdict.edge <= len(batch)}


def _question(batch: Sequence[Proposal], catalog: Catalog) -> str:
    tools = dict.fromkeys(name for edge in batch for name in (edge.source, edge.target))
    about = "\n".join(_described(catalog.tool(name)) for name in tools)
    edges = "\n".join(f"{number}. {_line(edge)}" for number, edge in enumerate(batch, 1))
    return f"Tools:\n{about}\n\nEdges:\n{edges}"


def _described(tool: Tool) -> str:
    takes = ", ".join(f"{p.name}{'' if p.required else '?'}" for p in tool.parameters[:_PARAMETERS])
    gives = ", ".join(p.name for p in tool.outputs[:_PARAMETERS])
    said = " ".join(shown(tool.description, most=_DESCRIPTION).split())
    return shown(f"{tool.id}({takes}){f' -> {gives}' if gives else ''}: {said}", most=None)


def _line(edge: Proposal) -> str:
    about = f" for {edge.parameter}" if edge.parameter else ""
    return shown(f"{edge.source} needs {edge.target}{about} ({edge.evidence})", most=2 * _DESCRIPTION)


def _weighed(edge: Proposal, verdict: Verdict | None) -> Proposal:
    if verdict is None:
        return edge
    confidence = (edge.confidence + 1) / 2 if verdict.right else edge.confidence / 2
    why = " ".join(shown(verdict.why, most=_WHY).split())
    said = f"a model {'agrees' if verdict.right else 'disagrees'}{f': {why}' if why else ''}"
    return edge.model_copy(update={"confidence": round(confidence, 3), "evidence": f"{edge.evidence}; {said}"})
