"""Tool objects for selected tools: what a call may do, whether it needs approval, and a last check before each."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, get_args
from urllib.parse import unquote

from callsheet.agents.calls.call_context import USER, Limits, within
from callsheet.agents.calls.tool_result import Outcome, failed_outcome
from callsheet.agents.registry.binding import BoundTool, bound_tool, model_names
from callsheet.agents.safety.arguments import Fit, FitTo, fit_of, fit_of_call
from callsheet.agents.safety.paths import outside
from callsheet.agents.safety.secrets import LostSecretError, Secrets
from callsheet.agents.servers import in_process
from callsheet.agents.servers.catalogs.listings import RESOURCE, TEMPLATE, Listing, read_request
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.agents.servers.in_process import InProcess, is_foreign
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import APPROVAL, ApprovalPolicy, ServerConfig
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.errors import CallsheetError, CatalogError
from callsheet.graphs.sources.loaded import CatalogSource, Loaded
from callsheet.graphs.sources.loading import load
from callsheet.graphs.text.arguments import as_texts
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.model_schema import model_schema
from callsheet.graphs.trust.changes import news_of
from callsheet.graphs.trust.harm import Harm, harm_of
from callsheet.graphs.trust.pins import digests
from callsheet.graphs.trust.policy import Policy, User

__all__ = ["AGREED", "ApprovalPolicy", "Assurance", "ToolRegistry", "assurance_of"]
_MAY_CHANGE = "This tool may change something"
_MAY_DESTROY = "This tool may delete or overwrite something"


@dataclass(frozen=True, slots=True)
class Assurance:
    """What trusted sources say about one tool.

    Attributes:
        doubt: Why a person should check its calls, as a sentence; empty if it is known to be harmless.
        repeatable: Whether two calls have the same effect as one.
        rule: The policy for this tool in the catalog; None if there is none.
        callable: Whether the tool is connected.
        harm: What a call may do, as ``harm_of`` says: the one answer to whether a tool is harmless.
        allowed: Whether the user named the tool in the catalog as one whose calls need no approval.
        own: Whether the tool is an object of the program that runs, which asks by ``interrupt_on`` where it wants to.
    """

    doubt: str = ""
    repeatable: bool = False
    rule: ApprovalPolicy | None = None
    callable: bool = True
    harm: Harm = "change"
    allowed: bool = False
    own: bool = False

    @property
    def confirm(self) -> str:
        """Why a call that no model and no person has chosen must be confirmed, as a sentence; empty if it need not."""
        if self.harm == "none" or (self.harm == "change" and self.own):
            return ""
        return self.doubt or f"{_MAY_DESTROY if self.harm == 'destroy' else _MAY_CHANGE}."

    def why(self, policy: ApprovalPolicy) -> str:
        """Returns why a call needs approval, as a sentence; empty if it needs none.

        The tool's name in the catalog overrides every ``approval``. Otherwise ``always``, of the run or of the tool,
        overrides ``never``, and one ``never`` is enough; but that of a run does not cover what may destroy something.
        """
        if self.allowed:
            return ""
        if "always" in (policy, self.rule):
            whose = "run" if policy == "always" else "tool"
            return self.doubt or f"This {whose} is set to ask before every call."
        return "" if self.rule == "never" or (policy == "never" and self.harm != "destroy") else self.doubt


def assurance_of(tool: Tool, connection: object, *, trusted: bool, vouched: bool = False) -> Assurance:
    """What is known about a tool, by its connection; only with a ``ServerConfig`` or ``InProcess`` it can be called.

    Hints are claims of their author. The hints of a server or a specification count if the user trusts it, also where
    LangChain adapts its tools; those of other tools in this process always. Other hints can only tighten: an untrusted
    ``readOnlyHint`` has no effect. A person may also name tools that only read in the catalog (``vouched``). The
    program's own tools are called, unless they declare ``destructiveHint``.

    Raises:
        CatalogError: The tool's ``callsheet/approval`` is not a policy.
    """
    own = False
    match connection:
        case ServerConfig():
            options = connection.callsheet
            rule = options.approval
        case InProcess() if tool.name in connection.tools:
            made = connection.tools[tool.name]
            options = connection.options
            foreign = is_foreign(made)
            rule = options.approval or _rule(tool, made.metadata)
            trusted = trusted or not foreign
            own = connection.own and not foreign
        case _:
            return Assurance(callable=False)
    harm = harm_of(tool, trusted=trusted, vouched=vouched or tool.name in options.reads)
    # A hint beside a ``readOnlyHint`` that the name contradicts is as doubtful.
    believed = trusted and tool.annotations.get("readOnlyHint") is not True
    idempotent = believed and tool.annotations.get("idempotentHint") is True
    return Assurance(
        doubt="" if harm == "none" else _doubt(tool, harm, trusted=trusted, own=own),
        repeatable=idempotent or harm == "none",
        rule=rule,
        harm=harm,
        allowed=tool.name in options.allow,
        own=own,
    )


def _rule(tool: Tool, metadata: dict[str, Any] | None) -> ApprovalPolicy | None:
    rule: ApprovalPolicy | None = (metadata or {}).get(APPROVAL)
    if rule is not None and rule not in (words := get_args(ApprovalPolicy)):
        raise CatalogError(f"tool {tool.id!r}: {APPROVAL} is {rule!r}: write one of {', '.join(words)}")
    return rule


def _doubt(tool: Tool, harm: Harm, *, trusted: bool, own: bool) -> str:
    """Returns why a person should check the calls of a tool that is not known to be harmless."""
    claimed = tool.annotations.get("readOnlyHint") is True
    if own and tool.annotations.get("destructiveHint") is not True:
        return ""
    if harm == "destroy":
        return f"{_MAY_DESTROY}{', although it is also marked as read-only' if claimed else ''}."
    if claimed and not trusted:
        return "The server marks this tool as read-only, but the server is not trusted."
    return f"{_MAY_CHANGE}: it is not marked as read-only."


AGREED: ContextVar[bool] = ContextVar("callsheet_agreed", default=False)
"""Whether a person has approved the current call."""
_LOG = logging.getLogger("callsheet")
_LONGEST_URI = 200
_NOT_OFFERED = "its server does not offer it any more, or more than once, or the catalog leaves it out by now"
_UNASKED = '{}. Nothing was sent: such a call needs approval, in a run that asks for it (approval "ask" or "always")'
_UNCONNECTED = (
    "agent {!r} is known from a manifest only, so its tools can be found but not called: "
    "connect it by an mcp.json with a server of that name"
)


class ToolRegistry:
    """Binds the tools of a catalog to servers and Python objects.

    Args:
        connections: Agent id -> ``ServerConfig`` or ``InProcess``. An agent without one is known from a manifest only,
            and its tools cannot be called.
        pool: By default a new one.

    Attributes:
        pool: The MCP sessions.
        loaded: The current catalog with its connections, policy, changes and digests.
    """

    def __init__(
        self,
        catalog: Catalog,
        connections: Mapping[str, object],
        *,
        pool: SessionPool | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._limits = limits or (pool.limits if pool else Limits())
        self.pool = pool or SessionPool(limits=self._limits)
        self.loaded = Loaded(catalog, connections=connections)
        self.secrets = Secrets()
        self._following = threading.RLock()
        self._followers: list[Callable[[Loaded], object]] = []
        # Digests of the definitions that a server lists to a user, or to all (an empty one).
        self._listed: dict[tuple[str, str], Mapping[str, str]] = {}
        self._reads = False
        self.pool.watch(self._heard)

    @classmethod
    def from_catalog(
        cls, source: CatalogSource, *, pool: SessionPool | None = None, limits: Limits | None = None
    ) -> ToolRegistry:
        """A registry over a catalog, usually a ``Loaded`` that a retriever uses too, with its policy and definitions.

        Raises:
            CatalogError: The catalog cannot be read.
            TrustError: A command of the catalog has no consent, or its pins cannot be used.
        """
        loaded = source if isinstance(source, Loaded) else load(source)
        registry = cls(loaded.catalog, loaded.connections, pool=pool, limits=limits)
        registry.follow(loaded)
        return registry

    def of_resources(self) -> ToolRegistry:
        """A registry over the resources and prompts of the same servers, which shares sessions and follows this one.

        Without arguments, they count as read-only, as the protocol defines them; with arguments, which send data to
        the server, as tools.
        """
        other = ToolRegistry(Catalog(), {}, pool=self.pool, limits=self._limits)
        other._reads = True
        other.follow(self.loaded.of_resources)
        self.watch(lambda now: other.follow(now.of_resources))
        return other

    @property
    def catalog(self) -> Catalog:
        """The current catalog."""
        return self.loaded.catalog

    @property
    def policy(self) -> Policy | None:
        """Who may call what."""
        return self.loaded.policy

    def follow(self, loaded: Loaded) -> None:
        """Switches to another catalog; tools that it does not have are refused from now on."""
        with self._following:
            before = self.loaded
            self.loaded = loaded
        if before.policy != loaded.policy:
            self.pool.cool()
        for follower in self._followers:
            follower(loaded)

    def watch(self, follower: Callable[[Loaded], object]) -> None:
        """Calls back after every switch of the catalog; the callback must return quickly."""
        self._followers.append(follower)

    def _heard(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        """Applies the accepted part of a new listing to the catalog; what a server lists to one user is not for all.

        A server lists its tools whenever a session opens, and again when it announces a change.
        """
        self._listed[agent_id, user] = {**digests(listing.resources), **digests(listing.tools)}
        if user:
            return
        with self._following:
            live = self.loaded.live.get(agent_id)
            if live is None or self.loaded.connections.get(agent_id) != server:
                return
            try:
                part = live.heard(listing)
                if part is not None:
                    self.follow(with_agent(self.loaded, agent_id, part))
            except CallsheetError as error:
                _LOG.warning("agent %r: the changed tools of its server were not applied: %s", agent_id, error)

    def permitted(self, tool_ids: Sequence[str], user: User | None = None) -> list[str]:
        """Returns the given tools that are in the catalog and that the user may call now."""
        refused = self.refused(tool_ids, user)
        return [tool_id for tool_id in tool_ids if tool_id not in refused]

    def refused(self, tool_ids: Iterable[str], user: User | None = None) -> dict[str, str]:
        """Returns the other tools with the reason, in the words of a refused call."""
        loaded = self.loaded
        whys = {tool_id: why_not(tool_id, loaded, user) for tool_id in tool_ids}
        return {tool_id: why for tool_id, why in whys.items() if why}

    def bind(
        self,
        tool_ids: str | Sequence[str],
        run_id: str,
        *,
        beside: Collection[str] = (),
        user: User | None = None,
        held_only: bool = False,
    ) -> dict[str, BoundTool]:
        """Tool objects for these tools only, by the unique name that a model sees.

        They share the sessions of the run. ``beside`` are names of the worker's other tools; calls of tools that the
        policy denies the user are refused; with ``held_only``, tools that are not in the catalog are skipped.

        Raises:
            UnknownNameError: A tool is not in the catalog.
        """
        catalog = self.catalog
        ids = [tool_id for tool_id in dict.fromkeys(as_texts(tool_ids)) if not held_only or tool_id in catalog.tools]
        tools = [catalog.tool(tool_id) for tool_id in ids]
        names = model_names(tools, beside=beside)
        return {name: self._bound(name, tool, run_id, user) for name, tool in zip(names, tools, strict=True)}

    def assurance(self, tool_id: str) -> Assurance:
        """Returns whether calls of a tool need approval, by trusted hints; an unknown tool needs none.

        Raises:
            CatalogError: The tool's ``callsheet/approval`` is not a policy.
        """
        tool = self.catalog.tools.get(tool_id)
        if tool is None:
            return Assurance(callable=False)
        trusted = self.loaded.trusts(tool.agent)
        # The protocol says that resources and prompts only read; arguments send something to the server.
        vouched = self._reads and (trusted or not tool.parameters)
        return assurance_of(tool, self.loaded.connections.get(tool.agent), trusted=trusted, vouched=vouched)

    def pin(self, tool_id: str) -> str:
        """Returns SHA-256 of what an approval of a tool covers (``Loaded.pin``); empty if it is not in the catalog."""
        tool = self.catalog.tools.get(tool_id)
        return self.loaded.pin(tool) if tool else ""

    def news(self, agents: Collection[str], user: User | None = None) -> str:
        """Returns what these agents have listed in the middle of a run, and nobody has accepted.

        Empty if there is nothing.
        """
        policy = self.loaded.policy
        return news_of(
            [
                change
                for change in self.loaded.changes
                if change.later
                and change.agent in agents
                and (policy is None or policy.allows(Tool(agent=change.agent, name=change.tool), user))
            ]
        )

    def unavailable(self) -> Mapping[str, str]:
        """Returns agents that are not called for now because they failed repeatedly, with the reason."""
        return self.pool.circuits.open()

    async def close_run(self, run_id: str) -> None:
        """Ends the MCP sessions of one run, and deletes its secrets."""
        self.secrets.forget(run_id)
        await self.pool.close_run(run_id)

    def close(self, run_id: str | None = None) -> None:
        """As ``close_run`` for callers without an event loop; without a run, ends all MCP sessions."""
        if run_id is not None:
            self.secrets.forget(run_id)
        self.pool.close(run_id)

    def fit(self, tool_id: str, arguments: Mapping[str, Any]) -> Fit:
        """Returns whether arguments fit the schema of a server's tool.

        Those of other tools are validated by LangChain.
        """
        tool = self.catalog.tools.get(tool_id)
        served = tool is not None and isinstance(self.loaded.connections.get(tool.agent), ServerConfig)
        return fit_of(tool.input_schema, arguments) if tool and served else Fit()

    def _bound(self, name: str, tool: Tool, run_id: str, user: User | None) -> BoundTool:
        connection = self.loaded.connections.get(tool.agent)
        secrets = self.secrets.of(run_id)
        assured = self.assurance(tool.id)
        plain = model_schema(tool.input_schema).plain
        repeatable = assured.repeatable
        harmless = assured.harm == "none"

        async def call(arguments: dict[str, Any], sync: bool) -> Outcome:
            try:
                arguments = secrets.opened(plain, arguments)
            except LostSecretError as lost:
                return failed_outcome(tool.agent, tool.name, "refused", str(lost))
            agreed = AGREED.get()
            fit = fit_of_call(arguments)

            def permit() -> str:
                return self._objection(tool.id, arguments, user, fit, agreed=agreed)

            # Before a server is started, and again after it has listed its tools. In a thread: validation may take a
            # second, however small the server's schema and the arguments are.
            why = await asyncio.to_thread(permit)
            if why:
                outcome = failed_outcome(tool.agent, tool.name, "refused", why)
            elif isinstance(connection, ServerConfig):
                how: Any = {"repeatable": repeatable, "harmless": harmless, "permit": permit, "reads": self._reads}
                with within(USER, user.id if user else ""):
                    outcome = await self.pool.call(run_id, tool.agent, connection, tool.name, arguments, **how)
            else:
                own: Any = connection.tools.get(tool.name) if isinstance(connection, InProcess) else None
                keep = self.pool.results.of(run_id, tool.agent, tool.name)
                outcome = await in_process.call(tool.agent, own, arguments, self._limits, keep, sync=sync)
            return secrets.outcome(outcome)

        server = (connection.openapi or connection.url or "") if isinstance(connection, ServerConfig) else ""
        return bound_tool(name, tool, call, repeatable=repeatable, server=server)

    def _objection(
        self, tool_id: str, arguments: Mapping[str, Any], user: User | None, fit_to: FitTo, *, agreed: bool
    ) -> str:
        """Returns why a call must not be sent; empty if it may. ``agreed``: whether a person has approved it."""
        loaded = self.loaded
        why = why_not(tool_id, loaded, user)
        if why:
            return why
        tool = loaded.catalog.tool(tool_id)
        match connection := loaded.connections.get(tool.agent):
            case ServerConfig():
                fit = fit_to(tool.input_schema)
                why = fit.misfit or (_UNASKED.format(fit.unchecked) if fit.unchecked and not agreed else "")
                roots = connection.callsheet.roots
                folder = connection.cwd
                why = why or outside(roots, tool.input_schema, arguments, folder=folder)
                if self._reads and not why:
                    address = {"uri": read_request(tool.name, arguments)[1].get("uri", "")}
                    why = outside(roots, {}, address, folder=folder) or hidden_resource(tool, arguments, loaded, user)
            case InProcess():
                # LangChain validates and converts the arguments of its own tools.
                why = "" if tool.name in connection.tools else "the agent's connection does not hold this tool"
            case _:
                why = _UNCONNECTED.format(tool.agent)
        return why or self._withdrawn(tool)

    def _withdrawn(self, tool: Tool) -> str:
        """Returns why a tool must not be called as its server defines it now; empty if it is as accepted."""
        accepted = self.loaded.digest(tool)
        now = self._listed.get((tool.agent, USER.get())) or self._listed.get((tool.agent, ""))
        if accepted is None or now is None or now.get(tool.name) == accepted:
            return ""
        return _changed(tool.id) if tool.name in now else _NOT_OFFERED


def why_not(tool_id: str, loaded: Loaded, user: User | None) -> str:
    """Returns why a tool may not be called with any arguments; empty if it may."""
    tool = loaded.catalog.tools.get(tool_id)
    if tool:
        if loaded.policy is None or loaded.policy.allows(tool, user):
            return ""
        return "the policy does not allow " + (f"{user.id!r} to call it" if user and user.id else "this call")
    quarantined = (change for change in loaded.changes if change.quarantines)
    change = next(
        (c for c in quarantined if c.id == tool_id or (not c.tool and tool_id.startswith(f"{c.agent}/"))), None
    )
    if change is None:
        return _NOT_OFFERED
    if change.kind in ("new", "suspect"):
        return f"it is new since its server was accepted: {_look_at(change.id)}"
    return _changed(change.id, "its definition" if change.tool else "the command of its server")


def _changed(change_id: str, what: str = "its definition") -> str:
    return f"{what} has changed since it was accepted: {_look_at(change_id)}"


def _look_at(change_id: str) -> str:
    return f"look at it with `callsheet approve {change_id}`"


def hidden_resource(tool: Tool, arguments: Mapping[str, Any], loaded: Loaded, user: User | None) -> str:
    """Returns why a template must not read what its arguments name: a resource that the policy hides from the user."""
    policy = loaded.policy
    if policy is None or not tool.name.startswith(TEMPLATE):
        return ""
    uri = read_request(tool.name, arguments)[1]["uri"]
    plain = unquote(uri)
    same = [tool.model_copy(update={"name": f"{RESOURCE}{spelled}"}) for spelled in (uri, plain)]
    listed = [one for one in loaded.catalog.by_id[tool.agent].tools if unquote(one.name) == f"{RESOURCE}{plain}"]
    if any(policy.denies(one, user) for one in same) or any(not policy.allows(one, user) for one in listed):
        return f"the policy does not allow {shown(uri, most=_LONGEST_URI)!r} to be read"
    return ""
