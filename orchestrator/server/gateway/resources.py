"""Resources and prompts in the words of MCP, namespaced by server.

A URI is ``callsheet:agent/URI``, a prompt ``agent/name``; so two servers may use the same ones.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from langchain_core.messages import ToolMessage
from mcp import MCPError, types
from mcp.shared.uri_template import UriTemplate
from pydantic import ValidationError

from callsheet.agents import ToolRegistry
from callsheet.agents.servers.catalogs.listings import PROMPT, RESOURCE, TEMPLATE
from callsheet.graphs import Catalog, Loaded, Tool, User, shown
from callsheet.retrievers import AgentGraphRetriever

PAGE = 100
_SCHEME = "callsheet:"
_LONGEST_TITLE, _LONGEST_URI = 200, 4_096
_MOST_FOUND = 3
_KIND = re.compile(f"/(?:{RESOURCE}|{TEMPLATE}|{PROMPT})")
_Result = TypeVar("_Result", types.ReadResourceResult, types.GetPromptResult)


def page_of(catalog: Catalog, kind: str, cursor: str | None) -> tuple[list[Any], str | None]:
    """At most a hundred resources, templates or prompts, in the order of their ids, and the cursor, the last id."""
    tools = sorted((tool for tool in catalog.tools.values() if tool.name.startswith(kind)), key=lambda tool: tool.id)
    left = [tool for tool in tools if cursor is None or tool.id > cursor]
    items = [_entry(tool, kind) for tool in left[:PAGE]]
    return items, left[PAGE - 1].id if len(left) > PAGE else None


def _entry(tool: Tool, kind: str) -> types.Resource | types.ResourceTemplate | types.Prompt:
    name, title, media = tool.name.removeprefix(kind), shown(tool.title, most=_LONGEST_TITLE), tool.annotations.get
    description = f"{shown(tool.description)} ({tool.agent})".strip()
    about: dict[str, Any] = {"name": title or name, "title": title or None, "description": description}
    if kind == RESOURCE:
        return types.Resource(uri=_uri(tool.agent, name), **about, mime_type=media("mimeType"))
    if kind == TEMPLATE:
        return types.ResourceTemplate(uri_template=_uri(tool.agent, name), **about, mime_type=media("mimeType"))
    arguments = [
        types.PromptArgument(name=one.name, description=shown(one.description) or None, required=one.required)
        for one in tool.parameters
    ]
    return types.Prompt(**{**about, "name": f"{tool.agent}/{name}"}, arguments=arguments)


def resource_named(catalog: Catalog, uri: str) -> tuple[str, dict[str, Any]]:
    """The id and the arguments that read a URI: that of a resource, or one that a template of its server makes.

    Raises:
        MCPError: Nothing that the caller sees has this URI.
    """
    agent, slash, own = uri.removeprefix(_SCHEME).partition("/")
    agent = unquote(agent)
    if uri.startswith(_SCHEME) and slash and len(own) <= _LONGEST_URI:
        if (resource := f"{agent}/{RESOURCE}{own}") in catalog.tools:
            return resource, {}
        for tool in catalog.by_id[agent].tools if agent in catalog.by_id else ():
            if tool.name.startswith(TEMPLATE):
                values = UriTemplate.parse(tool.name.removeprefix(TEMPLATE)).match(own)
                if values is not None and all(isinstance(value, str) for value in values.values()):
                    return tool.id, values
    raise MCPError(types.INVALID_PARAMS, f"no resource {shown(uri, most=200)!r}: resources/list gives the URIs")


def prompt_named(catalog: Catalog, name: str) -> str:
    """The id of a prompt.

    Raises:
        MCPError: The caller sees no such prompt.
    """
    for tool in catalog.tools.values():
        if tool.name.startswith(PROMPT) and name == f"{tool.agent}/{tool.name.removeprefix(PROMPT)}":
            return tool.id
    raise MCPError(types.INVALID_PARAMS, f"no prompt {shown(name, most=200)!r}: prompts/list gives the names")


def read_result(uri: str, answer: ToolMessage) -> types.ReadResourceResult:
    """The contents of a resource; URIs are those of the gateway.

    Raises:
        MCPError: It could not be read; the message says why.
    """
    agent, structured = _answered(answer)
    if structured is None:  # too large: the text says how much there is, and where
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=answer.text)])
    contents = [_own_uri(agent, item) for item in structured["contents"]]
    return _valid(types.ReadResourceResult, {"contents": contents}, answer)


def prompt_result(answer: ToolMessage) -> types.GetPromptResult:
    """A rendered prompt.

    Raises:
        MCPError: It could not be rendered; the message says why.
    """
    agent, structured = _answered(answer)
    if structured is None:
        raise MCPError(types.INTERNAL_ERROR, answer.text)
    messages = [{**item, "content": _own_content(agent, item.get("content"))} for item in structured["messages"]]
    return _valid(types.GetPromptResult, {**structured, "messages": messages}, answer)


def _answered(answer: ToolMessage) -> tuple[str, Any]:
    artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
    if answer.status == "error":
        raise MCPError(types.INTERNAL_ERROR, answer.text)
    return _KIND.split(str(artifact.get("tool", "")), maxsplit=1)[0], artifact.get("structured")


def _valid(form: type[_Result], value: Mapping[str, Any], answer: ToolMessage) -> _Result:
    try:
        return form.model_validate(value, by_name=False)
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        raise MCPError(types.INTERNAL_ERROR, f"the server's answer is not in the form of MCP: {where}") from error


def _uri(agent: str, uri: str) -> str:
    return f"{_SCHEME}{quote(agent, safe='')}/{uri}"


def _own_content(agent: str, content: Any) -> Any:
    match content:
        case {"type": "resource", "resource": dict() as resource}:
            return {**content, "resource": _own_uri(agent, resource)}
        case {"type": "resource_link"}:
            return _own_uri(agent, content)
        case _:
            return content


def _own_uri(agent: str, item: Mapping[str, Any]) -> dict[str, Any]:
    return {**item, "uri": _uri(agent, str(item.get("uri", "")))}


class CatalogResources:
    """Resources, templates and prompts, each with the id ``agent/resource:URI`` or the like.

    They have a ranking of their own, so that they change nothing about the tools that a search finds. It is made at the
    first search, in memory; a server without resources and prompts costs nothing.
    """

    def __init__(self, registry: ToolRegistry, retriever: AgentGraphRetriever) -> None:
        self.registry = registry.of_resources()
        self._beside = retriever
        self._search: AgentGraphRetriever | None = None
        self._lock = threading.Lock()

    def catalog(self, user: User) -> Catalog:
        """What a user may see."""
        whole, policy = self.registry.catalog, self.registry.policy
        return policy.view(whole, user).catalog if policy else whole

    def find(self, query: str, user: User) -> list[Tool]:
        """The few that fit a query, best first; none if nothing fits. Blocks, and embeds what is new."""
        catalog = self.registry.catalog
        if not catalog.agents:
            return []
        search = self._current(catalog).within(user)
        selection = search.select(query, agents=_MOST_FOUND, tools=_MOST_FOUND, skills=0)
        found = [catalog.tools[tool.id] for tool in selection.tools if tool.id in catalog.tools]
        return found if selection.verdict == "found" else []

    def _current(self, catalog: Catalog) -> AgentGraphRetriever:
        with self._lock:
            loaded = Loaded(catalog, policy=self.registry.policy)
            if self._search is None:
                self._search = self._beside.beside(loaded)
            elif not self._search.is_over(catalog):
                self._search.follow(loaded)
            return self._search
