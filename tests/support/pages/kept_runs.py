"""Past runs as somebody kept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langgraph.types import Interrupt
from starlette.requests import Request

from callsheet.agents import Question
from callsheet.agents.calls.plan import user_question
from callsheet.orchestrator.server.runs.local_runs import LocalRuns
from callsheet.orchestrator.server.runs.run_history import RunSnapshot, Thread

CALL = {"agent": "units", "tool": "units/convert_length", "args": {"value": 3}, "output": "4.8 km", "error": ""}
RESULT = {
    "status": "done",
    "agents": ["units"],
    "tools": ["units/convert_length"],
    "calls": [{**CALL, "kind": "", "effect": "reported", "seconds": 0.25, "files": ["/tmp/x"]}],
    "result": "4.8 km",
    "error": "",
}
PICKED = {"agents": [{"id": "units", "tools": [{"id": "units/convert_length", "score": 0.7, "via": ["a", "b"]}]}]}
STEPS = [{"id": "1", "text": "convert", "depends_on": []}, {"id": "2", "text": "write", "depends_on": ["1"]}]


ASKED = user_question(Question(question="Which file?", choices=["a.txt", "b.txt"]))


def moment(run: str, at: str, waiting: int = 0, **values: Any) -> RunSnapshot:
    state = {"run": run, "request": f"request {run}", "plan": {"steps": STEPS, "note": "by rules"}, **values}
    questions = [Interrupt(ASKED, id=str(i)) for i in range(waiting)]
    return RunSnapshot(state, f"2026-01-01T10:00:{at}+00:00", questions)


ENDED = moment(
    "b", "09", results={"1": RESULT}, selections={"1": PICKED}, messages=[{"type": "ai", "content": "4.8 km"}]
)

REVISION = {"wave": 1, "added": ["3"], "changed": [], "dropped": ["2"], "reason": "the file is <b>missing</b>"}
USAGE = {"calls": 3, "input_tokens": 300, "output_tokens": 30, "cached_tokens": 0, "by_role": {}, "by_step": {}}
WORKED: Any = {"calls": 2, "input_tokens": 5_200, "output_tokens": 340, "cached_tokens": 4_000, "seconds": 1.5}
PLANNED: Any = {"calls": 1, "input_tokens": 800, "output_tokens": 90, "cached_tokens": 0, "seconds": 0.5}
USED = replace(
    ENDED,
    values={**ENDED.values, "results": {"1": {**RESULT, "usage": WORKED}}, "spent": {"plan 0": PLANNED}},
)
REVISED = moment("c", "11", revisions=[REVISION], usage=USAGE)
ASKING = moment("d", "12", waiting=1)


class Kept(LocalRuns):
    """Runs as somebody kept them."""

    def __init__(self, moments: Sequence[RunSnapshot]) -> None:
        nothing: Any = None
        super().__init__(nothing, nothing, nothing)
        self._moments = moments

    async def recent(self, request: Request) -> Sequence[Thread]:
        return [Thread(id="t", request="request b", status="idle", at="2026-01-01T10:00:09+00:00")]

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        return self._moments if thread == "t" else []
