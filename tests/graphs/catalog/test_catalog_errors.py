"""Every mistake in a catalog is said in words: what, which, and how to cure it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from callsheet.graphs import Agent, Catalog, CatalogError, load


def refusal(path: Path, content: str | bytes) -> str:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CatalogError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_malformed_json_names_file_line_and_column(tmp_path: Path) -> None:
    assert "line 3 column 1" in refusal(tmp_path / "m.json", '{"name": "a",\n "tools": [}\n'.replace("[}", "[\n}"))


def test_an_empty_file(tmp_path: Path) -> None:
    assert "the file is empty" in refusal(tmp_path / "m.json", "")


def test_text_that_is_not_utf_8_names_the_byte(tmp_path: Path) -> None:
    assert "not UTF-8 text: invalid continuation byte at byte 10" in refusal(tmp_path / "m.json", b'{"name": "\xe9"}')


@pytest.mark.parametrize("content", ["3", '"text"', "null", "{}", '{"name": "a"}', '{"tools": []}', '{"callsheet": 1}'])
def test_what_is_no_catalog_says_what_one_looks_like(tmp_path: Path, content: str) -> None:
    said = refusal(tmp_path / "m.json", content)
    assert "expected 'mcpServers' (or 'servers'), 'callsheet' with 'agents', or a manifest with 'name'" in said


def test_a_list_of_something_else(tmp_path: Path) -> None:
    assert "entry 1 is not an object with 'tools' by server name" in refusal(tmp_path / "m.json", '[{"name": "a"}]')


def test_a_livemcpbench_server_without_a_list(tmp_path: Path) -> None:
    assert "server 'k' has no list of tools" in refusal(tmp_path / "t.json", '[{"tools": {"k": {"tools": 3}}}]')


def test_a_later_format_of_our_own(tmp_path: Path) -> None:
    said = refusal(tmp_path / "c.json", '{"callsheet": 2, "agents": []}')
    assert "unknown format 2; this program reads 1" in said


def test_a_mistake_in_our_own_form_names_the_place(tmp_path: Path) -> None:
    said = refusal(tmp_path / "c.json", '{"callsheet": 1, "agents": [{"id": "a"}, {"id": "b", "tool": []}]}')
    assert "agents.1: Agent: tool: Extra inputs are not permitted" in said


def test_a_blank_agent_name(tmp_path: Path) -> None:
    assert "the agent's name is empty: give it one" in refusal(tmp_path / "m.json", '{"name": " ", "tools": []}')


@pytest.mark.parametrize("depth", [2_000, 100_000])
def test_json_that_no_parser_would_follow(tmp_path: Path, depth: int) -> None:
    assert "nested too deeply" in refusal(tmp_path / "m.json", "[" * depth + "]" * depth)


def test_a_number_of_5000_digits(tmp_path: Path) -> None:
    assert "a number that is too long" in refusal(tmp_path / "m.json", f'{{"name": "a", "tools": [{"9" * 5000}]}}')


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r"no manifest and no skill in this folder: it should hold one \.json file per agent"
    ):
        load(tmp_path)


def test_a_folder_without_any_manifest_gives_the_first_reason(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    (tmp_path / "b.json").write_text("[")
    with pytest.raises(CatalogError, match=r"none of its 2 files is a manifest: .*a\.json: not a catalog"):
        load(tmp_path)


def test_half_of_toollinkos_names_the_missing_file(tmp_path: Path) -> None:
    (tmp_path / "core_tools.json").write_text("[]")
    with pytest.raises(CatalogError, match=r"regular_tools\.json is missing"):
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


def test_no_source_at_all() -> None:
    with pytest.raises(CatalogError, match=r"give an mcp\.json, a folder of manifests or module:object"):
        load()


def test_an_object_that_is_no_source() -> None:
    with pytest.raises(CatalogError, match="it is of type int"):
        load(cast("Catalog", 5))


def test_one_agent_in_two_files_of_a_folder_names_both(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text('{"name": "same", "tools": []}')
    with pytest.raises(CatalogError, match=r"agent 'same' is in .*a\.json and again in .*b\.json: rename one"):
        load(tmp_path)


def test_one_agent_in_two_sources_names_both(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"name": "same", "tools": []}')
    with pytest.raises(CatalogError, match=r"agent 'same' is in .*a\.json and again in a catalog in memory"):
        load(tmp_path / "a.json", Catalog(agents=(Agent(id="same"),)))


def test_the_same_source_twice(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"name": "same", "tools": []}')
    with pytest.raises(CatalogError, match=r"agent 'same' is in .*a\.json and again in .*a\.json"):
        load(tmp_path / "a.json", tmp_path / "a.json")
