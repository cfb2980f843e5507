"""Arguments that are paths stay in the folders of their server, however it reads them; harmless texts are sent."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.safety.paths import outside


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("x")
    (root / "way_out").symlink_to(tmp_path)
    return root


@pytest.mark.parametrize(
    ("args", "refused"),
    [
        ({"path": "sub/new.txt"}, False),
        ({"path": "{root}/sub"}, False),
        ({"path": "{root}/sub/../sub/x"}, False),
        ({"path": "../secret.txt"}, True),
        ({"path": "{root}/../secret.txt"}, True),
        ({"path": "way_out/secret.txt"}, True),
        ({"path": "/etc/passwd"}, True),
        ({"path": "~/.ssh/id_rsa"}, True),
        ({"path": "file:///etc/passwd"}, True),
        ({"file_name": "/nowhere/at/all"}, True),
        ({"outputDirectory": "/nowhere/at/all"}, True),
        ({"paths": ["sub/a", "/etc/hosts"]}, True),
        ({"options": {"cwd": "/"}}, True),
        ({"x": "/etc/passwd"}, True),
        ({"x": "/etc/not-there-yet"}, True),
        ({"x": "/help"}, False),
        ({"x": "..."}, False),
        ({"x": "%2e%2e"}, True),
        ({"x": "../secret.txt"}, True),
        ({"contents": {"/etc/passwd": "root"}}, True),
        ({"contents": {"{root}/sub": "x", "title": "/"}}, True),
        ({"contents": {"sub": "x"}}, False),
        ({"x": "/not a path but a command"}, False),
        ({"text": "see /etc/passwd\nfor more"}, False),
        ({"url": "https://example.org/etc/passwd"}, False),
        ({"url": " FILE:///etc/passwd"}, True),
        ({"url": "file://{root}/sub"}, False),
        ({"url": "file://localhost{root}/sub?v=1#top"}, False),
        ({"url": "file://{root}/sub?/../../../../../../etc/passwd"}, True),
        ({"url": "file://{root}/sub#/../../../../../../etc/passwd"}, True),
        ({"url": "file://{root}/%2e%2e/%2E%2E/x"}, True),
        ({"url": "file://{root}/%252e%252e/x"}, True),
        ({"url": "file://..{root}/sub"}, True),
        ({"url": "file://[{root}"}, False),
        ({"url": "file://{root}/sub%00"}, True),
        ({"path": "/etc/passwd\0"}, True),
        ({"x": 5, "y": None}, False),
    ],
)
def test_paths_stay_in_the_folders_that_a_server_may_use(root: Path, args: dict[str, Any], refused: bool) -> None:
    filled = {name: v.format(root=root) if isinstance(v, str) else v for name, v in args.items()}
    refusal = outside([str(root)], of(), filled, folder=str(root))
    assert bool(refusal) is refused
    assert not refusal or "Nothing was sent: give a path inside them" in refusal.reason
    assert outside([], of(), filled) is None


def test_a_parameter_may_be_called_a_path_by_its_format(root: Path) -> None:
    schema = of(target={"type": "string", "format": "file-path"})
    assert outside([str(root)], schema, {"target": "/nowhere/at/all"})
    assert not outside([str(root)], of(), {"target": "/nowhere/at/all"})


READ_DIFFERENTLY = [
    # The scheme of an address is a folder for a program that joins it, and ``..`` leaves that folder.
    "x://../../secret.txt",
    "http://h/../../../secret.txt",
    "git+ssh://h/a/../../../../secret.txt",
    # Blanks and other marks around a path, which many programs strip.
    " {secret}",
    "\t{secret}",
    "{secret}\n",
    "'{secret}'",
    "`../secret.txt`",
    "\u200b{secret}",
    "\u3000{secret}\ufeff",
    "\u2028{secret}",
    "\x85{secret}\u2009",
    # ``..`` behind a folder that does not exist, for a program that resolves it first.
    "nosuch/../../secret.txt",
    "/nosuch/../{secret}",
    "nosuch\n/../../secret.txt",
    "nosuch/../way_out/secret.txt",
    # Encoded, once and twice.
    "%2e%2e/secret.txt",
    "%252e%252e%252fsecret.txt",
    "sub%2F..%2F..%2Fsecret.txt",
    "file%3A//{secret}",
    # The separators and signs of other systems.
    "..\\secret.txt",
    "x\\..\\..\\secret.txt",
    "\uff0e\uff0e\uff0fsecret.txt",
    # Cut, as a program does that ends a text at NUL, or an address at its query.
    "../secret.txt\0.png",
    "{secret}?raw=1",
    "../secret.txt#top",
    "notes?/../../secret.txt",
    # An address on this host holds a path, whatever its scheme.
    "x://{secret}",
    "sqlite:///{secret}",
    "vscode://localhost{secret}",
    # Expanded by a shell or a library.
    "$OUTER/secret.txt",
    "${{OUTER}}/secret.txt",
    "~/secret.txt",
]


@pytest.mark.parametrize("name", ["path", "source"])
@pytest.mark.parametrize("text", READ_DIFFERENTLY)
def test_a_path_is_refused_in_every_form_in_which_a_server_may_read_it(
    root: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUTER", str(root.parent))
    monkeypatch.setenv("HOME", str(root.parent))
    value = text.format(secret=root.parent / "secret.txt")
    assert outside([str(root)], of(), {name: value}, folder=str(root))
    assert outside([str(root)], of(), {"list": [{name: [value]}]}, folder=str(root))


def test_a_relative_path_may_start_at_a_root_too(root: Path) -> None:
    """The process works elsewhere: a server that was given its folder in its arguments joins paths to that."""
    elsewhere = root / "sub"
    assert outside([str(root)], of(), {"source": "../secret.txt"}, folder=str(elsewhere))
    assert not outside([str(root)], of(), {"source": "../notes.txt"}, folder=str(elsewhere))


@pytest.mark.parametrize(
    "text",
    [
        "sub/new.txt",
        " sub/new.txt\n",
        "'{root}/sub/a b.txt'",
        "nosuch/../sub",
        "https://example.org/a/../b.txt",
        "file://{root}/sub",
        "sub%20of/a.txt",
        "x" * 10_000,
        "a line\nand another, as of a file's content\n" * 200,
    ],
)
def test_a_path_that_is_inside_in_every_form_is_sent(root: Path, text: str) -> None:
    assert outside([str(root)], of(), {"path": text.format(root=root)}, folder=str(root)) is None


def test_harmless_texts_are_all_sent(root: Path) -> None:
    """One a line: addresses with ``..``, SQL, prose, dates, globs, patterns, code."""
    lines = (Path(__file__).parents[2] / "fixtures" / "harmless_texts.txt").read_text(encoding="utf-8").splitlines()
    texts = [line.replace("⏎", "\n") for line in lines]
    assert len(set(texts)) >= 200
    for name in ("text", "url", "query", "pattern"):
        refused = [text for text in texts if outside([str(root)], of(), {name: text}, folder=str(root))]
        assert refused == []


@pytest.mark.parametrize("text", ["%20", "%2F", "%2e", "?"])
def test_a_text_that_only_decodes_to_the_present_folder_is_no_path(root: Path, text: str) -> None:
    assert outside([str(root)], of(), {"text": text}, folder=str(root.parent)) is None


def test_many_texts_cost_little(root: Path) -> None:
    before = time.thread_time()
    assert not outside([str(root)], of(), {"rows": [f"row {n} of a/b" for n in range(5_000)]}, folder=str(root))
    assert not outside([str(root)], of(), {"text": "see a/../b " * 50_000}, folder=str(root))
    assert time.thread_time() - before < 2
