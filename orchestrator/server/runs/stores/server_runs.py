"""Past runs on the LangGraph server of the page, requested with the viewer's credentials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.requests import Request

from callsheet.orchestrator.server.explorer.answers.json_answers import shown_line
from callsheet.orchestrator.server.runs.run_history import MOST_RUNS, Moment, Pending, Thread
from callsheet.orchestrator.server.runs.server_client import allowed

_GRAPH = {"graph_id": "supervisor"}
_MOST_MOMENTS, _MOST_WAITING = 100, 1000


class ServerRuns:
    """Threads of the server's ``supervisor``.

    Requests go to the server's own routes with the viewer's headers, so its authentication and authorization apply.
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
        """The history of a thread."""
        found = await allowed(request, lambda client: client.threads.get_history(thread, limit=_MOST_MOMENTS))
        return [moment_of(state) for state in found or ()]

    async def waiting(self, request: Request) -> int | None:
        """Number of pending questions in all threads; None if the viewer may not know."""
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


def moment_of(state: Mapping[str, Any]) -> Moment:
    """A state of a thread, with the results of the steps that ended while others wait."""
    values, asked = dict(state["values"]) if isinstance(state["values"], Mapping) else {}, list[Pending]()
    for task in state.get("tasks") or ():
        asked += [Pending(str(one["id"]), one.get("value")) for one in task.get("interrupts") or ()]
        for channel in ("results", "selections"):
            if isinstance(new := (task.get("result") or {}).get(channel), Mapping):
                values[channel] = {**(values.get(channel) or {}), **new}
    return Moment(values, str(state.get("created_at") or ""), tuple(asked))
