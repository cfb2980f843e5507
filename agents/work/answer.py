"""Writes the answer from the results of the steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import ANSWER
from callsheet.agents.work.context import reported

_BOLD = re.compile(r"(?<![\w*/\\])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w*/])")
_LONGEST = 2_000
_HEADINGS = {
    "failed": "Failed",
    "outcome_unknown": "Outcome unknown",
    "needs_input": "Needs your input",
    "skipped": "Skipped",
}
LISTED = "(The results are listed as they are: {})"
"""The remark on an answer that could not be written."""
NAME = "supervisor"
"""Author of the answer."""


async def synthesize(
    request: str,
    results: Sequence[StepResult],
    model: BaseChatModel,
    *,
    prompt: str = ANSWER,
    conversation: Sequence[BaseMessage] = (),
) -> AIMessage:
    """The answer to a request, from the results of its steps only.

    Args:
        request: The request.
        results: The results of the steps, in plan order.
        model: Writes the answer.
        prompt: The model's system prompt.
        conversation: Earlier messages, for the model.

    Returns:
        The answer, as the message that was streamed, with a line for each step that was not done: a model may claim
        what did not happen. If the model fails, the results are listed, and the error is named.
    """
    plain = [result.model_copy(update={"result": unmarked(result.result)}) for result in results]
    told = f"Request: {request}\n\nResults of its steps:\n\n" + "\n\n".join(map(_said, results))
    try:
        message = await answered(model.ainvoke([SystemMessage(prompt), *conversation, HumanMessage(told)]))
    except ModelError as error:
        return AIMessage(f"{listed(request, plain)}\n\n{LISTED.format(error)}", name=NAME)
    text, lines = message.text.strip(), not_done(plain)
    text = "\n".join([text, "", *lines]) if text and lines else text or listed(request, plain)
    return message.model_copy(update={"content": text, "tool_calls": [], "name": NAME})


def listed(request: str, results: Sequence[StepResult]) -> str:
    """The results of a plan, a line or a paragraph for each step: first what was done, then what was not and why."""
    done = [result for result in results if result.status == "done"]
    parts = [_line(result, result.result.strip() or "done") for result in done]
    parts += not_done(results)
    effects = any(
        result.status == "outcome_unknown" or any(not call.error for call in result.calls) for result in results
    )
    if not done and not effects:
        said = f' of "{_shortened(request.strip(), 200)}"' if request.strip() else ""
        parts.insert(0, f"Nothing was done{said}.")
    return "\n".join(parts)


def not_done(results: Sequence[StepResult]) -> list[str]:
    """A line for each step that failed, needs input or was skipped, with the reason."""
    return [
        f"{heading}: {_line(result, result.error.strip() or result.result.strip() or 'no reason was given')}"
        for status, heading in _HEADINGS.items()
        for result in results
        if result.status == status
    ]


def _line(result: StepResult, said: str) -> str:
    return _shortened(f"{result.text.strip().rstrip('.;,')}: {said}".replace("?:", "?"))


def _shortened(text: str, longest: int = _LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()} ... ({len(text)} characters in all)"


def unmarked(text: str) -> str:
    """A text without Markdown's marks for bold words; other asterisks, as in a product or a path, stay."""
    return _BOLD.sub(r"\1", text)


def _said(result: StepResult) -> str:
    """One step's result in the form for a model."""
    if result.status != "done":
        return reported(result)
    return f"<step id={result.id!r}>\n{result.text}\n<result>\n{result.result}\n</result>\n</step>"
