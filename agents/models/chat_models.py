"""Chat models by name, and what they answer: calls with ids and without secrets."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import SecretStr

from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.text.sanitizing import MASK

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelResponse


T = TypeVar("T")
_REJECTED = (400, 404, 413, 415, 422, 501)
"""HTTP status codes with which providers reject the form of a request."""
_SECONDS: ContextVar[float] = ContextVar("callsheet_model_seconds", default=600.0)


class ModelError(CallsheetError):
    """A chat model gave no usable answer, and why; ``usage`` is the cost of the answers that could not be used."""

    usage: Usage = Usage()


@lru_cache(maxsize=32)
def chat_model(name: str, *, max_tokens: int | None = None) -> BaseChatModel:
    """The chat model with this name, such as ``openai:gpt-5-mini``, from LangChain's ``init_chat_model``.

    Its calls have at most ``max_tokens`` output tokens, by default as many as the provider allows.

    Raises:
        SettingsError: The provider is unknown, or rejects its settings (such as a missing key).
        ImportError: The provider's package is not installed; the message names it.
    """
    from langchain.chat_models import init_chat_model

    options: Any = {} if max_tokens is None else {"max_tokens": max_tokens}
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError:
        raise
    except Exception as error:
        lacks = name.startswith("ollama:") and find_spec("langchain_ollama") is None  # LangChain names another package
        cure = "pip install langchain-ollama" if lacks else "a model is named provider:model, such as openai:gpt-5-mini"
        said = " ".join(str(error).split())
        raise SettingsError(f"the model {name!r} cannot be used: {said}; {cure}") from error
    # Some providers check their key only at the first call.
    field = f"{name.partition(':')[0]}_api_key"
    key, variable = getattr(model, field, None), model.lc_secrets.get(field)
    if variable and not (key.get_secret_value() if isinstance(key, SecretStr) else key):
        raise SettingsError(f"the model {name!r} cannot be used: it needs a key: set {variable}")
    return model


def check_model(model: object, name: str = "model") -> None:
    """Refuses, by a SettingsError, what is neither a chat model nor its name nor None, as ``model.with_retry()``."""
    if not isinstance(model, str | BaseChatModel | None):
        raise SettingsError(
            f"{name} must be a chat model or its name (provider:model), not {type(model).__name__}: give the model "
            "itself, with retries and timeouts as its own parameters (max_retries, timeout)"
        )


def limit_model_calls(seconds: float) -> None:
    """Sets the timeout of model calls for the current task and for what it starts."""
    _SECONDS.set(seconds)


async def answered(call: Awaitable[T]) -> T:
    """Awaits a model's answer, no longer than ``limit_model_calls`` says; any error is raised as a ModelError."""
    seconds = _SECONDS.get()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except Exception as error:
        if limit.expired():
            raise ModelError(f"the model did not answer within {seconds:g} s") from error
        told = str(error) or ("it cannot call tools (bind_tools)" if isinstance(error, NotImplementedError) else "")
        raise ModelError(f"the model did not answer: {type(error).__name__}: {told}") from error


def is_rejected(error: BaseException | None) -> bool:
    """Whether a provider has rejected a request as it is, so that one in another form may be answered."""
    return getattr(error, "status_code", None) in _REJECTED


QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}
"""For calls whose tokens must not be streamed: a chat would show them as if they were said to the user."""
_TEXTS = ("content", "additional_kwargs", "response_metadata")


def unstreamed(model: BaseChatModel, tools: Mapping[str, BoundTool]) -> BaseChatModel:
    """The model, without token streaming if a tool takes secrets, which would show in the stream."""
    if not any(has_secrets(tool.form.plain) for tool in tools.values()):
        return model
    return model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})


def normalize(
    response: ModelResponse[Any],
    tools: Mapping[str, BoundTool],
    secrets: RunSecrets | None = None,
    *,
    broken: Collection[str] | None = None,
    before: Sequence[BaseMessage] = (),
) -> ModelResponse[Any]:
    """The response for the state: calls have ids, own names of arguments, and with ``secrets`` masked arguments.

    A call whose arguments are no JSON becomes a call like any other, for ``broken_call`` to answer: those of the tools
    named in ``broken``, or all. So does the last call of a reply that was cut. Some providers number the calls of each
    reply anew: an id that is in the conversation ``before`` is replaced, as no result could be told from another.
    """
    told = [_for_state(message, tools, secrets, broken) for message in response.result]
    taken = {call["id"] for message in before if isinstance(message, AIMessage) for call in message.tool_calls}
    return replace(response, result=[_with_own_ids(message, taken) for message in told])


def _with_own_ids(message: BaseMessage, taken: set[str | None]) -> BaseMessage:
    """The message with a new id for each call whose id is taken; adds the ids of its calls to these."""
    if not isinstance(message, AIMessage):
        return message
    calls: list[ToolCall] = []
    for call in message.tool_calls:
        own = call.copy()
        if own["id"] in taken:
            own["id"] = _new_id()
        taken.add(own["id"])
        calls.append(own)
    return message if calls == message.tool_calls else message.model_copy(update={"tool_calls": calls})


def _new_id() -> str:
    return f"call_{uuid.uuid4().hex}"


BROKEN = "callsheet_broken_calls"
"""Key in a message's ``additional_kwargs``: id of a call -> why its arguments cannot be read."""
_QUOTED = 200
_CUT = "your reply was cut at its token limit in this call, so it was not made: be shorter, or make it alone"
_LIMITS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
"""Finish reasons of providers for a reply that was cut, and the fields that have them."""
_REASONS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "reason")


def _for_state(
    message: BaseMessage, tools: Mapping[str, BoundTool], secrets: RunSecrets | None, broken: Collection[str] | None
) -> BaseMessage:
    if not isinstance(message, AIMessage):
        return message
    forms, calls = {name: tool.form for name, tool in tools.items()}, list[Any]()
    for call in message.tool_calls:
        form = forms.get(call["name"])  # None for the worker's own, as ``finish``, which have no schema of secrets
        args = form.own(call["args"]) if form else call["args"]
        if secrets is not None:
            args = secrets.masked(form.plain, args) if form else secrets.hidden(args)
        calls.append({**call, "id": call["id"] or _new_id(), "args": args})
    problems: dict[str, str] = {}
    left: list[Any] = []
    for invalid in message.invalid_tool_calls:
        name = invalid["name"] or ""
        if broken is not None and name not in broken:
            left.append(invalid)
            continue
        call_id = invalid["id"] or _new_id()
        form = forms.get(name)
        written = MASK if form and has_secrets(form.plain) else str(invalid["args"])[:_QUOTED]
        problems[call_id] = f"the arguments of this call are no JSON object: {written}"
        calls.append({"name": name, "args": {}, "id": call_id, "type": "tool_call"})
    if message.tool_calls and not message.invalid_tool_calls and cut_reason(message):
        # Arguments that were cut are read as far as they go while a reply is streamed: a file would be cut too.
        last = calls[-1]
        if broken is None or last["name"] in broken:
            problems[last["id"]] = _CUT
            calls[-1] = {**last, "args": {}}
    changes: dict[str, Any] = {}
    if secrets is not None:
        changes = {name: secrets.hidden(getattr(message, name)) for name in _TEXTS}
        problems = {call_id: secrets.hidden(problem) for call_id, problem in problems.items()}
    if problems:
        said = {**changes.get("additional_kwargs", message.additional_kwargs), BROKEN: problems}
        # The provider's own form of the calls would be sent beside ours.
        said.pop("tool_calls", None)
        changes |= {"additional_kwargs": said, "invalid_tool_calls": left}
    return message.model_copy(update={**changes, "tool_calls": calls})


def cut_reason(message: BaseMessage) -> str:
    """The finish reason of a reply that a limit of tokens ended, in its provider's words; empty for others."""
    about = message.response_metadata
    about = {**about, **(about.get("incomplete_details") or {})}
    said = (about.get(name) for name in _REASONS)
    return next((reason for reason in said if isinstance(reason, str) and reason.lower() in _LIMITS), "")


def broken_call(call: ToolCall, messages: Sequence[BaseMessage]) -> str | None:
    """Why the arguments of a call cannot be read; None if they can."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            problem: str | None = message.additional_kwargs.get(BROKEN, {}).get(call["id"])
            return problem
    return None
