"""Fifty megabytes of text: what is held at once does not grow with the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callsheet.graphs import CatalogError, SettingsError
from callsheet.retrievers.documents import (
    Block,
    DocumentIndex,
    chunk_read,
    document_index,
    keyword_search,
    semantic_search,
)
from callsheet.retrievers.documents.document_reading import READER
from forked import run_forked

Write = Callable[[dict[str, str | bytes]], Path]

HERE = str(Path(__file__).parent)
KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from conftest import WordEmbeddings
from callsheet.retrievers.documents import DocumentIndex, document_index

document_index.CHUNK_TOKENS = 10

class Dying(WordEmbeddings):
    def embed_documents(self, texts):
        if self.asked:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().embed_documents(texts)

DocumentIndex({folder!r}, embeddings=Dying(), index={index!r}).sync()
"""


def problems(found: Any) -> dict[str, str]:
    return {problem.agent: problem.kind for problem in found.problems}


def test_chunks_have_ids_by_place(made: Callable[..., DocumentIndex], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_index, "CHUNK_TOKENS", 110)
    text = "A sentence of about forty characters, see. " * 40
    index = made({"a.txt": text})
    ids = [chunk.id for chunk in index.chunks()]
    assert ids == [f"a.txt#{n}" for n in range(1, len(ids) + 1)]
    assert len(ids) > 3
    assert "".join(chunk.text for chunk in index.chunks()).split() == text.split()
    assert [part.chunk for part in chunk_read(index, ["a.txt#4", "a.txt#3", "[a.txt#4]"]).parts] == [
        "a.txt#4",
        "a.txt#3",
    ]


def test_a_second_indexing_reads_and_embeds_only_what_changed(write: Write, embedder: Any, tmp_path: Path) -> None:
    folder = write({"a.md": "One fact here.", "b.md": "Two facts there.", "c.md": "Three facts."})
    where = tmp_path / "index"
    first = DocumentIndex(folder, embeddings=embedder, index=where).sync()
    assert (first.documents, first.chunks, first.sentences, first.added) == (3, 3, 3, 3)
    write({"b.md": "Two facts there. And a new one.", "d.md": "Four facts."})
    (folder / "c.md").unlink()
    (folder / "a.md").rename(folder / "moved.md")
    embedder.asked.clear()
    index = DocumentIndex(folder, embeddings=embedder, index=where)
    second = index.sync()
    assert (second.added, second.updated, second.removed, second.documents) == (2, 1, 2, 3)
    assert sorted(embedder.asked) == ["And a new one.", "Four facts."]
    assert second.sentences == 4
    assert keyword_search(index, ["three"]).hits == ()
    assert semantic_search(index, "one fact").hits[0].chunk == "moved.md#1"
    embedder.asked.clear()
    third = DocumentIndex(folder, embeddings=embedder, index=where).sync()
    assert (third.added, third.updated, third.removed) == (0, 0, 0)
    assert embedder.asked == []


def test_unreadable_documents_are_reported_and_the_others_indexed(write: Write, embedder: Any, tmp_path: Path) -> None:
    folder = write(
        {
            "good.md": "A good one.",
            "copy.md": "A good one.",
            "empty.md": "",
            "blank.txt": " \n\n ",
            "broken.pdf": b"%PDF-1.4",
            "broken.docx": b"PK",
            "zeros.txt": b"\x00" * 50,
            "picture.png": b"\x89PNG",
            ".hidden.md": "Not for you.",
            ".git/config.txt": "Not for you either.",
        }
    )
    outside = tmp_path / "outside.md"
    outside.write_text("Secret.")
    (folder / "link.md").symlink_to(outside)
    found = DocumentIndex(folder, embeddings=embedder, index=":memory:").sync()
    assert problems(found) == {
        "good.md": "duplicate",
        "empty.md": "empty",
        "blank.txt": "empty",
        "broken.pdf": "broken",
        "broken.docx": "broken",
        "zeros.txt": "broken",
        "link.md": "link",
        "(other files)": "kind",
    }
    assert (found.documents, found.chunks) == (1, 1)
    assert "has the content of copy.md" in str(found.problems)
    assert "1 .png" in str(found.problems)


@pytest.mark.parametrize(
    ("folder", "said"), [("nowhere", "no such folder"), ("\0", "cannot be a path"), (__file__, "no such folder")]
)
def test_a_folder_that_does_not_exist_is_refused(folder: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        DocumentIndex(folder, index=":memory:")


@pytest.fixture
def changing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that ``a.txt`` gets, one after the other, at the end of each time that it is read."""
    texts: list[str] = []
    read = READER.blocks

    def blocks(path: Path) -> Iterator[Block]:
        yield from read(path)
        if texts and path.name == "a.txt":
            path.write_text(texts.pop(0))

    monkeypatch.setattr(READER, "blocks", blocks)
    return texts


def test_a_document_that_changes_while_it_is_read_keeps_its_old_text(
    write: Write, embedder: Any, changing: list[str]
) -> None:
    folder = write({"a.txt": "The old text.", "b.txt": "Another text."})
    index = DocumentIndex(folder, embeddings=embedder, index=":memory:")
    index.sync()
    (folder / "a.txt").write_text("A newer text.")
    changing.append("The newest text.")
    assert problems(index.sync()) == {"a.txt": "changing"}
    assert [chunk.text for chunk in index.chunks()] == ["The old text.\n", "Another text.\n"]
    assert index.sync().updated == 1


def test_an_update_that_is_killed_leaves_everything_as_before(
    write: Write, embedder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_index, "CHUNK_TOKENS", 10)
    folder, where = write({"a.txt": "The old text."}), tmp_path / "index"
    DocumentIndex(folder, embeddings=embedder, index=where).sync()
    write({"a.txt": "The new text.", "b.txt": "\n\n".join(f"Sentence number {i} of many." for i in range(2_500))})
    script = KILLED.format(here=HERE, folder=str(folder), index=str(where))
    done = run_forked(["-c", script], env={**os.environ, "ANONYMIZED_TELEMETRY": "False"})
    assert done.returncode == -9
    index = DocumentIndex(folder, embeddings=embedder, index=where)
    assert [chunk.text for chunk in index.chunks()] == ["The old text.\n"]
    assert [hit.chunk for hit in semantic_search(index, "old text").hits] == ["a.txt#1"]
    embedder.asked.clear()
    found = index.sync()
    assert (found.documents, found.sentences) == (2, 2_501)
    assert 0 < len(embedder.asked) < 2_000  # what was embedded before the kill is kept


def test_lost_vectors_are_made_again(write: Write, embedder: Any, tmp_path: Path) -> None:
    folder, where = write({"a.txt": "One fact here."}), tmp_path / "index"
    DocumentIndex(folder, embeddings=embedder, index=where).sync()
    other = type(embedder)(32)
    index = DocumentIndex(folder, embeddings=other, index=where)
    assert index.sync().added == 0
    assert [hit.chunk for hit in semantic_search(index, "one fact").hits] == ["a.txt#1"]


def test_a_broken_index_file_is_refused_with_the_cure(write: Write, embedder: Any, tmp_path: Path) -> None:
    index = DocumentIndex(write({"a.txt": "One fact."}), embeddings=embedder, index=tmp_path / "index")
    (texts,) = index.place.glob("documents-*.sqlite")
    for path in index.place.glob("documents-*.sqlite*"):
        path.write_bytes(b"this is no database" * 100)
    with pytest.raises(SettingsError, match=f"{texts.name} cannot be opened: .*delete the file to index anew"):
        DocumentIndex(tmp_path / "docs", embeddings=embedder, index=tmp_path / "index")


def test_progress_is_called_for_reading_and_embedding(write: Write, embedder: Any) -> None:
    said: list[tuple[str, int, int]] = []
    index = DocumentIndex(
        write({"a.txt": "One. Two facts.", "b.txt": "Three facts."}), embeddings=embedder, index=":memory:"
    )
    index.sync(lambda stage, done, total: said.append((stage, done, total)))
    assert said == [("reading", 0, 2), ("reading", 1, 2), ("embedding", 3, 3)]


def test_names_of_documents_may_be_in_any_script(write: Write, embedder: Any) -> None:
    index = DocumentIndex(
        write({"Überblick/休暇 #2.md": "有給休暇は25日です。"}), embeddings=embedder, index=":memory:"
    )
    index.sync()
    assert [chunk.id for chunk in index.chunks()] == ["Überblick/休暇 #2.md#1"]
    assert index.chunk("Überblick/休暇 #2.md#1") is not None


PAGES: dict[str, str | bytes] = {
    f"{n}.txt": f"Page {n} tells of word{n}. It is about thing{n} and of nothing else." for n in range(20)
}


def test_all_sentences_are_compared_and_embedded_once(
    write: Write, embedder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = DocumentIndex(write(PAGES), embeddings=embedder, index=tmp_path / "index")
    assert index.sync().exact
    assert len(embedder.asked) == 40
    first = index.similar("what tells of word7")
    assert (first.compared, semantic_search(index, "word7").note) == (20, "")
    again = DocumentIndex(tmp_path / "docs", embeddings=embedder, index=tmp_path / "index")
    assert again.sync().exact
    monkeypatch.setattr("callsheet.retrievers.documents.sentence_vectors._AT_ONCE", 7)  # the rows of a block
    assert np.array_equal(again.similar("what tells of word7").sentences, first.sentences)
    assert len(embedder.asked) == 40


def test_chunks_of_a_large_folder_are_preselected_by_the_query_alone(
    write: Write, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.retrievers.documents.document_index.AFFORDABLE", 100)
    monkeypatch.setattr("callsheet.retrievers.documents.sentence_vectors.COMPARED", 200)
    one = DocumentIndex(write(PAGES), embeddings=embedder, index=":memory:")
    other = DocumentIndex(write(PAGES), embeddings=embedder, index=":memory:")
    for index in (one, other):
        assert not index.sync().exact
    assert len(embedder.asked) == 2 * 20  # the digests
    for n in (3, 12):
        other.similar(f"word{n}")
    embedder.asked.clear()
    found, same = one.similar("what tells of word7"), other.similar("what tells of word7")
    assert np.array_equal(found.sentences, same.sentences)
    assert found.chunks[int(found.scores.argmax())] == "7.txt#1"
    assert 0 < len(embedder.asked) < 40
    told = (
        f"compared with the sentences of {found.compared} of 20 chunks, preselected; keyword_search looks through all"
    )
    assert semantic_search(one, "what tells of word7").note == told
    assert one.sync(exact=True).exact
    assert one.similar("what tells of word7").compared == 20
    write({"new.txt": "A new page."})
    assert one.sync().exact, "what is missing is little"


MEGABYTES = 50
PROGRAM = """
import resource, sys
sys.path.insert(0, {here!r})
from conftest import WordEmbeddings
from callsheet.retrievers.documents import DocumentIndex, chunk_read, keyword_search, semantic_search

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

index = DocumentIndex({folder!r}, embeddings=WordEmbeddings(32), index={index!r})
before = peak()
found = index.sync()
print(found.documents, found.chunks, found.sentences, peak() - before)
sought = "here is the needle of page 777777."
for result in (keyword_search(index, [sought]), semantic_search(index, sought)):
    print(result.hits[0].chunk, result.hits[0].snippets[0])
print(len(chunk_read(index, [result.hits[0].chunk, "large.txt#1", "large.txt#2"]).parts), peak() - before)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform == "win32", reason="counts memory by the resource module")
def test_fifty_megabytes_are_indexed_and_searched_in_bounded_memory(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    page = "".join(f"Sentence {i} of a page that stands in every volume of this long work. " for i in range(140))
    with (folder / "large.txt").open("w", encoding="utf-8") as file:
        for number in range(MEGABYTES * 1_000_000 // (len(page) + 20)):
            file.write(f"{page}Page {number % 100}.\n\n")
            if number == 5_000:
                file.write("Here is the needle of page 777777. ")
    script = PROGRAM.format(here=str(Path(__file__).parent), folder=str(folder), index=str(tmp_path / "index"))
    environment = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    indexed, by_words, by_meaning, read = done.stdout.splitlines()
    documents, chunks, sentences, grown = map(int, indexed.split())
    assert (documents, sentences) == (1, 141 + 100)
    assert chunks > MEGABYTES * 1_000_000 / 4_100
    assert by_words.split(" ", 1) == by_meaning.split(" ", 1)
    assert "needle of page 777777" in by_words
    assert read.split()[0] == "3"
    assert max(grown, int(read.split()[1])) < 250, "megabytes beyond what was there before"
