"""Files that are nested without end, too large, or no files: a clear error, without a crash and without waiting."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from callsheet.graphs import CatalogError, SettingsError, load
from callsheet.graphs.capabilities.taxonomy import read_taxonomy
from callsheet.graphs.catalog.formats.manifests import BoundError, read_yaml
from callsheet.graphs.trust.policy import read_policy

DEEP = 100_000
SPECIFICATION = 'openapi: 3.0.0\ninfo: {title: t, version: "1"}\npaths: {}\n'


@pytest.mark.parametrize(
    "nested",
    [
        "[" * DEEP + "]" * DEEP,
        "[" * DEEP,
        "{a: " * DEEP + "1" + "}" * DEEP,
        "- " * DEEP + "x",
        "? " * DEEP + "x",
        "&a [" * DEEP,
        "!!seq [" * DEEP,
        "[{" * DEEP,
    ],
    ids=lambda text: text[:6],
)
def test_yaml_nested_without_end_is_refused_before_it_is_built(nested: str, tmp_path: Path) -> None:
    with pytest.raises(BoundError, match="nested more than 200 levels deep"):
        read_yaml(f"x:\n  {nested}", "spec")
    (tmp_path / "spec.yaml").write_text(f"{SPECIFICATION}x-d:\n  {nested}")
    with pytest.raises(CatalogError, match="nested more than 200 levels deep"):
        load(tmp_path / "spec.yaml")
    skill = tmp_path / "skills" / "a" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(f"---\nname: a\ndescription: b\nx:\n  {nested[:400_000]}\n---\nText.")
    with pytest.raises(CatalogError, match="nested more than 200 levels deep"):
        load(tmp_path / "skills")


def test_yaml_of_the_depth_of_real_documents_is_read() -> None:
    assert read_yaml(f"x: {'[' * 150}1{']' * 150}", "spec")["x"]
    assert read_yaml("a: [1, 2]\n" * 1 + "b: {c: d}", "spec") == {"a": [1, 2], "b": {"c": "d"}}


def test_yaml_of_too_many_nodes_is_refused_before_it_is_built() -> None:
    with pytest.raises(BoundError, match="more than 1,000 nodes"):
        read_yaml(f"[{'a, ' * 1_001}]", "spec", most=1_000)


def test_json_nested_without_end_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "a.json"
    for text in ("[" * DEEP, '{"name": "a", "tools": ' + '{"a": ' * DEEP, '{"mcpServers": ' + "[" * DEEP + "]" * DEEP):
        place.write_text(text)
        with pytest.raises(CatalogError, match="nested too deeply"):
            load(place)
        with pytest.raises(SettingsError, match="cannot be read"):
            read_policy(place)


def test_a_pipe_or_a_device_in_place_of_a_file_does_not_hang(tmp_path: Path) -> None:
    pipe, zero = tmp_path / "pipe", tmp_path / "zero"
    os.mkfifo(pipe)
    zero.symlink_to("/dev/zero")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good.json").write_text(json.dumps({"name": "good", "tools": [{"name": "get"}]}))
    for place in (pipe, zero):
        (folder / f"{place.name}.json").symlink_to(place)
        (folder / f"{place.name}.yaml").symlink_to(place)
        with pytest.raises(CatalogError, match="no catalog at"):
            load(place)
        with pytest.raises(SettingsError, match="it is not a regular file"):
            read_policy(place)
        with pytest.raises(CatalogError, match="it is not a regular file"):
            read_taxonomy(place)
    loaded = load(folder)
    assert list(loaded.catalog.tools) == ["good/get"]
    assert {problem.agent for problem in loaded.problems} == {"pipe.json", "zero.json"}
    entries = {
        "spec": {"openapi": str(pipe), "url": "http://127.0.0.1:9"},
        "endless": {"openapi": str(zero), "url": "http://127.0.0.1:9"},
        "variables": {"command": "true", "envFile": str(pipe)},
    }
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": entries}))
    problems = {problem.agent: problem.message for problem in load(config, yes=True).problems}
    assert problems.keys() == entries.keys()
    assert "it is not a regular file" in problems["spec"]
    assert "it is not a regular file" in problems["endless"]
    assert "is not a file of at most" in problems["variables"]
