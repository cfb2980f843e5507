"""Hidden text in the parts of a definition that are no descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import load, shown_schema
from callsheet.graphs.text.hidden import LONGEST_TEXT, hidden_in
from callsheet.graphs.text.unicode import strings_in
from callsheet.graphs.trust.pins import hides_text
from fleet import Fleet, definition

HIDDEN = "a\U000e0041\U000e0042b"


def schemas(text: str) -> list[dict[str, Any]]:
    """A schema for each place in which a text can stand."""
    return [
        {text: 1},
        {"pattern": text},
        {"format": text},
        {"$id": text},
        {"$ref": text},
        {"required": [text]},
        {"default": text},
        {"default": {"deep": [text]}},
        {"enum": [text, "other"]},
        {"examples": [{text: 1}]},
        {"const": text},
        {"properties": {text: {}}},
        {"properties": {"x": {"items": [{"pattern": text}, {text: {}}]}}},
        {"dependentRequired": {"x": [text], text: ["x"]}},
        {"x-anything": {"deep": {"deeper": text}}},
        {"title": text},
        {"allOf": [{"$comment": text}]},
    ]


@pytest.mark.parametrize("schema", schemas(HIDDEN), ids=str)
def test_no_string_of_a_schema_shows_a_model_what_nobody_sees(schema: dict[str, Any]) -> None:
    assert not any(hidden_in(text) for text in strings_in(shown_schema(schema)))


@pytest.mark.parametrize("schema", schemas("x" * 5_000), ids=lambda schema: str(schema)[:40])
def test_no_string_of_a_schema_is_longer_than_a_text_may_be(schema: dict[str, Any]) -> None:
    assert max(map(len, strings_in(shown_schema(schema))), default=0) <= LONGEST_TEXT


def test_a_new_tool_that_hides_text_anywhere_is_suspect() -> None:
    padding = "x " * 2_100
    for schema in schemas(padding + HIDDEN):
        assert hides_text(definition("work", inputSchema=schema)), schema
    assert not hides_text(definition("work"))


def test_a_tool_that_hides_text_is_not_used(fleet: Fleet) -> None:
    schema = {"type": "object", "properties": {"x": {"enum": ["x " * 2_100 + HIDDEN]}}}
    fleet.serve("notes", definition("add", inputSchema=schema), definition("list"))
    loaded = load(fleet.config, yes=True)
    assert set(loaded.catalog.tools) == {"notes/list"}
    assert [change.kind for change in loaded.changes] == ["suspect"]
