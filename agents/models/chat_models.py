"""Chat models by name, and what they answer: calls with ids and without secrets, and structured output."""

from __future__ import annotations

import asyncio
import json
import re
import time
import uuid
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, SecretStr, ValidationError

from callsheet.agents.calls.token_usage import Usage, usage_of
from callsheet.agents.calls.tool_result import artifact_of
from callsheet.agents.registry.binding import NEED_TOOL, BoundTool
from callsheet.agents.safety.secrets import RunSecrets, has_secrets
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.text.sanitizing import MASK

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse


T = TypeVar("T")
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


Form = Literal["tool", "json_schema", "text"]
_FORMS: tuple[Form, ...] = ("tool", "json_schema", "text")
_IN_TEXT = "Answer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}
"""For calls whose tokens must not be streamed: a chat would show them as if they were said to the user."""
_REJECTED = (400, 404, 415, 422, 501)
"""HTTP status codes with which providers reject the form of a request."""
_known: dict[int, Form] = {}
S = TypeVar("S", bound=BaseModel)
_TEXTS = ("content", "additional_kwargs", "response_metadata")
_MOST_TRIED = 64
"""Maximum number of positions tried as JSON, and of list entries, so that no text takes long."""
_ARGS = ("arguments", "parameters", "args")
_READ = json.JSONDecoder()


def unstreamed(model: BaseChatModel, tools: Mapping[str, BoundTool]) -> BaseChatModel:
    """The model, without token streaming if a tool takes secrets, which would show in the stream."""
    if not any(has_secrets(tool.form.plain) for tool in tools.values()):
        return model
    return model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})


def normalize(
    response: ModelResponse[Any], tools: Mapping[str, BoundTool], secrets: RunSecrets | None = None
) -> ModelResponse[Any]:
    """The response for the state: calls have ids, own names of arguments, and with ``secrets`` masked arguments."""
    return replace(response, result=[_for_state(message, tools, secrets) for message in response.result])


def _for_state(message: BaseMessage, tools: Mapping[str, BoundTool], secrets: RunSecrets | None) -> BaseMessage:
    if not isinstance(message, AIMessage):
        return message
    forms, calls = {name: tool.form for name, tool in tools.items()}, list[Any]()
    for call in message.tool_calls:
        form = forms.get(call["name"])  # None for the worker's own, as ``finish``, which have no schema of secrets
        args = form.own(call["args"]) if form else call["args"]
        if secrets is not None:
            args = secrets.masked(form.plain, args) if form else secrets.hidden(args)
        calls.append({**call, "id": call["id"] or f"call_{uuid.uuid4().hex}", "args": args})
    if secrets is None:
        return message.model_copy(update={"tool_calls": calls})
    broken = [
        {**call, "args": MASK} if (form := forms.get(call["name"] or "")) and has_secrets(form.plain) else call
        for call in message.invalid_tool_calls
    ]
    texts = {name: secrets.hidden(getattr(message, name)) for name in _TEXTS}
    return message.model_copy(update={**texts, "tool_calls": calls, "invalid_tool_calls": broken})


def with_written_calls(
    message: BaseMessage, names: Collection[str], conversation: Sequence[BaseMessage]
) -> BaseMessage:
    """The message with the calls of these tools that a weak model wrote as JSON text and did not quote."""
    if not isinstance(message, AIMessage) or message.tool_calls:
        return message
    said = message.id or uuid.uuid4().hex  # a message may have no id, and the ids of calls must be unique
    written = written_calls(message.text, names)
    if written:
        shown = [other.text for other in conversation if not isinstance(other, AIMessage)]
        quoted = [call for text in shown for call in written_calls(text, names)]
        written = [call for call in written if call not in quoted]
    calls = [{**call, "id": f"written_{said}_{n}", "type": "tool_call"} for n, call in enumerate(written, 1)]
    return message.model_copy(update={"content": "", "tool_calls": calls}) if calls else message


def written_calls(text: str, names: Collection[str]) -> list[dict[str, Any]]:
    """The calls of these tools in a text, in order, without repetitions; other JSON is ignored.

    They may stand in a list or inside ``{"function": ...}``, and have their arguments as a JSON string.
    """
    calls: list[dict[str, Any]] = []
    for value in _values(text):
        for written in value[:_MOST_TRIED] if isinstance(value, list) else [value]:
            call = _call(written, names)
            if call and call not in calls:
                calls.append(call)
    return calls


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and lists in a text, from left to right."""
    at = 0
    for _ in range(_MOST_TRIED):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        try:
            value, at = _READ.raw_decode(text, min(starts))
            yield value
        except (ValueError, RecursionError):
            at = min(starts) + 1


def _call(written: Any, names: Collection[str]) -> dict[str, Any] | None:
    if isinstance(written, Mapping) and isinstance(written.get("function"), Mapping):
        written = written["function"]
    if not isinstance(written, Mapping):
        return None
    name, args = written.get("name"), next((written[key] for key in _ARGS if key in written), None)
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except (ValueError, RecursionError):
            return None
    return {"name": name, "args": args} if isinstance(name, str) and name in names and isinstance(args, dict) else None


async def structured(model: BaseChatModel, schema: type[S], messages: Sequence[AnyMessage]) -> tuple[S, Usage]:
    """A model's answer as an object of this type, and its cost, failed attempts in other forms included.

    The forms (tool call, JSON schema, JSON in text) are tried in turn until the model answers in one, which is tried
    first next time; if it answers in none, a ModelError says so. The name of the type names the tool, or the schema.
    """
    began, spent, wrong, known = time.monotonic(), Usage(), "", _known.get(id(model))
    for form in sorted(_FORMS, key=lambda form: form != known):
        try:
            raw = await answered(_ask(model, schema, form, messages))
        except ModelError as error:
            if form == "text" or not _unsupported(error.__cause__):
                error.usage = spent
                raise
            wrong = str(error)
            continue
        spent += usage_of([raw])
        try:
            value = _read(raw, schema)
        except ValueError as error:
            wrong = " ".join(str(error).split())
            continue
        if id(model) not in _known:
            weakref.finalize(model, _known.pop, id(model), None)
        _known[id(model)] = form
        return value, spent + Usage(seconds=round(time.monotonic() - began, 3))
    unusable = ModelError(f"the model did not answer in the requested form ({wrong or 'no object was given'})")
    unusable.usage = spent + Usage(seconds=round(time.monotonic() - began, 3))
    raise unusable


async def _ask(model: BaseChatModel, schema: type[BaseModel], form: Form, messages: Sequence[AnyMessage]) -> AIMessage:
    if form == "text":
        asked = HumanMessage(_IN_TEXT.format(schema=json.dumps(schema.model_json_schema())))
        return await model.ainvoke([*messages, asked], QUIET)
    options = {"method": "json_schema"} if form == "json_schema" else {}
    asking: Runnable[Any, Any] = model.with_structured_output(schema, include_raw=True, **options)
    answer: AIMessage = (await asking.ainvoke(list(messages), QUIET))["raw"]
    return answer


def _unsupported(error: BaseException | None) -> bool:
    """Whether a model or its provider rejects a form, so that another one may work."""
    if isinstance(error, NotImplementedError | TypeError | ValueError):
        return True
    return getattr(error, "status_code", None) in _REJECTED


def _read(message: AIMessage, schema: type[S]) -> S:
    """Parses the object in a message, in any of the forms; raises a ValueError that says why there is none."""
    wrong: ValueError | None = None
    for candidate in _candidates(message, schema.__name__):
        try:
            return schema.model_validate(candidate)
        except ValidationError as error:
            wrong = wrong or error
    raise wrong or ValueError(f"no object was given but: {message.text[:200]!r}")


def _candidates(message: AIMessage, name: str) -> Iterator[Any]:
    """Where the object may be: in the arguments of a call, in the text, or in a call written as text."""
    yield from (call["args"] for call in message.tool_calls if call["name"] == name)
    if written := written_calls(message.text, [name]):
        yield written[0]["args"]
    else:  # the object from the first brace to the last
        with suppress(ValueError, RecursionError):
            yield json.loads(message.text[message.text.find("{") : message.text.rfind("}") + 1])


_BETA = "advanced-tool-use-2025-11-20"
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_SINCE = (4, 5)
Function = dict[str, Any]
Additions = Callable[[Sequence[Function]], list[str | Function]]


def deferred(
    request: ModelRequest[Any], held: Mapping[str, BoundTool], placed: Mapping[str, Sequence[str]] | None = None
) -> ModelRequest[Any]:
    """The request with added tools at the place in the conversation where they were found.

    Providers cache a prompt from its beginning, where the tools stand, so a tool that is added there costs the whole
    cached prefix. OpenAI's Responses API (``additional_tools``) and newer models of Anthropic (``tool_addition``) take
    definitions between the messages; for these, ``placed`` has ids of further tools by the id of the message after
    which they were added. Anthropic's models since Claude 4.5 leave tools with ``defer_loading`` out of the prompt, and
    put a definition where a result refers to it. Other models get the request as it is, with all tools.
    """
    names = {tool.id: name for name, tool in held.items()}
    between = (request.model.profile or {}).get("mid_conversation_tools")
    form = _ADDITIONS.get(request.model._llm_type) if between else None
    found = [_found(message, names, placed if form and placed else {}) for message in request.messages]
    added = {name for few in found for name in few}
    if form:
        tools = [tool for tool in request.tools if not (isinstance(tool, BoundTool) and tool.name in added)]
        return request.override(tools=tools, messages=list(_with_additions(request.messages, held, found, form)))
    if not added or not _searches(request.model):
        return request
    tools = [
        tool.model_copy(update={"extras": {**(tool.extras or {}), "defer_loading": True}})
        if isinstance(tool, BoundTool) and tool.name in added
        else tool
        for tool in request.tools
    ]
    messages = list(request.messages)
    for place, few in enumerate(found):
        if few:
            content = [{"type": "tool_reference", "tool_name": name} for name in few]
            messages[place] = messages[place].model_copy(update={"content": content})
    betas = list(dict.fromkeys([*request.model_settings.get("betas", ()), _BETA]))
    return request.override(tools=tools, messages=messages, model_settings={**request.model_settings, "betas": betas})


def _searches(model: BaseChatModel) -> bool:
    """Whether a model is one of Anthropic's API that loads deferred tools: since Claude 4.5."""
    if model._llm_type != "anthropic-chat":
        return False
    match = _CLAUDE.match(str(getattr(model, "model", "")))
    return match is not None and (int(match[1]), int(match[2] or 0)) >= _SINCE


def _found(message: AnyMessage, names: Mapping[str, str], placed: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of the tools that were added by an answer of ``need_tool`` or after it, as far as still held."""
    ids = list(placed.get(message.id or "", ()))
    if isinstance(message, ToolMessage) and message.name == NEED_TOOL:
        ids += artifact_of(message).get("added", ())
    return [names[tool_id] for tool_id in ids if tool_id in names]


def _with_additions(
    messages: Sequence[AnyMessage], held: Mapping[str, BoundTool], found: Sequence[Sequence[str]], form: Additions
) -> Iterator[AnyMessage]:
    """The messages with definitions between them: each tool once, before the model's next words or last."""
    waiting: dict[str, None] = {}
    given: set[str] = set()
    for message, few, following in zip(messages, found, [*messages[1:], AIMessage("")], strict=True):
        yield message
        waiting |= dict.fromkeys(name for name in few if name not in given)
        if waiting and isinstance(following, AIMessage):
            yield SystemMessage(form([convert_to_openai_tool(held[name])["function"] for name in waiting]))
            given |= waiting.keys()
            waiting = {}


def _additional_tools(functions: Sequence[Function]) -> list[str | Function]:
    """An input item of OpenAI's Responses API."""
    tools = [{"type": "function", **function} for function in functions]
    return [{"type": "additional_tools", "role": "developer", "tools": tools}]


def _tool_additions(functions: Sequence[Function]) -> list[str | Function]:
    """Content blocks of Anthropic's Messages API."""
    added: list[str | Function] = []
    for function in functions:
        definition = {("input_schema" if key == "parameters" else key): value for key, value in function.items()}
        added.append({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}})
    return added


_ADDITIONS: Mapping[str, Additions] = {"openai-chat": _additional_tools, "anthropic-chat": _tool_additions}
"""The form of added tools, for models that take them between the messages by LangChain's profile of them."""
