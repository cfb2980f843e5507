"""What tools cost a model: the tokens of their schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable

from callsheet.graphs import Catalog, Tool, shown, shown_schema
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer


class SchemaTokens:
    """Counts the tokens of tools as a model is shown them, each tool once.

    The tokenizer is the embedded model's (WordPiece, 30,522 words), so a count is an approximation: a chat model
    with another vocabulary counts otherwise, so the share of a selection in the whole is worth more than the number.

    Args:
        catalog: Whose tools are counted.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._counts: dict[str, int] = {}

    def count(self, tools: Iterable[str]) -> int:
        """The tokens of these tools together, by id."""
        wanted = list(tools)
        new = [tool for tool in dict.fromkeys(wanted) if tool not in self._counts]
        texts = [openai_form(self._catalog.tool(tool)) for tool in new]
        encodings = shared_tokenizer().encode_batch(texts, add_special_tokens=False)
        self._counts.update(zip(new, (len(encoding.ids) for encoding in encodings), strict=True))
        return sum(self._counts[tool] for tool in wanted)


def openai_form(tool: Tool) -> str:
    """A tool as a chat model is given it: name, description and JSON Schema in OpenAI's form, as compact JSON."""
    function = {
        "name": tool.name,
        "description": shown(tool.description),
        "parameters": shown_schema(tool.input_schema),
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, separators=(",", ":"))
