"""A gateway as an MCP server, for clients of any version of the protocol."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any

from langchain_core.messages import ToolMessage
from mcp import MCPError, types
from mcp.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ToolsListChanged,
)
from pydantic import ValidationError

from callsheet.agents.calls.call_context import PROGRESS, within
from callsheet.agents.servers.catalogs.server_resources import PROMPT, RESOURCE, TEMPLATE
from callsheet.graphs import CallsheetError, Catalog, Loaded, Tool
from callsheet.graphs.text.sanitizing import counted, error_lines
from callsheet.orchestrator.server.gateway import resources as mcp_resources
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway, found_text
from callsheet.orchestrator.server.gateway.elicitation import Asking, Context, can_ask
from callsheet.orchestrator.server.gateway.shown_tools import (
    Arguments,
    AskRequest,
    CallTool,
    DirectTools,
    FindTools,
    ReadTools,
    definition,
    error_result,
    own_definition,
    result_of,
    text_result,
)
from callsheet.orchestrator.server.gateway.supervised_calls import Waiting

Identify = Callable[[Context], Caller]
Ask = Callable[[str, Caller], Awaitable[str]]
Result = types.CallToolResult | types.InputRequiredResult
_Page = types.PaginatedRequestParams | None
_Asked = types.InputRequiredResult
_MOST_LISTENERS = 1_000
_INSTRUCTIONS = (
    "{tools} of {agents}, behind three tools. Search with find_tools by what is to be done, read the schemas of the "
    "few that may serve with read_tools, then call one with call_tool. Ids are agent/tool, as find_tools gives them."
)


@dataclass(frozen=True, slots=True)
class _Listener:
    user: str
    loop: asyncio.AbstractEventLoop
    session: ServerSession
    changes: InMemorySubscriptionBus
    subscriptions: ListenHandler  # one a session, as it bounds their number


class _Server(Server[Any]):
    """Says to clients of the older protocol that its lists may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(True, True, True), *more, **named)


class GatewayServer:
    """Serves a gateway to MCP clients.

    A client that speaks the protocol of 2026-07-28 is asked by ``input_required`` results, an older one by
    ``elicitation/create``; one that cannot ask gets an error with the ways to allow the call.

    Args:
        gateway: What is served.
        identify: Who sends a request.
        direct: How many tools of the last searches a client also sees as tools of their own.
        ask: Answers a whole request, for the tool ``ask``; None leaves it out.
    """

    def __init__(self, gateway: Gateway, identify: Identify, *, direct: int = 0, ask: Ask | None = None) -> None:
        self._gateway, self._identify, self.registry = gateway, identify, gateway.registry
        self._asking = Asking(gateway)
        self._listeners: dict[str, _Listener] = {}
        catalog = gateway.registry.catalog
        counts = counted(len(catalog.tools), "tool"), counted(len(catalog.agents), "agent")
        self._own: dict[str, tuple[type[Arguments], Callable[[Any, Context, Caller], Awaitable[Result]]]] = {
            "find_tools": (FindTools, self._find),
            "read_tools": (ReadTools, self._read),
            "call_tool": (CallTool, self._call_tool),
            **({"ask": (AskRequest, partial(_asked, ask))} if ask else {}),
        }
        self._listed = [own_definition(name, arguments) for name, (arguments, _) in self._own.items()]
        self.server: Server[Any] = _Server(
            "callsheet",
            version=version("callsheet"),
            instructions=_INSTRUCTIONS.format(tools=counts[0], agents=counts[1]),
            # Without it, the library lists all tools for each call over HTTP, to compare headers with arguments.
            get_tool_input_schema=None if direct else {tool.name: tool.input_schema for tool in self._listed}.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_list_resources=self._lister(RESOURCE, types.ListResourcesResult, "resources"),
            on_list_resource_templates=self._lister(TEMPLATE, types.ListResourceTemplatesResult, "resource_templates"),
            on_read_resource=self._read_resource,
            on_list_prompts=self._lister(PROMPT, types.ListPromptsResult, "prompts"),
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=self._listen,
        )
        # The client echoes which call waits: sealed, and bound to its tool, arguments and user.
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="callsheet")
        self.server.middleware.append(sealed)
        self._closing: set[asyncio.Task[None]] = set()
        self._direct = DirectTools(direct, list(self._own))
        self._known = {agent.id: agent for agent in gateway.resources.registry.catalog.agents}
        gateway.registry.watch(self._catalog_changed)

    def tools(self, caller: Caller | None = None) -> list[types.Tool]:
        """The tools as listed to a caller: the gateway's own, then the caller's direct ones."""
        direct = self._direct_tools(caller) if caller else {}
        return [*self._listed, *(definition(name, tool) for name, tool in direct.items())]

    def _direct_tools(self, caller: Caller) -> Mapping[str, Tool]:
        return self._direct.named(caller.session, self._gateway.catalog(caller)) if self._direct.most else {}

    async def _list(self, context: Context, request: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools(self._caller(context)))

    def _caller(self, context: Context) -> Caller:
        caller = replace(self._identify(context), asks=can_ask(context.session.client_capabilities))
        known, loop = self._listeners.pop(caller.session, None), asyncio.get_running_loop()
        changes = known.changes if known else InMemorySubscriptionBus()
        subscriptions = known.subscriptions if known else ListenHandler(changes)
        self._listeners[caller.session] = _Listener(caller.user.id, loop, context.session, changes, subscriptions)
        if len(self._listeners) > _MOST_LISTENERS:
            # Of the user with the most sessions: nobody ends those of others by opening many.
            ((busiest, _),) = Counter(listener.user for listener in self._listeners.values()).most_common(1)
            oldest = next(name for name, listener in self._listeners.items() if listener.user == busiest)
            del self._listeners[oldest]
            closing = asyncio.create_task(self._gateway.close(oldest))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        return caller

    async def _listen(self, context: Context, request: types.SubscriptionsListenRequestParams) -> Any:
        """One subscription of a client of the newer protocol, which hears of its own list only."""
        return await self._listeners[self._caller(context).session].subscriptions(context, request)

    async def _call(self, context: Context, request: types.CallToolRequestParams) -> Result:
        caller = self._caller(context)
        try:
            if request.request_state:
                return await self._ended(await self._answered(request, context, caller), context, caller)
            if request.name in self._own:
                form, operation = self._own[request.name]
                return await operation(form.model_validate(request.arguments or {}), context, caller)
            if tool := self._direct_tools(caller).get(request.name):
                return await self._sent(tool.id, request.arguments or {}, context, caller)
            raise MCPError(types.INVALID_PARAMS, f"no tool {request.name!r}; there are {', '.join(self._own)}")
        except ValidationError as error:
            return error_result(f"the arguments do not fit: {error_lines(error)}")
        except CallsheetError as error:
            return error_result(str(error))

    async def _find(self, given: FindTools, context: Context, caller: Caller) -> Result:
        selection = await self._gateway.find(given.query, caller, agents=given.agents, tools=given.tools)
        if self._direct.show(caller.session, [tool.id for tool in selection.tools]):
            await self._announce(self._listeners[caller.session])
        resources = await self._gateway.find_resources(given.query, caller)
        return text_result(found_text(selection, self._gateway.catalog(caller), resources))

    async def _read(self, given: ReadTools, context: Context, caller: Caller) -> Result:
        return text_result(self._gateway.read(given.tools, caller))

    async def _call_tool(self, given: CallTool, context: Context, caller: Caller) -> Result:
        return await self._sent(given.tool, given.arguments, context, caller)

    async def _sent(self, tool_id: str, arguments: Mapping[str, Any], context: Context, caller: Caller) -> Result:
        with within(PROGRESS, context.session.report_progress):
            return await self._ended(await self._gateway.call(tool_id, arguments, caller), context, caller)

    async def _answered(
        self, request: types.InputResponseRequestParams, context: Context, caller: Caller
    ) -> ToolMessage | Waiting:
        with within(PROGRESS, context.session.report_progress):
            return await self._asking.answered(request, caller)

    async def _ended(self, answer: ToolMessage | Waiting, context: Context, caller: Caller) -> Result:
        """The result of a call, after the questions about it are answered."""
        ended = await self._asking.settled(answer, context, caller)
        if isinstance(ended, types.InputRequiredResult):
            return ended
        text_only = self._gateway.is_resource((ended.artifact or {}).get("tool", ""))
        result = partial(result_of, ended, text_only=text_only)
        return await asyncio.to_thread(result) if ended.artifact and ended.artifact.get("media") else result()

    def _resources(self, context: Context) -> Catalog:
        return self._gateway.resources.catalog(self._caller(context).user)

    def _lister(self, kind: str, form: Callable[..., Any], name: str) -> Callable[[Context, _Page], Awaitable[Any]]:
        """Lists resources, templates or prompts, a page at a time."""

        async def list_page(context: Context, request: _Page) -> Any:
            catalog, cursor = self._resources(context), request.cursor if request else None
            items, following = mcp_resources.page_of(catalog, kind, cursor)
            return form(**{name: items}, next_cursor=following)

        return list_page

    async def _read_resource(
        self, context: Context, request: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        resource, values = mcp_resources.resource_named(self._resources(context), request.uri)
        answer = await self._read_from_server(resource, values, request, context)
        return answer if isinstance(answer, _Asked) else mcp_resources.read_result(request.uri, answer)

    async def _get_prompt(
        self, context: Context, request: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        prompt = mcp_resources.prompt_named(self._resources(context), request.name)
        answer = await self._read_from_server(prompt, request.arguments or {}, request, context)
        return answer if isinstance(answer, _Asked) else mcp_resources.prompt_result(answer)

    async def _read_from_server(
        self, name: str, arguments: Mapping[str, str], request: types.InputResponseRequestParams, context: Context
    ) -> ToolMessage | types.InputRequiredResult:
        caller = self._caller(context)
        try:
            if request.request_state:
                return await self._asking.settled(await self._answered(request, context, caller), context, caller)
            with within(PROGRESS, context.session.report_progress):
                return await self._asking.settled(await self._gateway.call(name, arguments, caller), context, caller)
        except CallsheetError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    async def _announce(self, listener: _Listener, *, tools: bool = True, resources: bool = False) -> None:
        """Says which lists have changed, by the way of the client's version of the protocol."""
        session = listener.session
        if tools:
            await listener.changes.publish(ToolsListChanged())
            await session.send_tool_list_changed()
        if resources:
            await listener.changes.publish(ResourcesListChanged())
            await session.send_resource_list_changed()
            await listener.changes.publish(PromptsListChanged())
            await session.send_prompt_list_changed()

    def _catalog_changed(self, loaded: Loaded) -> None:
        """Tells all clients; called from any thread."""
        tools = bool(self._direct.most)  # without direct tools, the own ones are the same for any catalog
        resources, self._known = dict(loaded.resources) != self._known, dict(loaded.resources)
        for name, listener in list(self._listeners.items()) if tools or resources else ():
            if listener.loop.is_closed():
                del self._listeners[name]
            else:
                told = self._announce(listener, tools=tools, resources=resources)
                asyncio.run_coroutine_threadsafe(told, listener.loop)


async def _asked(ask: Ask, given: AskRequest, context: Context, caller: Caller) -> Result:
    return text_result(await ask(given.question, caller))
