"""A rule-based chat model, so that one worker loop serves with a language model and without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ValidationError

from callsheet.agents.brief import Brief
from callsheet.agents.keyless.arguments import fill
from callsheet.agents.keyless.choice import Candidate, candidates, schema_of
from callsheet.agents.keyless.readings import find_field, read
from callsheet.agents.keyless.slots import Slot, slots_of

_NO_BRIEF = (
    "Keyless mode works by rules on a brief: it needs a HumanMessage with additional_kwargs['brief']. "
    "Configure a model to talk freely."
)


class KeylessModel(BaseChatModel):
    """Chooses a tool and its arguments by rules, from a brief; no network, no randomness.

    The newest ``HumanMessage`` with ``additional_kwargs["brief"]`` is the task. The final message carries
    ``additional_kwargs["outcome"]`` when the step was not done: ``{"status": "needs_input", "tool", "parameters"}``
    or ``{"status": "failed", "reason"}``.
    """

    @property
    def _llm_type(self) -> str:
        return "callsheet-keyless"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Keep the tools that a step may call.

        Args:
            tools: In any form that LangChain knows.
            tool_choice: Ignored; rules choose.
            **kwargs: Passed on.
        """
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = answer(messages, _functions(kwargs.get("tools") or ()))
        return ChatResult(generations=[ChatGeneration(message=message)])


def answer(messages: Sequence[BaseMessage], tools: Mapping[str, Mapping[str, Any]]) -> AIMessage:
    """The next message: a tool call, or the outcome of the step.

    Args:
        messages: The conversation.
        tools: Model-facing name -> the tool's function in OpenAI's format.
    """
    position, brief = _brief(messages)
    if brief is None:
        return _failed(_NO_BRIEF)
    ranked = candidates(brief, tools)
    chosen = next((c for c in ranked if c.fits), None)
    if chosen is None:
        return _failed(
            f'None of the offered tools fits "{brief.text}".' if ranked else f'No tool was offered for "{brief.text}".'
        )
    return _proceed(chosen, brief, tools, messages[position + 1 :])


def _proceed(
    chosen: Candidate, brief: Brief, tools: Mapping[str, Mapping[str, Any]], since: Sequence[BaseMessage]
) -> AIMessage:
    """The chosen tool's sources first, then the tool itself, then its output."""
    answers = _answers(since)
    if main := answers.get(chosen.offer.name):
        return _outcome(chosen, main)
    by_person = brief.given.get(chosen.offer.tool, {})
    args = {**chosen.filled.args, **by_person}
    missing = [parameter for parameter in chosen.filled.missing if parameter not in by_person]
    for parameter in list(missing):
        for source in chosen.offer.sources.get(parameter, ()):
            given = answers.get(source)
            if given is None and (call := _fillable(source, brief, tools)) is not None:
                return _call(source, call, len(answers))
            value = _value(given, parameter, chosen) if given and given.status != "error" else None
            if value is not None:
                args[parameter] = value
                missing.remove(parameter)
                break
    if missing:
        return _needs(chosen, missing)
    for first in chosen.offer.sources.get("", ()):
        if first not in answers and (call := _fillable(first, brief, tools)) is not None:
            return _call(first, call, len(answers))
    return _call(chosen.offer.name, args, len(answers))


def _fillable(name: str, brief: Brief, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """The arguments of a source tool, when it is offered and needs nothing more."""
    if name not in tools:
        return None
    filled = fill(schema_of(tools[name]), brief.text, brief.inputs)
    return None if filled.missing else filled.args


def _value(given: ToolMessage, parameter: str, chosen: Candidate) -> Any:
    """What a source's answer gives for a parameter, of the parameter's type."""
    said = read(_text(given))
    slot = next(slot for slot in slots_of(chosen.schema) if slot.name == parameter)
    tried = (find_field(said.fields, parameter) if said.fields else None, said.number if slot.numeric else said.text)
    return next((value for value in tried if value not in (None, "") and _suits(slot, value)), None)


def _suits(slot: Slot, value: Any) -> bool:
    if slot.numeric:
        return isinstance(value, int | float)
    if slot.vocabulary and value not in slot.vocabulary:
        return False
    return isinstance(value, str) if slot.textual else True


def _call(name: str, args: dict[str, Any], before: int) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=f"call_{before + 1}", type="tool_call")])


def _outcome(chosen: Candidate, main: ToolMessage) -> AIMessage:
    said = _text(main)
    if main.status == "error":
        return _failed(f"{chosen.offer.tool} failed: {said or 'it gave no reason'}")
    return AIMessage(said or f"{chosen.offer.tool} was called and answered nothing.")


def _needs(chosen: Candidate, missing: Sequence[str]) -> AIMessage:
    about = {slot.name: slot.description for slot in slots_of(chosen.schema)}
    named = ", ".join(f"{name} ({about[name]})" if about.get(name) else name for name in missing)
    return AIMessage(
        f"{chosen.offer.tool} needs {named}: the request gives no value for {'it' if len(missing) == 1 else 'them'}",
        additional_kwargs={
            "outcome": {"status": "needs_input", "tool": chosen.offer.tool, "parameters": list(missing)}
        },
    )


def _failed(reason: str) -> AIMessage:
    return AIMessage(reason, additional_kwargs={"outcome": {"status": "failed", "reason": reason}})


def _brief(messages: Sequence[BaseMessage]) -> tuple[int, Brief | None]:
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, HumanMessage) and "brief" in message.additional_kwargs:
            try:
                return position, Brief.model_validate(message.additional_kwargs["brief"])
            except ValidationError:
                return position, None
    return -1, None


def _answers(since: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    """The newest answer of each tool called since the brief."""
    names = {c["id"]: c["name"] for m in since if isinstance(m, AIMessage) for c in m.tool_calls}
    return {m.name or names.get(m.tool_call_id, ""): m for m in since if isinstance(m, ToolMessage)}


def _text(message: ToolMessage) -> str:
    return str(message.text).strip()


def _functions(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    found = (tool.get("function", tool) for tool in tools)
    return {str(function.get("name")): function for function in found if isinstance(function, Mapping)}
