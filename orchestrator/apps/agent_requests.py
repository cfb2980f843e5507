"""What a conversation asks for, piece by piece: the user's last request, the agent's words since, its to-do list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from callsheet.orchestrator.step.step_selection import selected
from callsheet.retrievers import AgentGraphRetriever, units_of

MOST_ADDED = 5
"""Tools that are added for a sentence of the agent or a to-do item, and for a call of ``need_tool``."""
_READ = 4_000
"""Characters of an agent's text that are read, from its end, where it says what it does next."""
_SURE = 2.0
"""How many times the retriever's threshold a sentence of the agent must reach: most of them ask for nothing."""
_CUT = 2.0
"""``SelectSettings.cut`` for a sentence: what is unlikely to be needed is not added."""
Source = Literal["user", "agent", "to-do list"]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that is asked for.

    Attributes:
        text: Its words.
        source: Who said so.
    """

    text: str
    source: Source

    @property
    def key(self) -> str:
        """Tells it from others by its words, whatever their case and what stands between them; empty without any.

        What was no more than a sentence of the agent may still become an item of its list.
        """
        words = " ".join(_WORD.findall(self.text.lower()))
        return words and sha256(f"{self.source == 'agent'} {words}".encode("utf-8", "replace")).hexdigest()[:16]


def requests_of(state: Mapping[str, Any]) -> list[Request]:
    """What the state of an agent asks for, each once, the user first; nothing where it holds no words.

    Args:
        state: ``messages``, which need no ids, and perhaps ``todos``, as LangChain's ``TodoListMiddleware`` keeps them.
    """
    messages, found = state.get("messages", []), dict[str, Request]()
    for request in (*_by_user(messages), *_to_do(state.get("todos")), *_by_agent(messages)):
        if request.key:
            found.setdefault(request.key, request)
    return list(found.values())


def last_request(messages: Sequence[AnyMessage]) -> int:
    """Where the user's last message is, -1 where there is none; middlewares write in the user's name as well."""
    places = (n for n in range(len(messages) - 1, -1, -1) if _of_user(messages[n]))
    return next(places, -1)


def picked(request: Request, retriever: AgentGraphRetriever, held: Set[str], *, agents: int, tools: int) -> list[str]:
    """Ids of the tools that a request needs; none if nothing fits, or if the agent holds what fits best.

    For an item of a to-do list, these are the best two tools: it stands for a step of the work. A sentence may just
    tell what was done, and only counts where one fits it well.

    Args:
        request: What is asked for.
        retriever: Over what the user may see.
        held: Ids of the tools that the agent has.
        agents: Maximum number of agents.
        tools: Maximum number of tools.
    """
    own = retriever.selector.settings
    few: dict[str, Any] = {"agents": agents, "tools": min(tools, MOST_ADDED)}
    match request.source:
        case "user":
            text, all_shown = _shortened(request.text, own.max_query), len(retriever.catalog.tools) <= tools
            selection, best = selected(retriever, text, agents=agents, tools=tools), tools
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
    """The sentences of what the agent said last, if it has said something since the user did."""
    since = [message for message in messages[last_request(messages) + 1 :] if isinstance(message, AIMessage)]
    for clause in _clauses(since[-1].text) if since else []:
        yield Request(clause, "agent")


def _to_do(todos: object) -> Iterator[Request]:
    """What the agent has still to do."""
    for item in todos if isinstance(todos, list) else []:
        content = item.get("content") if isinstance(item, Mapping) and item.get("status") != "completed" else None
        for clause in _clauses(content) if isinstance(content, str) else []:
            yield Request(clause, "to-do list")


def _clauses(text: str) -> list[str]:
    units = units_of(text[-_READ:], implied=False)
    return [unit.text for unit in units if unit.kind == "clause"] or [units[0].text]


def _of_user(message: AnyMessage) -> bool:
    """Whether a person wrote it: LangChain marks what its middlewares add, a summary for example."""
    return isinstance(message, HumanMessage) and not message.additional_kwargs.get("lc_source")


def _shortened(text: str, most: int) -> str:
    """A text that is too long to be searched for, without its middle: people say what they want first or last."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}\n{text[-(most // 2 - 1) :]}"
