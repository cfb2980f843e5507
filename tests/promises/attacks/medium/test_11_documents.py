"""Documents that cost far more than they weigh, and folders that nobody agreed to have read."""

from __future__ import annotations

import io
import json
import resource
import signal
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from callsheet import TrustError, load
from callsheet.graphs import Agreements
from callsheet.graphs.catalog.loading import starts_in
from callsheet.orchestrator.cli.main import main
from callsheet.retrievers.documents import (
    LOADERS,
    Block,
    DocumentError,
    document_reading as bounded_reader,
    documents_in,
)
from callsheet.retrievers.documents.document_formats import html, without_scripts
from callsheet.retrievers.documents.document_reading import Reader


def word(body: str) -> bytes:
    """A Word document with this body."""
    document = (
        '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
        f"{body}</w:body></w:document>"
    )
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f'<Override PartName="/word/document.xml" ContentType="{kind}"/>'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r" Target="word/document.xml" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/officeDocument"/></Relationships>',
        "word/document.xml": document,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return file.getvalue()


def table(row: str) -> str:
    return f"<w:tbl><w:tblPr/><w:tblGrid><w:gridCol/></w:tblGrid><w:tr>{row}</w:tr></w:tbl>"


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"


def read(path: Path, **bounds: Any) -> list[str]:
    with Reader(**bounds) as reader:
        return [block.text for block in reader.blocks(LOADERS[path.suffix], path)]


@pytest.mark.parametrize(
    "row",
    [
        cell("a", '<w:gridSpan w:val="99999999"/>'),
        f'<w:trPr><w:gridBefore w:val="99999999"/></w:trPr>{cell("a")}',
        cell("a", '<w:gridSpan w:val="63"/>') + cell("b", '<w:gridSpan w:val="9999999999"/>'),
    ],
    ids=["span", "before", "second cell"],
)
def test_a_cell_over_a_hundred_million_columns_is_refused(tmp_path: Path, row: str) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(word(table(row)))
    assert path.stat().st_size < 1_500
    with pytest.raises(DocumentError, match="more than 63 columns"):
        read(path)


def test_a_cell_over_as_many_columns_as_word_has_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(word(table(cell("a", '<w:gridSpan w:val="3"/>'))))
    assert read(path) == ["a; a; a"]


def long_header() -> str:
    return f"{'x' * 50_000},b\n" + "1,2\n" * 15_000


@pytest.mark.parametrize("text", [long_header(), f"{'x' * 100_000}\n" + "1\n" * 5_000], ids=["two columns", "one"])
def test_a_table_whose_text_is_out_of_proportion_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    assert path.stat().st_size < 120_000
    given: list[int] = []
    with pytest.raises(DocumentError, match="out of proportion"), Reader() as reader:
        given.extend(len(block.text) for block in reader.blocks(LOADERS[".csv"], path))
    assert sum(given) < 10_000_000


def test_the_text_of_a_loader_of_ones_own_is_bounded_too(tmp_path: Path) -> None:
    def endless(path: Path) -> Iterator[Block]:
        while True:
            yield Block("text " * 1_000)

    (tmp_path / "a.x").write_text("a")
    with pytest.raises(DocumentError, match="out of proportion"), Reader(text=100_000) as reader:
        list(reader.blocks(endless, tmp_path / "a.x"))


def test_the_text_of_a_format_that_unpacks_is_bounded_too(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(word(f"<w:p><w:r><w:t>{'x' * 1_000_000}</w:t></w:r></w:p>"))
    with pytest.raises(DocumentError, match="out of proportion"):
        read(path, text=100_000)


def seconds_of(work: Callable[[str], Any], text: str) -> float:
    began = time.process_time()
    work(text)
    return time.process_time() - began


@pytest.mark.parametrize("repeated", ["<script ", "<script>", "<!--", "<style x></script>", "<script></scrip"])
def test_what_is_opened_again_and_again_takes_linear_time(repeated: str) -> None:
    few, many = repeated * 20_000, repeated * 160_000
    seconds_of(without_scripts, few)
    ratio = seconds_of(without_scripts, many) / max(seconds_of(without_scripts, few), 0.001)
    assert ratio < 32  # 8 in linear time, 64 in quadratic


def test_scripts_are_dropped_and_what_follows_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text("<p>one</p><SCRIPT x>1</script ><p>two</p><!-- 3 --><p>three</p><style>never closed <p>four</p>")
    assert [text.split() for text, _ in html(path, "utf-8")] == [["one", "two", "three"]]


def computed() -> float:
    """Seconds of processor time of the processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


@pytest.mark.timeout(60)
def test_what_waits_without_computing_is_ended_too(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<p>The race begins at nine.</p>")
    with Reader(seconds=0.2) as reader:
        reader._started().send_signal(signal.SIGSTOP)
        with pytest.raises(DocumentError, match="or more than this machine has"):
            list(reader.blocks(LOADERS[".html"], tmp_path / "a.html"))


@pytest.mark.parametrize("content", ["<a " * 150_000, "<b><i>" * 50_000], ids=["open", "nested"])
def test_what_takes_too_long_costs_its_file_alone(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_reader, "_WAIT", 20)  # the processor time alone ends it
    (tmp_path / "a.html").write_text(content)
    (tmp_path / "b.html").write_text("<p>The race begins at nine.</p>")
    with Reader(seconds=2, rate=0) as reader:
        before = computed()
        with pytest.raises(DocumentError, match=r"of computing|cannot be read"):
            list(reader.blocks(LOADERS[".html"], tmp_path / "a.html"))
        assert computed() - before < 6
        assert [block.text.strip() for block in reader.blocks(LOADERS[".html"], tmp_path / "b.html")] == [
            "The race begins at nine."
        ]


def test_what_takes_too_much_memory_costs_its_file_alone(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(word("<w:p/>" * 1_500_000))
    (tmp_path / "b.html").write_text("<p>The race begins at nine.</p>")
    assert (tmp_path / "a.docx").stat().st_size < 100_000
    with Reader(memory=250_000_000, seconds=30) as reader:
        with pytest.raises(DocumentError, match=r"bytes of memory|cannot be read"):
            list(reader.blocks(LOADERS[".docx"], tmp_path / "a.docx"))
        assert list(reader.blocks(LOADERS[".html"], tmp_path / "b.html"))


@pytest.mark.parametrize("links", [{"a": "a"}, {"a": "b", "b": "a"}, {"a": "nowhere"}], ids=["self", "two", "dangling"])
def test_links_that_lead_nowhere_are_named(tmp_path: Path, links: dict[str, str]) -> None:
    (tmp_path / "good.md").write_text("The race begins at nine.")
    for name, target in links.items():
        (tmp_path / f"{name}.md").symlink_to(f"{target}.md")
    found = documents_in(tmp_path, {".md"})
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
    foreign: Callable[..., Path], tmp_path: Path, folder: str, capsys: Any
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
