"""Lets a decision model judge proposed dependencies."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from langchain_core.decisions import BaseDecisionModel, ClassifierResponse, Noul, State

from callsheet.graphs import Catalog, Tool, shown
from callsheet.graphs.dependencies import Proposal
from callsheet.retrievers.decisions.answers import within
from callsheet.retrievers.decisions.chat_decision_model import DecisionModel, decision_model_of

Progress = Callable[[int, int], None]
_AT_ONCE = 10
_MAX_TEXT = 500
_MAX_FIELDS = 20
_MAX_NAME = 60
_MAX_ERROR = 200
ACCEPTED = 0.5
"""Minimum probability at which a proposal is accepted; below it, the proposal is dropped."""
_OF_ARGUMENT = (
    "Pair {label} in the state: does a call of the tool `caller` usually take the value of `argument` from a result of "
    "the tool `source`, when the value is not known yet?"
)
_OF_CALL = "Pair {label} in the state: does a call of the tool `caller` usually need a call of the tool `source` first?"


@dataclass(frozen=True, slots=True)
class DependencyReview:
    """What a decision model said of proposals.

    Attributes:
        proposals: All proposals in their order. Those that the model accepted or dropped have its decision in
            ``accept`` and the probability in ``evidence``; all others are as they were, but for the evidence of those
            that are left to a person.
        asked: Number of proposals that wait for a decision.
        accepted, dropped: Number of proposals that the model decided.
        left: Number of proposals that the model finds right, but that lead to an agent of another system that is not
            trusted. Only a person accepts these.
        error: Why the model failed; empty if it did not. It was not asked about the rest.
    """

    proposals: tuple[Proposal, ...]
    asked: int
    accepted: int
    dropped: int
    left: int
    error: str = ""

    @property
    def judged(self) -> int:
        """Returns the number of proposals that the model judged."""
        return self.accepted + self.dropped + self.left

    @property
    def unanswered(self) -> int:
        """Returns the number of proposals that wait for a decision and that the model did not judge."""
        return self.asked - self.judged

    def to_dict(self) -> dict[str, int | str]:
        """Returns the counts and the error as JSON values, for ``callsheet infer --json``."""
        return {
            "judged": self.judged,
            "accepted": self.accepted,
            "dropped": self.dropped,
            "left": self.left,
            "unanswered": self.unanswered,
            "error": self.error,
        }


def judge_dependencies(
    proposals: Sequence[Proposal],
    catalog: Catalog,
    model: DecisionModel,
    *,
    trusted: Collection[str] = (),
    seconds: float = 60.0,
    progress: Progress | None = None,
) -> DependencyReview:
    """Asks a decision model about each proposal that nobody has decided and that no run has shown, ten at a time.

    A proposal is accepted if the model gives it a probability of at least .5, otherwise dropped. What tools say of
    themselves is data in the state of the question, and in no instruction. A proposal that leads to an agent of
    another system is accepted only if this agent is trusted: a text of that agent could have persuaded the model.

    Args:
        proposals: Proposals between tools of the catalog.
        catalog: The tools.
        model: A decision model, or a chat model.
        trusted: Ids of agents on which tools of other systems may depend.
        seconds: Timeout of a call of the model.
        progress: Called with the number of proposals that are done, and of all.

    Returns:
        The proposals with the decisions. If a call fails, the rest is left as it is and ``error`` says why.

    Raises:
        SettingsError: The model is neither a decision model nor a chat model.
    """
    decision_model = decision_model_of(model)
    waiting = [edge for edge in proposals if edge.accept is None and not edge.count]
    judged: dict[tuple[str, str, str | None], Proposal] = {}
    error = ""
    for start in range(0, len(waiting), _AT_ONCE):
        batch = waiting[start : start + _AT_ONCE]
        try:
            probabilities = _ask(batch, catalog, decision_model, seconds)
        except Exception as failure:  # noqa: BLE001 a model can raise any error; the review names it
            text = f"no answer within {seconds:g} s" if isinstance(failure, TimeoutError) else str(failure)
            error = shown(f"{type(failure).__name__}: {text}", most=_MAX_ERROR)
            break
        for edge, probability in zip(batch, probabilities, strict=True):
            if probability is not None:
                judged[edge.key] = _decided(edge, probability, catalog, trusted)
        if progress:
            progress(start + len(batch), len(waiting))
    decisions = [edge.accept for edge in judged.values()]
    return DependencyReview(
        proposals=tuple(judged.get(edge.key, edge) for edge in proposals),
        asked=len(waiting),
        accepted=decisions.count(True),
        dropped=decisions.count(False),
        left=decisions.count(None),
        error=error,
    )


def _ask(batch: Sequence[Proposal], catalog: Catalog, model: BaseDecisionModel, seconds: float) -> list[float | None]:
    """Returns the probability that each proposal is right; None for those that the model does not answer."""
    pairs: dict[str, State] = {}
    questions: dict[str, Noul] = {}
    for number, edge in enumerate(batch, 1):
        label = f"p{number}"
        pairs[label] = _pair(edge, catalog)
        question = _OF_ARGUMENT if edge.parameter else _OF_CALL
        questions[label] = Noul(instructions=question.format(label=label))
    response: ClassifierResponse = within(
        seconds, lambda: model.invoke({"state": {"pairs": pairs}, "questions": questions})
    )
    answers = response.nouls
    return [answers[label].noul if label in answers else None for label in questions]


def _pair(edge: Proposal, catalog: Catalog) -> State:
    """Returns what a model is shown of a proposal: both tools, and the argument."""
    caller = catalog.tool(edge.source)
    pair: dict[str, State] = {
        "caller": _described(caller, catalog),
        "source": _described(catalog.tool(edge.target), catalog),
    }
    if edge.parameter:
        about = next((one.description for one in caller.parameters if one.name == edge.parameter), "")
        pair["argument"] = {"name": shown(edge.parameter, most=_MAX_NAME), "about": shown(about, most=_MAX_TEXT)}
    return pair


def _described(tool: Tool, catalog: Catalog) -> State:
    agent = catalog.agent(tool.agent)
    return {
        "agent": shown(agent.name or agent.id, most=_MAX_NAME),
        "name": shown(tool.name, most=_MAX_NAME),
        "description": shown(tool.description, most=_MAX_TEXT),
        "takes": [shown(one.name, most=_MAX_NAME) for one in tool.parameters[:_MAX_FIELDS]],
        "returns": [shown(one.name, most=_MAX_NAME) for one in tool.outputs[:_MAX_FIELDS]],
    }


def _decided(edge: Proposal, probability: float, catalog: Catalog, trusted: Collection[str]) -> Proposal:
    """Returns a proposal with the decision that follows from a probability."""
    caller = catalog.agent(catalog.tool(edge.source).agent)
    source = catalog.agent(catalog.tool(edge.target).agent)
    accept: bool | None = probability >= ACCEPTED
    if accept and source.id not in trusted and source.system_key != caller.system_key:
        accept = None
    evidence = "; ".join(filter(None, (edge.evidence, f"a model gives it {probability:.2f}")))
    return edge.model_copy(update={"accept": accept, "evidence": evidence})
