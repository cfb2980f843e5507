from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from pypdf import PdfWriter

from callsheet.retrievers.documents import LOADERS, DocumentError, document_reading as loaders
from callsheet.retrievers.documents.document_reading import encoding_of


def loaded(path: Path) -> list[str]:
    return [block.text.strip() for block in LOADERS[path.suffix](path) if block.text.strip()]


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page, made by hand."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(f"<< /Type /Page /Parent 2 0 R /Resources {font} /Contents {len(objects)} 0 R >>")
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} /MediaBox [0 0 612 792] >>"
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = out.tell()
    out.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    out.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    out.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF".encode())
    return out.getvalue()


@pytest.mark.parametrize(
    ("encoding", "named"), [("utf-8", "utf-8-sig"), ("utf-8-sig", "utf-8-sig"), ("utf-16", "utf-16"), ("cp1252", None)]
)
def test_text_in_any_encoding(tmp_path: Path, encoding: str, named: str | None) -> None:
    path = tmp_path / "a.txt"
    text = "Der Fuß über der Straße, größer als möglich – „schön“, sagte er; Ärger gab es keinen.\n" * 3
    path.write_bytes(text.encode(encoding))
    assert "".join(loaded(path)) == text.strip()
    assert named in (None, encoding_of(path))


def test_a_character_on_the_edge_of_the_sample_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "_SAMPLE", 100)
    path = tmp_path / "a.txt"
    for shift in range(4):
        path.write_text("x" * (97 + shift) + "漢字" * 10, encoding="utf-8")
        assert encoding_of(path) == "utf-8-sig"


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\x00\x01\x02" * 100)
    with pytest.raises(DocumentError, match="zero bytes"):
        loaded(path)


def test_a_row_of_a_table_names_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("city;people\nOslo;700000\nBergen;\n\nOne;2;more\n", encoding="utf-8")
    assert loaded(path) == ["city: Oslo; people: 700000", "city: Bergen", "city: One; people: 2; more"]


def test_a_table_with_a_boundless_field_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b\n"' + "x" * 300_000, encoding="utf-8")
    with pytest.raises(DocumentError, match="not a table: field larger than field limit"):
        loaded(path)


def test_a_page_without_what_is_not_its_text(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        "<html><head><title>Guide</title><style>p{}</style><script>alert('x')</script></head>"
        "<body><!-- hidden --><h1>Leave</h1><p>There are <b>25</b> days.</p><ul><li>paid</li></ul>"
        '<a href="http://x">more</a></body></html>',
        encoding="utf-8",
    )
    text = "\n".join(loaded(path))
    assert text.startswith("Guide")
    assert "# Leave" in text
    assert "There are **25** days." in text
    assert "more" in text
    assert not any(word in text for word in ("alert", "hidden", "p{}", "http"))


def test_a_pdf_page_by_page(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf("There are 25 days.", "Second page."))
    blocks = list(LOADERS[".pdf"](path))
    assert [(block.text.strip(), block.page) for block in blocks] == [("There are 25 days.", 1), ("Second page.", 2)]


def test_a_word_document_with_a_table(tmp_path: Path) -> None:
    import docx

    document = docx.Document()
    document.add_heading("Leave")
    document.add_paragraph("There are 25 days.")
    table = document.add_table(2, 2)
    for cell, text in zip((c for row in table.rows for c in row.cells), ("city", "people", "Oslo", "7"), strict=True):
        cell.text = text
    document.add_paragraph("The end.")
    document.save(str(tmp_path / "a.docx"))
    assert loaded(tmp_path / "a.docx") == ["Leave", "There are 25 days.", "city: Oslo; people: 7", "The end."]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"%PDF-1.4 and nothing of it", "not a readable PDF"),
        ("a.pdf", b"no PDF at all", "not a readable PDF"),
        ("a.docx", b"no archive at all", "not a readable .docx"),
    ],
)
def test_broken_files_say_so(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=said):
        loaded(tmp_path / name)


def test_an_archive_that_is_no_word_document_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(DocumentError, match=r"not a readable \.docx"):
        loaded(tmp_path / "a.docx")


def test_an_encrypted_pdf_says_so(tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=io.BytesIO(pdf("Secret.")))
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(tmp_path / "a.pdf")
    with pytest.raises(DocumentError, match="encrypted"):
        loaded(tmp_path / "a.pdf")


def test_an_archive_that_unpacks_to_too_much_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaders, "LARGEST_HELD", 1_000_000)
    with zipfile.ZipFile(tmp_path / "a.docx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * 2_000_000)
    assert (tmp_path / "a.docx").stat().st_size < 10_000
    with pytest.raises(DocumentError, match="2,000,000 bytes to be read at once, 1,000,000 are allowed"):
        loaded(tmp_path / "a.docx")


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("a.pdf", "pypdf", "pypdf"), ("a.docx", "docx", "python-docx"), ("a.html", "markdownify", "markdownify")],
)
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, package: str
) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of the process that reads
    (tmp_path / name).write_bytes(b"x")
    zipfile.ZipFile(tmp_path / "a.docx", "w").close()
    with pytest.raises(ImportError, match=f"need the extra documents, which is not installed: pip install {package}"):
        loaded(tmp_path / name)
