"""Serves the gateway as an MCP server, for clients of any version of the protocol."""

from __future__ import annotations

import asyncio
import base64
import shlex
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from inspect import getdoc
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from mcp import MCPError, types
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.session import ServerSession
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ToolsListChanged,
)
from pydantic import BaseModel, Field, ValidationError

from callsheet.agents.calls.call_context import PROGRESS, Progress, within
from callsheet.agents.calls.outcome import StoredContent, outcome_in
from callsheet.agents.calls.question_text import shown_text
from callsheet.agents.calls.review import TOOK_EFFECT, decision_on, flat
from callsheet.agents.servers.catalogs.listings import SKILLS_EXTENSION
from callsheet.graphs import CallsheetError, Loaded, SettingsError, User, shown
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.messages import counted, error_lines
from callsheet.orchestrator.run.run_metrics import count_call
from callsheet.orchestrator.server.gateway.catalog_gateway import (
    MOST_READ,
    SERVER_QUESTION,
    Caller,
    Gateway,
    Waiting,
    found_text,
)
from callsheet.orchestrator.server.gateway.skill_files import SkillFiles, SkillRequest
from callsheet.retrievers.roster import LEGEND, Roster

Context = ServerRequestContext[Any, Any]
Identify = Callable[[Context], Caller]
Ask = Callable[[str, Caller], Awaitable[str]]
_Page = types.PaginatedRequestParams | None
_Asked = types.InputRequiredResult
_Result = types.CallToolResult | _Asked
_APPROVAL = "approval"
_MOST_LISTENERS = 1_000
_LARGEST = 10_000_000  # bytes of one image or sound
_ALWAYS = "always"
_TITLES = {
    "tool_approval": {
        "approve": "Send this call",
        _ALWAYS: "Send it, and later calls of this tool without asking",
        "reject": "Do not send it",
    },
    "unknown_outcome": {
        "respond": "The call took effect",
        "edit": "It did not: send it again",
        "reject": "Leave it",
    },
}
_NOBODY = (
    "It needs the approval of a person, and this client cannot ask one (it does not support elicitation). Nothing was "
    "sent. To allow this tool for good, a person runs `{}`{}"
)
_INSTRUCTIONS = (
    "{tools} of {agents}, behind three tools. Choose by name, or search with find_tools by what is to be done; read "
    "the schemas of the few that may serve with read_tools; call one with call_tool. Ids are agent/tool."
)
_ALL_NAMES = f"All agents, with the names of their tools. {LEGEND}"
_ALL_AGENTS = "All agents; read_tools gives the names of the tools of one, by its id."


class _Arguments(BaseModel, extra="forbid"):
    """The arguments of a tool; its description is the docstring."""


class FindTools(_Arguments):
    """Find tools, skills, resources and prompts by what they do, with the tools that those need: ids with one line.

    An empty query gives the names of all tools.
    """

    query: str = Field(default="", description="What is to be done, in any words; English is understood best.")
    agents: int | None = Field(
        default=None, ge=1, le=1_000, description="How many agents (servers) at most; no limit if left out."
    )
    tools: int = Field(default=10, ge=1, le=50, description="How many tools at most.")


class ReadTools(_Arguments):
    """Read the full description and input schema of tools, to call them with call_tool; and the text of skills.

    For the id of an agent, its tools are listed.
    """

    tools: list[str] = Field(description=f"Ids, agent/tool, at most {MOST_READ}.")


class CallTool(_Arguments):
    """Call a tool with arguments that fit its schema. A person may be asked before it is sent."""

    tool: str = Field(description="Its id, agent/tool; a resource is read, and a prompt rendered.")
    arguments: dict[str, Any] = Field(default={}, description="Its arguments, by its input schema.")


class AskRequest(_Arguments):
    """Answer a whole request of one or more steps: plan it, find the tools for each step, call them, and answer."""

    question: str = Field(min_length=1, description="The request, in plain words.")


_READS = types.ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
_CALLS = types.ToolAnnotations(read_only_hint=False)


class _Listener:
    """A session of a client, which hears of changes by the way of its version of the protocol."""

    session: ServerSession
    loop: asyncio.AbstractEventLoop
    told: str = ""
    """The roster that the client was sent last."""

    def __init__(self, user: str) -> None:
        self.user = user
        self._changes = InMemorySubscriptionBus()
        self.subscriptions = ListenHandler(self._changes)  # one a session, as it bounds their number

    async def changed(self) -> None:
        """What is behind the tools of the gateway has changed; they stay the same."""
        await self._changes.publish(ToolsListChanged())
        await self._changes.publish(ResourcesListChanged())
        await self.session.send_tool_list_changed()
        await self.session.send_resource_list_changed()


class _Server(Server[Any]):
    """Says to clients of the older protocol that it tells of changes."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *more: Any, **named: Any
    ) -> InitializationOptions:
        return super().create_initialization_options(
            NotificationOptions(tools_changed=True, resources_changed=True), *more, **named
        )


class GatewayServer:
    """Serves a gateway to MCP clients; ``identify`` returns who sends a request, ``ask`` answers its tool ``ask``.

    A client of the protocol of 2026-07-28 is asked by ``input_required`` results, an older one by
    ``elicitation/create``; a client that cannot ask gets an error with the ways to allow the call.
    """

    def __init__(self, gateway: Gateway, identify: Identify, *, ask: Ask | None = None) -> None:
        self._gateway = gateway
        self._identify = identify
        self._ask = ask
        self.registry = gateway.registry
        self._listeners: dict[str, _Listener] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._own: dict[str, type[_Arguments]] = {
            "find_tools": FindTools,
            "read_tools": ReadTools,
            "call_tool": CallTool,
            **({"ask": AskRequest} if ask else {}),
        }
        self.tools = [
            types.Tool(
                name=name,
                description=getdoc(arguments),
                input_schema=convert_to_openai_tool(arguments)["function"]["parameters"],
                annotations=_READS if arguments in (FindTools, ReadTools) else _CALLS,
            )
            for name, arguments in self._own.items()
        ]
        self.server: Server[Any] = _Server(
            "callsheet",
            version=version("callsheet"),
            instructions=_instructions(gateway),
            # Without it, the library lists all tools for each call over HTTP, to compare headers with arguments.
            get_tool_input_schema={tool.name: tool.input_schema for tool in self.tools}.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=self._listen,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )
        self._skills = SkillFiles(gateway)
        self.server.extensions = {SKILLS_EXTENSION: {}}
        self.server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list_skills)
        self.server.add_request_handler(SkillRequest.METHOD, SkillRequest, self._get_skill)
        # The client echoes which call waits: sealed, and bound to its tool, arguments and user.
        sealed = RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience="callsheet")
        self.server.middleware.append(sealed)
        self._known = _offered(gateway.registry.loaded)
        gateway.registry.watch(self._catalog_changed)

    def _caller(self, context: Context) -> Caller:
        caller = replace(self._identify(context), asks=can_ask(context.session.client_capabilities))
        listener = self._listeners.pop(caller.session, None) or _Listener(caller.user.id)
        listener.session = context.session
        listener.loop = asyncio.get_running_loop()
        self._listeners[caller.session] = listener
        if len(self._listeners) > _MOST_LISTENERS:
            # Of the user with the most sessions: nobody ends those of others by opening many.
            ((busiest, _),) = Counter(one.user for one in self._listeners.values()).most_common(1)
            oldest = next(name for name, one in self._listeners.items() if one.user == busiest)
            del self._listeners[oldest]
            closing = asyncio.create_task(self._gateway.close(oldest))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        return caller

    async def _listen(self, context: Context, request: types.SubscriptionsListenRequestParams) -> Any:
        return await self._listeners[self._caller(context).session].subscriptions(context, request)

    def _catalog_changed(self, loaded: Loaded) -> None:
        """Tells all clients if tools, resources or prompts have changed; called from any thread."""
        before = self._known
        self._known = _offered(loaded)
        self.server.instructions = _instructions(self._gateway)
        for name, listener in list(self._listeners.items()) if self._known != before else ():
            if listener.loop.is_closed():
                del self._listeners[name]
            else:
                asyncio.run_coroutine_threadsafe(listener.changed(), listener.loop)

    async def _list(self, context: Context, request: _Page) -> types.ListToolsResult:
        self._caller(context)
        return types.ListToolsResult(tools=self.tools)

    async def _list_resources(self, context: Context, request: _Page) -> types.ListResourcesResult:
        """Lists the files of skills; resources of servers are found by the tools of the gateway."""
        caller = self._caller(context)
        await self._gateway.ready()
        return types.ListResourcesResult(resources=await asyncio.to_thread(self._skills.resources, caller))

    async def _read_resource(
        self, context: Context, request: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        try:
            return await self._skills.read(self._caller(context), str(request.uri))
        except CallsheetError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    async def _list_skills(self, context: Context, request: types.PaginatedRequestParams) -> JsonObject:
        caller = self._caller(context)
        await self._gateway.ready()
        return await self._of_skills(self._skills.page, caller, request.cursor)

    async def _get_skill(self, context: Context, request: SkillRequest) -> JsonObject:
        return await self._of_skills(self._skills.one, self._caller(context), request.uri)

    async def _of_skills(self, answer: Callable[..., JsonObject], *of: object) -> JsonObject:
        """Answers a request of the extension in a thread; an error becomes one of the protocol."""
        try:
            return await asyncio.to_thread(answer, *of)
        except CallsheetError as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from error

    async def _call(self, context: Context, request: types.CallToolRequestParams) -> _Result:
        caller = self._caller(context)
        if request.name not in self._own:
            raise MCPError(types.INVALID_PARAMS, f"no tool {request.name!r}; there are {', '.join(self._own)}")
        await self._gateway.ready()
        try:
            given = self._own[request.name].model_validate(request.arguments or {})
            if isinstance(given, CallTool):
                return await self._call_tool(given, request, context, caller)
            return _text_result(await self._text(given, caller))
        except ValidationError as error:
            return _text_result(f"the arguments do not fit: {error_lines(error)}", is_error=True)
        except CallsheetError as error:
            return _text_result(str(error), is_error=True)

    async def _text(self, given: _Arguments, caller: Caller) -> str:
        match given:
            case FindTools(query=query) if not query.strip():
                return _roster_text(await asyncio.to_thread(self._gateway.roster, caller))
            case FindTools():
                selection = await self._gateway.find(given.query, caller, agents=given.agents, tools=given.tools)
                resources = await asyncio.to_thread(self._gateway.resources.find, given.query, caller.user)
                return found_text(selection, self._gateway.catalog(caller), resources, names=await self._names(caller))
            case ReadTools():
                return await asyncio.to_thread(self._gateway.read, given.tools, caller)
            case AskRequest() if self._ask:
                return await self._ask(given.question, caller)
        raise TypeError(type(given))

    async def _names(self, caller: Caller) -> str:
        """Returns the names of all tools, if they fit and the session was not sent them before; otherwise empty."""
        seen = await asyncio.to_thread(self._gateway.roster, caller)
        listener = self._listeners[caller.session]
        if not seen.whole or listener.told == seen.text:
            return ""
        listener.told = seen.text
        return _roster_text(seen)

    async def _call_tool(
        self, given: CallTool, request: types.CallToolRequestParams, context: Context, caller: Caller
    ) -> _Result:
        """The result of a call after the questions about it are answered, or the question that the client is to ask.

        A call that waits comes again as the same request, with the answer to its question.

        Raises:
            SettingsError: The call needs approval, and nobody can be asked.
        """
        relay = self._gateway.relay
        with within(PROGRESS, _increasing(context.session.report_progress)):
            if request.request_state:
                reply = (request.input_responses or {}).get(_APPROVAL)
                waiting = relay.waiting(request.request_state, caller.user)
                answer = await relay.answer(waiting.id, decision(waiting, reply), caller.user)
            else:
                answer = await self._gateway.call(given.tool, given.arguments, caller)
            while isinstance(answer, Waiting):
                if can_ask(context.session.client_capabilities) and not context.session.can_send_request:
                    asked = types.ElicitRequest(params=form_of(answer))
                    return _Asked(input_requests={_APPROVAL: asked}, request_state=answer.id)
                try:
                    reply = await _elicited(answer, context, caller, self._gateway.registry.loaded.label)
                except BaseException:  # nobody can be asked, the client has gone, or it called the request off
                    relay.drop(answer.id, caller.user)
                    raise
                answer = await relay.answer(answer.id, decision(answer, reply), caller.user)
        outcome = outcome_in(answer)
        agent = outcome.tool.partition("/")[0]
        count_call(agent, (outcome.kind or "tool") if answer.status == "error" else "")
        result = partial(result_of, answer, text_only=self._gateway.is_resource(outcome.tool))
        return await asyncio.to_thread(result) if outcome.media else result()


def _offered(loaded: Loaded) -> tuple[object, object, object]:
    return loaded.catalog.tools, loaded.catalog.skills, dict(loaded.resources)


def _instructions(gateway: Gateway) -> str:
    """What a client is told at first: the number of tools, and their names, if they fit and all users see the same."""
    catalog = gateway.registry.catalog
    seen = gateway.common_roster()
    counts = {"tools": counted(len(catalog.tools), "tool"), "agents": counted(len(catalog.agents), "agent")}
    told = _INSTRUCTIONS.format(**counts)
    return f"{told}\n\n{_roster_text(seen)}" if seen and seen.whole and seen.text else told


def _roster_text(seen: Roster) -> str:
    if not seen.text:
        return "There is no agent with tools."
    return f"{_ALL_NAMES if seen.whole else _ALL_AGENTS}\n{seen.text}"


async def _elicited(waiting: Waiting, context: Context, caller: Caller, label: str) -> types.ElicitResult | None:
    """Returns the result of a question's form, from a client of the older protocol; None if it needs no person.

    Raises:
        SettingsError: The call needs approval, and the client cannot ask.
    """
    if not can_ask(context.session.client_capabilities):
        why = refused_answer(waiting, caller.user, label)
        if why:
            raise SettingsError(why)
        return None
    form = form_of(waiting)
    return await context.session.elicit_form(form.message, form.requested_schema, context.request_id)


def result_of(answer: ToolMessage, *, text_only: bool = False) -> types.CallToolResult:
    """Converts the answer of a tool to an MCP result: text, images, sounds, the structured result, and the failure.

    Reads the files in which images and sounds were stored. ``text_only`` leaves out the structured result, which
    repeats the text of a resource.
    """
    outcome = outcome_in(answer)
    content: list[Any] = [types.TextContent(type="text", text=answer.text)]
    content += filter(None, map(_medium, outcome.media))
    failed = answer.status == "error"
    ending = {"callsheet/kind": outcome.kind, "callsheet/effect": outcome.effect}
    ended = {name: value for name, value in ending.items() if failed and value}
    structured = outcome.structured
    return types.CallToolResult(
        content=content,
        structured_content=structured if isinstance(structured, dict) and not text_only else None,
        is_error=failed,
        _meta=ended or None,
    )


def _text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def _medium(stored: StoredContent) -> types.ImageContent | types.AudioContent | None:
    kind = stored.media.partition("/")[0]
    if kind not in ("image", "audio") or stored.size > _LARGEST:
        return None  # the text says where it is
    data = base64.b64encode(Path(stored.path).read_bytes()).decode()
    form = types.ImageContent if kind == "image" else types.AudioContent
    return form(data=data, mime_type=stored.media)


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Returns whether a client can show forms; a client that names no modes of elicitation can."""
    able = capabilities.elicitation if capabilities else None
    return able is not None and (able.form is not None or able.url is None)


def refused_answer(waiting: Waiting, user: User, label: str) -> str:
    """Returns why a call is not made if the client cannot ask; empty if the question needs no person.

    ``label`` is that of the catalog; only the user of this machine sees it.
    """
    asked = waiting.question
    if asked["type"] != "tool_approval":
        return ""
    catalogs = [word for name in label.splitlines() for word in ("--catalog", name)]
    allow = ["callsheet", "trust", "allow"]
    agent = [*allow, asked["agent"], *([] if user.id else catalogs)]
    tool = [*allow, asked["tool"], *(["--user", user.id] if user.id else catalogs)]
    # Trust changes nothing for a tool that makes no claim.
    trust = f", or `{shlex.join(agent)}` to believe its server" if "not trusted" in asked["why"] else ""
    return f"{asked['tool']}: {asked['why']} {_NOBODY.format(shlex.join(tool), trust)}"


def decision(waiting: Waiting, answer: object) -> dict[str, Any]:
    """Converts the result of a form to the answer to its question; declining or dismissing the form refuses."""
    asked = waiting.question
    given = answer if isinstance(answer, types.ElicitResult) else types.ElicitResult(action="cancel")
    if asked["type"] == SERVER_QUESTION:
        return given.model_dump(mode="json", by_alias=True, include={"action", "content"}, exclude_none=True)
    texts = {name: value for name, value in (given.content or {}).items() if isinstance(value, str) and value}
    chosen = texts.get("decision", "reject") if given.action == "accept" else "reject"
    remark = {"message": texts["message"]} if "message" in texts else {}
    match chosen if chosen in _choices(asked) else "":
        case "always":
            return decision_on("approve", asked, always=True)
        case "respond":
            return decision_on("respond", asked, message=texts.get("message", TOOK_EFFECT))
        case "approve" | "edit" | "reject" as word:
            return decision_on(word, asked, **remark)
    return {"decisions": [{"type": f"({chosen})"}]}


def _increasing(report: Callable[[float, float | None, str | None], Awaitable[None]]) -> Progress:
    """Returns a callback for progress that gives a client an increasing number also where a server gives none."""
    last = 0.0

    async def pass_on(done: float | None, total: float | None, message: str | None) -> None:
        nonlocal last
        last = last + 1 if done is None else done
        await report(last, total, message)

    return pass_on


def _choices(asked: Mapping[str, Any]) -> dict[str, str]:
    """Returns the choices of a question, each with its title."""
    able = {*flat(asked)["decisions"], *([_ALWAYS] if asked.get("always") else [])}
    return {word: title for word, title in _TITLES[asked["type"]].items() if word in able}


def form_of(waiting: Waiting) -> types.ElicitRequestFormParams:
    """Returns a question as a form with one choice and a remark.

    A form cannot hold arguments, so the answer cannot change them.
    """
    asked = waiting.question
    if asked["type"] == SERVER_QUESTION:
        # In one line: a new one could look like the question of somebody else.
        message = f"The server {shown(asked['agent'])!r} asks: {' '.join(asked['message'].split())}"
        return types.ElicitRequestFormParams(message=message, requested_schema=asked["form"])
    told = flat(asked)
    choices = [{"const": word, "title": title} for word, title in _choices(asked).items()]
    schema = {
        "type": "object",
        "properties": {
            "decision": {"type": "string", "title": "Decision", "oneOf": choices},
            "message": {"type": "string", "title": "Remark", "description": "For the agent; may be empty."},
        },
        "required": ["decision"],
    }
    lines = [told["description"]]  # with the arguments
    lines += [f"Note: {shown_text(asked[name])}" for name in ("problem", "unchecked") if asked.get(name)]
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=schema)
