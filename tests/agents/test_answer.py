"""The answer from the results of the steps."""

from __future__ import annotations

from langchain_core.messages import AIMessage

from callsheet.agents import StepResult, synthesize
from scripted_model import ScriptedModel


async def test_without_an_answer_of_the_model_the_results_are_listed() -> None:
    result = StepResult(id="1", text="Work it out", status="done", result="**Median**: 15.5")
    answer = (await synthesize("Work it out", [result], ScriptedModel(replies=[ConnectionError("gone")]))).text
    said = "Work it out: **Median**: 15.5\n\n(The results are listed as they are: the model did not answer"
    assert answer.startswith(said)


async def test_a_model_cannot_claim_what_was_not_done() -> None:
    model = ScriptedModel(replies=[AIMessage("The text was written.")])
    results = [
        StepResult(id="1", text="Read it", result="read"),
        StepResult(id="2", text="Write it", status="failed", error="the disk is full"),
        StepResult(id="3", text="Send it", status="skipped", error="step 2 was not done"),
    ]
    said = (await synthesize("Write it", results, model)).text
    assert said == "The text was written.\n\nFailed: Write it: the disk is full\nSkipped: Send it: step 2 was not done"
    assert (await synthesize("Write it", results[:1], model)).text == "The text was written."
