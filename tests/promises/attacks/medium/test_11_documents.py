"""Documents that cost far more than they weigh, and folders that nobody agreed to have read."""

from __future__ import annotations

import io
import json
import signal
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from callsheet import TrustError, load
from callsheet.graphs import Agreements
from callsheet.graphs.sources.loading import starts_in
from callsheet.orchestrator.cli.main import main
from callsheet.retrievers.documents import (
    DocumentError,
    document_reading as bounded_reader,
    documents_in,
)
from callsheet.retrievers.documents.document_reading import READER, Reader


def word(body: str) -> bytes:
    """A Word document with this body."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    return file.getvalue()


@contextmanager
def reading(**limits: Any) -> Iterator[Reader]:
    reader = Reader(**limits)
    try:
        yield reader
    finally:
        reader.close()


def read(path: Path, **limits: Any) -> list[str]:
    with reading(**limits) as reader:
        return [block.text for block in reader.blocks(path)]


@pytest.mark.parametrize("kind", ["gridSpan", "gridBefore"])
def test_a_cell_over_a_hundred_million_columns_is_one_cell(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.docx"
    row = f'<w:tc><w:tcPr><w:{kind} w:val="99999999"/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>'
    path.write_bytes(word(f"<w:tbl><w:tr>{row}</w:tr></w:tbl>"))
    assert read(path) == ["a"]


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    grown = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(9))
    document = f'<!DOCTYPE d [<!ENTITY e0 "lol">{grown}]><d>&e9;</d>'
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", document)
    with pytest.raises(DocumentError, match=r"not a readable Word file|out of proportion"):
        read(tmp_path / "a.docx")


def long_header() -> str:
    return f"{'x' * 50_000},b\n" + "1,2\n" * 15_000


@pytest.mark.parametrize("text", [long_header(), f"{'x' * 100_000}\n" + "1\n" * 5_000], ids=["two columns", "one"])
def test_a_table_whose_text_is_out_of_proportion_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert path.stat().st_size < 120_000
    given: list[int] = []
    with pytest.raises(DocumentError, match="out of proportion"):
        given.extend(len(block.text) for block in READER.blocks(path))
    assert sum(given) < 10_000_000


def test_the_text_of_a_format_that_unpacks_is_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(word(f"<w:p><w:r><w:t>{'x' * 1_000_000}</w:t></w:r></w:p>"))
    with pytest.raises(DocumentError, match="out of proportion"):
        read(path, most=100_000)


@contextmanager
def computing(number: int) -> Iterator[list[float]]:
    """The seconds of processor time of a process with this id, again and again until it ends."""
    process = psutil.Process(number)
    spent = [sum(process.cpu_times()[:2])]
    over = threading.Event()

    def look() -> None:
        with suppress(psutil.NoSuchProcess):
            while not over.wait(0.05):
                spent.append(sum(process.cpu_times()[:2]))

    watching = threading.Thread(target=look)
    watching.start()
    try:
        yield spent
    finally:
        over.set()
        watching.join()


@pytest.mark.timeout(60)
def test_what_waits_without_computing_is_ended_too(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>The race begins at nine.</p>")
    with reading(seconds=0.2) as reader:
        reader._started().send_signal(signal.SIGSTOP)
        with pytest.raises(DocumentError, match="or more than this machine has"):
            list(reader.blocks(tmp_path / "a.html"))


@pytest.mark.parametrize("content", ["<a " * 150_000, "<b><i>" * 50_000], ids=["open", "nested"])
def test_what_takes_too_long_costs_its_file_alone(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_reader, "_WAIT", 20)  # the processor time alone ends it
    (tmp_path / "a.html").write_text(content)
    (tmp_path / "b.html").write_text("<p>The race begins at nine.</p>")
    with reading(seconds=2, rate=0) as reader:
        list(reader.blocks(tmp_path / "b.html"))  # what it takes to begin is no part of it
        refused = pytest.raises(DocumentError, match=r"of computing|its HTML is nested too deeply")
        with computing(reader._started().pid) as spent, refused:
            list(reader.blocks(tmp_path / "a.html"))
        assert spent[-1] - spent[0] < 6
        assert [block.text.strip() for block in reader.blocks(tmp_path / "b.html")] == ["The race begins at nine."]


def test_what_takes_too_much_memory_costs_its_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(word("<w:p/>" * 3_000_000))
    (tmp_path / "b.html").write_text("<p>The race begins at nine.</p>")
    assert (tmp_path / "a.docx").stat().st_size < 100_000
    with reading(memory=300_000_000, seconds=30) as reader:
        with pytest.raises(DocumentError, match=r"bytes of memory|cannot be read"):
            list(reader.blocks(tmp_path / "a.docx"))
        assert list(reader.blocks(tmp_path / "b.html"))


@pytest.mark.parametrize("links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "nowhere"}], ids=["self", "two", "dangling"])
def test_links_that_lead_nowhere_are_named(tmp_path: Path, links: dict[str, str]) -> None:
    (tmp_path / "good.md").write_text("The race begins at nine.")
    for name, target in links.items():
        (tmp_path / f"{name}.md").symlink_to(f"{target}.md")
    found = documents_in(tmp_path)
    assert [document.name for document in found.documents] == ["good.md"]
    assert sorted(problem.agent for problem in found.problems) == sorted(f"{name}.md" for name in links)


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a configuration of somebody else's, beside a folder of one's own."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CALLSHEET_YES", raising=False)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "diary.md").write_text("The code of the safe is 4711.")
    (tmp_path / "foreign" / "repo").mkdir(parents=True)
    (tmp_path / "foreign" / "repo" / "docs").symlink_to(tmp_path / "private")

    def written(folder: str) -> Path:
        path = tmp_path / "foreign" / "repo" / "mcp.json"
        path.write_text(json.dumps({"mcpServers": {"help": {"documents": folder}}}))
        return path

    return written


@pytest.mark.parametrize("folder", ["../../private", "docs", "{private}"], ids=["relative", "link", "absolute"])
def test_a_folder_is_read_when_a_person_has_seen_where_it_is_and_agreed(
    foreign: Callable[..., Path], tmp_path: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = foreign(folder.format(private=tmp_path / "private"))
    with pytest.raises(
        TrustError, match=f"would read these folders:\n  help: reads the documents in {tmp_path}/private"
    ):
        load(path)
    with pytest.raises(SystemExit) as end:
        main(["ask", "What is the code of the safe?", "--catalog", str(path)])
    assert end.value.code == 2
    assert "4711" not in "".join(capsys.readouterr())
    Agreements().add(starts_in(str(path)))
    assert load(path).catalog.tools


def test_an_agreement_does_not_hold_for_what_a_link_leads_to_later(
    foreign: Callable[..., Path], tmp_path: Path
) -> None:
    path = foreign("docs")
    Agreements().add(starts_in(str(path)))
    assert load(path).catalog.tools
    (tmp_path / "more").mkdir()
    (path.parent / "docs").unlink()
    (path.parent / "docs").symlink_to(tmp_path / "more")
    with pytest.raises(TrustError, match="more"):
        load(path)


def test_the_process_that_reads_files_of_others_has_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hidden-word")
    monkeypatch.setenv("CALLSHEET_STORE", "postgresql://me:hidden-word@localhost/db")
    monkeypatch.setenv("LANG", "C.UTF-8")
    (tmp_path / "a.txt").write_text("Text.")
    with reading() as reader:
        assert [block.text for block in reader.blocks(tmp_path / "a.txt")] == ["Text."]
        environment = Path(f"/proc/{reader._started().pid}/environ").read_bytes()
    assert b"hidden-word" not in environment
    assert b"LANG=C.UTF-8" in environment
