"""Chat models by name, and their failures as one error."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import lru_cache
from importlib.util import find_spec
from typing import TypeVar

from langchain_core.language_models import BaseChatModel

from callsheet.graphs.errors import CallsheetError, SettingsError

T = TypeVar("T")


class ModelError(CallsheetError):
    """A chat model did not answer; the message holds its provider's words."""


@lru_cache(maxsize=32)
def chat_model(name: str) -> BaseChatModel:
    """The chat model of this name, as LangChain's ``init_chat_model`` makes it.

    Args:
        name: ``provider:model``, such as ``openai:gpt-5-mini``.

    Raises:
        SettingsError: No provider of this name is known, or it refuses its settings (a missing key ...).
        ImportError: The provider's package is not installed; the message names it.
    """
    from langchain.chat_models import init_chat_model

    try:
        return init_chat_model(name)
    except ImportError:
        raise
    except Exception as error:
        raise SettingsError(f"the model {name!r} cannot be used: {error}{_missing(name)}") from error


def _missing(name: str) -> str:
    """The package to install, which LangChain does not name: it blames an older home of the class."""
    lacks = name.startswith("ollama:") and find_spec("langchain_ollama") is None
    return "; pip install langchain-ollama" if lacks else ""


async def answered(call: Awaitable[T]) -> T:
    """What a model answers.

    Raises:
        ModelError: Whatever its provider raised.
    """
    try:
        return await call
    except Exception as error:
        raise ModelError(f"the model did not answer: {type(error).__name__}: {error}") from error
