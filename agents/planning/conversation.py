"""Makes a request that relies on the conversation understandable by itself."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from pydantic import BaseModel, ConfigDict

from callsheet.agents.calls.token_usage import Usage, usage_of
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.model_output import QUIET
from callsheet.agents.models.prompts import CONDENSER

_LONGER = 4_000
"""Characters by which a rewritten request may be longer than the user's message."""


class Contextual(BaseModel):
    """A request in its conversation.

    Attributes:
        request: What the user wants, understandable without the conversation.
        note: Why the user's message was taken unchanged despite a conversation; empty otherwise.
    """

    model_config = ConfigDict(frozen=True)

    request: str
    note: str = ""
    usage: Usage = Usage()


def recent(messages: Sequence[AnyMessage], max_tokens: int) -> list[BaseMessage]:
    """The latest turns of a conversation within a token budget (approximate): whole messages, without tool messages."""
    spoken = [m for m in messages if isinstance(m, HumanMessage | AIMessage) and m.text.strip()]
    count = count_tokens_approximately
    return list(trim_messages(spoken, max_tokens=max_tokens, token_counter=count, strategy="last", start_on="human"))


async def self_contained(
    messages: Sequence[AnyMessage], model: BaseChatModel, *, prompt: str = CONDENSER, max_tokens: int = 2_000
) -> Contextual:
    """Rewrites the last message of a conversation as a request that is understandable without the others.

    Args:
        messages: The conversation; the last message is the request.
        model: Rewrites it. It is not called for a first request.
        prompt: The system prompt.
        max_tokens: Maximum number of tokens of earlier turns in the prompt.
    """
    said = messages[-1].text if messages else ""
    before = recent(messages[:-1], max_tokens)
    if not before:
        return Contextual(request=said)
    turns = "\n".join(f"{'User' if isinstance(m, HumanMessage) else 'Assistant'}: {m.text}" for m in before)
    told = f"Conversation:\n{turns}\n\nLast message:\n{said}"
    try:
        answer = await answered(model.ainvoke([SystemMessage(prompt), HumanMessage(told)], QUIET))
    except ModelError as error:
        return Contextual(request=said, note=f"the conversation was not taken into account: {error}")
    text, usage = answer.text.strip(), usage_of([answer])
    if not text or answer.tool_calls or len(text) > len(said) + _LONGER:
        why = "the model did not return a usable request"
        return Contextual(request=said, note=f"the conversation was not taken into account: {why}", usage=usage)
    return Contextual(request=text, usage=usage)
