"""From the results of the steps to one answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from callsheet.agents.keyless import compose
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import ANSWER
from callsheet.agents.planning.plan import StepResult

_BOLD = re.compile(r"(?<![\w*/\\])\*\*(?=[^\s*])([^*\n]*[^\s*])\*\*(?![\w*/])")
NAME = "supervisor"
"""Who says the answer."""


async def synthesize(
    request: str,
    results: Sequence[StepResult],
    model: BaseChatModel | None = None,
    *,
    prompt: str = ANSWER,
    conversation: Sequence[BaseMessage] = (),
) -> AIMessage:
    """The answer to a request, from what its steps gave and nothing else.

    Args:
        request: What the user wanted.
        results: What became of each step, in the plan's order.
        model: What writes the answer; without one it is put together by rules.
        prompt: The model's system prompt.
        conversation: What was said before, for the model.

    Returns:
        The answer, as the message that was streamed. A model that fails to answer is replaced by the rules, which
        say so.
    """
    plain = [result.model_copy(update={"result": unmarked(result.result)}) for result in results]
    if model is None:
        return AIMessage(compose(request, plain), name=NAME)
    told = f"Request: {request}\n\nResults of its steps:\n\n" + "\n\n".join(map(report, results))
    try:
        message = await answered(model.ainvoke([SystemMessage(prompt), *conversation, HumanMessage(told)]))
    except ModelError as error:
        return AIMessage(f"{compose(request, plain)}\n\n(Put together without a model: {error})", name=NAME)
    text = message.text.strip() or compose(request, plain)
    return message.model_copy(update={"content": text, "tool_calls": [], "name": NAME})


def unmarked(text: str) -> str:
    """A text without the marks of bold words in Markdown; other asterisks, as of a product or a path, stay."""
    return _BOLD.sub(r"\1", text)


def report(result: StepResult) -> str:
    """One step's result as a model reads it."""
    said = result.result if result.status == "done" else f"({result.status}) {result.error}"
    return f"<step id={result.id!r}>\n{result.text}\n<result>\n{said}\n</result>\n</step>"
