"""Fifty megabytes of text: what is held at once does not grow with the folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
print(len(chunk_read(index, [result.hits[0].chunk], neighbours=1).parts), peak() - before)
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
