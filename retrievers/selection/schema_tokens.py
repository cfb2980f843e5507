"""Counts the tokens of tool schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable

from callsheet.graphs import Catalog, Tool, shown, shown_schema
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer


class SchemaTokens:
    """Counts the tokens of tools in the form that a model is shown; counts are cached.

    The tokenizer is that of the embedded model (WordPiece, 30,522 words), so a count is an approximation: other models
    have other vocabularies. The share of a selection in the whole catalog is more reliable than the number.

    Args:
        catalog: The catalog of the tools.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: dict[str, int] = {}

    def count(self, tools: Iterable[str]) -> int:
        """The tokens of these tools together, by id."""
        ids = list(tools)
        new = [tool for tool in dict.fromkeys(ids) if tool not in self._counts]
        texts = [openai_form(self._catalog.tool(tool)) for tool in new]
        encodings = shared_tokenizer().encode_batch(texts, add_special_tokens=False)
        self._counts.update(zip(new, (len(encoding.ids) for encoding in encodings), strict=True))
        return sum(self._counts[tool] for tool in ids)


def openai_form(tool: Tool) -> str:
    """A tool as compact JSON in OpenAI's form: name, description and JSON Schema."""
    function = {
        "name": tool.name,
        "description": shown(tool.description),
        "parameters": shown_schema(tool.input_schema),
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, separators=(",", ":"))
