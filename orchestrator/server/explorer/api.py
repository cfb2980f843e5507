"""The endpoints for the page, one method each; long work is done in threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.server.explorer.answers import node_details
from callsheet.orchestrator.server.explorer.answers.catalog_map import CatalogMap, catalog_map, list_agents, overview
from callsheet.orchestrator.server.explorer.answers.json_answers import Agents, Node, Overview
from callsheet.orchestrator.server.explorer.answers.reports import Report
from callsheet.orchestrator.server.explorer.answers.search_results import Found, search
from callsheet.orchestrator.server.explorer.site import Seen
from callsheet.orchestrator.server.runs.run_history import Runs, Thread
from callsheet.orchestrator.server.runs.shown_runs import RunShown, runs_of

Endpoint = Callable[[Seen, Request], Awaitable[object]]
_Given = TypeVar("_Given", bound=BaseModel)
_T = TypeVar("_T")
_Text = Annotated[str, Field(max_length=10_000)]


class _Parameters(BaseModel):
    """Query parameters; unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class _Question(_Parameters):
    q: _Text
    agents: Annotated[int, Field(ge=1, le=50)] = 5
    tools: Annotated[int, Field(ge=1, le=128)] = 10


class _List(_Parameters):
    words: _Text = ""
    start: Annotated[int, Field(ge=0)] = 0


class _Id(_Parameters):
    id: Annotated[str, Field(max_length=2_000)]


class Api:
    """The page's endpoints; without ``runs``, past runs are not shown; ``asks``: whether a page may run requests."""

    def __init__(
        self, runs: Runs | None, reports: Callable[[], Sequence[Report]], asks: Callable[[Request], bool]
    ) -> None:
        self._runs, self._reports, self._asks = runs, reports, asks

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Endpoints by the last part of their address.

        Each raises ``ValidationError`` for invalid parameters, and ``UnknownNameError`` for something that does not
        exist or is hidden from the user.
        """
        named = (self.overview, self.map, self.agents, self.search, self.node, self.capability, self.findings)
        return {endpoint.__name__: endpoint for endpoint in (*named, self.runs, self.run, self.evaluations)}

    async def overview(self, seen: Seen, request: Request) -> Overview:
        """Counts of the catalog."""
        return await run_in_threadpool(overview, seen, runs=self._runs is not None, asks=self._asks(request))

    async def map(self, seen: Seen, request: Request) -> CatalogMap:
        """All agents, tools and dependencies, for a picture."""
        return await run_in_threadpool(catalog_map, seen)

    async def agents(self, seen: Seen, request: Request) -> Agents:
        """A page of the list of agents: those that contain all ``words``, from ``start``."""
        given = _given(request, _List)
        return await run_in_threadpool(list_agents, seen, given.words, given.start)

    async def search(self, seen: Seen, request: Request) -> Found:
        """Results for the query ``q``: at most this many ``agents`` and ``tools``."""
        given = _given(request, _Question)
        return await run_in_threadpool(search, seen, given.q, agents=given.agents, tools=given.tools)

    async def node(self, seen: Seen, request: Request) -> Node:
        """The agent or tool ``id``."""
        known = await _done(seen.knowledge.capabilities())
        return await run_in_threadpool(node_details.node, seen, _given(request, _Id).id, known)

    async def capability(self, seen: Seen, request: Request) -> Node:
        """The capability ``id``."""
        known = await _done(seen.knowledge.capabilities())
        return await run_in_threadpool(node_details.capability, seen, _given(request, _Id).id, known)

    async def findings(self, seen: Seen, request: Request) -> list[dict[str, str]]:
        """Findings of ``callsheet check`` for the agent or tool ``id``."""
        found = await _done(seen.knowledge.findings())
        return [finding.to_dict() for finding in found.get(_given(request, _Id).id, ())]

    async def runs(self, seen: Seen, request: Request) -> list[Thread]:
        """The last threads."""
        return [*await self._runs.recent(request)] if self._runs else []

    async def run(self, seen: Seen, request: Request) -> list[RunShown]:
        """The requests of the thread ``id``."""
        thread = _given(request, _Id).id
        history = await self._runs.history(request, thread) if self._runs else []
        if not history:
            raise UnknownNameError(f"there is no thread {thread!r} that you may see")
        return [*await run_in_threadpool(runs_of, seen, history)]

    async def evaluations(self, seen: Seen, request: Request) -> list[Report]:
        """Evaluations; only the metrics for users who may not see everything."""
        reports = await run_in_threadpool(self._reports)
        return [report if seen.whole else report.figures for report in reports]


def _given(request: Request, form: type[_Given]) -> _Given:
    return form.model_validate(dict(request.query_params))


async def _done(future: Future[_T]) -> _T:
    """Waits for work in a background thread; cancelling the wait does not cancel the work."""
    return await asyncio.shield(asyncio.wrap_future(future))
