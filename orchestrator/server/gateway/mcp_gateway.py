"""A gateway as an MCP server, for clients of any version of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import MCPError, types
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.servers.transport.call_context import reporting_to
from callsheet.agents.tools.binding import object_schema
from callsheet.agents.tools.mcp_serving import error_lines
from callsheet.graphs import CallsheetError, Tool, shown, shown_schema
from callsheet.graphs.text.sanitizing import counted
from callsheet.orchestrator.server.gateway.catalog_gateway import MOST_READ, NOBODY, Caller, Gateway, found_text
from callsheet.orchestrator.server.gateway.direct_tools import DirectTools
from callsheet.orchestrator.server.gateway.elicitation import can_ask, decision, elicitation
from callsheet.orchestrator.server.gateway.mcp_results import error_result, result_of, text_result
from callsheet.orchestrator.server.gateway.supervised_calls import Waiting

Context = ServerRequestContext[Any, Any]
Identify = Callable[[Context], Caller]
Ask = Callable[[str, Caller], Awaitable[str]]
Result = types.CallToolResult | types.InputRequiredResult
_MOST_LISTENERS, _LONGEST_TITLE = 1_000, 200
_READING = ("find_tools", "read_tools")
_INSTRUCTIONS = (
    "{tools} of {agents}, behind three tools. Search with find_tools by what is to be done, read the schemas of the "
    "few that may serve with read_tools, then call one with call_tool. Ids are agent/tool, as find_tools gives them."
)
_APPROVAL = "approval"
_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FindTools(_Arguments):
    """Find tools by what they do, with the tools that those need. Gives ids and one line each, best first."""

    query: str = Field(min_length=1, description="What is to be done, in any words; English is understood best.")
    agents: int = Field(default=5, ge=1, le=50, description="How many agents (servers) at most.")
    tools: int = Field(default=10, ge=1, le=50, description="How many tools at most.")


class ReadTools(_Arguments):
    """Read the full description and input schema of tools, to call them with call_tool."""

    tools: list[str] = Field(description=f"Ids as find_tools gave them, at most {MOST_READ}.")


class CallTool(_Arguments):
    """Call a tool with arguments that fit its schema. A person may be asked before it is sent."""

    tool: str = Field(description="Its id, agent/tool.")
    arguments: dict[str, Any] = Field(default={}, description="Its arguments, by its input schema.")


class AskRequest(_Arguments):
    """Answer a whole request of one or more steps: plan it, find the tools for each step, call them, and answer."""

    question: str = Field(min_length=1, description="The request, in plain words.")


@dataclass(frozen=True, slots=True)
class _Listener:
    loop: asyncio.AbstractEventLoop
    session: ServerSession
    changes: InMemorySubscriptionBus
    subscriptions: ListenHandler  # one a session, as it bounds their number


class _Server(Server[Any]):
    """Says to clients of the older protocol that its tools may change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        return super().create_initialization_options(NotificationOptions(tools_changed=True), *more, **named)


class GatewayServer:
    """Serves a gateway to MCP clients.

    A client that speaks the protocol of 2026-07-28 is asked by ``input_required`` results, an older one by
    ``elicitation/create``; one that cannot ask gets an error with the ways to allow the call.

    Args:
        gateway: What is served.
        identify: Who sends a request.
        direct: How many tools of the last searches a client also sees as tools of their own.
        ask: Answers a whole request, for the tool ``ask``; None leaves it out.

    Attributes:
        server: The MCP server, for any transport.
    """

    def __init__(self, gateway: Gateway, identify: Identify, *, direct: int = 0, ask: Ask | None = None) -> None:
        self._gateway, self._identify = gateway, identify
        self._listeners: dict[str, _Listener] = {}
        catalog = gateway.registry.catalog
        counts = counted(len(catalog.tools), "tool"), counted(len(catalog.agents), "agent")
        self.server: Server[Any] = _Server(
            "callsheet",
            version=version("callsheet"),
            instructions=_INSTRUCTIONS.format(tools=counts[0], agents=counts[1]),
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
        )
        # The client echoes which call waits: sealed, and bound to its tool, arguments and user.
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="callsheet")
        self.server.middleware.append(sealed)
        self._own: dict[str, tuple[type[_Arguments], Callable[[Any, Context, Caller], Awaitable[Result]]]] = {
            "find_tools": (FindTools, self._find),
            "read_tools": (ReadTools, self._read),
            "call_tool": (CallTool, self._call_tool),
            **({"ask": (AskRequest, partial(_asked, ask))} if ask else {}),
        }
        self._listed = [_own_definition(name, arguments) for name, (arguments, _) in self._own.items()]
        self._closing: set[asyncio.Task[None]] = set()
        self._direct = DirectTools(direct, list(self._own))
        gateway.registry.watch(lambda _: self._catalog_changed())

    def tools(self, caller: Caller | None = None) -> list[types.Tool]:
        """The tools as listed to a caller: the gateway's own, then the caller's direct ones."""
        direct = self._direct_tools(caller) if caller else {}
        return [*self._listed, *(_definition(name, tool) for name, tool in direct.items())]

    def _direct_tools(self, caller: Caller) -> Mapping[str, Tool]:
        return self._direct.named(caller.session, self._gateway.catalog(caller)) if self._direct.most else {}

    async def _list(self, context: Context, request: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools(self._caller(context)))

    def _caller(self, context: Context) -> Caller:
        caller = self._identify(context)
        known, loop = self._listeners.pop(caller.session, None), asyncio.get_running_loop()
        changes = known.changes if known else InMemorySubscriptionBus()
        subscriptions = known.subscriptions if known else ListenHandler(changes)
        self._listeners[caller.session] = _Listener(loop, context.session, changes, subscriptions)
        if len(self._listeners) > _MOST_LISTENERS:
            oldest = next(iter(self._listeners))
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
                return await self._resumed(request, context, caller)
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
        return text_result(found_text(selection, self._gateway.catalog(caller)))

    async def _read(self, given: ReadTools, context: Context, caller: Caller) -> Result:
        return text_result(self._gateway.read(given.tools, caller))

    async def _call_tool(self, given: CallTool, context: Context, caller: Caller) -> Result:
        return await self._sent(given.tool, given.arguments, context, caller)

    async def _sent(self, tool_id: str, arguments: Mapping[str, Any], context: Context, caller: Caller) -> Result:
        with reporting_to(context.session.report_progress):
            return await self._ended(await self._gateway.call(tool_id, arguments, caller), context, caller)

    async def _resumed(self, request: types.CallToolRequestParams, context: Context, caller: Caller) -> Result:
        """The same request again, with the answer to its question."""
        waiting = self._gateway.waiting(request.request_state or "", caller)
        answer = (request.input_responses or {}).get(_APPROVAL)
        with reporting_to(context.session.report_progress):
            answered = await self._gateway.answer(waiting.id, decision(waiting, answer), caller)
            return await self._ended(answered, context, caller)

    async def _ended(self, answer: ToolMessage | Waiting, context: Context, caller: Caller) -> Result:
        """The result of a call, after the questions about it are answered."""
        while isinstance(answer, Waiting):
            if not can_ask(context.session.client_capabilities):
                if answer.question["type"] == "tool_approval":
                    self._gateway.drop(answer, caller)
                    return error_result(f"{answer.question['tool']}: {answer.question['why']}; {NOBODY}")
                said: object = None
            elif not context.session.can_send_request:
                form = types.ElicitRequest(params=elicitation(answer))
                return types.InputRequiredResult(input_requests={_APPROVAL: form}, request_state=answer.id)
            else:
                said = await self._elicited(answer, context, caller)
            answer = await self._gateway.answer(answer.id, decision(answer, said), caller)
        return await asyncio.to_thread(result_of, answer)

    async def _elicited(self, waiting: Waiting, context: Context, caller: Caller) -> types.ElicitResult:
        form = elicitation(waiting)
        try:
            return await context.session.elicit_form(form.message, form.requested_schema, context.request_id)
        except BaseException:  # the client has gone, or called the request off
            self._gateway.drop(waiting, caller)
            raise

    async def _announce(self, listener: _Listener) -> None:
        """Says that the list of tools has changed, by the way of the client's version of the protocol."""
        await listener.changes.publish(ToolsListChanged())
        await listener.session.send_tool_list_changed()

    def _catalog_changed(self) -> None:
        """Tells all clients; called from any thread."""
        if not self._direct.most:
            return  # the three tools are the same for any catalog
        for name, listener in list(self._listeners.items()):
            if listener.loop.is_closed():
                del self._listeners[name]
            else:
                asyncio.run_coroutine_threadsafe(self._announce(listener), listener.loop)


async def _asked(ask: Ask, given: AskRequest, context: Context, caller: Caller) -> Result:
    return text_result(await ask(given.question, caller))


def _own_definition(name: str, arguments: type[_Arguments]) -> types.Tool:
    return types.Tool(
        name=name,
        description=arguments.__doc__,
        input_schema=convert_to_openai_tool(arguments)["function"]["parameters"],
        annotations=_READS if name in _READING else types.ToolAnnotations(read_only_hint=False),
    )


def _definition(name: str, tool: Tool) -> types.Tool:
    """A tool in valid form, whatever its server says: one that is not would cost the client the whole list."""
    hints = {name: value for name, value in tool.annotations.items() if isinstance(value, bool)}
    return types.Tool(
        name=name,
        title=shown(tool.title, most=_LONGEST_TITLE) or None,
        description=f"{shown(tool.description)} ({tool.id})",
        input_schema=object_schema(shown_schema(tool.input_schema)),
        annotations=types.ToolAnnotations.model_validate(hints),
    )
