"""Answers ``need_tool``: a model gets the tools that it names; other words are answered with names of tools."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from callsheet.agents.approval.supervised_call import Answer
from callsheet.agents.calls.outcome import Outcome, answer_to, outcome_in, with_outcome
from callsheet.agents.registry.binding import NEED_TOOL, BoundTool
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.names import NamedTools, is_skill_file, named_tools, skill_named
from callsheet.graphs.text.arguments import as_texts
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import error_lines
from callsheet.graphs.text.words import split_name

_MOST_NAMED = 15
"""Maximum number of tools that one call adds."""
_WORDS = 80
"""Characters of a description in the answer; the model sees all of it with the tool."""


class _Need(BaseModel):
    """Get tools that you lack: named ones are added to yours; words are answered with names."""

    model_config = ConfigDict(title=NEED_TOOL)

    tools: list[str] = Field(
        default_factory=list, description="agent/tool; the id of an agent gives the names of its tools"
    )
    what: str = Field(default="", description="If you know no name: what the tool must do")

    @field_validator("tools", mode="before")
    @classmethod
    def _one_is_a_list(cls, tools: object) -> Any:
        return list(as_texts(tools)) if isinstance(tools, str) else tools


DEFINITION: Mapping[str, Any] = convert_to_openai_tool(_Need)


def _nothing(ids: Sequence[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ToolRequests:
    """Answers a model's requests for tools.

    Attributes:
        catalog: What the user may see.
        find: Returns the roster lines of the agents that fit some words, with the names of their tools.
        list_tools: Returns the names of the tools of an agent.
        bind: Makes tools from ids, given the names in use; returns them by the names that the model sees.
        skills: Returns the texts of skills, by name, from their ids; it may ask servers, and blocks meanwhile.
        refused: Returns those of these tools that cannot be called now, with the reasons.
        told: Returns what a model must know about new tools, as text; it may read files.
        admit: Asks a person about those of these ids that servers have added in this run; returns the catalog after
            that, and the reasons why some of them cannot be used.
        late: Returns the ids of tools that the server of an agent has added in this run, and that a person may accept.
        added: Called with what was asked for, and the ids of the tools that were added.
        most: Maximum number of tools that a call adds.
    """

    catalog: Catalog
    find: Callable[[str], Awaitable[str]]
    list_tools: Callable[[str], str]
    bind: Callable[[Sequence[str], Collection[str]], Mapping[str, BoundTool]]
    skills: Callable[[Sequence[str]], Mapping[str, str]] = _nothing
    refused: Callable[[Sequence[str]], Mapping[str, str]] = _nothing
    told: Callable[[Sequence[str]], str] = lambda ids: ""
    admit: Callable[[Sequence[str]], Awaitable[tuple[Catalog, Mapping[str, str]]]] | None = None
    late: Callable[[str], Awaitable[Sequence[str]]] | None = None
    added: Callable[[str, Sequence[str]], None] = lambda asked, ids: None
    most: int = _MOST_NAMED


async def answer_request(call: ToolCall, tools: Mapping[str, BoundTool], requests: ToolRequests) -> ToolMessage:
    """Answers a call of ``need_tool``, by which a model asks for more tools; ``tools`` are those that it already has.

    The tools that it names are added to them, at most ``requests.most``. The answer also has similar ids for each
    unknown name, the tools of each named agent, the text of each named skill, and the agents that fit the description
    in ``what``, with the names of their tools.
    """
    try:
        need = _Need.model_validate(call["args"])
    except ValidationError as error:
        return answer_to(call, error_lines(error), error=True)
    names, words = _names_and_words(need, requests.catalog)
    if not names and not words:
        return answer_to(call, "name the tools in 'tools', or say in 'what' what a tool must do", error=True)
    unfit: Mapping[str, str] = {}
    if requests.admit:
        catalog, unfit = await requests.admit(names)
        requests = replace(requests, catalog=catalog)
    files, others = _divided([name for name in names if name not in unfit], requests.catalog)
    named = named_tools(requests.catalog, others)
    added, lines = _add(named, tools, requests)
    if added and (told := await asyncio.to_thread(requests.told, added)):
        lines.append(told)
    lines += _unknown_lines(named, unfit)
    lines += [requests.list_tools(agent) for agent in named.agents]
    lines += await asyncio.to_thread(_skill_lines, [*named.ids, *files], requests)
    search = _search_text(words, named)
    if search:
        lines.append(await requests.find(search))
    wanted = [*names, words] if words else names
    requests.added(", ".join(wanted), added)
    only_unknown = not words and len(named.unknown) == len(dict.fromkeys(names))
    return answer_to(call, "\n".join(lines), Outcome(added=tuple(added)), error=only_unknown)


async def with_late_tools(answer: Answer, agent: str, requests: ToolRequests, messages: Sequence[AnyMessage]) -> Answer:
    """Adds to the outcome in an answer the tools that the agent's server has added and the model was not told of yet.

    ``messages`` are the answers before; ``label_answers`` tells the model of the tools.
    """
    if not isinstance(answer, ToolMessage) or requests.late is None:
        return answer
    told = {name for message in messages for name in outcome_in(message).late}
    new = [name for name in await requests.late(agent) if name not in told]
    return with_outcome(answer, outcome_in(answer).model_copy(update={"late": tuple(new)})) if new else answer


def _divided(names: Sequence[str], catalog: Catalog) -> tuple[list[str], list[str]]:
    """Divides names into those of files of skills and others."""
    files = [name for name in names if is_skill_file(catalog, name)]
    return files, [name for name in names if name not in files]


def _names_and_words(need: _Need, catalog: Catalog) -> tuple[list[str], str]:
    """Divides a request into names and a description; an id in the place of the description is a name."""
    words = need.what.strip()
    names = [name.strip() for name in need.tools if name.strip()]
    if words in catalog.tools:
        return [*names, words], ""
    return names, words


def _add(named: NamedTools, tools: Mapping[str, BoundTool], requests: ToolRequests) -> tuple[list[str], list[str]]:
    """Adds named tools; returns the ids of those that were added, and lines about all of them."""
    held = {tool.id: name for name, tool in tools.items()}
    beside = _always_beside(named.ids, requests.catalog, held)
    refused = requests.refused([*named.ids, *beside])
    new: list[str] = []
    lines: list[str] = []
    for one in named.ids:
        if one in held:
            lines.append(f"You have {one} already: call {held[one]}")
        elif one in refused:
            lines.append(f"{one} cannot be called now: {refused[one]}")
        elif one in requests.catalog.tools:
            new.append(one)
    if new:
        new += [one for one in beside if one not in refused]
    added = requests.bind(new[: requests.most], list(tools))
    left = new[requests.most :]
    if left:
        lines.append(f"Not added, because a call adds at most {requests.most}: {', '.join(left)}")
    return [tool.id for tool in added.values()], [*_added_lines(added, requests.catalog), *lines]


def _always_beside(ids: Sequence[str], catalog: Catalog, held: Collection[str]) -> list[str]:
    """Returns the tools that come with every tool of the agents of these tools, as far as they are not held."""
    agents = dict.fromkeys(catalog.tools[one].agent for one in ids if one in catalog.tools)
    beside = [tool.id for agent in agents for tool in catalog.by_id[agent].tools if tool.always]
    return [one for one in beside if one not in held and one not in ids]


def _search_text(words: str, named: NamedTools) -> str:
    """Returns the text to search for: the description, and names that resemble no other."""
    strange = [split_name(name) for name, near in named.unknown.items() if not near]
    return " ".join(text for text in (words, *strange) if text)


def _added_lines(added: Mapping[str, BoundTool], catalog: Catalog) -> Iterator[str]:
    """Yields the new tools by the names that the model sees, each with the tools that it requires."""
    if added:
        yield "You can now call:"
    for name, tool in added.items():
        edges = catalog.tools[tool.id].depends_on
        required = dict.fromkeys(edge.tool for edge in edges if edge.required)
        needs = f"; it needs {', '.join(required)}" if required else ""
        yield f"{name} (agent {tool.agent}): {_one_line(tool.description)}{needs}"


def _one_line(text: str) -> str:
    return " ".join(shown(text, most=_WORDS).split())


def _unknown_lines(named: NamedTools, unfit: Mapping[str, str]) -> Iterator[str]:
    """Yields why names stand for no tool that can be used: a reason for the ``unfit``, near names for the unknown."""
    for name, why in unfit.items():
        yield f"{name} cannot be used now: {why}"
    for name, near in named.unknown.items():
        hint = f"; near: {', '.join(near)}" if near else ""
        yield f"There is no tool {name!r}{hint}"


def _skill_lines(names: Sequence[str], requests: ToolRequests) -> list[str]:
    """Returns the texts of the skills, and of files of skills, among these names; a server may be asked for them."""
    lines: list[str] = []
    labels: dict[str, str] = {}
    for name in names:
        found = skill_named(requests.catalog, name)
        if found is not None:
            labels[name] = name if found[1] else found[0].label
    texts = requests.skills(list(labels)) if labels else {}
    for label in labels.values():
        if label in texts:
            lines.append(f"The skill {label!r}:\n{texts[label]}")
        else:
            lines.append(f"The skill {label!r} cannot be read here")
    return lines
