"""Turning text into vectors: the embedded model, and any other by its LangChain name."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from callsheet.graphs import SettingsError
from callsheet.retrievers.index.embedding.minilm import EMBEDDED, MiniLM

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_MOST = 256
_LATEST: OrderedDict[tuple[int, str, tuple[tuple[int, int], ...]], tuple[Embedder, np.ndarray]] = OrderedDict()
_LOCK = threading.Lock()


class Embedder(Protocol):
    """What makes vectors of texts: every ``Embeddings`` of LangChain is one as it is."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text, in order."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """The vector of one query."""
        ...


def embedder_of(embeddings: str | Embedder) -> Embedder:
    """An embedder by its name, as ``embeddings_of`` has it, or as it is; the embedded one without LangChain.

    Raises:
        SettingsError: There is no embedder of this name.
        ImportError: The provider's package is not installed; the message names it.
    """
    if embeddings == EMBEDDED:
        return MiniLM()
    return embeddings_of(embeddings) if isinstance(embeddings, str) else embeddings


def embeddings_of(name: str, init: Callable[[str], Embeddings] | None = None) -> Embeddings:
    """The embedder of this name.

    Args:
        name: ``minilm`` for the embedded one, or ``provider:model`` as LangChain's ``init_embeddings`` takes it.
        init: What makes the others; LangChain's own where none is given.

    Raises:
        SettingsError: The name is of neither form, or its provider is not known or refuses it (a missing key).
        ImportError: The provider's package is not installed; the message names it.
    """
    if name == EMBEDDED:
        from callsheet.retrievers.index.embedding.minilm_embeddings import MiniLMEmbeddings

        return MiniLMEmbeddings()
    if ":" not in name:
        raise SettingsError(
            f"unknown embedder {name!r}: use {EMBEDDED!r} or provider:model, as openai:text-embedding-3-small"
        )
    if init is None:
        from langchain.embeddings import init_embeddings

        init = init_embeddings
    try:
        return init(name)
    except ImportError:
        raise
    except Exception as error:
        raise SettingsError(f"the embedder {name!r} cannot be used: {error}") from error


def embedder_name(embeddings: Embedder) -> str:
    """What tells the vectors of this embedder from those of another: its name, or its class, model and dimensions."""
    name = getattr(embeddings, "name", None)
    if isinstance(name, str) and name:
        return name
    model = next(
        (m for a in ("model", "model_name", "model_id") if isinstance(m := getattr(embeddings, a, None), str)), ""
    )
    length = getattr(embeddings, "dimensions", None)
    return "-".join(filter(None, (type(embeddings).__name__, model, str(length) if isinstance(length, int) else "")))


def encode(embeddings: Embedder, texts: Sequence[str]) -> np.ndarray:
    """One vector a text by any embedder, as ``(n, d) float32``, rows unit length."""
    if isinstance(embeddings, MiniLM):
        return embeddings.encode(texts)
    return _unit(np.asarray(embeddings.embed_documents(list(texts)), np.float32))


def encode_spans(embeddings: Embedder, query: str, spans: Sequence[tuple[int, int]] = ()) -> np.ndarray:
    """The vector of a query, then those of parts of it, as ``(1 + len(spans), d) float32``, rows unit length.

    The last 256 answers of all embedders are remembered; they are read-only.
    """
    key = (id(embeddings), query, tuple(spans))
    with _LOCK:
        if key in _LATEST:
            _LATEST.move_to_end(key)
            return _LATEST[key][1]
    vectors = _encoded_spans(embeddings, query, spans)
    vectors.flags.writeable = False
    with _LOCK:
        _LATEST[key] = (embeddings, vectors)  # with the embedder, so that no other one gets its id
        if len(_LATEST) > _MOST:
            _LATEST.popitem(last=False)
    return vectors


def _encoded_spans(embeddings: Embedder, query: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    if isinstance(embeddings, MiniLM):
        return embeddings.encode_spans(query, spans)
    texts = (query, *(query[start:end] for start, end in spans))
    return _unit(np.asarray([embeddings.embed_query(text) for text in texts], np.float32))


def _unit(vectors: np.ndarray) -> np.ndarray:
    """The same rows at unit length."""
    scaled: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
