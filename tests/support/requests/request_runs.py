"""Requests over the demo's agents without a model, judged.

Run it in the checkout's root with the environment's Python, after ``make .venv/.demo``, as
``python tests/support/requests/request_runs.py FILE.jsonl``. It prints counts by category and the ids of what was
unsafe or silently wrong; with ``--counts``, counts only. Exit status 1 if any was.

All is as with ``callsheet ask --approval never`` where nobody sits at a terminal: the same catalog, the same run, the
same status; only the checkpoints stay in memory. The servers are real; they are started once, not once a request. The
workspace is made anew each time.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import click

from request_judgement import FIXTURE, Outcome, Record, Verdict, counts, judge, read_records

if TYPE_CHECKING:
    from callsheet.agents import ToolRegistry
    from callsheet.graphs import Loaded
    from callsheet.orchestrator.cli.ask import RunResult
    from callsheet.orchestrator.run.threads import Threads

ROOT = Path(__file__).parents[3]
CATALOG = ("examples/demo/mcp.json", "examples.demo.toolkits:agents")
ALL_RUNS = "all-requests"


@dataclass(frozen=True, slots=True)
class Demo:
    """The demo's agents, ready for one request after the other.

    Attributes:
        workflow: The supervisor over them.
        threads: Where its runs are kept.
        workspace: The folder that the files agent works in.
    """

    workflow: Any
    threads: Threads
    workspace: Path

    def ask(self, request: str, fixture: Mapping[str, str] = FIXTURE) -> Outcome:
        """What becomes of a request, with nobody to ask and approval never."""
        self._furnish(fixture)
        thread = self.threads.new()
        with self.threads.locked(thread):
            ran = asyncio.run(self._ran(self.workflow, thread, request))
        steps = ran.steps()
        saved = {f"math:{call['args']['name']}": str(call["args"]["result"]) for call in _saves(steps)}
        texts = tuple(step["text"].strip() for step in steps)
        return Outcome(ran.exit_status == 0, ran.answer, {**self._files(), **saved}, texts)

    async def _ran(self, workflow: Any, thread: str, request: str) -> RunResult:
        from langgraph.types import Command

        from callsheet.orchestrator.cli.approval_prompt import approve_all
        from callsheet.orchestrator.cli.ask import run_workflow

        given: Any = {"messages": [{"role": "user", "content": request}]}
        ran = await run_workflow(workflow, self.threads, thread, given, lambda _: None)
        while answers := approve_all(ran.waiting):
            ran = await run_workflow(workflow, self.threads, thread, Command(resume=answers), lambda _: None)
        return ran

    def _furnish(self, fixture: Mapping[str, str]) -> None:
        for entry in self.workspace.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for name, text in fixture.items():
            (self.workspace / name).write_text(text, encoding="utf-8")

    def _files(self) -> Mapping[str, str]:
        found = (path for path in sorted(self.workspace.rglob("*")) if path.is_file())
        return {str(path.relative_to(self.workspace)): path.read_text("utf-8", "replace") for path in found}


def _saves(steps: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    calls = [call for step in steps for call in step["calls"] if not call["error"]]
    return [call for call in calls if (call["agent"], call["tool"]) == ("math", "math/save_calculation")]


@contextmanager
def demo(home: Path) -> Iterator[Demo]:
    """The demo's agents with everything that they keep under a folder.

    Raises:
        RuntimeError: An agent of the demo did not start.
    """
    workspace = home / "workspace"
    workspace.mkdir()
    with mock.patch.dict(os.environ, _surroundings(home, workspace)):
        loaded = _loaded(home)
        registry = _registry(loaded)
        try:
            yield Demo(_supervisor(loaded, registry), _threads(), workspace)
        finally:
            registry.close(ALL_RUNS)


def _surroundings(home: Path, workspace: Path) -> dict[str, str]:
    """The math server keeps values in the user's home, where uvx finds what it has fetched."""
    for name in (".cache", ".local"):
        if (there := Path.home() / name).is_dir():
            (home / name).symlink_to(there, target_is_directory=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(home), "CALLSHEET_HOME": str(home), "CALLSHEET_WORKSPACE": str(workspace), "PATH": path}


def _loaded(home: Path) -> Loaded:
    from callsheet.graphs import load

    loaded = load(*CATALOG, yes=True, pins=str(home / "pins.json"))
    if loaded.problems:
        raise RuntimeError("; ".join(map(str, loaded.problems)))
    return loaded


def _supervisor(loaded: Loaded, registry: ToolRegistry) -> Any:
    from callsheet.orchestrator.run.settings import Settings
    from callsheet.orchestrator.supervisor import create_supervisor
    from callsheet.retrievers import AgentGraphRetriever

    retriever = AgentGraphRetriever.from_catalog(loaded)
    return create_supervisor(loaded, retriever=retriever, registry=registry, settings=Settings(approval="never"))


def _threads() -> Threads:
    """Threads of which nothing is written: nobody takes a run up again, and writing is a fifth of its time."""
    from langgraph.checkpoint.memory import InMemorySaver

    from callsheet.graphs.storage import state_folder
    from callsheet.orchestrator.run.threads import Threads

    kept: defaultdict[str, InMemorySaver] = defaultdict(InMemorySaver)

    class Unwritten(Threads):
        @asynccontextmanager
        async def saver(self, thread: str) -> AsyncIterator[InMemorySaver]:
            yield kept[thread]

    return Unwritten(state_folder() / "threads")


def _registry(loaded: Loaded) -> ToolRegistry:
    """A registry whose runs share one session a server: none of the demo's servers keeps anything of a session."""
    from callsheet.agents import SessionPool, ToolRegistry

    class SharedSessions(SessionPool):
        async def call(self, run_id: str, *args: Any, **options: Any) -> Any:
            return await super().call(ALL_RUNS, *args, **options)

    return ToolRegistry.from_catalog(loaded, pool=SharedSessions())


def main() -> int:
    """Runs a file of records and prints what became of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--counts", action="store_true", help="print counts by category and nothing else")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    os.chdir(ROOT)  # the demo's catalog names its files from here
    with tempfile.TemporaryDirectory() as home, demo(Path(home)) as agents:
        judged = [(record, _verdict(agents, record)) for record in read_records(options.file)]
    bad = [f"{verdict} {record.id}" for record, verdict in judged if verdict in (Verdict.UNSAFE, Verdict.SILENT)]
    click.echo("\n".join([*([] if options.counts else bad), counts(judged)]))
    return int(bool(bad))


def _verdict(agents: Demo, record: Record) -> Verdict:
    try:
        return judge(record, agents.ask(record.request, record.fixture))
    except Exception:  # noqa: BLE001 (a run that raises said nothing; the other requests go on)
        return Verdict.SILENT


if __name__ == "__main__":
    sys.exit(main())
