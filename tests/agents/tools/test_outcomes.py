"""The outcome of a call, in the answer to it and in a checkpoint."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from callsheet.agents.approval.call_record import in_doubt
from callsheet.agents.calls.outcome import Call, Outcome, StoredContent, answer_to, outcome_in, with_outcome
from callsheet.agents.registry.binding import RUN_PROGRAM
from callsheet.agents.work.equipment import calls_of

MADE = ToolCall(name="maps_find", args={"city": "Oslo"}, id="1", type="tool_call")
DOCUMENTED = {"tool", "structured", "media", "seconds", "kind", "effect"}


def stored(message: ToolMessage) -> ToolMessage:
    """The message after a checkpoint was written and read."""
    serde = JsonPlusSerializer()
    read: ToolMessage = serde.loads_typed(serde.dumps_typed(message))
    return read


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(),
        Outcome(tool="maps/find", structured={"rows": [1, {"a": None}]}, seconds=0.5, began=1.5, args={}),
        Outcome(tool="maps/find", media=(StoredContent(path="/a.png", media="image/png", size=3),), late=("maps/old",)),
        Outcome(task="7", interval=2.0, state="s", questions={"q": {"message": "Who?", "form": {}, "opens": ""}}),
        Outcome(effect="unknown", kind="crash", made=(Call(id="1", agent="maps", tool="maps/find", output="x"),)),
        Outcome(added=("maps/find",), reminder=True),
    ],
)
@pytest.mark.parametrize("failed", [False, True])
def test_an_outcome_is_read_back_from_a_checkpoint_as_it_was(outcome: Outcome, failed: bool) -> None:
    read = outcome_in(stored(answer_to(MADE, "said", outcome, error=failed)))
    assert read == outcome.model_copy(update={"error" if failed else "text": "said"})


def test_an_artifact_has_the_documented_fields_and_others_only_with_a_value() -> None:
    assert answer_to(MADE, "x").artifact.keys() == DOCUMENTED
    assert answer_to(MADE, "x", Outcome(began=1.0)).artifact.keys() == {*DOCUMENTED, "began"}


@pytest.mark.parametrize("artifact", [None, {}, "a text", [1]])
def test_an_answer_without_fields_says_that_no_tool_was_called(artifact: Any) -> None:
    message = ToolMessage("x", tool_call_id="1", artifact=artifact)
    assert outcome_in(message) == Outcome(text="x", effect="none")


def test_what_other_people_put_into_an_artifact_stays() -> None:
    message = ToolMessage("x", tool_call_id="1", artifact={"theirs": 1, "effect": "reported", "text": "y"})
    outcome = outcome_in(message)
    assert outcome == Outcome(text="x")
    kept = with_outcome(message, outcome.model_copy(update={"began": 2.0})).artifact
    assert (kept["theirs"], kept["began"]) == (1, 2.0)


@pytest.mark.parametrize(("status", "effect"), [("success", "reported"), ("error", "unknown")])
def test_of_a_failed_call_with_an_unreadable_artifact_the_outcome_is_unknown(status: Any, effect: str) -> None:
    message = ToolMessage("x", tool_call_id="1", status=status, artifact={"effect": "perhaps", "media": 3})
    assert outcome_in(message).effect == effect


def test_a_program_of_an_earlier_version_keeps_its_effect_and_its_text() -> None:
    inner = {"type": "tool", "content": "sent", "tool_call_id": "2", "artifact": {"tool": "maps/find"}}
    artifact = {"effect": "unknown", "calls": [{**MADE, "id": "2"}], "answers": [inner]}
    run = ToolCall(name=RUN_PROGRAM, args={"code": "maps_find()"}, id="1", type="tool_call")
    answer = ToolMessage("it was cut off", tool_call_id="1", name=RUN_PROGRAM, status="error", artifact=artifact)
    messages: list[AnyMessage] = [AIMessage("", tool_calls=[run]), stored(answer)]
    (call,) = calls_of(messages, {})
    assert (call.id, call.effect, call.error) == ("c1", "unknown", "it was cut off")
    assert in_doubt(messages, {}) is not None
