"""The answer from the results of the steps."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage

from callsheet.agents import StepResult, synthesize
from scripted_model import ScriptedModel

LEFT_ALONE = ("2**3**4", "f(**kwargs, **more)", "src/**/*.py and tests/**", "** a ** b", "**", "****")


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("**Calculation:** 12 * 7 = 84.0", "Calculation: 12 * 7 = 84.0"),
        ("**Median** of 6 numbers: 15.5", "Median of 6 numbers: 15.5"),
        ("The **bag drop** closes at **08:15**.", "The bag drop closes at 08:15."),
        *((text, text) for text in LEFT_ALONE),
    ],
)
async def test_bold_words_of_a_tool_are_plain_words_in_the_answer(said: str, plain: str) -> None:
    result = StepResult(id="1", text="Work it out", status="done", result=said)
    model = ScriptedModel(replies=[ConnectionError("gone")])
    answer = (await synthesize("Work it out", [result], model)).text
    assert answer.startswith(f"Work it out: {plain}\n\n(The results are listed as they are: the model did not answer")
    assert result.result == said


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
