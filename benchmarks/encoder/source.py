"""What the encoder learns from: tools by agent, and texts with the tools that answer them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from callsheet.graphs import Agent, Tool
from callsheet.retrievers.index.node_texts import first_sentence

_LONGEST, _SHORTEST = 900, 8
TAG = re.compile(r"<[^>]+>")


@dataclass(frozen=True, slots=True)
class Example:
    """A request, or a sentence of documentation.

    Attributes:
        query: The text.
        wanted: Ids of the tools that answer it.
        others: Ids of tools that were offered beside them and do not.
        documentation: Whether the text is the tool's own documentation, which the tool must then be shown without.
    """

    query: str
    wanted: tuple[str, ...]
    others: tuple[str, ...] = ()
    documentation: bool = False


@dataclass(slots=True)
class Source:
    """The tools of one publication, by agent, and its examples."""

    name: str
    agents: dict[str, dict[str, Tool]] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    def tool(self, agent: str, name: str, about: str, inputs: Iterable[str], outputs: Iterable[str] = ()) -> str:
        """Adds a tool, where it is new; its id."""
        owner, name = f"{self.name} {agent or name}".strip(), name.strip() or agent
        known = self.agents.setdefault(owner, {})
        if name not in known:
            schema = _schema(outputs)
            known[name] = Tool(
                agent=owner,
                name=name,
                description=about or "",
                input_schema=_schema(inputs),
                output_schema=schema if schema["properties"] else None,
            )
        return known[name].id

    def asked(self, query: str, wanted: Iterable[str], offered: Iterable[str] = ()) -> None:
        """Adds a request, if it has a sensible length and something is wanted."""
        text, right = " ".join(query.split()), tuple(dict.fromkeys(wanted))
        if right and _SHORTEST <= len(text) <= _LONGEST:
            self.examples.append(Example(text, right, tuple(sorted(set(offered) - set(right)))))

    def documented(self, about: str, tool: str) -> None:
        """Adds the first sentence of a tool's documentation, if it says something."""
        sentence = first_sentence(TAG.sub("", about or ""))
        if len(sentence) > 2 * _SHORTEST:
            self.examples.append(Example(sentence, (tool,), documentation=True))

    def catalog(self) -> dict[str, Agent]:
        """The agents by id; the name of one is what its publication calls it."""
        return {
            owner: Agent(id=owner, name=owner.removeprefix(self.name).strip(), tools=tuple(tools.values()))
            for owner, tools in self.agents.items()
        }


def _schema(names: Iterable[str]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in list(names)[:12]}}
