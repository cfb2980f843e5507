"""A model that decides from what it is shown, by the role in which it is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field

from scripted_model import ended

Decide = Callable[[str], Any]


class DecidingModel(BaseChatModel):
    """Plans, revises, works and answers by functions of the text that it is shown; keeps what it was shown.

    Attributes:
        plan: From the planner's message to the fields of a ``PlanDraft``.
        revise: From the reviser's message to the fields of a ``PlanRevision``.
        work: From a worker's message, with its own steps first, to a tool call (name with or without its agent's,
            args); from its result on, the result is the answer.
        answer: From the results to the answer.
        shown: The role and the last text of each call, in order; ``systems`` has its system prompt.
        tokens: Input and output tokens that each call reports.
    """

    plan: Decide = lambda text: {"steps": [{"id": "1", "text": text.partition("\n")[0]}]}
    revise: Decide = lambda _: {"done": True}
    work: Decide = lambda _: None
    answer: Decide = lambda text: f"Answer: {text}"
    shown: list[tuple[str, str]] = Field(default_factory=list)
    systems: list[str] = Field(default_factory=list)
    tokens: tuple[int, int] = (100, 10)

    @property
    def _llm_type(self) -> str:
        return "deciding"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        kwargs.pop("ls_structured_output_format", None)
        return self.bind(tools=[convert_to_openai_tool(t) for t in tools], **kwargs)

    def roles(self) -> list[str]:
        """The roles in which it was asked, in order."""
        return [role for role, _ in self.shown]

    def told(self, role: str) -> list[str]:
        """What it was shown in a role, in order."""
        return [text for asked, text in self.shown if asked == role]

    def prompts(self, role: str) -> list[str]:
        """The system prompts that it was shown in a role, in order."""
        return [system for (asked, _), system in zip(self.shown, self.systems, strict=True) if asked == role]

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        names = [t["function"]["name"] for t in kwargs.get("tools", [])]
        role = _role(messages, names)
        text = messages[-1].text
        self.shown.append((role, text))
        self.systems.append(messages[0].text)
        message = self._worked(messages, names) if role == "worker" else self._reply(role, text, messages)
        given, written = self.tokens
        usage = {"input_tokens": given, "output_tokens": written, "total_tokens": given + written}
        told = {"usage_metadata": usage, "response_metadata": {"model_name": "deciding"}}
        return ChatResult(generations=[ChatGeneration(message=message.model_copy(update=told))])

    def _reply(self, role: str, text: str, messages: Sequence[BaseMessage]) -> AIMessage:
        if role == "planner":
            return called("PlanDraft", with_workers(self.plan(text)))
        if role == "reviser":
            return called("PlanRevision", with_workers(self.revise(text)))
        return AIMessage(self.answer(text))

    def _worked(self, messages: Sequence[BaseMessage], tools: Sequence[str]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return ended(messages[-1])
        decided = self.work(own_steps(messages[-1].text))
        if isinstance(decided, str):
            return AIMessage(decided)
        name, args = decided
        return called(next((tool for tool in tools if tool.endswith(f"_{name}")), name), args)


def _role(messages: Sequence[BaseMessage], tools: Sequence[str]) -> str:
    if tools in (["PlanDraft"], ["PlanRevision"]):
        return "planner" if tools == ["PlanDraft"] else "reviser"
    system = messages[0].text if isinstance(messages[0], SystemMessage) else ""
    return "answer" if system.startswith("You answer") else "worker"


def with_workers(fields: Any) -> Any:
    """The fields of a plan or revision, in which each step has a worker of its own if it does not say otherwise."""
    if not isinstance(fields, dict) or not isinstance(fields.get("steps"), list):
        return fields
    return {**fields, "steps": [{"apart": True, **step} for step in fields["steps"]]}


_OWN = " <- yours"


def own_steps(told: str) -> str:
    """What a worker is told, with the texts of its own steps first, if it has a part of a plan."""
    own = [line.removesuffix(_OWN) for line in told.splitlines() if line.endswith(_OWN)]
    texts = [re.sub(r"^\S+\. | \((after|once for) [^()]*\)", "", line) for line in own]
    return "\n".join([*texts, told])


def called(name: str, args: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": f"call_{name}", "type": "tool_call"}])
