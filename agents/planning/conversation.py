"""A request that leans on the conversation before it, made self-contained."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ConfigDict

from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.prompts import CONDENSER
from callsheet.agents.models.token_usage import Usage, usage_of

_QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}
_LONGER = 4_000
"""Characters by which a self-contained request may be longer than the user's words."""


class Contextual(BaseModel):
    """A request as it is to be understood.

    Attributes:
        request: What the user wants, understandable by itself.
        note: Why the user's own words were taken although there is a conversation; empty otherwise.
        usage: What it cost.
    """

    model_config = ConfigDict(frozen=True)

    request: str
    note: str = ""
    usage: Usage = Usage()


def recent(messages: Sequence[AnyMessage], max_tokens: int) -> list[BaseMessage]:
    """The latest turns of a conversation that fit a token budget, whole messages only; tool messages are left out.

    Args:
        messages: The conversation.
        max_tokens: Maximum number of tokens, as LangChain approximates them.
    """
    spoken = [m for m in messages if isinstance(m, HumanMessage | AIMessage) and m.text.strip()]
    count = count_tokens_approximately
    return list(trim_messages(spoken, max_tokens=max_tokens, token_counter=count, strategy="last", start_on="human"))


async def self_contained(
    messages: Sequence[AnyMessage], model: BaseChatModel, *, prompt: str = CONDENSER, max_tokens: int = 2_000
) -> Contextual:
    """The last message of a conversation as a request that is understandable without the others.

    Args:
        messages: The conversation; the last message is the request.
        model: What rewrites it. It is not asked for a first request.
        prompt: Its system prompt.
        max_tokens: Maximum number of tokens of earlier turns that it is shown.
    """
    said = messages[-1].text if messages else ""
    before = recent(messages[:-1], max_tokens)
    if not before:
        return Contextual(request=said)
    turns = "\n".join(f"{'User' if isinstance(m, HumanMessage) else 'Assistant'}: {m.text}" for m in before)
    told = f"Conversation:\n{turns}\n\nLast message:\n{said}"
    try:
        answer = await answered(model.ainvoke([SystemMessage(prompt), HumanMessage(told)], _QUIET))
    except ModelError as error:
        return Contextual(request=said, note=f"the conversation was not taken into account: {error}")
    text, usage = answer.text.strip(), usage_of([answer])
    if not text or answer.tool_calls or len(text) > len(said) + _LONGER:
        why = "the model gave no request that could be used"
        return Contextual(request=said, note=f"the conversation was not taken into account: {why}", usage=usage)
    return Contextual(request=text, usage=usage)
