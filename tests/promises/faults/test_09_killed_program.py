"""Fault 9: the program itself is killed with -9 in the middle of a call, or between a call and its checkpoint."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from callsheet.graphs.storage import cache_folder
from callsheet.retrievers import MiniLMEmbeddings
from forked import Forked
from scenario import Scenario
from servers import HANG, alive, until

PROGRAM = """
import asyncio, os, sys, time
from pathlib import Path

sys.path[:0] = {support!r}
from langchain_core.messages import ToolMessage
from deciding_model import own_steps
from forked import Forked
from scenario import Scenario
from callsheet.retrievers import MiniLMEmbeddings

class Dying(Scenario):
    def _reply(self, worker, messages):
        told = own_steps(messages[1].text).splitlines()[0]
        if {dies} and isinstance(messages[-1], ToolMessage) and "work of faulty" in told:
            while not (self.count("beside", "out") and "3" in asyncio.run(self.written())):
                time.sleep(0.05)
            os.kill(os.getpid(), 9)
        return super()._reply(worker, messages)

scenario = Dying(Path({folder!r}), MiniLMEmbeddings(), tag={tag!r})
scenario.be("faulty", {mode!r})
asyncio.run(scenario.run())
"""


def started(folder: Path, tag: str, *, mode: str, dies: bool) -> Forked:
    """A program of its own in the middle of the scenario."""
    folder.mkdir()
    support = [path for path in sys.path if "support" in Path(path).parts]
    program = PROGRAM.format(support=support, folder=str(folder), tag=tag, mode=mode, dies=dies)
    environment = {**os.environ, "CALLSHEET_HOME": str(cache_folder())}
    return Forked(["-c", program], env=environment, stderr=subprocess.DEVNULL)


def said(folder: Path, agent: str, what: str) -> bool:
    log = folder / f"{agent}.log"
    return log.exists() and what in log.read_text()


@pytest.mark.parametrize("mode", ["hang", "effect_hang"])
async def test_a_program_killed_in_a_call_repeats_nothing(tmp_path: Path, minilm: MiniLMEmbeddings, mode: str) -> None:
    folder, tag = tmp_path / "scenario", f"callsheet-{uuid.uuid4().hex}"
    process = started(folder, tag, mode=mode, dies=False)
    assert until(lambda: said(folder, "faulty", "call") and said(folder, "beside", "out"))
    made = await asyncio.to_thread(Scenario, folder, minilm, tag=tag)
    async with asyncio.timeout(HANG):
        while "3" not in await made.written():
            await asyncio.sleep(0.05)
    process.kill()
    process.wait(HANG)
    # One that hangs in a call does not see that its input has ended.
    assert until(lambda: len(alive(tag)) <= 1), alive(tag)
    for left in alive(tag):
        os.kill(int(left), signal.SIGKILL)
    assert until(lambda: not alive(tag)), alive(tag)
    made.be("faulty", "ok")
    before = {agent: made.count(agent) for agent in ("first", "beside", "faulty")}
    assert before == {"first": 1, "beside": 1, "faulty": 1}
    state = await made.resumed()
    assert [state["results"][i]["status"] for i in "1234"] == ["done", "outcome_unknown", "done", "skipped"]
    assert {agent: made.count(agent) for agent in before} == before
    assert made.count("faulty", "EFFECT") == (mode == "effect_hang")
    assert "running when the program stopped" in state["results"]["2"]["error"]
    assert until(lambda: not alive(tag)), alive(tag)


async def test_a_program_killed_between_a_call_and_its_checkpoint_calls_once(
    tmp_path: Path, minilm: MiniLMEmbeddings
) -> None:
    folder, tag = tmp_path / "scenario", f"callsheet-{uuid.uuid4().hex}"
    process = started(folder, tag, mode="ok", dies=True)
    assert process.wait(HANG) == -signal.SIGKILL
    assert until(lambda: not alive(tag)), alive(tag)
    made = Scenario(folder, minilm, tag=tag)
    state = await made.resumed()
    assert [state["results"][i]["status"] for i in "1234"] == ["done"] * 4
    assert made.count("faulty") == 1
    assert made.count("first") == 2
    assert until(lambda: not alive(tag)), alive(tag)
