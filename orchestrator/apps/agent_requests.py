"""The requests in a conversation: the user's last message, the agent's text since then, and its to-do list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

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
    """The requests in the state of an agent, each once, the user's first; empty without any words.

    Args:
        state: ``messages``, with or without ids, and optionally ``todos`` from LangChain's ``TodoListMiddleware``.
    """
    messages, found = state.get("messages", []), dict[str, Request]()
    for request in (*_by_user(messages), *_to_do(state.get("todos")), *_by_agent(messages)):
        if request.key:
            found.setdefault(request.key, request)
    return list(found.values())


def last_request(messages: Sequence[AnyMessage]) -> int:
    """Index of the user's last message, -1 without one; messages of middleware in the user's name do not count."""
    places = (n for n in range(len(messages) - 1, -1, -1) if _of_user(messages[n]))
    return next(places, -1)


def picked(request: Request, retriever: AgentGraphRetriever, held: Set[str], *, tools: int, **reach: Any) -> list[str]:
    """Ids of the tools for a request; empty if nothing fits, or if the agent has the best ones.

    For a to-do item the best ones are two tools, because it stands for a step. A sentence may only report what was
    done, and counts only if a tool fits it well. If nothing fits the user's request, all tools of a catalog that has no
    more than ``tools`` are given.

    Args:
        request: The request.
        retriever: Selects the tools.
        held: Ids of the tools that the agent has.
        tools: Maximum number of tools.
        reach: Further options of the selection.
    """
    own = retriever.selector.settings
    few: dict[str, Any] = {**reach, "tools": min(tools, MOST_ADDED), "skills": 0}
    match request.source:
        case "user":
            text, all_shown = _shortened(request.text, own.max_query), len(retriever.catalog.tools) <= tools
            selection, best = selected(retriever, text, **{**few, "tools": tools}), tools
            if selection.verdict == "nothing_fits" and all_shown:
                selection = selected(retriever, text, **{**few, "tools": tools, "floor": 0.0})
        case "to-do list":
            selection, best, all_shown = selected(retriever, request.text, **few), 2, False
        case "agent":
            sure: dict[str, Any] = {"threshold": own.threshold * _SURE, "cut": _CUT, "implied": False}
            selection, best, all_shown = selected(retriever, request.text, **few, **sure), 1, False
    ids = [tool.id for tool in selection.tools]
    return ids if (selection.verdict == "found" or all_shown) and not held >= set(ids[:best]) else []


def _by_user(messages: Sequence[AnyMessage]) -> Iterator[Request]:
    if (place := last_request(messages)) >= 0:
        yield Request(messages[place].text, "user")


def _by_agent(messages: Sequence[AnyMessage]) -> Iterator[Request]:
    """The sentences of the agent's last message since the user's."""
    since = [message for message in messages[last_request(messages) + 1 :] if isinstance(message, AIMessage)]
    for clause in _clauses(since[-1].text) if since else []:
        yield Request(clause, "agent")


def _to_do(todos: object) -> Iterator[Request]:
    """The open items of the agent's list."""
    for item in todos if isinstance(todos, list) else []:
        content = item.get("content") if isinstance(item, Mapping) and item.get("status") != "completed" else None
        for clause in _clauses(content) if isinstance(content, str) else []:
            yield Request(clause, "to-do list")


def _clauses(text: str) -> list[str]:
    units = units_of(text[-_READ:], implied=False)
    return [unit.text for unit in units if unit.kind == "clause"] or [units[0].text]


def _of_user(message: AnyMessage) -> bool:
    """Whether a person wrote it: LangChain marks messages of its middleware, such as a summary."""
    return isinstance(message, HumanMessage) and not message.additional_kwargs.get("lc_source")


def _shortened(text: str, most: int) -> str:
    """A text without its middle, if it is too long for a search: people say what they want first or last."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}\n{text[-(most // 2 - 1) :]}"
