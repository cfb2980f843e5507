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

from callsheet.agents.keyless.entities.result_values import find_field, read
from callsheet.agents.keyless.language.spans import MOST
from callsheet.agents.keyless.slots.slot import Slot, slots_of
from callsheet.agents.keyless.slots.slot_filling import fill
from callsheet.agents.keyless.tool_choice import Candidate, candidates, schema_of
from callsheet.agents.work.brief import Brief

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
    if len(brief.text) > MOST:
        return _failed(f"without a model at most {MOST:,} characters of a step are read: it has {len(brief.text):,}")
    ranked = candidates(brief, tools)
    if not ranked:
        fits = "None of the offered tools fits" if brief.offers else "No tool was offered for"
        return _failed(f'{fits} "{brief.text}".')
    return _proceed(ranked[0], brief, tools, messages[position + 1 :])


def _proceed(
    chosen: Candidate, brief: Brief, tools: Mapping[str, Mapping[str, Any]], since: Sequence[BaseMessage]
) -> AIMessage:
    """The chosen tool's sources first, then all its calls at once, then what they answered."""
    if chosen.unused or chosen.objection:
        return _incomplete(chosen)
    answers = _answers(since)
    if own := answers.get(chosen.offer.name):
        return _outcome(chosen, own)
    sources = {name: found[-1] for name, found in answers.items()}
    calls = [{**call.args, **brief.given.get(chosen.offer.tool, {})} for call in chosen.calls]
    for parameter in chosen.missing:
        value, wanted = _from_source(parameter, chosen, brief, tools, sources)
        if wanted:
            return wanted
        calls = [args if value is None or parameter in args else {**args, parameter: value} for args in calls]
    if missing := [name for name in chosen.missing if any(name not in args for args in calls)]:
        return _needs(chosen, missing)
    for first in chosen.offer.sources.get("", ()):
        if first not in sources and (call := _fillable(first, brief, tools)) is not None:
            return _call(len(sources), (first, call))
    return _call(len(sources), *((chosen.offer.name, args) for args in calls))


def _from_source(
    parameter: str,
    chosen: Candidate,
    brief: Brief,
    tools: Mapping[str, Mapping[str, Any]],
    answered: Mapping[str, ToolMessage],
) -> tuple[Any, AIMessage | None]:
    """The value that another tool gave for a parameter, or the call of that tool."""
    for source in chosen.offer.sources.get(parameter, ()):
        given = answered.get(source)
        if given is None and (call := _fillable(source, brief, tools)) is not None:
            return None, _call(len(answered), (source, call))
        value = _value(given, parameter, chosen) if given and given.status != "error" else None
        if value is not None:
            return value, None
    return None, None


def _fillable(name: str, brief: Brief, tools: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """The arguments of a source tool, when it is offered, may be called by rules and needs nothing more."""
    offer = next((offer for offer in brief.offers if offer.name == name), None)
    if name not in tools or offer is None or offer.harm == "destroy":
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


def _call(before: int, *calls: tuple[str, dict[str, Any]]) -> AIMessage:
    numbered = enumerate(calls, start=before + 1)
    return AIMessage(
        "",
        tool_calls=[ToolCall(name=name, args=args, id=f"call_{at}", type="tool_call") for at, (name, args) in numbered],
    )


def _outcome(chosen: Candidate, answers: Sequence[ToolMessage]) -> AIMessage:
    """What the tool answered; where it was called several times, a line for each, and none where one failed."""
    if failed := [answer for answer in answers if answer.status == "error"]:
        return _failed(f"{chosen.offer.tool} failed: {_text(failed[0]) or 'it gave no reason'}")
    texts = [_text(answer) for answer in answers]
    if len(texts) == 1:
        return AIMessage(texts[0] or f"{chosen.offer.tool} was called and answered nothing.")
    return AIMessage("\n".join(f"{said}: {read(text).text}" for said, text in zip(chosen.texts, texts, strict=True)))


def _needs(chosen: Candidate, missing: Sequence[str]) -> AIMessage:
    about = {slot.name: slot.description for slot in slots_of(chosen.schema)}
    named = ", ".join(f"{name} ({about[name]})" if about.get(name) else name for name in missing)
    return _lacking(
        f"{chosen.offer.tool} needs {named}: the request gives no value for {'it' if len(missing) == 1 else 'them'}",
        chosen,
        parameters=list(missing),
    )


def _incomplete(chosen: Candidate) -> AIMessage:
    """Nothing is called where a part of the step would go unheeded."""
    if chosen.objection:
        return _lacking(f"{chosen.offer.tool} was not called: {chosen.objection}", chosen, reason=chosen.objection)
    words = ", ".join(f'"{word}"' for word in chosen.unused)
    return _lacking(
        f"{chosen.offer.tool} was not called: nothing would be done with {words}", chosen, unused=list(chosen.unused)
    )


def _lacking(text: str, chosen: Candidate, **what: Any) -> AIMessage:
    outcome = {"status": "needs_input", "tool": chosen.offer.tool, "parameters": [], **what}
    return AIMessage(text, additional_kwargs={"outcome": outcome})


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


def _answers(since: Sequence[BaseMessage]) -> dict[str, list[ToolMessage]]:
    """What each tool that was called since the brief answered, in the order of its calls."""
    names = {c["id"]: c["name"] for m in since if isinstance(m, AIMessage) for c in m.tool_calls}
    answers: dict[str, list[ToolMessage]] = {}
    for message in since:
        if isinstance(message, ToolMessage):
            answers.setdefault(message.name or names.get(message.tool_call_id, ""), []).append(message)
    return answers


def _text(message: ToolMessage) -> str:
    return str(message.text).strip()


def _functions(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    found = (tool.get("function", tool) for tool in tools)
    return {str(function.get("name")): function for function in found if isinstance(function, Mapping)}
