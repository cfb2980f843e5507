"""A run that one process began, which then died, goes on in another one, from the checkpoints in Postgres."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path

from fake_agents import OFFICE, FakeAgents
from forked import run_forked

TESTS = Path(__file__).parents[2]
# Each round is a process of its own: it approves what waits, runs until a question or the end, and is killed.
PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path

sys.path[:0] = {support!r}
from conversation import Conversation
from fake_agents import OFFICE, FakeAgents
from office_plans import SUM, sums
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.types import Command

async def round_of(number):
    office = FakeAgents(*OFFICE, log=Path({log!r}))
    office.approval = "always"
    async with AsyncPostgresSaver.from_conn_string({address!r}) as saver:
        if not number:
            await saver.setup()
        conversation = Conversation(office.agents(), model=sums(), saver=saver)
        waiting = (await conversation.app.aget_state(conversation.config)).interrupts
        answers = {{question.id: {{"decisions": [{{"type": "approve"}}]}} for question in waiting}}
        given = Command(resume=answers) if number else {{"messages": [{{"role": "user", "content": SUM}}]}}
        state = await conversation.app.ainvoke(given, conversation.config)
        print(len(waiting), *sorted(state.get("results", {{}})), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

for number in range(4):
    child = os.fork()
    if not child:
        asyncio.run(round_of(number))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_each_approval_is_given_in_another_process(store: str, tmp_path: Path) -> None:
    place, _, schema = store.partition("&schema=")
    program = PROGRAM.format(
        support=[path for path in sys.path if Path(path).is_relative_to(TESTS)],
        log=str(tmp_path / "calls.log"),
        address=f"{place}&options=-csearch_path%3D{schema}",
    )
    done = run_forked(["-c", program])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1::2] == [str(-signal.SIGKILL)] * 4, done.stderr
    assert [line.split()[0] for line in lines[::2]] == ["0", "1", "3", "1"]
    calls = Counter(name for name, _ in FakeAgents(*OFFICE, log=tmp_path / "calls.log").logged())
    assert calls == {"list_files": 1, "read_file": 3, "write_row": 1}
    assert lines[6].split()[1:] == ["1", "2.1", "2.2", "2.3", "9"]
