"""The taxonomy of capabilities: what ships, and files of users."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import CatalogError, Taxonomy, UnknownNameError, default_taxonomy, read_taxonomy, shipped_taxonomy


def capability(name: str, broader: str | None = None, **more: Any) -> dict[str, Any]:
    about = {"name": name, "definition": f"Does {name}.", "examples": [f"do {name}", f"please {name}"]}
    return {"id": name, "broader": broader, **about, **more}


def written(folder: Path, content: object) -> Path:
    path = folder / "taxonomy.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "counts"), [("default", [4, 10, 0]), ("detailed", [4, 10, 46])])
def test_a_shipped_taxonomy_has_four_clusters_and_ten_capabilities_below(
    name: str, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_TAXONOMY", name)
    taxonomy = read_taxonomy()
    assert taxonomy is read_taxonomy(name)
    depth = {name: len(taxonomy.ancestors(name)) for name in taxonomy.by_id}
    assert [list(depth.values()).count(d) for d in (0, 1, 2)] == counts


def test_the_default_taxonomy_is_that_of_the_paper() -> None:
    """Representing Agentic Tools in Knowledge Graphs, section 4.2."""
    paper = {
        "information access": ["web search", "database querying", "external API access"],
        "content generation": ["text generation", "code generation", "image generation"],
        "data processing": ["information transformation", "computation"],
        "system interaction": ["file management", "shell execution"],
    }
    entries = default_taxonomy().capabilities
    assert paper == {
        wide.name: [one.name for one in entries if one.broader == wide.id] for wide in entries if not wide.broader
    }


def test_a_leaf_knows_its_ancestors_and_its_capability_at_each_depth() -> None:
    taxonomy = shipped_taxonomy("detailed")
    assert taxonomy.ancestors("web-search") == ("search", "access")
    assert [taxonomy.at(depth, "web-search") for depth in range(4)] == ["access", "search", "web-search", "web-search"]
    assert taxonomy.at(2, "delete") == "delete"
    with pytest.raises(UnknownNameError, match=r"no capability 'web-serch'.*'web-search'"):
        taxonomy.capability("web-serch")


def test_a_taxonomy_file_extends_a_shipped_one_or_stands_alone(tmp_path: Path) -> None:
    for extends, broader in (("detailed", "access"), ("default", "information-access")):
        path = written(tmp_path, {"extends": extends, "capabilities": [capability("dna-search", broader)]})
        taxonomy = read_taxonomy(path)
        assert taxonomy.ancestors("dna-search") == (broader,)
        assert len(taxonomy.capabilities) == len(read_taxonomy(extends).capabilities) + 1
    path = written(tmp_path, {"extends": False, "capabilities": [capability("a"), capability("b", "a")]})
    assert read_taxonomy(path).leaves == ("b",)
    with pytest.raises(CatalogError, match="cannot be read"):
        read_taxonomy(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"capabilities": [capability("web-search")]}, "two capabilities have the id 'web-search'"),
        (
            {"extends": "detailed", "capabilities": [capability("x", "serch")]},
            "under 'serch', which.*not hold.*'search'",
        ),
        ({"extends": "paper", "capabilities": [capability("x")]}, "extends"),
        ({"capabilities": [capability("x", "y"), capability("y", "x")]}, "cycle: (x > y > x|y > x > y)"),
        ({"capabilities": [capability("x", "x")]}, "cycle: x > x"),
        ({"capabilities": [{**capability("x"), "examples": ["one"]}]}, "examples"),
        ({"capabilities": [{**capability("x"), "definition": "  "}]}, "definition"),
        ({"capabilities": [{**capability("x"), "definition": "d" * 5_000_000}]}, "definition"),
        ({"capabilities": [{**capability("x"), "colour": "red"}]}, "colour"),
        ({"capabilities": "all"}, "capabilities"),
        ([capability("x")], "must be an object"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("null", "must be an object"),
    ],
)
def test_a_bad_taxonomy_file_is_refused_in_one_line(tmp_path: Path, content: object, said: str) -> None:
    with pytest.raises(CatalogError, match=said) as caught:
        read_taxonomy(written(tmp_path, content))
    assert "taxonomy.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_long_chain_of_capabilities_is_not_taken_for_a_cycle() -> None:
    chain = [capability("c0"), *(capability(f"c{i}", f"c{i - 1}") for i in range(1, 3000))]
    taxonomy = Taxonomy(capabilities=chain)  # type: ignore[arg-type]
    assert len(taxonomy.ancestors("c2999")) == 2999
    assert taxonomy.leaves == ("c2999",)
