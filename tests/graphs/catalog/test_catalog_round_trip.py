from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import dump, load
from fuzzing import fuzzed


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("round-trip") / "callsheet.json"


@fuzzed(8)
@given(data=st.data())
def test_what_is_dumped_is_loaded_back_unchanged(data: st.DataObject, strategies: Any, place: Path) -> None:
    catalog = data.draw(strategies.catalogs())
    place.write_text(dump(catalog), encoding="utf-8", newline="")
    loaded = load(place)
    assert loaded.catalog == catalog
    assert not loaded.problems
    assert dump(loaded.catalog) == dump(catalog)


@fuzzed(5)
@given(data=st.data())
def test_a_manifest_keeps_every_name_and_text(data: st.DataObject, strategies: Any, place: Path) -> None:
    name, description, schema = (data.draw(s) for s in (strategies.names, strategies.texts, strategies.objects))
    listing = [{"name": name, "description": description, "inputSchema": schema}]
    place.write_text(json.dumps({"name": name, "tools": listing}), encoding="utf-8")
    loaded = load(place)
    tool = loaded.catalog.agent(name).tools[0]
    assert (tool.name, tool.description) == (name, description)
    assert tool.input_schema == (schema or {"type": "object", "properties": {}})
