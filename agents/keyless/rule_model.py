"""A rule-based chat model, so that one worker loop serves with and without a language model."""

from __future__ import annotations

import re
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

from callsheet.agents.keyless.entities.quantities import unclear_units
from callsheet.agents.keyless.entities.result_values import line
from callsheet.agents.keyless.filling import Filled
from callsheet.agents.keyless.language.lexicon import MOST, is_noun
from callsheet.agents.keyless.slots.slot import slots_of
from callsheet.agents.keyless.tool_choice import Candidate, candidates
from callsheet.agents.planning.plan import Call, StepResult
from callsheet.agents.work.brief import Brief

_MOST_UNITS = 12
"""Maximum number of units that a message names."""
_QUOTE = " (a name or a text needs quotation marks)"
_NO_BRIEF = (
    "Without a model, rules need a HumanMessage with a brief in additional_kwargs['brief']. "
    "Configure a model for free conversation."
)


class KeylessModel(BaseChatModel):
    """Chooses a tool and its arguments by rules, from a brief; no network, no randomness.

    The newest ``HumanMessage`` with ``additional_kwargs["brief"]`` is the task. If the step is not done, the final
    message has ``additional_kwargs["outcome"]``: ``{"status": "needs_input", "tool", "parameters"}`` or
    ``{"status": "failed", "reason"}``.
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
        """Binds the tools of a step; ``tool_choice`` is ignored, because the rules choose."""
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
    """The next message: a tool call, or the outcome of the step; ``tools`` has functions in OpenAI's format by name."""
    position, brief = _brief(messages)
    if brief is None:
        return _failed(_NO_BRIEF)
    if len(brief.text) > MOST:
        return _failed(f"without a model at most {MOST:,} characters of a step are read: it has {len(brief.text):,}")
    ranked = candidates(brief, tools)
    if not ranked or ranked[0].other:
        fits = "None of the offered tools fits" if brief.offers else "No tool was offered for"
        return _failed(f'{fits} "{brief.text}".')
    chosen = ranked[0]
    if chosen.unused or chosen.invalid or chosen.objection:
        return _incomplete(chosen)
    answers = [message for message in messages[position + 1 :] if isinstance(message, ToolMessage)]
    if len(answers) == len(chosen.calls) or any(message.status == "error" for message in answers):
        return _outcome(chosen, answers)
    calls = [{**call.args, **brief.given.get(chosen.offer.tool, {})} for call in chosen.calls]
    if missing := [name for name in chosen.missing if any(name not in args for args in calls)]:
        return _needs(chosen, missing)
    return AIMessage(
        "",
        tool_calls=[
            ToolCall(name=chosen.offer.name, args=args, id=f"call_{at}", type="tool_call")
            for at, args in enumerate(calls, start=1)
            if chosen.offer.harm == "none" or at == len(answers) + 1  # effects one after the other
        ],
    )


def _outcome(chosen: Candidate, answers: Sequence[ToolMessage]) -> AIMessage:
    """The tool's answer; for several calls one line each, and a failure, with what was done, if one of them failed."""
    tool = chosen.offer.tool
    if unknown := [one for one in answers if _not_found(one)]:
        return _failed(_text(unknown[0]))
    if len(answers) == 1 and answers[0].status != "error":
        return AIMessage(_text(answers[0]) or f"{tool} returned an empty answer.")
    made = zip(chosen.texts, chosen.calls, answers, strict=False)
    lines = [line(_result(tool, *one)) for one in made if one[2].status != "error"]
    if failed := [answer for answer in answers if answer.status == "error"]:
        done = f"; done before that: {'; '.join(lines)}" if lines else ""
        return _failed(f"{tool} failed: {_text(failed[0]) or 'no reason was given'}{done}")
    return AIMessage("\n".join(lines))


def _not_found(answer: ToolMessage) -> bool:
    """Whether documents were asked that do not say it."""
    data = answer.artifact.get("structured") if isinstance(answer.artifact, dict) else None
    return isinstance(data, dict) and data.get("answered") is False


def _result(tool: str, said: str, call: Filled, answer: ToolMessage) -> StepResult:
    """One of several calls as a result of its own."""
    text = _text(answer)
    return StepResult(id="", text=said, result=text, calls=(Call(agent="", tool=tool, args=call.args, output=text),))


def _needs(chosen: Candidate, missing: Sequence[str]) -> AIMessage:
    lacks = f"the request gives no value for {'it' if len(missing) == 1 else 'them'}"
    needs = f"{chosen.offer.tool} needs {_described(chosen, missing)}"
    return _lacking(f"{needs}: {lacks}", chosen, parameters=list(missing))


def _described(chosen: Candidate, names: Sequence[str]) -> str:
    """Parameters with their descriptions, or the values that they take."""
    about = {slot.name: slot.description or ", ".join(map(str, slot.vocabulary)) for slot in slots_of(chosen.schema)}
    return ", ".join(f"{name} ({about[name]})" if about.get(name) else name for name in names)


def _incomplete(chosen: Candidate) -> AIMessage:
    """Nothing is called if a part of the step would be ignored."""
    words = ", ".join(f'"{word}"' for word in chosen.unused)
    named = len(chosen.unused) == 1 and _is_name(chosen.unused[0])
    takes_text = any(slot.textual and not slot.vocabulary for slot in slots_of(chosen.schema))
    hint = _QUOTE if named and takes_text else ""
    unused = f"nothing would be done with {words}{hint}" if words else ""
    lists = [slot.name for slot in slots_of(chosen.schema) if slot.name in chosen.missing and slot.vocabulary]
    needs = f"it needs {_described(chosen, lists)}" if lists and unused else ""
    why = "; ".join(filter(None, (chosen.objection, *chosen.invalid, unused, needs)))
    return _lacking(f"{chosen.offer.tool} was not called: {why}", chosen, reason=why, unused=list(chosen.unused))


def _is_name(word: str) -> bool:
    """Whether a word may be a name: a noun, or letters with digits or hyphens, as "web-1"."""
    return is_noun(word) if word.isalpha() else bool(re.fullmatch(r"[A-Za-z][\w-]*[\d-][\w-]*", word))


def _lacking(text: str, chosen: Candidate, **what: Any) -> AIMessage:
    for said, units in unclear_units(chosen.texts[0], slots_of(chosen.schema)):
        text += f'; "{said}" may mean several units: name one that the tool knows ({", ".join(units[:_MOST_UNITS])})'
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


def _text(message: ToolMessage) -> str:
    return str(message.text).strip()


def _functions(tools: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    found = (tool.get("function", tool) for tool in tools)
    return {str(function.get("name")): function for function in found if isinstance(function, Mapping)}
