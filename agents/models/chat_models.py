"""Chat models by name, and one error for all their failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextvars import ContextVar
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

from callsheet.agents.calls.token_usage import Usage
from callsheet.graphs.catalog.errors import CallsheetError, SettingsError

T = TypeVar("T")
_SECONDS: ContextVar[float] = ContextVar("callsheet_model_seconds", default=600.0)


class ModelError(CallsheetError):
    """A chat model did not answer; the message contains the provider's error.

    Attributes:
        usage: Cost of its answers before, which could not be used.
    """

    usage: Usage = Usage()


@lru_cache(maxsize=32)
def chat_model(name: str, *, max_tokens: int | None = None) -> BaseChatModel:
    """The chat model with this name, from LangChain's ``init_chat_model``.

    Args:
        name: ``provider:model``, such as ``openai:gpt-5-mini``.
        max_tokens: Maximum output tokens per call; by default the provider's.

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
        said = " ".join(str(error).split())
        cure = _missing(name) or "; a model is named provider:model, such as openai:gpt-5-mini"
        raise SettingsError(f"the model {name!r} cannot be used: {said}{cure}") from error
    if key := _missing_key(name, model):
        raise SettingsError(f"the model {name!r} cannot be used: it needs a key: set {key}")
    return model


def check_model(model: object, name: str = "model") -> None:
    """Refuses what is neither a chat model nor its name nor None, such as ``model.with_retry()``.

    Raises:
        SettingsError: It has another type.
    """
    if not isinstance(model, str | BaseChatModel | None):
        cure = "give the model itself, with retries and timeouts as its own parameters (max_retries, timeout)"
        raise SettingsError(
            f"{name} must be a chat model or its name (provider:model), not {type(model).__name__}: {cure}"
        )


def _missing_key(name: str, model: BaseChatModel) -> str:
    """The variable for the provider's key, if the model has none; some providers check it only at the first call."""
    field = f"{name.partition(':')[0]}_api_key"
    if not (variable := model.lc_secrets.get(field)):
        return ""
    key = getattr(model, field, None)
    return "" if (key.get_secret_value() if isinstance(key, SecretStr) else key) else variable


def _missing(name: str) -> str:
    """The package to install, where LangChain's own error names another one."""
    lacks = name.startswith("ollama:") and find_spec("langchain_ollama") is None
    return "; pip install langchain-ollama" if lacks else ""


def limit_model_calls(seconds: float) -> None:
    """Sets the timeout of model calls for the current task and for what it starts."""
    _SECONDS.set(seconds)


async def answered(call: Awaitable[T]) -> T:
    """Awaits a model's answer, no longer than ``limit_model_calls`` says (600 s by default).

    Raises:
        ModelError: For any error of the provider, and if the time is over.
    """
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
