"""The budget of a selection: the number of tools, the tokens of their schemas, and the tools that repeat others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from callsheet.graphs import Catalog, Tool, shown, shown_schema
from callsheet.retrievers.index.embedding import shared_tokenizer
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
        """Returns the total tokens of the tools with these ids."""
        ids = list(tools)
        new = [tool for tool in dict.fromkeys(ids) if tool not in self._counts]
        texts = [openai_form(self._catalog.tool(tool)) for tool in new]
        encodings = shared_tokenizer().encode_batch(texts, add_special_tokens=False)
        self._counts.update(zip(new, (len(encoding.ids) for encoding in encodings), strict=True))
        return sum(self._counts[tool] for tool in ids)

    def copied(self, tool: str, others: Iterable[str]) -> str:
        """Returns the first of the other tools of the same agent that differs by its name only; empty if none does."""
        own = self._catalog.tool(tool)
        known = (self._catalog.tool(other) for other in others if other != tool and own.description)
        alike = [one for one in known if one.agent == own.agent and one.description == own.description]
        return next((one.id for one in alike if _definition(one) == _definition(own)), "")


@dataclass(slots=True)
class Budget:
    """The tools selected so far, each with the agent that it is selected for, and those that did not fit, by id."""

    tools: int
    schema_tokens: int | None
    count: SchemaTokens
    taken: dict[str, tuple[str, PickedTool]] = field(default_factory=dict)
    cut: dict[str, Cut] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Returns whether the maximum number of tools is reached."""
        return len(self.taken) >= self.tools

    def offer(self, agent: str, group: Sequence[PickedTool]) -> None:
        """Adds all these tools for an agent or none of them; only the first group may be added in part."""
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
        """Returns why these tools do not fit; empty if they do."""
        room = self.tools - len(self.taken)
        if len(new) > room:
            few = room and len(new) > 1
            return f"only {room} left, with its requirements {len(new)}" if few else "the budget is spent"
        together = [*self.taken, *(tool.id for tool in new)]
        if self.schema_tokens is None:
            return ""
        cost = self.count.count(together)
        return f"{cost} tokens of schemas, {self.schema_tokens} are allowed" if cost > self.schema_tokens else ""


def openai_form(tool: Tool) -> str:
    """Returns a tool as compact JSON in OpenAI's form: name, description and JSON Schema."""
    schema = shown_schema(tool.input_schema)
    function = {"name": tool.name, "description": shown(tool.description), "parameters": schema}
    return json.dumps({"type": "function", "function": function}, ensure_ascii=False, separators=(",", ":"))


def _definition(tool: Tool) -> tuple[object, ...]:
    """Returns all that a server says of a tool but its names and titles, which are often made of names."""
    parts = (tool.input_schema, tool.output_schema or {}, tool.annotations)
    return tool.description, *({key: item for key, item in part.items() if key != "title"} for part in parts)
