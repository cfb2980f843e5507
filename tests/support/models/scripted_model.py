"""A model that says what it is told to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

Reply = AIMessage | Callable[[Sequence[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Gives the replies in order, or what a function makes of the messages; remembers what it was shown."""

    replies: list[Any] = Field(default_factory=list)
    shown: list[dict[str, Any]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        kwargs.pop("ls_structured_output_format", None)
        return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        names = [t["function"]["name"] for t in kwargs.get("tools", [])]
        self.shown.append({"messages": messages, "tools": names})
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        message: Any = reply(messages) if callable(reply) else reply
        if isinstance(message, Exception):
            raise message
        return ChatResult(generations=[ChatGeneration(message=message.model_copy())])


def calls(name: str, /, **args: Any) -> AIMessage:
    """A reply that calls one tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{name}"}])


def planned(*steps: tuple[str, str, list[str]]) -> AIMessage:
    """A reply that gives a plan; of several steps, each has a worker of its own."""
    apart = len(steps) > 1
    drafts = [{"id": i, "text": text, "depends_on": after, "apart": apart} for i, text, after in steps]
    return calls("PlanDraft", steps=drafts)


_LABEL = re.compile(r"\n\[c[\d.]+\]$")


def unlabelled(last: Any) -> str:
    """What a tool answered, without the label by which a worker refers to it."""
    return _LABEL.sub("", last.text)


def ended(last: Any) -> AIMessage:
    """A reply that ends a step with what its tool answered, and says so if the call failed."""
    said = unlabelled(last)
    return AIMessage(said) if last.status != "error" else calls("finish", status="cannot", answer=said)
