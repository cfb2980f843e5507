"""The budget of a selection: a number of tools, and of tokens of their schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from callsheet.graphs import Catalog, Tool, shown, shown_schema
from callsheet.retrievers.index.embedding.minilm import shared_tokenizer
from callsheet.retrievers.selection.result import Cut, PickedTool


class SchemaTokens:
    """Counts the tokens of tools in the form that a model is shown; counts are cached.

    The tokenizer is that of the embedded model (WordPiece, 30,522 words), so a count is an approximation: other models
    have other vocabularies. The share of a selection in the whole catalog is more reliable than the number.
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

    def same(self, tool: str, others: Iterable[str]) -> str:
        """The first of the other tools that a model is shown in the same form, by id; empty if there is none."""
        own = self._catalog.tool(tool)
        namesakes = (self._catalog.tool(other) for other in others if other != tool and other.endswith(f"/{own.name}"))
        return next((one.id for one in namesakes if openai_form(one) == openai_form(own)), "")


@dataclass(slots=True)
class Budget:
    """The tools selected so far, in order, and those that did not fit.

    Attributes:
        schema_tokens: Maximum number of tokens of their schemas; None: no maximum.
        count: Counts the tokens.
        taken: Tool id -> the agent that the tool is selected for, and the tool.
        cut: Tool id -> the tool that did not fit, and why.
    """

    tools: int
    schema_tokens: int | None
    count: SchemaTokens
    taken: dict[str, tuple[str, PickedTool]] = field(default_factory=dict)
    cut: dict[str, Cut] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether the maximum number of tools is reached."""
        return len(self.taken) >= self.tools

    def offer(self, agent: str, group: Sequence[PickedTool]) -> None:
        """Adds all of these tools for an agent, or none; of the first group, as many as fit."""
        new = list({tool.id: tool for tool in group if tool.id not in self.taken}.values())
        if not new:
            return
        excess = self._excess(new)
        while excess and not self.taken and len(new) > 1:
            self.leave_out(new.pop(), excess)
            excess = self._excess(new)
        for tool in new:
            if excess:
                self.leave_out(tool, excess)
            else:
                self.taken[tool.id] = (agent, tool)
                self.cut.pop(tool.id, None)

    def leave_out(self, tool: PickedTool, why: str) -> None:
        """Records why a tool is left out; the first reason stays."""
        self.cut.setdefault(tool.id, Cut(tool.id, tool.score, why))

    def _excess(self, new: Sequence[PickedTool]) -> str:
        """Why these tools do not fit; empty if they do."""
        room = self.tools - len(self.taken)
        if len(new) > room:
            return (
                f"only {room} left, with its requirements {len(new)}"
                if room and len(new) > 1
                else "the budget is spent"
            )
        if self.schema_tokens is None:
            return ""
        cost = self.count.count([*self.taken, *(tool.id for tool in new)])
        return f"{cost} tokens of schemas, {self.schema_tokens} are allowed" if cost > self.schema_tokens else ""


def openai_form(tool: Tool) -> str:
    """A tool as compact JSON in OpenAI's form: name, description and JSON Schema."""
    function = {
        "name": tool.name,
        "description": shown(tool.description),
        "parameters": shown_schema(tool.input_schema),
    }
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, separators=(",", ":"))
