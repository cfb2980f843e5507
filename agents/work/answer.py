"""Writes the answer from the results of the steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from callsheet.agents.keyless import compose, not_done
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import ANSWER
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.work.context import reported

_BOLD = re.compile(r"(?<![\w*/\\])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w*/])")
NAME = "supervisor"
"""Author of the answer."""


async def synthesize(
    request: str,
    results: Sequence[StepResult],
    model: BaseChatModel | None = None,
    *,
    prompt: str = ANSWER,
    conversation: Sequence[BaseMessage] = (),
) -> AIMessage:
    """The answer to a request, from the results of its steps only.

    Args:
        request: The request.
        results: The results of the steps, in plan order.
        model: Writes the answer; rules if None.
        prompt: The model's system prompt.
        conversation: Earlier messages, for the model.

    Returns:
        The answer, as the message that was streamed, with a line for each step that was not done: a model may claim
        what did not happen. If the model fails, the rules answer and say so.
    """
    plain = [result.model_copy(update={"result": unmarked(result.result)}) for result in results]
    if model is None:
        return AIMessage(compose(request, plain), name=NAME)
    told = f"Request: {request}\n\nResults of its steps:\n\n" + "\n\n".join(map(_said, results))
    try:
        message = await answered(model.ainvoke([SystemMessage(prompt), *conversation, HumanMessage(told)]))
    except ModelError as error:
        return AIMessage(f"{compose(request, plain)}\n\n(Put together without a model: {error})", name=NAME)
    text, lines = message.text.strip(), not_done(plain)
    text = "\n".join([text, "", *lines]) if text and lines else text or compose(request, plain)
    return message.model_copy(update={"content": text, "tool_calls": [], "name": NAME})


def unmarked(text: str) -> str:
    """A text without Markdown's marks for bold words; other asterisks, as in a product or a path, stay."""
    return _BOLD.sub(r"\1", text)


def _said(result: StepResult) -> str:
    """One step's result in the form for a model."""
    if result.status != "done":
        return reported(result)
    return f"<step id={result.id!r}>\n{result.text}\n<result>\n{result.result}\n</result>\n</step>"
