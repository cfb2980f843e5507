"""Documents of each format are read, and cut into passages."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from pypdf import PdfWriter

from callsheet.retrievers.documents import (
    Block,
    DocumentError,
    Passage,
    content_words,
    document_text,
    estimated_tokens,
    passages_of,
    sentences_of,
)
from callsheet.retrievers.documents.document_reading import READER, Reader
from callsheet.retrievers.documents.document_text import LONGEST_SENTENCE
from callsheet.retrievers.documents.languages import encoding_of


def cut(text: str) -> list[str]:
    return [sentence.strip() for sentence in sentences_of(text)]


def test_sentences_end_where_a_reader_would_end_them() -> None:
    cases = [
        (
            "Dr. Smith lives in Washington, D.C. He met J. K. Rowling. It cost $3.50! Really?",
            ["Dr. Smith lives in Washington, D.C.", "He met J. K. Rowling.", "It cost $3.50!", "Really?"],
        ),
        ("这是第一句。这是第二句！你好吗？", ["这是第一句。", "这是第二句！", "你好吗？"]),
        ("これは文です。次の文です。", ["これは文です。", "次の文です。"]),
        ("नमस्ते। आप कैसे हैं?", ["नमस्ते।", "आप कैसे हैं?"]),
        ("مرحبا. كيف حالك؟", ["مرحبا.", "كيف حالك؟"]),
        ("# Leave\n\nThere are 25 days\n\n\nof it", ["# Leave", "There are 25 days", "of it"]),
        ("# Vacation\nManagers have 30 days. Interns 12.\n", ["# Vacation", "Managers have 30 days.", "Interns 12."]),
        ("One\n## Two\nthree.", ["One", "## Two", "three."]),
        ("#tag of one\nline.", ["#tag of one\nline."]),
    ]
    for text, sentences in cases:
        assert cut(text) == sentences
        assert "".join(sentences_of(text)) == text


def test_sentences_are_split_by_the_rules_of_their_paragraphs_language() -> None:
    cases = [
        "Der Aufzug wird am 3. März gewartet.|Anträge, z. B. auf Urlaub, stellt man bis 15. Januar bei Fr. Dr. Huber.",
        "Nach Art. 12 Abs. 3 haftet die Gesellschaft.|Im 19. Jahrhundert war es so.|Siehe Kap. 4 des Handbuchs.",
        "Das 2. Kapitel beginnt am 1. und 2. Mai.|Die Halle Nr. 7 ist gesperrt.|Er wurde 1990 geboren.|Sie kam später.",
        "Le dépôt ouvre à 8 h. 30 le lundi.|M. Durand signe les congés.|Voir p. 12 du guide.",
        "El Sr. Peña firma las vacaciones.|La oficina abre a las 9 a. m. todos los días.",
        "Schůze je 3. května v Praze.|Oběd začíná ve dvanáct hodin.",
        "Mødet er den 3. marts klokken ti.|Frokosten er klokken tolv.",
        "Kokous on 3. maaliskuuta Helsingissä.|Lounas alkaa kello kaksitoista.",
        "The office moved to house 3.|Lunch is at noon, as always.|The U.S. office closes at 5 p.m. on Fridays.",
    ]
    for text in cases:
        sentences = text.split("|")
        assert cut(" ".join(sentences)) == sentences


def test_each_paragraph_has_its_language_and_a_short_one_that_of_the_text() -> None:
    first, second = "The office moved to house 3.", "Lunch is at noon, as always."
    german = "Der Aufzug wird am 3. März gewartet."
    assert cut(f"{first} {second}\n\n{german}\n\n{first} {second}") == [first, second, german, first, second]
    assert cut(f"{german}\n\n2. OG") == [german, "2. OG"]
    assert cut("2. OG") == ["2.", "OG"]
    assert list(sentences_of("2. OG", language="de")) == ["2. OG"]


def test_without_the_documents_extra_sentences_end_at_full_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_text, "HAS_SENTENCEX", False)
    assert cut('It cost $3.50! He said: "Really?" She left.') == ["It cost $3.50!", 'He said: "Really?"', "She left."]
    assert cut("这是第一句。这是第二句！你好吗？") == ["这是第一句。", "这是第二句！", "你好吗？"]
    for text in ("...!? .", "no end", "A.\n\n# B\nc. " * 3_000):
        assert "".join(sentences_of(text)) == text


def test_an_unclosed_quotation_mark_does_not_swallow_the_rest() -> None:
    text = 'He said: "yes. ' + "It went on. " * 200
    assert len(cut(text)) > 190


def test_a_sentence_that_is_too_long_is_cut_at_a_space() -> None:
    pieces = cut("word " * 1_000)
    assert all(len(piece) <= LONGEST_SENTENCE for piece in pieces)
    assert all(piece.startswith("word") and piece.endswith("word") for piece in pieces)
    assert [len(piece) for piece in cut("x" * 2_500)] == [1_000, 1_000, 500]


@given(st.text(alphabet=st.one_of(st.characters(), st.sampled_from('. !?"(\n。「'))))
def test_nothing_is_lost_between_sentences(text: str) -> None:
    assert "".join(sentences_of(text)) == text


def test_tokens_are_a_quarter_of_the_bytes() -> None:
    assert [estimated_tokens(text) for text in ("", "a", "word", "words", "日本", "Ünï")] == [0, 1, 1, 2, 2, 2]


def test_passages_hold_whole_sentences_up_to_their_size() -> None:
    sentence = "This sentence has forty characters, see. "
    (first, second) = passages_of([Block(sentence * 15)], tokens=110)
    assert (len(first.ends), len(second.ends)) == (10, 5)
    assert first.sentences == (sentence.strip(),) * 10
    assert estimated_tokens(first.text) <= 110


def test_a_passage_begins_on_its_page() -> None:
    pages = [Block("One. " * 20, page=1), Block("Two. " * 20, page=2)]
    assert [passage.page for passage in passages_of(pages, tokens=40)] == [1, 2]


def test_blocks_end_sentences_and_empty_blocks_are_ignored() -> None:
    (passage,) = passages_of([Block("a"), Block("  \n"), Block("b")])
    assert passage == Passage("a\nb\n", (2, 4))
    assert list(passages_of([Block(" ")])) == []


def test_content_words_are_without_stop_words_and_short_words() -> None:
    assert content_words("Which of the LEAVE days are for you? Days!") == ["leave", "days"]
    assert content_words("In Zürich 北京大学") == ["zürich", "北京", "京大", "大学"]


def loaded(path: Path, **limits: int) -> list[str]:
    return [text.strip() for text, _ in pages(path, **limits) if text.strip()]


def pages(path: Path, **limits: int) -> list[tuple[str, int | None]]:
    reader = Reader(**limits) if limits else READER
    try:
        return [(block.text, block.page) for block in reader.blocks(path)]
    finally:
        if limits:
            reader.close()


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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_text_is_read_in_any_common_encoding(tmp_path: Path, encoding: str) -> None:
    text = "Der Fuß über der Straße, größer als möglich – „schön“, sagte er; Ärger gab es keinen.\n" * 3
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert loaded(tmp_path / "a.txt") == [text.strip()]


SHORT = [
    ("Name;Ort;Preis\nBett;Köln;12,50\nTisch;Zürich;99,00\n", "cp1252"),
    ("Schlüssel für die Küche liegen beim Empfang.", "cp1252"),
    ("Le café ferme à midi, la réunion est déplacée.", "cp1252"),
    ("El año pasado el señor Peña pagó 30 € en efectivo.", "cp1252"),
    ("Müller\nJäger\nGröße\n", "cp1252"),
    ("Zażółć gęślą jaźń. Wniosek podpisuje kierownik.", "iso8859_2"),
    ("Zażółć gęślą jaźń. Wniosek podpisuje kierownik.", "cp1250"),
    ("Ключ от склада лежит у охраны. Отпуск подписывает директор.", "cp1251"),
    ("Ключ от склада лежит у охраны. Отпуск подписывает директор.", "koi8_r"),
    ("Η συνάντηση αρχίζει την Παρασκευή στις εννέα.", "cp1253"),
    ("Toplantı cuma günü saat dokuzda başlıyor, lütfen geç kalmayın.", "cp1254"),
    ("تقدم طلبات الإجازة إلى المدير.", "cp1256"),
    ("การลาพักร้อนต้องได้รับอนุมัติจากหัวหน้าแผนก", "cp874"),
    ("报销须在三十天内提交。", "gb18030"),
    ("報銷須在三十天內提交。", "big5"),
    ("経費精算は三十日以内に提出してください。", "shift_jis"),
    ("휴가 신청은 부서장이 승인합니다.", "euc_kr"),
]
UNCERTAIN = [
    ("Zürich", "cp1252"), ("4,50 €", "cp1252"), ("één kop", "cp1252"), ("Größe: 5 µm", "cp1252"),
    ("Żółw śpi.", "iso8859_2"), ("Ključ je pri čuvaju, dođite šest sati.", "iso8859_2"), ("Молоко", "cp1251"),
    ("Имя;Город\nИван;Москва", "koi8_r"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "encoding"), SHORT)
def test_a_short_text_is_read_in_the_encoding_of_its_language(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    assert loaded(tmp_path / "a.txt") == [text.strip()]


@pytest.mark.parametrize(("text", "encoding"), UNCERTAIN)
def test_a_text_whose_encoding_is_not_certain_is_refused(tmp_path: Path, text: str, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode(encoding))
    with pytest.raises(DocumentError, match="its encoding is not certain: save it as UTF-8"):
        loaded(tmp_path / "a.txt")


def test_no_part_of_a_text_is_decoded_to_other_characters() -> None:
    for text, encoding in (*SHORT, *UNCERTAIN):
        words = text.split()
        for size in (1, 2, 4):
            for start in range(0, len(words), size):
                part = " ".join(words[start : start + size])
                found = encoding_of(part.encode(encoding))
                assert found is None or part.encode(encoding).decode(found) == part


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<html><head><meta charset="windows-1252"></head><body>Zürich</body></html>'),
        ("a.html", '<meta http-equiv="Content-Type" content="text/html; charset=ISO-8859-1"><p>Zürich'),
        ("a.txt", "# -*- coding: cp1252 -*-\nZürich"),
        ("a.txt", "# vim: set fileencoding=latin-1 :\nZürich"),
    ],
)
def test_a_text_is_read_in_the_encoding_that_it_declares(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_bytes(text.encode("cp1252"))
    assert "Zürich" in loaded(tmp_path / name)[0]


@pytest.mark.parametrize("said", ["utf-8", "no-such", "rot13", "ascii", "\xe4"])
def test_a_declared_encoding_that_does_not_fit_is_ignored(tmp_path: Path, said: str) -> None:
    text = f'<meta charset="{said}"><p>Die Straße ist gesperrt, fahren Sie über die Brücke.'
    (tmp_path / "a.html").write_bytes(text.encode("cp1252"))
    assert "Die Straße ist gesperrt, fahren Sie über die Brücke." in loaded(tmp_path / "a.html")[0]


def test_invalid_utf_8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Caf\xe9 in Z\xfcrich \U0001f600, ".encode() + b"\xff broken.")
    with pytest.raises(DocumentError, match="its encoding is not certain: save it as UTF-8"):
        loaded(tmp_path / "a.txt")


def test_a_long_text_comes_in_pieces_that_end_with_a_paragraph(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} of a long text." for number in range(70_000))
    (tmp_path / "a.txt").write_text(text)
    pieces = [piece for piece, _ in pages(tmp_path / "a.txt")]
    assert len(pieces) == 3
    assert all(piece.endswith(".\n\n") for piece in pieces[:-1])
    assert "".join(pieces) == text


def test_a_row_of_a_table_names_its_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("city;people\nOslo;700000\nBergen;\n\nOne;2;more\n", encoding="utf-8")
    assert loaded(tmp_path / "a.csv") == ["city: Oslo; people: 700000", "city: Bergen", "city: One; people: 2; : more"]


def test_a_web_page_is_read_without_scripts_styles_and_links(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<html><head><title>Guide</title><style>p{}</style><script>alert('x')</script></head>"
        "<body><!-- hidden --><h1>Leave</h1><p>There are <b>25</b> days.</p><ul><li>paid</li></ul>"
        '<a href="http://x">more</a><style>never closed <p>end</body></html>',
        encoding="utf-8",
    )
    (text,) = loaded(tmp_path / "a.html")
    assert text == "Guide\n\n# Leave\n\nThere are **25** days.\n\n* paid\n\nmore"


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("There are 25 days.", "Second page."))
    assert pages(tmp_path / "a.pdf") == [("There are 25 days.", 1), ("Second page.", 2)]


def word(*paragraphs: str) -> bytes:
    """A Word document with the bare minimum of parts."""
    body = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs)
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>")
    return file.getvalue()


def test_a_word_document_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(word("Leave", "There are 25 days."))
    assert loaded(tmp_path / "a.docx") == ["Leave\n\nThere are 25 days."]


def archive_of_a_text() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("hello.txt", "hello")
    return file.getvalue()


def encrypted_pdf() -> bytes:
    writer, file = PdfWriter(clone_from=io.BytesIO(pdf("Secret."))), io.BytesIO()
    writer.encrypt("password", algorithm="RC4-128")
    writer.write(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"\x00\x01\x02" * 100, "zero bytes"),
        ("a.csv", b'a,b\n"' + b"x" * 300_000, "not a readable CSV file: Error: field larger than field limit"),
        ("a.pdf", b"%PDF-1.4 and nothing of it", "not a readable PDF file"),
        ("a.pdf", b"no PDF at all", "not a readable PDF file"),
        ("a.pdf", encrypted_pdf(), "not a readable PDF file: .*not been decrypted"),
        ("a.docx", b"no archive at all", "not a readable Word file: BadZipFile"),
        ("a.docx", archive_of_a_text(), "not a readable Word file: KeyError"),
    ],
)
def test_an_unreadable_file_is_refused_with_the_reason(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=why):
        loaded(tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [("a.docx", word("0" * 2_000_000)), ("a.txt", b"0" * 2_000_000)])
def test_a_document_too_large_when_unpacked_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=r"it has 2,000,\d{3} bytes, and at most 1,000,000 can be read"):
        loaded(tmp_path / name, largest=1_000_000)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("a.pdf", "pypdf"),
        ("a.docx", "docx2txt"),
        ("a.html", "markdownify"),
        ("a.txt", "charset_normalizer"),
        ("b.txt", "py3langid"),
    ],
)
def test_a_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # of the process that reads
    text = "Die Straße ist gesperrt, fahren Sie über die Brücke.".encode("cp1252")
    (tmp_path / name).write_bytes(word() if name == "a.docx" else text)
    with pytest.raises(ImportError, match=r"needs the extra documents.* pip install '\.\[documents\]'"):
        loaded(tmp_path / name, largest=1_000_000)


def test_plain_text_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pypdf", "docx2txt", "markdownify", "charset_normalizer"):
        (tmp_path / f"{module}.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for name in ("a.md", "a.csv"):
        (tmp_path / name).write_text("city\nÆrø\n", encoding="utf-8")
        assert "Ærø" in loaded(tmp_path / name, largest=1_000_000)[0]
