"""A chat model judges proposed dependencies; a person decides on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from callsheet.agents.models.chat_models import ModelError
from callsheet.agents.models.model_output import structured
from callsheet.agents.models.prompts import JUDGE
from callsheet.graphs import Catalog, Tool, shown
from callsheet.graphs.dependencies import Proposal

_AT_ONCE, _DESCRIPTION, _PARAMETERS, _WHY = 20, 300, 12, 120
Progress = Callable[[int, int], None]


class Verdict(BaseModel):
    """The verdict on one edge."""

    edge: int = Field(description="The edge's number")
    right: bool = Field(description="Whether a call of the first tool really needs, or can use, the second one")
    why: str = Field(default="", description="Why, in a few words")


class Verdicts(BaseModel):
    """The model's answer."""

    verdicts: list[Verdict]


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome.

    Attributes:
        proposals: All proposals, in their order; those that were judged have a new confidence and the model's reason.
        judged: Number of judged proposals.
        failed: Why the model stopped early; empty if it did not.
    """

    proposals: tuple[Proposal, ...]
    judged: int = 0
    failed: str = ""


async def judge_proposals(
    proposals: Sequence[Proposal], catalog: Catalog, model: BaseChatModel, *, progress: Progress | None = None
) -> Judged:
    """Asks a chat model which proposals are right, twenty at a time.

    ::

        confidence = (confidence + 1) / 2 if it agrees, confidence / 2 if it does not

    The verdict only changes the confidence: it does not accept, refuse or remove a proposal.

    Args:
        proposals: Edges between tools of the catalog.
        catalog: The tools.
        model: The chat model.
        progress: Called with the number of proposals done and in all.
    """
    done: list[Proposal] = []
    judged = 0
    for start in range(0, len(proposals), _AT_ONCE):
        batch = proposals[start : start + _AT_ONCE]
        try:
            prompt: list[AnyMessage] = [SystemMessage(JUDGE), HumanMessage(_question(batch, catalog))]
            answer = await structured(model, Verdicts, prompt)
        except ModelError as error:
            return Judged((*done, *proposals[start:]), judged, str(error))
        verdicts = {one.edge: one for one in answer.value.verdicts if 1 <= one.edge <= len(batch)}
        done.extend(_weighed(edge, verdicts.get(number)) for number, edge in enumerate(batch, 1))
        judged += len(verdicts)
        if progress:
            progress(start + len(batch), len(proposals))
    return Judged(tuple(done), judged)


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
