"""Carries out requests of the page on its LangGraph server, with the credentials of the viewer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request

from callsheet.orchestrator.run.thread_stream import without_failed
from callsheet.orchestrator.server.runs.live_run import MODES, LiveRun
from callsheet.orchestrator.server.runs.run_history import Moment, RunRefusedError
from callsheet.orchestrator.server.runs.server_client import allowed, client_of
from callsheet.orchestrator.server.runs.stores.server_runs import moment_of

if TYPE_CHECKING:
    from langgraph_sdk.client import LangGraphClient

_GRAPH = "supervisor"
_GOING = ("pending", "running")
_STREAM: Any = [*MODES[:-1], "messages-tuple"]
T = TypeVar("T")


class ServerRunner:
    """Starts and stops runs of the server's ``supervisor``; the server's own authorization applies."""

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request."""

        async def begin(client: LangGraphClient) -> str:
            chosen = thread or str((await client.threads.create(graph_id=_GRAPH))["thread_id"])
            given: Any = {"messages": [{"role": "user", "content": text}]}
            await client.runs.create(chosen, _GRAPH, input=given, **_HOW)
            return chosen

        return await _done(request, begin)

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions, or continues a run: where it stopped, or with the steps that failed."""

        async def go_on(client: LangGraphClient) -> None:
            state: Any = {} if answers else await client.threads.get_state(thread)
            results = (state.get("values") or {}).get("results") or {}
            if not state.get("next") and (kept := without_failed(results)) != results:
                repeated = {"results": {"__overwrite__": kept}}  # LangGraph's Overwrite, as JSON
                await client.threads.update_state(thread, repeated, as_node="plan")
            command: Any = {"resume": dict(answers)} if answers else None
            await client.runs.create(thread, _GRAPH, input=None, command=command, **_HOW)

        await _done(request, go_on)

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops the runs of a thread."""

        async def stop(client: LangGraphClient) -> None:
            for run in await client.runs.list(thread, limit=10):
                if run["status"] in _GOING:
                    await client.runs.cancel(thread, run["run_id"], wait=True)

        await _done(request, stop)

    async def watch(self, request: Request, thread: str) -> AsyncIterator[Moment]:
        """The run of a thread as it goes."""
        runs: Any = await allowed(request, lambda client: client.runs.list(thread, limit=1))
        if not runs or runs[0]["status"] not in _GOING:
            return
        async with client_of(request) as client:
            live = LiveRun(await self._before(client, thread, runs[0]))
            yield live.moment
            stream = client.runs.join_stream(thread, runs[0]["run_id"], last_event_id="0")
            async for part in stream:
                mode, _, namespace = part.event.partition("|")
                live.take([namespace] if namespace else [], mode, part.data)
                yield live.moment
            state: Any = await client.threads.get_state(thread)
            live.end(moment_of(state))
            yield live.moment

    async def _before(self, client: LangGraphClient, thread: str, run: Mapping[str, Any]) -> Moment:
        """The state at which a run continues, or its request."""
        given = (run.get("kwargs") or {}).get("input")
        if isinstance(given, Mapping) and given.get("messages"):
            return Moment({"request": str(given["messages"][-1].get("content", ""))}, "")
        state: Any = await client.threads.get_state(thread)
        return moment_of(state)


_HOW: Mapping[str, Any] = {
    "stream_mode": _STREAM,
    "stream_subgraphs": True,
    "stream_resumable": True,
    "multitask_strategy": "reject",
}


async def _done(request: Request, ask: Callable[[LangGraphClient], Awaitable[T]]) -> T:
    """What the server answers.

    Raises:
        RunRefusedError: It refuses; the message is the server's own.
    """
    import httpx

    async with client_of(request) as client:
        try:
            return await ask(client)
        except httpx.HTTPStatusError as error:
            raise RunRefusedError(_why(error.response)) from error


def _why(response: Any) -> str:
    try:
        told = response.json().get("detail")
    except ValueError:
        told = None
    return str(told or f"the server answered {response.status_code}")
