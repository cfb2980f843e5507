"""Fault 7: a server does not keep to the protocol."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents import Limits, SessionPool
from callsheet.graphs import ServerConfig
from scenario import Scenario

FAULTY = Path(__file__).parents[2] / "fixtures" / "fault_server.py"

KINDS = {
    "garbage": "",
    "half": "crash",
    "bad_utf8": "",
    "empty": "",
    "odd": "",
    "structured": "",
    "stderr_flood": "",
    "no_object": "protocol",
    "rpc_error": "protocol",
    "modern_only": "protocol",
    "is_error": "tool",
}
UNKNOWN = ("half", "no_object")


async def test_protocol_errors_fail_at_most_their_own_step(scenario: Callable[..., Scenario]) -> None:
    made, gate = {mode: scenario() for mode in KINDS}, asyncio.Semaphore(4)

    async def one(mode: str) -> Any:
        kind = KINDS[mode]
        status = "done" if not kind else "outcome_unknown" if mode in UNKNOWN else "failed"
        async with gate:
            return await made[mode].survives(kind, mode=mode, status=status)

    # A call with an unknown outcome holds up a like one of any other run, so those come one after the other.
    beside = [mode for mode in KINDS if mode not in UNKNOWN]
    results = dict(zip(beside, await asyncio.gather(*map(one, beside)), strict=True))
    for mode in UNKNOWN:
        results[mode] = await one(mode)
    assert "unsupported protocol" in results["modern_only"]["error"]
    assert results["odd"]["calls"][0]["output"].startswith("[audio content]\n[hologram content, 3 bytes")
    assert results["bad_utf8"]["calls"][0]["output"] == "\ufffd\ufffd!"
    assert len(str(results["stderr_flood"])) < 10_000


@pytest.mark.parametrize("mode", ["modern_only", "bad_proto"])
async def test_an_unsupported_protocol_is_called_that(scenario: Callable[..., Scenario], chaos: str, mode: str) -> None:
    made = scenario()
    made.be("faulty", f"{chaos}{mode}")
    result = (await made.run())["results"]["2"]
    assert result["status"] == "failed"
    assert "protocol" in result["error"].lower()


def program(code: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=("-u", "-c", code))


@pytest.mark.parametrize(
    ("server", "printed"),
    [
        (program("import time; print('Listening on 3000'); time.sleep(900)"), "'Listening on 3000'"),
        (program("input('Proceed? '); input(); import time; time.sleep(900)"), "'Proceed?'"),
        (program("import time\nprint('{}\\n' * 9)\nwhile 1: print('{}'); time.sleep(.05)"), "'{}', '{}', '{}' (and "),
    ],
)
def test_a_program_that_prints_and_does_not_answer_is_named_with_its_output(server: ServerConfig, printed: str) -> None:
    listing = SessionPool(limits=Limits(start=1)).list_all({"odd": server})["odd"]
    assert listing.kind == "timeout"
    assert f"it did not start within 1 s\nNot of the protocol, it printed: {printed}" in listing.error


def test_a_program_that_prints_without_end_is_not_waited_for() -> None:
    server = program("while True: print('y\x1b[31m')")
    listing = SessionPool(limits=Limits(start=300)).list_all({"odd": server})["odd"]
    assert listing.kind == "protocol"
    assert "it printed 'y', 'y', 'y' (and 98 more lines)" in listing.error.replace("[31m", "")
    assert "\x1b" not in listing.error


def test_a_program_that_prints_and_ends_is_named_with_its_output() -> None:
    listing = SessionPool().list_all({"odd": program("print('usage: odd FILE')")})["odd"]
    assert listing.kind == "start"
    assert "printed: 'usage: odd FILE'" in listing.error


NODE = """/srv/server.js:3
if (!process.env.MY_KEY) throw new Error("MY_KEY environment variable is required");
                               ^

Error: MY_KEY environment variable is required
    at Object.<anonymous> (/srv/server.js:3:32)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)
    at Object..js (node:internal/modules/cjs/loader:1706:10)
    at Module.load (node:internal/modules/cjs/loader:1289:32)
    at Function._load (node:internal/modules/cjs/loader:1108:12)
    at node:internal/main/run_main_module:36:49

Node.js v22.14.0"""
JAVA = 'Exception in thread "main" java.lang.IllegalStateException: no MY_KEY\n' + "\tat a.B.c(B.java:1)\n" * 30
DOTNET = "Unhandled exception. System.Exception: no MY_KEY\n" + "   at A.B() in /a.cs:line 1\n" * 30
PYTHON = """Traceback (most recent call last):
  File "/srv/server.py", line 3, in <module>
    Settings()
  File "/srv/settings.py", line 9, in __init__
    super().__init__()
pydantic.ValidationError: 1 validation error for Settings
MY_KEY
  Field required [type=missing]
    For further information visit https://errors.pydantic.dev"""
GO = "panic: no MY_KEY\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:4 +0x1\nexit status 2"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (NODE, "\nError: MY_KEY environment variable is required\n"),
        (JAVA, "java.lang.IllegalStateException: no MY_KEY"),
        (DOTNET, "System.Exception: no MY_KEY"),
        (PYTHON, "\nMY_KEY\n  Field required [type=missing]\n"),
        (GO, "panic: no MY_KEY"),
        ("Loading\n" * 90 + JAVA, "java.lang.IllegalStateException: no MY_KEY"),
    ],
    ids=["node", "java", "dotnet", "python", "go", "after a log"],
)
def test_the_error_of_a_server_that_raises_at_its_start_is_shown(text: str, error: str) -> None:
    listing = SessionPool().list_all({"odd": program(f"import sys; sys.stderr.write({text!r}); sys.exit(1)")})["odd"]
    assert listing.kind == "start"
    assert error in listing.error
    assert listing.error.count("\n") <= 8


def test_a_secret_of_its_entry_that_a_server_prints_is_not_quoted() -> None:
    code = "import os, time; print('key', os.environ['TOKEN']); time.sleep(900)"
    server = program(code).model_copy(update={"env": {"TOKEN": "hunter2-hunter2"}})
    listing = SessionPool(limits=Limits(start=1)).list_all({"odd": server})["odd"]
    assert "it printed: 'key " in listing.error
    assert "hunter2" not in listing.error


def test_a_server_that_prints_a_line_before_its_greeting_works() -> None:
    server = program(f"import runpy; print('Welcome!'); runpy.run_path({str(FAULTY)!r}, run_name='__main__')")
    listing = SessionPool().list_all({"odd": server})["odd"]
    assert listing.error == ""
    assert [tool["name"] for tool in listing.tools] == ["work"]
