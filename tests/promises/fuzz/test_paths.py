"""Arguments beside servers that read paths in their own ways: none that is sent leads any of them out of its folder."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import pytest
from hypothesis import event, given, strategies as st

from callsheet.agents.safety.paths import outside
from fuzzing import fuzzed


def local_path(text: str) -> str:
    """The path of an address on this host."""
    address = urlsplit(text)
    return address.path if address.netloc in ("", "localhost") else text


Reading = Callable[[str], str]
DISGUISES: list[tuple[Reading, Reading]] = [
    (lambda text: f" {text}\n", str.strip),
    (lambda text: f"\t{text}", str.strip),
    (lambda text: f"'{text}'", lambda text: text.strip("'")),
    (lambda text: f'"{text}"', lambda text: text.strip('"')),
    (lambda text: quote(text, safe=""), unquote),
    (lambda text: text.replace(".", "%2e"), unquote),
    (lambda text: text.replace("/", "\\"), lambda text: text.replace("\\", "/")),
    (lambda text: text.replace(".", "\uff0e"), lambda text: unicodedata.normalize("NFKC", text)),
    (lambda text: text.replace("/", "\uff0f"), lambda text: unicodedata.normalize("NFKC", text)),
    (lambda text: f"\u200b{text}\ufeff", lambda text: text.replace("\u200b", "").replace("\ufeff", "")),
    (lambda text: text.replace("secret", "se\u00adcret"), lambda text: text.replace("\u00ad", "")),
    (lambda text: f"{text}\0.png", lambda text: text.split("\0")[0]),
    (lambda text: f"{text}?raw=1", lambda text: text.split("?")[0]),
    (lambda text: f"{text}#top", lambda text: text.split("#")[0]),
    (lambda text: f"file://{text}", local_path),
    (lambda text: f"FILE:{text}", local_path),
    (lambda text: f"x://localhost{text}", local_path),
    (lambda text: text, os.path.expanduser),
    (lambda text: text, os.path.expandvars),
]
"""How a path can be written so that it looks like another text, and how a server reads it."""
OPENINGS: list[Callable[[Path, str], Path]] = [
    lambda root, text: root / text,
    lambda root, text: (root / text).resolve(),
    lambda root, text: Path(os.path.normpath(root / text)),
]
STARTS = [
    "../", "{top}/", "/{top}/", "~/", "$TOP/", "${{TOP}}/", "out/", "sub/../../", "nosuch/../../", "./..//",
    "x://../../", "http://h/../../../", "/nosuch/..{top}/", "{top}/root/../", "nosuch\n/../../", "*/../../",
    "a.txt/../../", "nosuch/../out/",
]  # fmt: skip
NOISE = ["", "", "", "", "/", "./", "../", "sub/", "%", " ", "\n", "x", "?", "\\", "\0", "~", "é", "file:"]


@st.composite
def disguised(draw: st.DrawFn) -> tuple[str, list[Reading]]:
    """A text that leads to what lies beside the folder if it is read as the chain of readings says."""
    text = f"{draw(st.sampled_from(STARTS))}secret.txt"
    chain = []
    for disguise, reading in draw(st.lists(st.sampled_from(DISGUISES), max_size=4)):
        text = disguise(text)
        chain.insert(0, reading)
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.sampled_from(NOISE)) + text[place:], chain


def reaches(root: Path, text: str, chain: list[Reading], opening: Callable[[Path, str], Path]) -> bool:
    """Whether a server that reads texts in this way reads what lies beside its folder."""
    try:
        for reading in chain:
            text = reading(text)
        return opening(root, text).read_text() == "secret"
    except (OSError, RuntimeError, ValueError):
        return False


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOP", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("open to all")
    (root / "out").symlink_to(tmp_path)
    return root


def test_no_argument_that_is_sent_leads_a_server_out_of_its_folder(root: Path) -> None:
    @given(case=disguised(), name=st.sampled_from(["path", "source"]), opening=st.sampled_from(OPENINGS))
    def sent(case: tuple[str, list[Reading]], name: str, opening: Callable[[Path, str], Path]) -> None:
        text, chain = case
        text = text.replace("{top}", str(root.parent)).replace("{{", "{").replace("}}", "}")
        reached = reaches(root, text, chain, opening)
        event(f"a server reaches the secret: {reached}")
        if not outside([str(root)], {}, {name: text}, folder=str(root)):
            assert not reached, (text, chain)

    fuzzed(150, long=10_000)(sent)()
