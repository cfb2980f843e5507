"""What a conversation asks for, piece by piece: the user's last request, the agent's words since, its to-do list."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from callsheet.orchestrator.step.step_selection import selected
from callsheet.retrievers import AgentGraphRetriever, units_of

MOST_ADDED = 5
"""Tools that are added for a sentence of the agent or a to-do item, and for a call of ``need_tool``."""
_READ = 4_000
"""Characters of an agent's text that are read, from its end, where it says what it does next."""
_CUT = 2.0
"""``SelectSettings.cut`` for these: what is unlikely to be needed is not added."""
_SURE = 2.0
"""How many times the retriever's threshold a sentence of the agent must reach: most of them ask for nothing."""


_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that is asked for.

    Attributes:
        text: Its words.
        by_user: Whether the user said so; else the agent did.
        sure: How many times the retriever's threshold it must reach.
    """

    text: str
    by_user: bool = False
    sure: float = 1.0

    @property
    def key(self) -> str:
        """Tells it from others by its words, whatever their case and what stands between them; empty without any."""
        words = " ".join(_WORD.findall(self.text.lower()))
        return words and sha256(words.encode("utf-8", "replace")).hexdigest()[:16]


def requests_of(state: Mapping[str, Any]) -> list[Request]:
    """What the state of an agent asks for, each once, the user first; nothing where it holds no words.

    Args:
        state: ``messages``, which need no ids, and perhaps ``todos``, as LangChain's ``TodoListMiddleware`` keeps them.
    """
    said = [
        *_by_user(state.get("messages") or []),
        *_by_agent(state.get("messages") or []),
        *_to_do(state.get("todos")),
    ]
    return list({request.key: request for request in reversed(said) if request.key}.values())[::-1]


def last_request(messages: Sequence[AnyMessage]) -> int:
    """Where the user's last message is, -1 where there is none; middlewares write in the user's name as well."""
    places = (n for n in range(len(messages) - 1, -1, -1) if _of_user(messages[n]))
    return next(places, -1)


def picked(
    request: Request, retriever: AgentGraphRetriever, held: Collection[str], *, agents: int, tools: int
) -> list[str]:
    """Ids of the tools that a request needs; none if nothing fits, or if the agent holds what fits best.

    Args:
        request: What is asked for.
        retriever: Over what the user may see.
        held: Ids of the tools that the agent has.
        agents: Maximum number of agents.
        tools: Maximum number of tools.
    """
    own = retriever.selector.settings
    if request.by_user:
        selection = selected(retriever, _shortened(request.text, own.max_query), agents=agents, tools=tools)
        all_shown = len(retriever.catalog.tools) <= tools
        return [tool.id for tool in selection.tools if selection.verdict == "found" or all_shown]
    reach: dict[str, Any] = {"agents": agents, "tools": min(tools, MOST_ADDED), "implied": False, "cut": _CUT}
    selection = selected(retriever, request.text, **reach, threshold=own.threshold * request.sure)
    ids = [tool.id for tool in selection.tools]
    return ids if selection.verdict == "found" and ids[0] not in held else []


def _by_user(messages: Sequence[AnyMessage]) -> Iterator[Request]:
    if (place := last_request(messages)) >= 0:
        yield Request(messages[place].text, by_user=True)


def _by_agent(messages: Sequence[AnyMessage]) -> Iterator[Request]:
    """The sentences of what the agent said last, if it has said something since the user did."""
    since = [message for message in messages[last_request(messages) + 1 :] if isinstance(message, AIMessage)]
    for clause in _clauses(since[-1].text) if since else []:
        yield Request(clause, sure=_SURE)


def _to_do(todos: object) -> Iterator[Request]:
    """What the agent has still to do."""
    for item in todos if isinstance(todos, list) else []:
        content = item.get("content") if isinstance(item, Mapping) and item.get("status") != "completed" else None
        for clause in _clauses(content) if isinstance(content, str) else []:
            yield Request(clause)


def _clauses(text: str) -> list[str]:
    units = units_of(text[-_READ:], implied=False)
    return [unit.text for unit in units if unit.kind == "clause"] or [units[0].text]


def _of_user(message: AnyMessage) -> bool:
    """Whether a person wrote it: LangChain marks what its middlewares add, a summary for example."""
    return isinstance(message, HumanMessage) and not message.additional_kwargs.get("lc_source")


def _shortened(text: str, most: int) -> str:
    """A text that is too long to be searched for, without its middle: people say what they want first or last."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}\n{text[-(most // 2 - 1) :]}"
