"""Makes chat models by their names, and normalises their answers: calls get ids, and secrets are masked."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import SecretStr

from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.registry.binding import BoundTool
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.graphs.errors import CallsheetError, SettingsError
from callsheet.graphs.text.credentials import MASK

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelResponse


T = TypeVar("T")
_REJECTED = (400, 404, 413, 415, 422, 501)
"""HTTP status codes with which providers reject the form of a request."""
_SECONDS: ContextVar[float] = ContextVar("callsheet_model_seconds", default=600.0)


class ModelError(CallsheetError):
    """Raised if a chat model gives no usable answer; ``usage`` is the cost of the answers that could not be used."""

    usage: Usage = Usage()


class UnreachableModelError(ModelError):
    """Raised if nothing answers at the address of a chat model; the message has the address, if it is known."""


@lru_cache(maxsize=32)
def chat_model(name: str, *, max_tokens: int | None = None) -> BaseChatModel:
    """Makes the chat model with this name by LangChain's ``init_chat_model``.

    Its calls have at most ``max_tokens`` output tokens, by default as many as the provider allows.

    Examples:
        >>> chat_model("openai:gpt-5-mini", max_tokens=8_000)

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
        cure = "a model is named provider:model, such as openai:gpt-5-mini"
        if name.startswith("ollama:") and find_spec("langchain_ollama") is None:  # LangChain names another package
            cure = "pip install langchain-ollama"
        reason = " ".join(str(error).split())
        raise SettingsError(f"the model {name!r} cannot be used: {reason}; {cure}") from error
    # Some providers check their key only at the first call.
    field = f"{name.partition(':')[0]}_api_key"
    variable = model.lc_secrets.get(field)
    key = getattr(model, field, None)
    if isinstance(key, SecretStr):
        key = key.get_secret_value()
    if variable and not key:
        raise SettingsError(f"the model {name!r} cannot be used: it needs a key: set {variable}")
    return model


def check_model(model: object, name: str = "model") -> None:
    """Raises a ``SettingsError`` unless a value is a chat model, the name of one, or None."""
    if not isinstance(model, str | BaseChatModel | None):
        raise SettingsError(
            f"{name} must be a chat model or its name (provider:model), not {type(model).__name__}: give the model "
            "itself, with retries and timeouts as its own parameters (max_retries, timeout)"
        )


def limit_model_calls(seconds: float) -> None:
    """Sets the timeout of model calls for the current task and the tasks that it starts."""
    _SECONDS.set(seconds)


async def model_answer(call: Awaitable[T]) -> T:
    """Awaits the answer of a model within the limit of ``limit_model_calls``; any error becomes a ``ModelError``."""
    seconds = _SECONDS.get()
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await call
    except Exception as error:
        if limit.expired():
            raise ModelError(f"the model did not answer within {seconds:g} s") from error
        reason = str(error)
        unreachable = _why_unreachable(error)
        if unreachable:
            raise UnreachableModelError(unreachable) from error
        if not reason and isinstance(error, NotImplementedError):
            reason = "it cannot call tools (bind_tools)"
        raise ModelError(f"the model did not answer: {type(error).__name__}: {reason}") from error


def _why_unreachable(error: BaseException) -> str:
    """Returns that nothing answers at the address of a model, and the address if a client names it; else empty."""
    address = ""
    for cause in _chain(error):
        address = address or _address_of(cause)
        if isinstance(cause, ConnectionRefusedError | socket.gaierror):
            where = f" at {address}" if address else ""
            why = "connection refused" if isinstance(cause, ConnectionRefusedError) else cause.strerror
            return f"the model cannot be reached{where} ({why}): start its server, or correct its address"
    return ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Iterates over an error and what caused it; each is there once.

    An error that is raised a second time can be among its own causes.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _address_of(error: BaseException) -> str:
    """Returns the address of the request of an HTTP client's error; empty if it has none."""
    request: object = None
    with suppress(RuntimeError):  # the clients raise it if they know no request
        request = getattr(error, "request", None)
    if request is None:
        return ""
    parts = urlsplit(str(getattr(request, "url", "")))
    port = f":{parts.port}" if parts.port else ""
    # Without a user's name and without the query, which may hold a key.
    return f"{parts.scheme}://{parts.hostname}{port}{parts.path}" if parts.hostname else ""


def is_rejected(error: BaseException | None) -> bool:
    """Returns whether a provider has rejected the form of a request, so that another form may succeed."""
    return getattr(error, "status_code", None) in _REJECTED


QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}
"""The config of model calls whose tokens must not be streamed, because a chat would show them to the user."""
_TEXTS = ("content", "additional_kwargs", "response_metadata")


def without_streaming(model: BaseChatModel, tools: Mapping[str, BoundTool]) -> BaseChatModel:
    """Returns the model; without token streaming if a tool takes secrets, because the stream would show them."""
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
    """Prepares a response for the state: calls get ids and the tools' own argument names, and secrets are masked.

    A call whose arguments are not valid JSON becomes a normal call, which ``broken_call`` answers; so does the last
    call of a reply that was cut off. Some providers number the calls of each reply anew, so an id that is already in
    the conversation ``before`` is replaced, because two results with one id could not be distinguished.

    Args:
        response: The model's response.
        tools: The tools by the names that the model sees.
        secrets: Masks secret arguments; None leaves them.
        broken: Names of the tools whose broken calls become calls; None for all.
        before: The conversation before the response.
    """
    taken: set[str | None] = set()
    for message in before:
        if isinstance(message, AIMessage):
            taken.update(call["id"] for call in message.tool_calls)
    messages = [_for_state(message, tools, secrets, broken) for message in response.result]
    return replace(response, result=[_with_own_ids(message, taken) for message in messages])


def _with_own_ids(message: BaseMessage, taken: set[str | None]) -> BaseMessage:
    """Returns the message with a new id for each call whose id is taken; adds the ids of its calls to ``taken``."""
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
"""Key in a message's ``additional_kwargs`` that maps the id of a call to why its arguments cannot be parsed."""
_QUOTED = 200
_CUT = "your reply was cut at its token limit in this call, so it was not made: be shorter, or make it alone"
_LIMITS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded"})
"""Finish reasons of providers for a reply that was cut, and the fields that have them."""
_REASONS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "reason")


def _for_state(
    message: BaseMessage, tools: Mapping[str, BoundTool], secrets: RunSecrets | None, broken: Collection[str] | None
) -> BaseMessage:
    """Returns the message as ``normalize`` describes it, apart from ids that are taken."""
    if not isinstance(message, AIMessage):
        return message
    calls = [_own_call(call, tools, secrets) for call in message.tool_calls]
    problems: dict[str, str] = {}  # id of a call -> why its arguments cannot be read
    left: list[InvalidToolCall] = []
    for invalid in message.invalid_tool_calls:
        if broken is not None and (invalid["name"] or "") not in broken:
            left.append(invalid)
            continue
        call_id = invalid["id"] or _new_id()
        calls.append(ToolCall(name=invalid["name"] or "", args={}, id=call_id, type="tool_call"))
        problems[call_id] = _unreadable(invalid, tools)
    if _has_cut_call(message, broken):
        last = calls[-1]
        problems[last["id"] or ""] = _CUT
        calls[-1] = ToolCall(name=last["name"], args={}, id=last["id"], type="tool_call")

    changes: dict[str, Any] = {"tool_calls": calls}
    if secrets is not None:
        changes |= {name: secrets.hidden(getattr(message, name)) for name in _TEXTS}
        problems = {call_id: secrets.hidden(problem) for call_id, problem in problems.items()}
    if problems:
        kwargs = {**changes.get("additional_kwargs", message.additional_kwargs), BROKEN: problems}
        # The provider's own form of the calls would be sent beside ours.
        kwargs.pop("tool_calls", None)
        changes |= {"additional_kwargs": kwargs, "invalid_tool_calls": left}
    return message.model_copy(update=changes)


def _own_call(call: ToolCall, tools: Mapping[str, BoundTool], secrets: RunSecrets | None) -> ToolCall:
    """Returns a call with an id, with the tool's own names of arguments, and with masked secrets."""
    tool = tools.get(call["name"])
    args = call["args"]
    if tool is not None:
        args = tool.form.own(args)
        if secrets is not None:
            args = secrets.masked(tool.form.plain, args)
    elif secrets is not None:
        # A tool of the worker itself, such as ``finish``: no schema says which arguments are secret.
        args = secrets.hidden(args)
    own = call.copy()
    own["id"] = call["id"] or _new_id()
    own["args"] = args
    return own


def _has_cut_call(message: AIMessage, broken: Collection[str] | None) -> bool:
    """Returns whether a token limit ended the reply in its last call.

    Arguments that were cut are read as far as they go while a reply is streamed: a file would be cut too.
    """
    if not message.tool_calls or message.invalid_tool_calls or not cut_reason(message):
        return False
    return broken is None or message.tool_calls[-1]["name"] in broken


def _unreadable(call: InvalidToolCall, tools: Mapping[str, BoundTool]) -> str:
    """Says that the arguments of a call are no JSON object, and quotes them unless they may hold secrets."""
    tool = tools.get(call["name"] or "")
    quoted = MASK if tool and has_secrets(tool.form.plain) else str(call["args"])[:_QUOTED]
    return f"the arguments of this call are no JSON object: {quoted}"


def cut_reason(message: BaseMessage) -> str:
    """Returns the provider's finish reason if a reply ended at a token limit; otherwise empty."""
    metadata = message.response_metadata
    fields = {**metadata, **(metadata.get("incomplete_details") or {})}
    for name in _REASONS:
        reason = fields.get(name)
        if isinstance(reason, str) and reason.lower() in _LIMITS:
            return reason
    return ""


def broken_call(call: ToolCall, messages: Sequence[BaseMessage]) -> str | None:
    """Returns why the arguments of a call cannot be parsed; None if they can."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            problem: str | None = message.additional_kwargs.get(BROKEN, {}).get(call["id"])
            return problem
    return None
