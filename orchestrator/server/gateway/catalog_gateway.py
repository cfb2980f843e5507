"""A catalog as three operations: find, read and call; of tools, and in the same way of resources and prompts."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage

from callsheet.agents import ApprovalPolicy, Supervision, ToolRegistry
from callsheet.agents.servers.session_pool import LATE
from callsheet.graphs import Catalog, Loaded, SettingsError, Tool, UnknownNameError, User, shown
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.orchestrator.run.process.process_state import CatalogSync, ServerUpdates
from callsheet.orchestrator.run.run_metrics import count_call, measured
from callsheet.orchestrator.server.gateway.supervised_calls import Answer, QuestionRelay, SupervisedCalls
from callsheet.retrievers import AgentGraphRetriever, Selection
from callsheet.retrievers.catalog_tools import one_line, tool_in_full

MOST_READ = 10
_MOST_FOUND = 3


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls.

    Attributes:
        session: Calls of one session share the sessions with the servers behind.
        asks: Whether questions of servers in the middle of a call can be answered.
    """

    session: str
    user: User = field(default_factory=User)
    asks: bool = False


class CatalogResources:
    """Resources, templates and prompts, each with the id ``agent/resource:URI`` or the like.

    They have a ranking of their own, so that they change nothing about the tools that a search finds. It is made at the
    first search, in memory.
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


class Gateway:
    """A catalog as three operations, for many callers at once.

    Attributes:
        registry: Its tools.
        relay: The calls that wait for a person.
        updates: Ask servers that have not answered yet, if any.
    """

    updates: ServerUpdates | None = None

    def __init__(
        self, retriever: AgentGraphRetriever, registry: ToolRegistry, *, approval: ApprovalPolicy = "ask"
    ) -> None:
        self._retriever, self.registry = retriever, registry
        self._approval: ApprovalPolicy = approval
        self._calls, self.relay = SupervisedCalls(), QuestionRelay()
        self.resources = CatalogResources(registry, retriever)
        self._sync, self._until = CatalogSync(retriever, registry), time.monotonic() + LATE

    async def ready(self) -> None:
        """Waits for servers that have never answered, and until searches know them: for ten seconds from the start."""
        if self.updates and (left := self._until - time.monotonic()) > 0:
            if not self.updates.complete.is_set():
                await asyncio.to_thread(self.updates.complete.wait, left)
            await asyncio.to_thread(self._sync.settled, left)

    def catalog(self, caller: Caller) -> Catalog:
        """What the caller may see."""
        return self._retriever.within(caller.user).catalog

    async def find(self, query: str, caller: Caller, *, agents: int = 5, tools: int = 10) -> Selection:
        """Selects agents, tools and skills for a query."""
        seen = self._retriever.within(caller.user)
        return await asyncio.to_thread(measured, seen, query, agents=agents, tools=tools)

    def read(self, ids: Sequence[str], caller: Caller) -> str:
        """Descriptions, schemas and dependencies of tools, and texts of skills, one JSON object per line.

        Raises:
            UnknownNameError: The caller sees no such tool; the message names the nearest.
            SettingsError: There are too many, or none.
        """
        unique = list(dict.fromkeys(ids))
        if not 0 < len(unique) <= MOST_READ:
            raise SettingsError(f"give 1 to {MOST_READ} ids, not {len(unique)}")
        tools, resources = self.catalog(caller), self.resources.catalog(caller.user)
        found = (_in_full(resources if self.is_resource(one) else tools, one) for one in unique)
        return "\n".join(json.dumps(one, ensure_ascii=False) for one in found)

    def is_resource(self, tool_id: str) -> bool:
        """Whether this is the id of a resource, a template or a prompt."""
        return tool_id in self.resources.registry.catalog.tools and tool_id not in self.registry.catalog.tools

    async def call(self, tool_id: str, arguments: Mapping[str, Any], caller: Caller) -> Answer:
        """Calls a tool on its own server, by the same path as the calls of a worker; a resource is read by the same.

        Returns:
            The tool's answer, of which an error is a status; or a call that waits for a person.

        Raises:
            UnknownNameError: The caller sees no such tool, and the message names the nearest; or it is a skill.
        """
        registry = self.resources.registry if (reads := self.is_resource(tool_id)) else self.registry
        if not registry.permitted([tool_id], caller.user):
            if tool_id in self.catalog(caller).skills_by_id:
                raise UnknownNameError(
                    f"{tool_id!r} is a skill, not a tool: read it with read_tools, and do what it says"
                )
            # A tool that is hidden from the user is as unknown as one that does not exist.
            (self.resources.catalog(caller.user) if reads else self.catalog(caller)).tool(tool_id)
            why = registry.refused([tool_id], caller.user).get(tool_id, "")
            raise UnknownNameError(f"tool {tool_id!r} cannot be called: {why}")
        (bound,) = registry.bind([tool_id], caller.session, user=caller.user).values()
        secrets = registry.secrets.of(caller.session)
        standing = StandingApprovals.of(registry.loaded, caller.user.id)
        supervision = Supervision("", self._approval, registry, secrets, notice=False, standing=standing)
        call = partial(self._calls.call, bound, arguments, supervision)
        return _counted(await self.relay.run(call, bound.agent, caller.user, asks=caller.asks))

    async def answer(self, waiting_id: str, answer: Mapping[str, Any], caller: Caller) -> Answer:
        """Answers the question of a waiting call, in the form of an interrupt's answer (``{"decisions": [...]}``).

        The question of a server is answered in the form of an ``ElicitResult``.

        Raises:
            UnknownCallError: This caller has no such call, or it was dropped.
        """
        return _counted(await self.relay.answer(waiting_id, answer, caller.user))

    async def close(self, session: str) -> None:
        """Ends the sessions with the servers behind one session."""
        self.resources.registry.secrets.forget(session)
        await self.registry.close_run(session)


def found_text(selection: Selection, catalog: Catalog, resources: Sequence[Tool] = ()) -> str:
    """A selection in one line per tool, skill, resource and prompt, best first of each kind."""
    tools = [one_line(catalog.tool(tool.id)) for tool in selection.tools if tool.id in catalog.tools]
    skills = [catalog.skills_by_id[skill.id] for skill in selection.skills if skill.id in catalog.skills_by_id]
    lines = [*tools, *(f"{skill.id}: {shown(skill.description, most=160)}" for skill in skills)]
    if selection.verdict == "nothing_fits":
        lines = ["no tool fits well; the nearest are:", *lines] if lines else ["no tool fits"]
    return "\n".join([*lines, *map(one_line, resources)])


def _in_full(catalog: Catalog, one: str) -> dict[str, Any]:
    if (skill := catalog.skills_by_id.get(one)) is not None:
        return {"id": skill.id, "text": shown(skill.text, most=None), "tools": list(skill.tools)}
    return tool_in_full(catalog.tool(one))


def _counted(answer: Answer) -> Answer:
    if isinstance(answer, ToolMessage):
        artifact = answer.artifact if isinstance(answer.artifact, dict) else {}
        agent = str(artifact.get("tool", "")).partition("/")[0]
        count_call(agent, str(artifact.get("kind") or "tool") if answer.status == "error" else "")
    return answer
