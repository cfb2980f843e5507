"""Binds selected tools to their servers, checks each call, and verifies it again right before it is sent."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from callsheet.agents.calls.call_context import CALLER, TASK, Limits, TaskCall, within
from callsheet.agents.calls.credentials import Caller, Credentials, credentials_of_run
from callsheet.agents.calls.outcome import Outcome, failed_outcome
from callsheet.agents.calls.question_text import inexact
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.registry.assurance import Assurance, assurance_of
from callsheet.agents.registry.binding import BoundTool, Sender, bound_tool, model_names
from callsheet.agents.registry.checked_call import CHECKED, CheckedCall, call_digest, open_digest
from callsheet.agents.safety.arguments import Fit, FitTo, fit_of_call
from callsheet.agents.safety.paths import outside
from callsheet.agents.safety.secrets import LostSecretError, RunSecrets, Secrets, without_secrets
from callsheet.agents.servers import in_process
from callsheet.agents.servers.catalogs.listings import RESOURCE, TEMPLATE, Listing, read_outcome, read_request
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.formats.server_config import ApprovalPolicy, ServerConfig
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.errors import CallsheetError, SettingsError
from callsheet.graphs.sources.loaded import CatalogSource, Loaded
from callsheet.graphs.sources.loading import load
from callsheet.graphs.text.arguments import as_texts
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.model_schema import model_schema
from callsheet.graphs.trust.changes import news_of
from callsheet.graphs.trust.pins import Change, digests
from callsheet.graphs.trust.policy import Policy, User

__all__ = ["ApprovalPolicy", "Assurance", "ToolRegistry", "assurance_of"]
_LOG = logging.getLogger("callsheet")
_LONGEST_URI = 200
_NOT_OFFERED = Refusal("its server no longer lists it, or lists it more than once, or the catalog now leaves it out")
_NOT_HELD = Refusal("the connection of its agent does not have this tool")
_NOT_APPROVED = "its arguments are not those that were approved. Nothing was sent"
_NOT_THE_DEFINITION = Refusal("its definition has changed since the call was approved. Nothing was sent")
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
        pool: The MCP sessions to use; by default a new pool.

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
        # Digests of definitions, which each call needs, as long as the catalog is the same.
        self._pins: tuple[Loaded, dict[str, str]] = (self.loaded, {})
        self.pool.watch(self._heard)

    @classmethod
    def from_catalog(
        cls, source: CatalogSource, *, pool: SessionPool | None = None, limits: Limits | None = None
    ) -> ToolRegistry:
        """Makes a registry over a catalog, usually the ``Loaded`` catalog that a retriever uses too.

        Raises:
            CatalogError: The catalog cannot be read.
            TrustError: A command of the catalog has no consent, or its pins cannot be used.
        """
        loaded = source if isinstance(source, Loaded) else load(source)
        registry = cls(loaded.catalog, loaded.connections, pool=pool, limits=limits)
        registry.follow(loaded)
        return registry

    def of_resources(self) -> ToolRegistry:
        """Returns a registry over the resources and prompts of the same servers, which shares the sessions of this one.

        Without arguments, resources count as read-only, as the protocol defines them. With arguments, which send data
        to the server, they count as tools.
        """
        other = ToolRegistry(Catalog(), {}, pool=self.pool, limits=self._limits)
        other._reads = True
        other.follow(self.loaded.of_resources)
        self.watch(lambda now: other.follow(now.of_resources))
        return other

    @property
    def catalog(self) -> Catalog:
        """Returns the current catalog."""
        return self.loaded.catalog

    @property
    def policy(self) -> Policy | None:
        """Returns the policy, which determines who may call which tools."""
        return self.loaded.policy

    def follow(self, loaded: Loaded) -> None:
        """Switches to another catalog; from then on, calls of tools that are not in this catalog are refused."""
        with self._following:
            before = self.loaded
            self.loaded = loaded
        if before.policy != loaded.policy:
            self.pool.cool()
        for follower in self._followers:
            follower(loaded)

    def watch(self, follower: Callable[[Loaded], object]) -> None:
        """Calls ``follower`` after every switch of the catalog; it must return quickly."""
        self._followers.append(follower)

    def _heard(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        """Applies the accepted part of a new listing to the catalog, unless the server listed it for one ``user`` only.

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
        """Returns those of the given tools that are in the catalog and that the user may call now."""
        refused = self.refused(tool_ids, user)
        return [tool_id for tool_id in tool_ids if tool_id not in refused]

    def refused(self, tool_ids: Iterable[str], user: User | None = None) -> dict[str, str]:
        """Returns the tools that the user may not call now, with the reason as a refused call gives it."""
        loaded = self.loaded
        refusals = {tool_id: refusal_of_tool(tool_id, loaded, user) for tool_id in tool_ids}
        return {tool_id: refusal.reason for tool_id, refusal in refusals.items() if refusal}

    def bind(
        self,
        tool_ids: str | Sequence[str],
        run_id: str,
        *,
        beside: Collection[str] = (),
        user: User | None = None,
        held_only: bool = False,
    ) -> dict[str, BoundTool]:
        """Makes tool objects for these tools, by the unique names that a model sees.

        They share the sessions of the run. ``beside`` are names of the worker's other tools. Calls that the policy
        forbids to the user are refused. With ``held_only``, tools that are not in the catalog are skipped.

        Raises:
            UnknownNameError: A tool is not in the catalog.
        """
        catalog = self.catalog
        ids = [tool_id for tool_id in dict.fromkeys(as_texts(tool_ids)) if not held_only or tool_id in catalog.tools]
        tools = [catalog.tool(tool_id) for tool_id in ids]
        names = model_names(tools, beside=beside)
        credentials = credentials_of_run(user.id if user else "")
        return {
            name: self._bound(name, tool, run_id, user, credentials) for name, tool in zip(names, tools, strict=True)
        }

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
        """Returns the SHA-256 of what an approval of a tool covers (``Loaded.pin``); empty for an unknown tool."""
        loaded, pins = self._pins
        if loaded is not self.loaded:
            loaded = self.loaded
            pins = {}
            self._pins = loaded, pins
        tool = loaded.catalog.tools.get(tool_id)
        if tool is None:
            return ""
        if tool_id not in pins:
            pins[tool_id] = loaded.pin(tool)
        return pins[tool_id]

    def news(self, agents: Collection[str], user: User | None = None) -> str:
        """Describes the changes that these agents' servers made in the middle of a run and that nobody has accepted.

        The text is empty if there are no such changes.
        """
        return news_of([change for change in self._later_changes(user) if change.agent in agents])

    def late(self, user: User | None = None) -> Mapping[str, Change]:
        """Returns the tools and skills that servers added in the middle of a run and that nobody has accepted, by id.

        Those with hidden characters are left out: only ``callsheet approve``, which shows the characters, accepts them.
        """
        return {change.id: change for change in self._later_changes(user) if change.kind == "new"}

    def accept(self, change: Change) -> None:
        """Accepts the definition of a late tool for good, and adds the tool to the catalog while its server lists it.

        Raises:
            TrustError: The pins cannot be written, or something else was accepted in the meantime.
        """
        with self._following:
            live = self.loaded.live[change.agent]
            live.terms["pins"].accept([change])
            self.follow(with_agent(self.loaded, change.agent, live.again()))

    def _later_changes(self, user: User | None) -> list[Change]:
        policy = self.loaded.policy
        changes = [change for change in self.loaded.changes if change.later]
        if policy is None:
            return changes
        return [change for change in changes if policy.allows(Tool(agent=change.agent, name=change.tool), user)]

    def unavailable(self) -> Mapping[str, str]:
        """Returns agents that are not called for now because they failed repeatedly, with the reason."""
        return self.pool.circuits.open()

    async def close_run(self, run_id: str) -> None:
        """Ends the MCP sessions of one run, and deletes its secrets."""
        self.secrets.forget(run_id)
        await self.pool.close_run(run_id)

    def close(self, run_id: str | None = None) -> None:
        """Closes a run as ``close_run`` does, for callers without an event loop; without a run, closes all sessions."""
        if run_id is not None:
            self.secrets.forget(run_id)
        self.pool.close(run_id)

    def check(self, bound: BoundTool, arguments: Mapping[str, Any], secrets: RunSecrets) -> CheckedCall:
        """Checks a call, and returns it with the results of the check; the validation may take a second.

        Args:
            bound: The tool.
            arguments: The arguments by the tool's own names; placeholders replace secrets.
            secrets: The secrets of the run.
        """
        tool = self.catalog.tools.get(bound.id)
        pin = self.pin(bound.id)
        assurance = self.assurance(bound.id)
        refusal = inexact(arguments)
        if refusal:
            return CheckedCall(bound.id, arguments, assurance, pin, "", "", Fit(), _fits, refusal)
        plain = bound.form.plain
        try:
            fit_to = fit_of_call(secrets.opened(plain, arguments))
        except LostSecretError:
            fit_to = _fits  # it is refused when it is sent
        masked = without_secrets(plain, arguments)
        # LangChain validates the arguments of tools of this process.
        served = tool is not None and isinstance(self.loaded.connections.get(tool.agent), ServerConfig)
        return CheckedCall(
            tool_id=bound.id,
            arguments=arguments,
            assurance=assurance,
            pin=pin,
            digest=call_digest(bound.id, pin, arguments),
            open_digest="" if assurance.repeatable else open_digest(bound.id, plain, masked),
            fit=fit_to(tool.input_schema) if tool and served else Fit(),
            fit_to=fit_to,
        )

    def _bound(self, name: str, tool: Tool, run_id: str, user: User | None, credentials: Credentials) -> BoundTool:
        connection = self.loaded.connections.get(tool.agent)
        assured = self.assurance(tool.id)
        send = self._sender(tool, connection, assured, run_id, user, credentials)
        server = (connection.openapi or connection.url or "") if isinstance(connection, ServerConfig) else ""
        harmless = assured.harm == "none"
        return bound_tool(name, tool, send, repeatable=assured.repeatable, harmless=harmless, server=server)

    def _sender(
        self,
        tool: Tool,
        connection: object,
        assured: Assurance,
        run_id: str,
        user: User | None,
        credentials: Credentials,
    ) -> Sender:
        """Returns a function that checks each call of a tool once more, and then sends it."""
        secrets = self.secrets.of(run_id)
        plain = model_schema(tool.input_schema).plain

        async def send(arguments: dict[str, Any], *, sync: bool) -> Outcome:
            task = TASK.get()
            if task is not None and task.id and isinstance(connection, ServerConfig):
                return secrets.outcome(await self._followed(tool, connection, run_id, user, credentials, task))
            checked = CHECKED.get()
            if checked is not None and not checked.is_of(tool.id, arguments):
                if checked.tool_id == tool.id and checked.approval is not None:
                    return failed_outcome(tool.agent, tool.name, "refused", _NOT_APPROVED)
                checked = None
            try:
                opened = secrets.opened(plain, arguments)
            except LostSecretError as lost:
                return failed_outcome(tool.agent, tool.name, "refused", str(lost))
            caller = _caller(connection, credentials)
            if isinstance(caller, Refusal):
                return failed_outcome(tool.agent, tool.name, "refused", caller.reason)
            fit_to = checked.fit_to if checked else fit_of_call(opened)
            known = checked.assurance if checked else assured
            approved_pin = checked.pin if checked and checked.approval else None

            def permit() -> Refusal | None:
                return self._refusal(tool.id, opened, user, fit_to, approved_pin)

            # Before a server is started, and again after it has listed its tools. In a thread: validation may take a
            # second, however small the server's schema and the arguments are.
            refusal = await asyncio.to_thread(permit)
            if refusal:
                return secrets.outcome(failed_outcome(tool.agent, tool.name, "refused", refusal.reason))
            # A tool that makes calls of its own has not had them checked by this.
            with within(CHECKED, None):
                if isinstance(connection, ServerConfig):
                    how: Any = {"repeatable": known.repeatable, "harmless": known.harm == "none"}
                    how |= {"permit": permit, "reads": read_outcome if self._reads else None}
                    with within(CALLER, caller):
                        outcome = await self.pool.call(run_id, tool.agent, connection, tool.name, opened, **how)
                else:
                    own: Any = connection.tools.get(tool.name) if isinstance(connection, InProcess) else None
                    keep = self.pool.results.of(run_id, tool.agent, tool.name)
                    with within(TASK, None):
                        outcome = await in_process.call(tool.agent, own, opened, self._limits, keep, sync=sync)
            return secrets.outcome(outcome)

        return send

    async def _followed(
        self,
        tool: Tool,
        server: ServerConfig,
        run_id: str,
        user: User | None,
        credentials: Credentials,
        task: TaskCall,
    ) -> Outcome:
        """Returns the outcome of a call that was sent before and that its server continues as a task of MCP."""
        caller = refusal_of_tool(tool.id, self.loaded, user) or _caller(server, credentials)
        if isinstance(caller, Refusal):
            why = f"its task was not asked about: {caller}"
            return failed_outcome(tool.agent, tool.name, "refused", why, "unknown")
        with within(CALLER, caller):
            return await self.pool.follow(run_id, tool.agent, server, tool.name, task)

    def _refusal(
        self, tool_id: str, arguments: Mapping[str, Any], user: User | None, fit_to: FitTo, approved_pin: str | None
    ) -> Refusal | None:
        """Returns why a call must not be sent; None if it may.

        ``approved_pin`` is the pin of the definition for which a person has approved the call; None if nobody has.
        """
        loaded = self.loaded
        refusal = refusal_of_tool(tool_id, loaded, user)
        if refusal:
            return refusal
        if approved_pin is not None and approved_pin != self.pin(tool_id):
            return _NOT_THE_DEFINITION
        tool = loaded.catalog.tool(tool_id)
        match connection := loaded.connections.get(tool.agent):
            case ServerConfig():
                refusal = _refusal_of_fit(fit_to(tool.input_schema), approved=approved_pin is not None)
                refusal = refusal or self._refusal_of_places(tool, arguments, connection, user)
            case InProcess():
                # LangChain validates and converts the arguments of its own tools.
                refusal = None if tool.name in connection.tools else _NOT_HELD
            case _:
                refusal = Refusal(_UNCONNECTED.format(tool.agent))
        return refusal or self._refusal_of_definition(tool)

    def _refusal_of_places(
        self, tool: Tool, arguments: Mapping[str, Any], server: ServerConfig, user: User | None
    ) -> Refusal | None:
        """Returns why a path or a resource address in the arguments of a call is not allowed; None if all are."""
        roots = server.callsheet.roots
        folder = server.cwd
        refusal = outside(roots, tool.input_schema, arguments, folder=folder)
        if refusal or not self._reads:
            return refusal
        address = {"uri": read_request(tool.name, arguments)[1].get("uri", "")}
        return outside(roots, {}, address, folder=folder) or hidden_resource(tool, arguments, self.loaded, user)

    def _refusal_of_definition(self, tool: Tool) -> Refusal | None:
        """Returns why a tool must not be called: its server no longer lists it as it was accepted. None if it does."""
        accepted = self.loaded.digest(tool)
        now = self._listed.get((tool.agent, CALLER.get().key)) or self._listed.get((tool.agent, ""))
        if accepted is None or now is None or now.get(tool.name) == accepted:
            return None
        return _changed(tool.id) if tool.name in now else _NOT_OFFERED


def _caller(connection: object, credentials: Credentials) -> Caller | Refusal:
    """Returns the user for whom a call is made; or, if one of the user's credentials is missing, a refusal."""
    if not isinstance(connection, ServerConfig):
        return Caller()
    try:
        return credentials.of(connection)
    except SettingsError as missing:
        return Refusal(str(missing))


def _fits(schema: Mapping[str, Any]) -> Fit:
    return Fit()


def _refusal_of_fit(fit: Fit, *, approved: bool) -> Refusal | None:
    """Returns why arguments must not be sent: they are invalid, or were neither validated nor approved; else None."""
    if fit.misfit:
        return fit.misfit
    return Refusal(_UNASKED.format(fit.unchecked)) if fit.unchecked and not approved else None


def refusal_of_tool(tool_id: str, loaded: Loaded, user: User | None) -> Refusal | None:
    """Returns why a tool must not be called, whatever the arguments are; None if it may be called."""
    tool = loaded.catalog.tools.get(tool_id)
    if tool:
        if loaded.policy is None or loaded.policy.allows(tool, user):
            return None
        whose = f"{user.id!r} to call it" if user and user.id else "this call"
        return Refusal(f"the policy does not allow {whose}")
    for change in loaded.changes:
        if not change.quarantines:
            continue
        if change.id == tool_id or (not change.tool and tool_id.startswith(f"{change.agent}/")):
            if change.kind in ("new", "suspect"):
                return Refusal(f"it was added after its server was accepted: {_look_at(change.id)}")
            return _changed(change.id, "its definition" if change.tool else "the command of its server")
    return _NOT_OFFERED


def _changed(change_id: str, what: str = "its definition") -> Refusal:
    return Refusal(f"{what} has changed since it was accepted: {_look_at(change_id)}")


def _look_at(change_id: str) -> str:
    return f"look at it with `callsheet approve {change_id}`"


def hidden_resource(tool: Tool, arguments: Mapping[str, Any], loaded: Loaded, user: User | None) -> Refusal | None:
    """Returns why a resource must not be read by a template (the policy denies it to the user); None if it may."""
    policy = loaded.policy
    if policy is None or not tool.name.startswith(TEMPLATE):
        return None
    uri = read_request(tool.name, arguments)[1]["uri"]
    plain = unquote(uri)
    same = [tool.model_copy(update={"name": f"{RESOURCE}{spelled}"}) for spelled in (uri, plain)]
    listed = [one for one in loaded.catalog.by_id[tool.agent].tools if unquote(one.name) == f"{RESOURCE}{plain}"]
    if any(policy.denies(one, user) for one in same) or any(not policy.allows(one, user) for one in listed):
        return Refusal(f"the policy does not allow {shown(uri, most=_LONGEST_URI)!r} to be read")
    return None
