"""Turning text into vectors: the embedded model, and any other by its LangChain name."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from callsheet.graphs import SettingsError
from callsheet.retrievers.index.embedding.minilm import EMBEDDED, MiniLM

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

_MOST, _PROBE = 256, "list the files of a folder"
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
    """What tells the vectors of an embedder from those of another, in the names of indexes.

    It is the embedder's ``name``, or else its class, its model (``model``, ``model_name`` or ``model_id``) and its
    dimensions. Without a model, the vector of one text tells embedders of a class apart.

    Raises:
        SettingsError: That vector is not one of finite numbers.
    """
    name = getattr(embeddings, "name", None)
    if isinstance(name, str) and name:
        return name
    named = (getattr(embeddings, attribute, None) for attribute in ("model", "model_name", "model_id"))
    model: str | None = next((one for one in named if isinstance(one, str) and one), None)
    length = getattr(embeddings, "dimensions", None)
    parts = [type(embeddings).__name__, model or _signature(embeddings), str(length) if isinstance(length, int) else ""]
    return "-".join(filter(None, parts))


def _signature(embeddings: Embedder) -> str:
    """Digest of the largest components of a vector: the last digits may differ from run to run."""
    (vector,) = _unit(embeddings, [embeddings.embed_query(_PROBE)], 1)
    return hashlib.sha256(np.sort(np.argsort(-np.abs(vector))[:8]).astype("<i8").tobytes()).hexdigest()[:12]


def encode(embeddings: Embedder, texts: Sequence[str]) -> np.ndarray:
    """One vector a text by any embedder, as ``(n, d) float32``, rows unit length.

    Raises:
        SettingsError: The embedder did not give one vector of finite numbers for each text.
    """
    if isinstance(embeddings, MiniLM):
        return embeddings.encode(texts)
    return _unit(embeddings, embeddings.embed_documents(list(texts)), len(texts))


def encode_spans(embeddings: Embedder, query: str, spans: Sequence[tuple[int, int]] = ()) -> np.ndarray:
    """The vector of a query, then those of parts of it, as ``(1 + len(spans), d) float32``, rows unit length.

    The last 256 answers of all embedders are remembered; they are read-only.

    Raises:
        SettingsError: The embedder did not give one vector of finite numbers for each text.
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
    return _unit(embeddings, [embeddings.embed_query(text) for text in texts], len(texts))


def _unit(embeddings: Embedder, made: object, count: int) -> np.ndarray:
    """An embedder's answer as rows of unit length."""
    try:
        vectors = np.asarray(made, np.float32)
    except (TypeError, ValueError):
        vectors = np.zeros(0, np.float32)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise SettingsError(
            f"the embedder {type(embeddings).__name__} did not give a vector of finite numbers for each text, "
            "all of one length"
        )
    scaled: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
