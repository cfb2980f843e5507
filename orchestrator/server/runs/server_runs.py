"""Past runs of the LangGraph server that serves the page, asked for in the name of whoever looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from callsheet.orchestrator.server.explorer.json_answers import shown_line
from callsheet.orchestrator.server.runs.run_history import MOST_RUNS, Moment, Thread
from callsheet.orchestrator.server.runs.server_client import allowed

_GRAPH = {"graph_id": "supervisor"}
_MOST_MOMENTS, _MOST_WAITING = 100, 1000


class ServerRuns:
    """Threads of the server's ``supervisor``.

    A request goes to the server's own routes with the headers of whoever looks, so that its authentication and
    authorization decide what is given.
    """

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads."""
        found = await allowed(
            request,
            lambda client: client.threads.search(
                metadata=_GRAPH,
                limit=MOST_RUNS,
                sort_by="updated_at",
                sort_order="desc",
                select=["thread_id", "updated_at", "status"],
                extract={"request": "values.request"},
            ),
        )
        return [
            Thread(str(thread["thread_id"]), _request(thread), str(thread["status"]), str(thread["updated_at"]))
            for thread in found or ()
        ]

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """What a thread went through."""
        found = await allowed(request, lambda client: client.threads.get_history(thread, limit=_MOST_MOMENTS))
        return [_moment(state) for state in found or ()]

    async def waiting(self, request: Request) -> int | None:
        """How many questions wait for a person, in all threads; None where whoever asks may not know."""
        found = await allowed(
            request,
            lambda client: client.threads.search(
                metadata=_GRAPH, status="interrupted", limit=_MOST_WAITING, select=["interrupts"]
            ),
        )
        if found is None:
            return None
        return sum(len(questions) for thread in found for questions in (thread["interrupts"] or {}).values())


def _request(thread: Mapping[str, Any]) -> str:
    asked = (thread.get("extracted") or {}).get("request")
    return shown_line(asked) if isinstance(asked, str) else ""


def _moment(state: Mapping[str, Any]) -> Moment:
    values = state["values"] if isinstance(state["values"], Mapping) else {}
    waiting = sum(len(task.get("interrupts") or ()) for task in state.get("tasks") or ())
    return Moment(values, str(state.get("created_at") or ""), waiting)
