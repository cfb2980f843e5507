"""Finds, reads and calls tools of a catalog, and in the same way resources and prompts.

A call may wait for a person, in this process.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import ToolMessage

from callsheet.agents import ApprovalPolicy, ToolRegistry
from callsheet.agents.approval.call_record import open_calls_told
from callsheet.agents.calls.call_context import ASK, PROGRESS, Progress, within
from callsheet.agents.registry.skills import read_skill_blocking
from callsheet.agents.servers.session_pool import LATE
from callsheet.graphs import Catalog, Loaded, SettingsError, Tool, UnknownNameError, User, shown
from callsheet.graphs.catalog.names import is_skill_file, named_tools, skill_named
from callsheet.graphs.errors import near_ids
from callsheet.graphs.trust.open_calls import CallLedger
from callsheet.orchestrator.run.process.process_state import CatalogSync, ServerUpdates
from callsheet.orchestrator.run.run_metrics import select_measured
from callsheet.orchestrator.run.single_calls import AskPerson, SingleCalls
from callsheet.retrievers import AgentGraphRetriever, Selection
from callsheet.retrievers.catalog_tools import tool_in_full, tool_line
from callsheet.retrievers.roster import Roster, found_lines, list_tools, roster

MOST_READ = 10
MOST_WAITING = 100
SERVER_QUESTION = "server_question"
_MOST_FOUND = 3
_AGENTS_TOKENS = 1_000
"""Maximum tokens of the names of all tools of the agents that a search found."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of an operation; calls of one ``session`` share the sessions with the catalog's servers.

    ``asks``: the caller can answer questions that servers ask during a call.
    """

    session: str
    user: User = field(default_factory=User)
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """A call that waits for the answer of a person.

    ``question`` is the payload of an interrupt, or a question that the server asked during the call (``type``,
    ``agent``, ``message``, ``form``).
    """

    id: str
    question: Mapping[str, Any]
    reply: asyncio.Future[dict[str, Any]] = field(repr=False)


Answer = ToolMessage | Waiting


class CatalogResources:
    """Finds resources, templates and prompts; their ids are ``agent/resource:URI`` and the like.

    They are ranked separately, so they do not change which tools a search finds. The ranking is made at the first
    search, in memory.
    """

    def __init__(self, registry: ToolRegistry, retriever: AgentGraphRetriever) -> None:
        self.registry = registry.of_resources()
        self._beside = retriever
        self._search: AgentGraphRetriever | None = None
        self._lock = threading.Lock()

    def catalog(self, user: User) -> Catalog:
        """Returns the resources that a user may see, as a catalog."""
        whole = self.registry.catalog
        policy = self.registry.policy
        return policy.view(whole, user).catalog if policy else whole

    def find(self, query: str, user: User) -> list[Tool]:
        """Returns the few resources that fit a query, best first; embeds new ones, and blocks meanwhile."""
        catalog = self.registry.catalog
        if not catalog.agents:
            return []
        search = self._current(catalog).within(user)
        selection = search.select(query, agents=_MOST_FOUND, tools=_MOST_FOUND, skills=0)
        found = [catalog.tools[tool.id] for tool in selection.tools if tool.id in catalog.tools]
        return [] if selection.verdict == "nothing_fits" else found

    def _current(self, catalog: Catalog) -> AgentGraphRetriever:
        with self._lock:
            loaded = Loaded(catalog, policy=self.registry.policy)
            if self._search is None:
                self._search = self._beside.beside(loaded)
            elif not self._search.is_over(catalog):
                self._search.follow(loaded)
            return self._search


@dataclass(slots=True, eq=False)
class _Running:
    """A running call, and its questions that are not answered yet."""

    agent: str
    user: User
    progress: Progress | None = None
    questions: asyncio.Queue[Waiting] = field(default_factory=asyncio.Queue)
    task: asyncio.Task[ToolMessage] = field(init=False)
    asked: Waiting | None = None

    async def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Asks the person behind the call."""
        waiting = Waiting(uuid.uuid4().hex, question, asyncio.get_running_loop().create_future())
        await self.questions.put(waiting)
        return await waiting.reply

    async def ask_for_server(self, message: str, form: dict[str, Any]) -> dict[str, Any]:
        """Passes on a question of the server; called by its session."""
        return await self.ask({"type": SERVER_QUESTION, "agent": self.agent, "message": message, "form": form})

    async def report(self, progress: float | None, total: float | None, message: str | None) -> None:
        """Passes progress on to the last request about the call."""
        if self.progress is not None:
            await self.progress(progress, total, message)


class QuestionRelay:
    """Runs calls, and returns each question about them to the client until it is answered.

    Meanwhile, the call goes on; its session cancels a question of a server that is not answered in time. If the call
    ends first, its answer is kept for whoever answers the question. Waiting calls are lost when the process ends, and
    those that wait for approval are then not sent; of more than 100 of one user, the oldest is dropped.
    """

    def __init__(self) -> None:
        self._open: dict[str, _Running] = {}

    async def run(
        self, call: Callable[[AskPerson], Coroutine[Any, Any, ToolMessage]], agent: str, user: User, *, asks: bool
    ) -> Answer:
        """Runs a call, which can ask the user; returns its answer or the first question.

        ``asks``: the server may ask the user too.
        """
        running = _Running(agent, user, PROGRESS.get())
        with within(PROGRESS, running.report), within(ASK, running.ask_for_server) if asks else nullcontext():
            running.task = asyncio.create_task(call(running.ask))
        return await self._next(running)

    def waiting(self, waiting_id: str, user: User) -> Waiting:
        """Returns the open question to this user with this id.

        Raises:
            SettingsError: There is none.
        """
        running = self._open.get(waiting_id)
        if running is None or running.asked is None or running.user != user:
            raise SettingsError("no such call waits for an answer: make the call again")
        return running.asked

    async def answer(self, waiting_id: str, answer: Mapping[str, Any], user: User) -> Answer:
        """Answers an open question; returns the answer of the call, or the next question."""
        waiting = self.waiting(waiting_id, user)
        running = self._open.pop(waiting_id)
        running.progress = PROGRESS.get()
        if not waiting.reply.done():
            waiting.reply.set_result(dict(answer))
        return await self._next(running)

    def drop(self, waiting_id: str, user: User) -> None:
        """Cancels a call of this user that still waits."""
        with suppress(SettingsError):
            self.waiting(waiting_id, user)
            self._open.pop(waiting_id).task.cancel()

    async def _next(self, running: _Running) -> Answer:
        question = asyncio.create_task(running.questions.get())
        try:
            await asyncio.wait((running.task, question), return_when=asyncio.FIRST_COMPLETED)
            if running.task.done():
                return running.task.result()
            running.asked = question.result()
        except asyncio.CancelledError:
            running.task.cancel()
            raise
        finally:
            question.cancel()
        mine = [name for name, other in self._open.items() if other.user == running.user]
        if len(mine) >= MOST_WAITING:
            self.drop(mine[0], running.user)
        waiting = running.asked
        self._open[waiting.id] = running
        # Nobody may come to fetch what became of it; without this, asyncio complains about its error.
        running.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return waiting


class Gateway:
    """Finds, reads and calls tools of a catalog for many callers; ``relay`` has the calls that wait for a person."""

    updates: ServerUpdates | None = None
    """Asks the servers that have not answered yet."""

    def __init__(
        self, retriever: AgentGraphRetriever, registry: ToolRegistry, *, approval: ApprovalPolicy = "ask"
    ) -> None:
        self._retriever = retriever
        self.registry = registry
        self.relay = QuestionRelay()
        self._calls = SingleCalls(approval)
        self.resources = CatalogResources(registry, retriever)
        self._sync = CatalogSync(retriever, registry)
        self._until = time.monotonic() + LATE

    async def ready(self) -> None:
        """Waits until servers have answered for the first time and searches know their tools.

        It waits at most ten seconds after the start.
        """
        if self.updates and (left := self._until - time.monotonic()) > 0:
            if not self.updates.complete.is_set():
                await asyncio.to_thread(self.updates.complete.wait, left)
            await asyncio.to_thread(self._sync.settled, left)

    def catalog(self, caller: Caller) -> Catalog:
        """Returns the part of the catalog that the caller may see."""
        return self._retriever.within(caller.user).catalog

    async def find(self, query: str, caller: Caller, *, agents: int | None = None, tools: int = 10) -> Selection:
        """Selects agents, tools and skills for a query."""
        seen = self._retriever.within(caller.user)
        return await asyncio.to_thread(select_measured, seen, query, agents=agents, tools=tools)

    def read(self, names: Sequence[str], caller: Caller) -> str:
        """Returns descriptions, schemas and dependencies of tools, and texts of skills, one JSON object per line.

        Names are ids, or bare names that only one tool has. For the id of an agent, its tools are listed.

        Raises:
            UnknownNameError: The caller sees no tool of one of the names; the message has the nearest ids for each.
            SettingsError: There are too many, or none.
        """
        unique = list(dict.fromkeys(names))
        if not 0 < len(unique) <= MOST_READ:
            raise SettingsError(f"give 1 to {MOST_READ} ids, not {len(unique)}")
        tools = self.catalog(caller)
        resources = self.resources.catalog(caller.user)
        beside = [one for one in unique if self.is_resource(one)]
        files = [one for one in unique if is_skill_file(tools, one)]
        named = named_tools(tools, [one for one in unique if one not in (*beside, *files)])
        if named.unknown:
            raise _unknown_names(named.unknown, [*tools.tools, *resources.tools])
        found = [self._in_full(one, tools, caller) for one in (*named.ids, *files)]
        found += [tool_in_full(resources.tool(one)) for one in beside]
        lists = [list_tools(tools, agent) for agent in named.agents]
        told = open_calls_told(self._ledger(caller), named.ids)
        return "\n".join([*(json.dumps(one, ensure_ascii=False) for one in found), *lists, *([told] if told else [])])

    def _in_full(self, one: str, catalog: Catalog, caller: Caller) -> dict[str, Any]:
        """Returns a tool or a skill in full; blocks while a server sends the text of its skill."""
        named = skill_named(catalog, one)
        if named is None:
            return tool_in_full(catalog.tool(one))
        skill, path = named
        text = shown(read_skill_blocking(self.registry, one, caller.session, caller.user), most=None)
        origin = {"server": skill.agent} if skill.agent else {}
        return {"id": one if path else skill.id, **origin, "text": text, "tools": list(skill.tools)}

    def _ledger(self, caller: Caller) -> CallLedger:
        return CallLedger(self.registry.loaded.label, caller.user.id)

    def roster(self, caller: Caller) -> Roster:
        """Returns all agents that the caller may see, with the names of their tools."""
        return roster(self.catalog(caller))

    def common_roster(self) -> Roster | None:
        """Returns the roster that all clients may see; None if the policy shows different tools to different users."""
        policy = self.registry.policy
        catalog = self.registry.catalog
        if policy is None:
            return roster(catalog)
        return None if policy.groups or policy.users else roster(policy.view(catalog, User()).catalog)

    def is_resource(self, tool_id: str) -> bool:
        """Returns whether this is the id of a resource, a template or a prompt."""
        return tool_id in self.resources.registry.catalog.tools and tool_id not in self.registry.catalog.tools

    async def call(self, tool_id: str, arguments: Mapping[str, Any], caller: Caller) -> Answer:
        """Calls a tool on its own server in the same way as a worker does; the call of a resource reads it.

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
        supervision = self._calls.supervision(registry, caller.session, caller.user)
        call = partial(self._calls.call, bound, arguments, supervision)
        return await self.relay.run(call, bound.agent, caller.user, asks=caller.asks)

    async def close(self, session: str) -> None:
        """Closes the sessions with the catalog's servers that belong to one session of the gateway."""
        self.resources.registry.secrets.forget(session)
        await self.registry.close_run(session)


def found_text(selection: Selection, catalog: Catalog, resources: Sequence[Tool] = (), *, names: str = "") -> str:
    """Returns a selection as text: one line per tool, skill, resource and prompt, best first of each kind.

    The text ``names`` follows; if it is empty, the names of all tools of the selected agents do.
    """
    tools = [tool_line(catalog.tool(tool.id)) for tool in selection.tools if tool.id in catalog.tools]
    skills = [catalog.skills_by_id[skill.id] for skill in selection.skills if skill.id in catalog.skills_by_id]
    lines = [*tools, *(f"{skill.id}: {shown(skill.description, most=160)}" for skill in skills)]
    if selection.verdict == "nothing_fits":
        lines = ["no tool fits well; the nearest are:", *lines] if lines else ["no tool fits"]
    names = names or found_lines(catalog, (agent.id for agent in selection.agents), max_tokens=_AGENTS_TOKENS)
    return "\n".join([*lines, *map(tool_line, resources), *(["", names] if names else [])])


def _unknown_names(unknown: Mapping[str, Sequence[str]], known: Sequence[str]) -> UnknownNameError:
    """Returns the error about names that mean nothing; each has the ids that it may mean, or else the nearest."""
    told = [_unknown(name, ids or near_ids(name, known)) for name, ids in unknown.items()]
    return UnknownNameError("; ".join(told))


def _unknown(name: str, near: Sequence[str]) -> str:
    return f"no tool {name!r} in the catalog" + (f" (did you mean {' or '.join(map(repr, near))}?)" if near else "")
