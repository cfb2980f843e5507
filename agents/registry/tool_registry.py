"""Tool objects for selected tools; each can call its own agent only, after a last check."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from callsheet.agents.calls.call_context import USER, Permit, within
from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Outcome, failed
from callsheet.agents.registry.assurance import Assurance, assurance_of
from callsheet.agents.registry.binding import BoundTool, bound_tool, model_names
from callsheet.agents.registry.call_check import AGREED, DefinitionGuard, objection, why_not
from callsheet.agents.safety.arguments import Fit, FitTo, fit_of, fit_of_call
from callsheet.agents.safety.secrets import Secrets, with_secrets
from callsheet.agents.servers import in_process
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs.catalog.errors import CallsheetError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.loaded import CatalogSource, Loaded
from callsheet.graphs.catalog.loading import load
from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.arguments import listed
from callsheet.graphs.trust.policy import Policy, User

_LOG = logging.getLogger("callsheet")
Guard = Callable[[Tool, Mapping[str, Any]], str]
"""Called right before a call is sent, after its server was listed: why it must not be sent; empty if it may."""


class ToolRegistry:
    """Binds the tools of a catalog to servers and Python objects.

    Args:
        catalog: All agents and tools.
        connections: Agent id -> ``ServerConfig`` or ``InProcess``. An agent without one is known from a manifest only,
            and its tools cannot be called.
        pool: The MCP sessions; by default a new pool.
        limits: Limits on time and size of calls.
        guards: Each can refuse a call.

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
        guards: Sequence[Guard] = (),
    ) -> None:
        self._limits = limits or (pool.limits if pool else Limits())
        self.pool = pool or SessionPool(limits=self._limits)
        self.loaded = Loaded(catalog, connections=connections)
        self._following = threading.RLock()
        self._followers: list[Callable[[Loaded], object]] = []
        self._unchanged = DefinitionGuard()
        self._guards: tuple[Guard, ...] = (self._unchanged, *guards)
        self.pool.watch(self._unchanged.heard)
        self.pool.watch(self._heard)
        self.secrets = Secrets()
        self._reads = False

    @classmethod
    def from_catalog(
        cls, source: CatalogSource, *, pool: SessionPool | None = None, limits: Limits | None = None
    ) -> ToolRegistry:
        """A registry over a catalog, with its policy and definitions.

        Args:
            source: One or several, usually a ``Loaded`` that a retriever uses too; see ``callsheet.graphs.load``.
            pool: The sessions to use; by default its own.
            limits: Limits of calls; by default those of the pool.

        Raises:
            CatalogError: The catalog cannot be read.
            TrustError: A command of the catalog has no consent, or its pins cannot be used.
        """
        loaded = source if isinstance(source, Loaded) else load(source)
        registry = cls(loaded.catalog, loaded.connections, pool=pool, limits=limits)
        registry.follow(loaded)
        return registry

    def of_resources(self) -> ToolRegistry:
        """A registry over the resources and prompts of the same servers (``Loaded.of_resources``).

        It shares sessions, limits, guards and policy with this registry, and follows it. Resources and prompts without
        arguments count as read-only, as the protocol defines them. With arguments, they count as tools, because the
        arguments send data to the server.
        """
        other = ToolRegistry(Catalog(), {}, pool=self.pool, limits=self._limits, guards=self._guards[1:])
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

    @property
    def down(self) -> Mapping[str, str]:
        """Agents that did not answer when the catalog was loaded, with the time of their last known tools."""
        return self.loaded.down

    def follow(self, loaded: Loaded) -> None:
        """Switches to another catalog; tools that it does not have are refused from now on."""
        with self._following:
            self.loaded = loaded
            self._unchanged.follow(loaded.digests)
        for follower in self._followers:
            follower(loaded)

    def watch(self, follower: Callable[[Loaded], object]) -> None:
        """Calls back after every switch of the catalog; the callback must return quickly."""
        self._followers.append(follower)

    def _heard(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        """Applies the accepted part of a new listing to the catalog; what a server lists to one user is not for all."""
        if user:
            return
        with self._following:
            live = self.loaded.live.get(agent_id)
            if live is None or self.loaded.connections.get(agent_id) != server:
                return
            try:
                if (part := live.heard(listing)) is not None:
                    self.follow(with_agent(self.loaded, agent_id, part))
            except CallsheetError as error:
                _LOG.warning("agent %r: the changed tools of its server were not applied: %s", agent_id, error)

    def permitted(self, tool_ids: Sequence[str], user: User | None = None) -> list[str]:
        """The given tools that are in the catalog and that the user may call now."""
        refused = self.refused(tool_ids, user)
        return [tool_id for tool_id in tool_ids if tool_id not in refused]

    def refused(self, tool_ids: Iterable[str], user: User | None = None) -> dict[str, str]:
        """The other tools with the reason, in the words of a refused call."""
        loaded = self.loaded
        whys = {tool_id: why_not(tool_id, loaded, user) for tool_id in tool_ids}
        return {tool_id: why for tool_id, why in whys.items() if why}

    async def settled(self, run_id: str, agents: Collection[str]) -> None:
        """Waits for pending listings of these agents."""
        await self.pool.settled(run_id, agents)

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

        Args:
            tool_ids: Ids in the catalog; duplicates count once.
            run_id: The run whose MCP sessions they share.
            beside: Names of the worker's other tools.
            user: The caller; tools that the policy denies this user are refused.
            held_only: Skip tools that are not in the catalog (any more).

        Raises:
            UnknownNameError: A tool is not in the catalog.
        """
        catalog = self.catalog
        ids = [tool_id for tool_id in dict.fromkeys(listed(tool_ids)) if not held_only or tool_id in catalog.tools]
        tools = [catalog.tool(tool_id) for tool_id in ids]
        names = model_names(tools, beside=beside)
        return {name: self._bound(name, tool, run_id, user) for name, tool in zip(names, tools, strict=True)}

    def trusts(self, agent_id: str) -> bool:
        """Whether an agent's hints are trusted: by its entry in the ``mcp.json``, or by the policy."""
        connection = self.loaded.connections.get(agent_id)
        told = isinstance(connection, ServerConfig) and connection.callsheet.trusted
        return told or (self.policy is not None and self.policy.trusts(agent_id))

    def assurance(self, tool_id: str) -> Assurance:
        """Whether calls of a tool need approval, by trusted hints; an unknown tool needs none.

        Raises:
            CatalogError: The tool's ``callsheet/approval`` is not a policy.
        """
        tool = self.catalog.tools.get(tool_id)
        return self._assured(tool) if tool else Assurance(callable=False)

    def pin(self, tool_id: str) -> str:
        """SHA-256 of a tool's definition; empty if it is not in the catalog."""
        tool = self.catalog.tools.get(tool_id)
        return self._unchanged.pin(tool) if tool else ""

    def schema(self, tool_id: str) -> Mapping[str, Any]:
        """JSON Schema of a tool's arguments; empty if it is not in the catalog."""
        tool = self.catalog.tools.get(tool_id)
        return tool.input_schema if tool else {}

    def server(self, tool_id: str) -> ServerConfig | None:
        """The server of a tool, variables not expanded; None if it has none, or is not in the catalog."""
        connection = self.loaded.connections.get(tool_id.partition("/")[0]) if tool_id in self.catalog.tools else None
        return connection if isinstance(connection, ServerConfig) else None

    def unavailable(self) -> Mapping[str, str]:
        """Agents that are not called for now because they failed repeatedly, with the reason."""
        return self.pool.circuits.open()

    def held(self, run_id: str) -> AbstractContextManager[None]:
        """Keeps the sessions of a run open while a part of it is at work."""
        return self.pool.held(run_id)

    async def close_run(self, run_id: str) -> None:
        """Ends the MCP sessions of one run, and deletes its secrets."""
        self.secrets.forget(run_id)
        await self.pool.close_run(run_id)

    def close(self, run_id: str | None = None) -> None:
        """As ``close_run`` for callers without an event loop; without a run, ends all MCP sessions."""
        if run_id is not None:
            self.secrets.forget(run_id)
        self.pool.close(run_id)

    def _bound(self, name: str, tool: Tool, run_id: str, user: User | None) -> BoundTool:
        connection, repeatable = self.loaded.connections.get(tool.agent), self._assured(tool).repeatable
        keep = self.pool.results.of(run_id, tool.agent, tool.name)
        own: Any = connection.tools.get(tool.name) if isinstance(connection, InProcess) else None
        pool, local, reached = self.pool, (tool.agent, own), (run_id, tool.agent)
        how: Any = {"repeatable": repeatable, "reads": self._reads}

        def call(args: dict[str, Any]) -> Outcome:
            # Before a server is started, and again after it has listed its tools; it takes a second at most.
            permit = self._permit(tool, args, user)
            if why := permit():
                return failed(tool.agent, tool.name, "refused", why)
            if isinstance(connection, ServerConfig):
                with within(USER, user.id if user else ""):
                    return pool.call_blocking(*reached, connection, tool.name, args, permit=permit, **how)
            return in_process.call_blocking(*local, args, self._limits, keep)

        async def acall(args: dict[str, Any]) -> Outcome:
            permit = self._permit(tool, args, user)
            # In a thread: validation may take a second, however small the server's schema and the arguments are.
            if why := await asyncio.to_thread(permit):
                return failed(tool.agent, tool.name, "refused", why)
            if isinstance(connection, ServerConfig):
                with within(USER, user.id if user else ""):
                    return await pool.call(*reached, connection, tool.name, args, permit=permit, **how)
            return await in_process.call(*local, args, self._limits, keep)

        calls = with_secrets(self.secrets.of(run_id), tool, call, acall)
        return bound_tool(name, tool, *calls, repeatable=repeatable)

    def _assured(self, tool: Tool) -> Assurance:
        trusted = self.trusts(tool.agent) or (self._reads and not tool.parameters)
        return assurance_of(tool, self.loaded.connections.get(tool.agent), trusted=trusted)

    def fit(self, tool_id: str, arguments: Mapping[str, Any]) -> Fit:
        """Whether arguments fit the schema of a server's tool; those of other tools are validated by LangChain."""
        of_server = isinstance(self.loaded.connections.get(tool_id.split("/", 1)[0]), ServerConfig)
        return fit_of(self.schema(tool_id), arguments) if of_server else Fit()

    def _permit(self, tool: Tool, arguments: Mapping[str, Any], user: User | None) -> Permit:
        agreed, fit = AGREED.get(), fit_of_call(arguments)
        return lambda: self._objection(tool, arguments, user, fit, agreed=agreed)

    def _objection(
        self, tool: Tool, arguments: Mapping[str, Any], user: User | None, fit_to: FitTo, *, agreed: bool
    ) -> str:
        """Why a call must not be sent; empty if it may."""
        loaded = self.loaded
        why = objection(tool.id, arguments, loaded, user, fit_to, agreed=agreed, reads=self._reads)
        return why or next(filter(None, (guard(loaded.catalog.tool(tool.id), arguments) for guard in self._guards)), "")
