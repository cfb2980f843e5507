"""``need_tool``: a model gets the tools that it names; words are answered with names, and add nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from callsheet.agents.calls.tool_result import answer_to
from callsheet.agents.registry.binding import NEED_TOOL, BoundTool
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.catalog.names import NamedTools, named_tools
from callsheet.graphs.text.sanitizing import error_lines, listed, shown, split_name

_MOST_NAMED = 15
"""Maximum number of tools that one call adds."""
_WORDS = 80
"""Characters of a description in the answer; the model sees all of it with the tool."""


class _Need(BaseModel):
    """Get tools that you lack. Tools that you name are added to yours; words are answered with names only."""

    model_config = ConfigDict(title=NEED_TOOL)

    tools: list[str] = Field(
        default_factory=list,
        description="The tools to add, each as agent/tool. For the id of an agent you get the names of its tools.",
    )
    what: str = Field(
        default="",
        description="If you know no name: what the tool must do, in one sentence, without its inputs. You get names.",
    )

    @field_validator("tools", mode="before")
    @classmethod
    def _one_is_a_list(cls, tools: Any) -> Any:
        return list(listed(tools)) if isinstance(tools, str) else tools


DEFINITION: Mapping[str, Any] = convert_to_openai_tool(_Need)


def _nothing(ids: Sequence[str]) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class ToolRequests:
    """Answers a model's requests for tools.

    Attributes:
        catalog: What the user may see.
        find: From words to the lines of the agents that fit, with the names of their tools.
        list_tools: From the id of an agent to the names of its tools.
        bind: From ids, and the names in use, to tools by the names that the model sees.
        skills: From ids of skills to their texts by name.
        refused: Of ids of tools, those that cannot be called now, with the reason.
        added: Is told what was asked for, and the ids of the tools that were added for it.
        most: Maximum number of tools that a call adds.
    """

    catalog: Catalog
    find: Callable[[str], Awaitable[str]]
    list_tools: Callable[[str], str]
    bind: Callable[[Sequence[str], Collection[str]], Mapping[str, BoundTool]]
    skills: Callable[[Sequence[str]], Mapping[str, str]] = _nothing
    refused: Callable[[Sequence[str]], Mapping[str, str]] = _nothing
    added: Callable[[str, Sequence[str]], None] = lambda asked, ids: None
    most: int = _MOST_NAMED


async def answer_request(call: ToolCall, tools: Mapping[str, BoundTool], requests: ToolRequests) -> ToolMessage:
    """The answer to a call of ``need_tool``; ``tools`` are those that the model has.

    Named tools are added, as many as may be. The answer gives near ids for unknown names, the tools of a named agent,
    the text of a named skill, and for words the names that fit them.
    """
    try:
        asked = _Need.model_validate(call["args"])
    except ValidationError as error:
        return answer_to(call, error_lines(error), error=True)
    words = asked.what.strip()
    names = [name.strip() for name in asked.tools if name.strip()]
    if words in requests.catalog.tools:  # an id, although it stands where words are expected
        names, words = [*names, words], ""
    if not names and not words:
        return answer_to(call, "name the tools in 'tools', or say in 'what' what a tool must do", error=True)
    named = named_tools(requests.catalog, names)
    held = {tool.id: name for name, tool in tools.items()}
    refused = requests.refused(named.ids)
    new = [one for one in named.ids if one in requests.catalog.tools and one not in held and one not in refused]
    added = requests.bind(new[: requests.most], list(tools))
    over = new[requests.most :]
    told = [
        *_added_lines(added, requests.catalog),
        *(f"You have {one} already: call {held[one]}" for one in named.ids if one in held),
        *(f"{one} cannot be called now: {why}" for one, why in refused.items()),
        *([f"Not added, because a call adds at most {requests.most}: {', '.join(over)}"] if over else []),
        *_unknown_lines(named),
        *(requests.list_tools(agent) for agent in named.agents),
        *(f"The skill {name!r}:\n{text}" for name, text in requests.skills(_skills(named, requests)).items()),
    ]
    useful = bool(words) or len(named.unknown) < len(names)
    # A name that resembles nothing still says what is wanted.
    lost = [split_name(name) for name, near in named.unknown.items() if not near]
    if search := " ".join(filter(None, (words, *lost))):
        told.append(await requests.find(search))
    ids = [tool.id for tool in added.values()]
    requests.added(", ".join((*names, *filter(None, (words,)))), ids)
    return answer_to(call, "\n".join(filter(None, told)), {"added": ids}, error=not useful)


def _added_lines(added: Mapping[str, BoundTool], catalog: Catalog) -> Iterator[str]:
    """The new tools by the names that the model sees, each with the tools that it requires."""
    if added:
        yield "You can now call:"
    for name, tool in added.items():
        edges = catalog.tools[tool.id].depends_on
        required = dict.fromkeys(edge.tool for edge in edges if edge.required)
        needs = f"; it needs {', '.join(required)}" if required else ""
        yield f"{name} (agent {tool.agent}): {_one_line(tool.description)}{needs}"


def _one_line(text: str) -> str:
    return " ".join(shown(text, most=_WORDS).split())


def _unknown_lines(named: NamedTools) -> Iterator[str]:
    for name, near in named.unknown.items():
        yield f"There is no tool {name!r}" + (f"; near: {', '.join(near)}" if near else "")


def _skills(named: NamedTools, requests: ToolRequests) -> list[str]:
    return [one for one in named.ids if one in requests.catalog.skills_by_id]
