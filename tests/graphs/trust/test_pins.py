"""Pins by themselves: digests, comparison, the book, and what people are told."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.graphs import Listed, PinBook, ServerConfig, TrustError, describe_change, diff_of, digest, findings_of
from callsheet.graphs.trust.changes import sides_of

TOOL: dict[str, Any] = {"name": "work", "description": "Does work.", "inputSchema": {"type": "object"}}
ABOUT = {"name": "a", "description": "", "instructions": ""}


def listed(*tools: Any, about: dict[str, str] | None = None, **server: Any) -> Listed:
    return Listed(ServerConfig(**{"command": "x", **server}), about or ABOUT, tools)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))


@pytest.fixture
def book(tmp_path: Path) -> PinBook:
    return PinBook(tmp_path / "deep" / "pins.json")


def kinds(book: PinBook, said: Listed, **more: Any) -> list[str]:
    return [change.kind for change in book.admit({"a": said}, **more)["a"].changes]


def test_a_digest_is_of_the_content_not_of_its_form() -> None:
    assert digest({"a": 1, "b": "é"}) == digest(json.loads('{"b": "\\u00e9", "a": 1}'))
    assert digest({"a": 1}) != digest({"a": 1.0})
    assert digest({"required": ["a", "b"]}) != digest({"required": ["b", "a"]})
    assert len(digest("\ud800")) == 64


def test_the_first_answer_is_accepted_and_kept(book: PinBook) -> None:
    admitted = book.admit({"a": listed(TOOL, {"no": "name"}, 5)})["a"]
    assert admitted.digests == {"work": digest(TOOL)}
    assert len(admitted.entries) == 3  # what is no tool is the reader's to name
    assert book.servers()["a"].tools["work"].sha256 == digest(TOOL)
    assert kinds(book, listed(TOOL)) == []


def test_a_server_keeps_its_place_in_the_pinning_order(book: PinBook) -> None:
    book.admit({"old": listed(TOOL)})
    content = json.loads(book.file.text())
    del content["servers"]["old"]["place"]  # as of an earlier version
    book.file.replace(json.dumps(content).encode())
    for names in (("b",), ("a", "b", "old"), ("c", "d")):
        book.admit({name: listed(TOOL) for name in names})
    now = book.admit({name: listed(TOOL, args=("new",)) for name in ("old", "a", "b", "c", "d")})
    assert {name: one.place for name, one in now.items()} == {"old": 0, "b": 1, "a": 2, "c": 3, "d": 3}
    book.accept([change for one in now.values() for change in one.changes])
    assert {name: one.place for name, one in book.servers().items()} == {"old": 0, "b": 1, "a": 2, "c": 3, "d": 3}
    config = ServerConfig(command="x")
    part = read_listings({"c": config}, {"c": Listing(tools=(TOOL,))}, pins=book, listings=None)
    assert part.places == {"c": 3}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (listed(), ["removed"]),
        (listed(TOOL, {"name": "more"}), ["new"]),
        (listed({**TOOL, "icons": []}), ["changed"]),
        (listed(TOOL, about={**ABOUT, "instructions": "Be brief."}), ["about"]),
        (listed(TOOL, args=("y",)), ["command"]),
        (listed(TOOL, env={"A": "1"}), ["command"]),
        (listed(TOOL, {**TOOL, "description": "a second one"}), []),
        (listed({**TOOL, "description": "Adds.\u202e"}), ["changed"]),
        (listed(TOOL, {"name": "more", "description": "Adds.\u202e"}), ["suspect"]),
    ],
)
def test_each_kind_of_change_is_reported_and_looking_accepts_nothing(
    book: PinBook, said: Listed, expected: list[str]
) -> None:
    book.admit({"a": listed(TOOL)})
    assert kinds(book, said) == expected
    assert kinds(book, said) == expected  # looking at it accepts nothing


def test_a_command_that_a_person_agreed_to_is_no_change(book: PinBook) -> None:
    book.admit({"a": listed(TOOL)})
    assert kinds(book, listed(TOOL, args=("y",)), agreed={"a"}) == []
    assert kinds(book, listed({**TOOL, "title": "t"}, args=("y",)), agreed={"a"}) == ["changed"]


def test_the_accepted_description_and_instructions_of_a_server_are_used_after_they_change(book: PinBook) -> None:
    book.admit({"a": listed(TOOL)})
    admitted = book.admit({"a": listed(TOOL, about={**ABOUT, "instructions": "New."})})["a"]
    assert admitted.about["instructions"] == ""
    assert set(admitted.digests) == {"work"}
    book.accept(admitted.changes)
    assert book.admit({"a": listed(TOOL, about={**ABOUT, "instructions": "New."})})["a"].about["instructions"] == "New."


def test_a_tool_or_description_that_hides_characters_is_not_accepted_at_first_use(book: PinBook) -> None:
    hidden = {**TOOL, "name": "b", "description": "Adds.\u202e"}
    in_schema = {**TOOL, "name": "c", "inputSchema": {"properties": {"x": {"enum": ["\U000e0041"]}}}}
    about = {**ABOUT, "instructions": "Be brief.\x1b[8m"}
    admitted = book.admit({"a": listed(TOOL, hidden, in_schema, about=about)})["a"]
    assert set(admitted.digests) == {"work"}
    assert admitted.about["instructions"] == ""
    changes = [(change.kind, change.tool) for change in admitted.changes]
    assert changes == [("about", ""), ("suspect", "b"), ("suspect", "c")]
    assert describe_change(admitted.changes[1]) == "a/b is new, and its name or a text of it has hidden characters"


@pytest.mark.parametrize(
    ("said", "then"),
    [
        (listed(), ["new"]),  # when what is gone comes back
        (listed({**TOOL, "title": "half of a pair: \ud800"}), ["changed"]),
        (listed(TOOL, args=("y",)), ["command"]),
    ],
)
def test_accepting_a_change_replaces_the_pin(book: PinBook, said: Listed, then: list[str]) -> None:
    book.admit({"a": listed(TOOL)})
    book.accept(book.admit({"a": said})["a"].changes)
    assert kinds(book, said) == []
    assert kinds(book, listed(TOOL)) == then


def test_nothing_is_accepted_for_a_server_that_has_no_pins_any_more(book: PinBook) -> None:
    book.admit({"a": listed()})
    changes = book.admit({"a": listed({**TOOL, "description": "Reads other files."})})["a"].changes
    Path(str(book.file)).unlink()
    with pytest.raises(TrustError, match="no longer has pins of this server, so nothing was accepted"):
        book.accept(changes)
    assert book.servers() == {}


def test_the_pins_file_holds_no_secret(book: PinBook) -> None:
    stdio = {"args": ("--api-key", "S3CRET", "--token=S3CRET", "plain"), "env": {"KEY": "S3CRET"}}
    http = {"command": None, "url": "https://u:S3CRET@host/mcp?key=S3CRET", "transport": "http"}
    book.admit({"a": listed(**stdio), "b": listed(**http, headers={"Authorization": "Bearer S3CRET"})})
    text = book.file.text()
    assert "S3CRET" not in text
    for kept in ("--api-key", "plain", "KEY", "https://u:***@host/mcp?key=***", "Authorization"):
        assert kept in text
    assert Path(str(book.file)).stat().st_mode & 0o077 == 0


def test_a_huge_definition_is_pinned_without_being_kept(book: PinBook) -> None:
    huge = {**TOOL, "description": "d" * 200_000}
    book.admit({"a": listed(huge)})
    assert Path(str(book.file)).stat().st_size < 2_000
    assert kinds(book, listed(huge)) == []
    (change,) = book.admit({"a": listed({**huge, "description": "e" * 200_000})})["a"].changes
    assert "too long to store" in diff_of(change)


def test_pins_files_written_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "pins.json"
    threads = [threading.Thread(target=PinBook(file).admit, args=({f"s{i}": listed(TOOL)},)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(PinBook(file).servers()) == {f"s{i}" for i in range(8)}
    assert {path.name for path in tmp_path.iterdir()} == {"pins.json", "home"}


def test_a_configuration_has_a_file_of_pins_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    first, second = PinBook.of(tmp_path / "mcp.json"), PinBook.of(tmp_path / "other" / "mcp.json")
    assert str(first.file) != str(second.file)
    assert str(first.file).startswith(str(tmp_path / "pins"))
    monkeypatch.setenv("CALLSHEET_PINS", "team.json")
    assert str(PinBook.of(tmp_path / "mcp.json").file) == "team.json"
    assert str(PinBook.of(tmp_path / "mcp.json", "mine.json").file) == "mine.json"


def test_a_difference_shows_hidden_characters_escaped(book: PinBook) -> None:
    book.admit({"a": listed(TOOL)})
    (change,) = book.admit({"a": listed({**TOOL, "description": "Does work.\u200b\x1b[8m Secretly."})})["a"].changes
    said = diff_of(change)
    assert "-description: Does work." in said
    assert "\\u200b\\x1b[8m" in said
    assert "\x1b" not in said


def test_findings_name_the_tool_and_the_cure(book: PinBook) -> None:
    book.admit({"a": listed(TOOL)})
    found = findings_of(book.admit({"a": listed({**TOOL, "title": "t"}, args=("y",))})["a"].changes)
    assert [(str(f.severity), f.rule, f.agent, f.tool) for f in found] == [
        ("error", "pin-command", "a", ""),
        ("error", "pin-changed", "a", "a/work"),
    ]
    assert all("callsheet approve a" in finding.message for finding in found)


def test_a_side_by_side_difference_omits_equal_lines_far_from_a_change(book: PinBook) -> None:
    schema = {"type": "object", "properties": {f"p{n}": {} for n in range(20)}}
    book.admit({"a": listed({**TOOL, "inputSchema": schema})})
    changed = {**TOOL, "inputSchema": {**schema, "required": ["p1\u202e"]}}
    (change,) = book.admit({"a": listed(changed)})["a"].changes
    sides = sides_of(change)
    assert sides[0] == (None, None)
    assert (None, '      "p1\\u202e"') in sides
    assert all(before == after for before, after in sides if before is not None)
    assert len(sides) < 15
    shown = {line.strip() for line in diff_of(change).splitlines() if line[:1] == "+" and line[:3] != "+++"}
    assert {f"+{after}".strip() for before, after in sides if before is None and after} == shown
