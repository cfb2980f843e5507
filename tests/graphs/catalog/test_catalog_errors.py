"""Every mistake in a catalog is said in words: what, which, and how to cure it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from callsheet.graphs import Agent, Catalog, CatalogError, load

FORMS = "expected 'mcpServers' (or 'servers'), 'callsheet' with 'agents', or a manifest with 'name'"


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("m.json", '{"name": "a",\n "tools": [\n}\n', "not valid JSON: Expecting value: line 3 column 1"),
        *(("m.json", text, "not valid JSON") for text in ("", "[" * 100_000 + "]" * 100_000, f"[{'9' * 5000}]")),
        ("m.json", b'{"name": "\xe9"}', "not valid JSON: 'utf-8' codec can't decode byte 0xe9 in position 10"),
        *(("m.json", text, FORMS) for text in ("3", '"text"', "null", "{}", '{"name": "a"}', '{"tools": []}')),
        ("m.json", '{"callsheet": 1}', FORMS),
        ("m.json", '[{"name": "a"}]', "entry 1 is not an object with 'tools' by server name"),
        ("t.json", '[{"tools": {"k": {"tools": 3}}}]', "server 'k' has no list of tools"),
        ("c.json", '{"callsheet": 2, "agents": []}', "unknown format 2; this program reads 1"),
        (
            "c.json",
            '{"callsheet": 1, "agents": [{"id": "a"}, {"id": "b", "tool": []}]}',
            "agents.1: Agent: tool: Extra inputs are not permitted",
        ),
        ("m.json", '{"name": " ", "tools": []}', "the agent's name is empty: give it one"),
    ],
    ids=range(17),
)
def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    tmp_path: Path, name: str, content: str | bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CatalogError) as caught:
        load(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_folder_without_a_manifest_says_what_it_should_hold_or_the_first_reason(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"no manifest and no skill in this folder: it should hold one \.json file"):
        load(tmp_path)
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("[")
    with pytest.raises(CatalogError, match=r"none of its 2 files is a manifest: .*a\.json: not a catalog"):
        load(tmp_path)


def test_half_of_toollinkos_names_the_missing_file(tmp_path: Path) -> None:
    (tmp_path / "core_tools.json").write_text("[]")
    with pytest.raises(CatalogError, match=r"regular_tools\.json: cannot be read: No such file"):
        load(tmp_path / "core_tools.json")


@pytest.mark.parametrize(
    "tools", [{"a": 1}, [3], [{"name": "x", "depends_on": [{"name": "y"}]}], [{"name": "x", "parameters": [{}]}]]
)
def test_toollinkos_of_another_form(tmp_path: Path, tools: Any) -> None:
    (tmp_path / "core_tools.json").write_text("[]")
    (tmp_path / "regular_tools.json").write_text(json.dumps(tools))
    with pytest.raises(CatalogError, match=r"entry 1 of ToolLinkOS's tools does not have the published format"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["nowhere.json", "no/such/folder", "a\0b", "~nobody-of-this-name/x", "x" * 5000, ""])
def test_a_place_that_does_not_exist(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CatalogError, match=r"no catalog at|no manifest and no skill in this folder"):
        load(name)


def test_what_is_no_source() -> None:
    with pytest.raises(CatalogError, match=r"give an mcp\.json, a folder of manifests or module:object"):
        load()
    with pytest.raises(CatalogError, match="it is of type int"):
        load(cast("Catalog", 5))


def test_one_agent_in_two_places_names_both(tmp_path: Path) -> None:
    (file := tmp_path / "a.json").write_text('{"name": "same", "tools": []}')
    (tmp_path / "b.json").write_text('{"name": "same", "tools": []}')
    with pytest.raises(CatalogError, match=r"'same' is in .*a\.json and again in .*b\.json: rename or leave out one"):
        load(tmp_path)
    for other, called in ((Catalog(agents=(Agent(id="same"),)), "a catalog in memory"), (file, r".*a\.json")):
        with pytest.raises(CatalogError, match=rf"'same' is in .*a\.json and again in {called}"):
            load(file, other)
