"""Help for weak models, as one middleware that is off by default (``Settings.weak_model``).

A strong model's word stands. A model of a few billion parameters writes calls as text, answers from memory instead of
calling a tool, repeats a call for ever, or says nothing: what helps against that stands here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage

from callsheet.agents.calls.token_usage import with_usage_of
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.model_output import with_ids, with_written_calls
from callsheet.agents.work.finish import OUTCOME

_REMINDER = """\
The step is: {step}
If {tools} does it, call that tool now, with everything that it needs. If none does, repeat your answer: {answer}"""
_WORDLESS = """\
The step is: {step}
Your last message was empty. Call a tool that the step still needs, or say what came of the step."""
WEAK_TURNS = 8
"""Maximum number of turns of a weak model in one step: what it has not done by then, it does not do."""
Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class WeakModelHelp(AgentMiddleware[AgentState[Any], Any]):
    """Reads calls from text, asks once more, and ends a step whose model only repeats itself or only failed."""

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any] | AIMessage:
        """Calls the model, and helps it if the step's equipment says that it is weak."""
        if not request.runtime.context.weak:
            return await handler(request)
        message = await _said(request, handler)
        if repeated := _repeated(message, request.messages):
            failed = [answer.text for answer in repeated if answer.status == "error"]
            said = failed or [answer.text for answer in repeated]
            return _answered(message, "\n".join(dict.fromkeys(said)), status="failed" if failed else "done")
        if again := _asked_again(request, message):
            with suppress(ModelError):
                message = with_usage_of(await _said(again, handler), message)
        if why := _only_failed(message, request.messages):
            return _answered(message, why, status="failed")
        return ModelResponse(result=[message])


async def _said(request: ModelRequest[Any], handler: Handler) -> AIMessage:
    """The model's message, with ids, and with the calls that it wrote as text."""
    (message,) = (await answered(handler(request))).result
    names = [tool.name for tool in request.tools if not isinstance(tool, dict)]
    names += [tool["function"]["name"] for tool in request.tools if isinstance(tool, dict) and "function" in tool]
    told = with_written_calls(with_ids(message), names, request.messages)
    return told if isinstance(told, AIMessage) else AIMessage(told.text)


def _answered(message: AIMessage, text: str, *, status: str = "done") -> AIMessage:
    outcome = {"status": status, "reply": True}
    return message.model_copy(
        update={"content": text, "tool_calls": [], "additional_kwargs": {OUTCOME: outcome} if status != "done" else {}}
    )


def _repeated(message: AIMessage, before: Sequence[AnyMessage]) -> list[ToolMessage]:
    """The earlier answers, if the model only repeats calls; otherwise empty."""
    answers = {m.tool_call_id: m for m in before if isinstance(m, ToolMessage)}
    made = [call for m in before if isinstance(m, AIMessage) for call in m.tool_calls]
    known = {_key(call): answer for call in made if (answer := answers.get(call["id"] or ""))}
    if any(_key(call) not in known for call in message.tool_calls):
        return []
    return [known[_key(call)] for call in message.tool_calls]


def _only_failed(message: AIMessage, before: Sequence[AnyMessage]) -> str:
    """The last error, if the model ends a step of which every call failed; otherwise empty."""
    answers = [m for m in before if isinstance(m, ToolMessage)]
    if message.tool_calls or not answers or any(answer.status != "error" for answer in answers):
        return ""
    return answers[-1].text


def _asked_again(request: ModelRequest[Any], message: AIMessage) -> ModelRequest[Any] | None:
    """The second request, if the model answered at once without a call, or ended with an empty message.

    Without an earlier result to answer from, a model that made no call is forced to call a tool (if the provider does
    not support that, the answer stands); otherwise it is reminded.
    """
    if message.tool_calls:
        return None
    brief = request.runtime.context.brief
    step, tools = brief.text, [tool.name for tool in request.tools if not isinstance(tool, dict)]
    if len(request.messages) > 1:
        return None if message.text.strip() else _with(request, _WORDLESS.format(step=step))
    if not tools:
        return None
    if not brief.inputs:
        return request.override(tool_choice="any")
    return _with(request, _REMINDER.format(step=step, tools=" or ".join(tools), answer=message.text))


def _with(request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
    messages: list[BaseMessage] = [*request.messages, HumanMessage(text)]
    changes: Mapping[str, Any] = {"messages": messages}
    return request.override(**changes)


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str)
