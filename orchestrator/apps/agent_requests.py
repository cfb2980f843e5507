"""The requests in a conversation: the user's last message, the agent's text since then, and its to-do list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from langchain_core.messages import AIMessage, HumanMessage

from callsheet.orchestrator.step import selected
from callsheet.retrievers import AgentGraphRetriever, units_of

MOST_ADDED = 5
"""Maximum tools added for a sentence of the agent, a to-do item, or a call of ``need_tool``."""
_READ = 4_000
"""Characters read from the end of an agent's text, where it says what it does next."""
_SURE = 2.0
"""Factor of the retriever's threshold for a sentence of the agent: most of them ask for nothing."""
_CUT = 2.0
"""``SelectSettings.cut`` for a sentence: tools that are unlikely to be needed are not added."""
Source = Literal["user", "agent", "to-do list"]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Request:
    """One request, with its author."""

    text: str
    source: Source

    @property
    def key(self) -> str:
        """Identifies the request by its words, without case and punctuation; empty if it has no words.

        A sentence of the agent and an item of its list count as different requests.
        """
        words = " ".join(_WORD.findall(self.text.lower()))
        return words and sha256(f"{self.source == 'agent'} {words}".encode("utf-8", "replace")).hexdigest()[:16]


def requests_of(state: Mapping[str, Any]) -> list[Request]:
    """The requests in ``messages`` and ``todos`` (of ``TodoListMiddleware``), each once, the user's first."""
    asked, said = "", ""
    for message in state.get("messages", []):
        if isinstance(message, HumanMessage) and not message.additional_kwargs.get("lc_source"):  # no middleware's
            asked, said = message.text, ""
        elif isinstance(message, AIMessage):
            said = message.text
    requests = [Request(asked, "user")]
    requests += [Request(clause, "to-do list") for item in _open_items(state.get("todos")) for clause in _clauses(item)]
    requests += [Request(clause, "agent") for clause in (_clauses(said) if said else [])]
    found: dict[str, Request] = {}
    for request in requests:
        if request.key:
            found.setdefault(request.key, request)
    return list(found.values())


def picked(request: Request, retriever: AgentGraphRetriever, held: Set[str], *, tools: int, **reach: Any) -> list[str]:
    """Ids of the tools for a request; empty if nothing fits, or if the agent has the best ones.

    For a to-do item the best ones are two tools, because it stands for a step. A sentence may only report what was
    done, and counts only if a tool fits it well. If nothing fits the user's request, all tools of a catalog that has no
    more than ``tools`` are given.
    """
    own, text, best, all_shown = retriever.selector.settings, request.text, 1, False
    few: dict[str, Any] = {**reach, "tools": min(tools, MOST_ADDED), "skills": 0}
    match request.source:
        case "user":
            text, best = _shortened(text, own.max_query), tools
            few["tools"], all_shown = tools, len(retriever.catalog.tools) <= tools
        case "to-do list":
            best = 2
        case "agent":
            few |= {"threshold": own.threshold * _SURE, "cut": _CUT, "implied": False}
    selection = selected(retriever, text, **few)
    if selection.verdict == "nothing_fits" and all_shown:
        selection = selected(retriever, text, **{**few, "floor": 0.0})
    ids = [tool.id for tool in selection.tools]
    return ids if (selection.verdict == "found" or all_shown) and not held >= set(ids[:best]) else []


def _open_items(todos: object) -> Iterator[str]:
    for item in todos if isinstance(todos, list) else []:
        content = item.get("content") if isinstance(item, Mapping) and item.get("status") != "completed" else None
        if isinstance(content, str):
            yield content


def _clauses(text: str) -> list[str]:
    units = units_of(text[-_READ:], implied=False)
    return [unit.text for unit in units if unit.kind == "clause"] or [units[0].text]


def _shortened(text: str, most: int) -> str:
    """A text without its middle, if it is too long for a search: people say what they want first or last."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}\n{text[-(most // 2 - 1) :]}"
