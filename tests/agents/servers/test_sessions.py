"""Work on the background loop, awaited from there and from elsewhere."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from callsheet.agents.calls.call_context import ASK, CALLER, LOOP, BackgroundLoop, Limits, within
from callsheet.agents.calls.credentials import Caller
from callsheet.agents.calls.outcome import Outcome
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers.session_pool import SessionPool, end_all
from callsheet.graphs import Catalog, Loaded, Policy
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from servers import FIXTURES, HANG, HttpServer, alive, until

FAULTS = FIXTURES / "fault_server.py"
SECRET = "canary-8c41f"
TAG = f"callsheet-test-{os.getpid()}"


def server(mode: str, size: int = 0, log: Path | None = None) -> ServerConfig:
    env = {"TOKEN": SECRET, **({"FAULT_LOG": str(log)} if log else {})}
    return ServerConfig(command=sys.executable, args=(str(FAULTS), mode, str(size), TAG), env=env)


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool(limits=Limits(start=HANG, list=HANG, call=HANG, output=1_000, message=100_000))
    yield pool
    pool.close()


async def work(
    pool: SessionPool, mode: str, size: int = 0, run: str = "run", x: int = 1, log: Path | None = None
) -> Outcome:
    return await pool.call(run, "a", server(mode, size, log), "work", {"x": x})


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
async def test_a_number_that_json_does_not_know_is_not_sent_as_null(pool: SessionPool, number: float) -> None:
    outcome = await pool.call("run", "a", server("ok"), "work", {"x": [number]})
    assert (outcome.kind, outcome.effect) == ("refused", "none")
    assert "a number that JSON does not support" in outcome.error


def children() -> list[str]:
    """Servers of these tests, and processes that they started, that are still there."""
    return alive(TAG)


async def test_a_run_keeps_its_session(pool: SessionPool) -> None:
    first, second = await work(pool, "ok"), await work(pool, "ok")
    assert (first.error, second.error) == ("", "")
    assert first.text.startswith("1 ")
    assert second.text == f"2 {first.text.split()[1]} " + '{"x": 1}'
    assert second.seconds < first.seconds


async def test_a_part_that_fails_leaves_the_session_to_the_others(pool: SessionPool) -> None:
    with pool.held("run"):
        await work(pool, "ok")
        with pytest.raises(KeyError), pool.held("run"):
            raise KeyError
        assert [(await work(pool, "ok")).text[:2] for _ in range(2)] == ["2 ", "3 "]


def test_callers_on_several_loops_and_none_share_it(pool: SessionPool) -> None:
    texts = [asyncio.run(work(pool, "ok")).text for _ in range(2)]
    texts.append(LOOP.blocking(work(pool, "ok")).text)
    assert [text[:2] for text in texts] == ["1 ", "2 ", "3 "]


async def test_calls_side_by_side_start_one_server(pool: SessionPool) -> None:
    outcomes = await asyncio.gather(*(work(pool, "slow", x=x) for x in range(3)))
    assert len({outcome.text.split()[1] for outcome in outcomes}) == 1


async def test_a_server_killed_between_calls_is_replaced(pool: SessionPool) -> None:
    pid = int((await work(pool, "ok")).text.split()[1])
    (session,) = pool._sessions.values()
    os.kill(pid, 9)
    assert await asyncio.to_thread(until, lambda: session.gone)  # the process ends a moment before that
    outcome = await work(pool, "ok")
    assert outcome.error == ""
    assert outcome.text.startswith("1 ")


async def test_a_cancelled_caller_drops_the_session(pool: SessionPool, tmp_path: Path) -> None:
    task = asyncio.create_task(work(pool, "hang", log=(log := tmp_path / "log")))
    assert await asyncio.to_thread(until, lambda: log.exists() and "in\n" in log.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await pool.close_run("run")
    assert not children()


async def test_a_server_has_time_to_undo_a_call_that_is_cancelled(pool: SessionPool, tmp_path: Path) -> None:
    works = ServerConfig(command=sys.executable, args=(str(FIXTURES / "working_server.py"), str(tmp_path / "log")))
    task = asyncio.create_task(pool.call("run", "a", works, "sleep", {}))
    log = tmp_path / "log"
    assert await asyncio.to_thread(until, lambda: log.exists() and log.read_text())
    task.cancel()
    assert await asyncio.to_thread(until, lambda: "called off\n" in log.read_text())
    await pool.close_run("run")


async def test_only_the_sessions_of_the_own_event_loop_are_ended(pool: SessionPool) -> None:
    first = await work(pool, "ok")  # on the background loop
    async with asyncio.timeout(HANG):
        await end_all()
    assert (await work(pool, "ok")).text.startswith(f"2 {first.text.split()[1]} ")


@pytest.mark.parametrize(
    "change", ["", "agent", "user", "argument", "variable", "options", "run", "policy", "killed", "asks"]
)
async def test_a_later_run_of_the_same_user_goes_on_with_the_server(
    pool: SessionPool, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless something of it is different: then its process ends, or serves another, and a new one is started."""
    monkeypatch.setenv("PLACE", "here")
    first = server("ok").model_copy(update={"env": {"TOKEN": SECRET, "PLACE": "${PLACE}"}})
    if change == "run":
        first = first.model_copy(update={"callsheet": ServerOptions(session="run")})
    was = (await pool.call("one", "a", first, "work", {})).text.split()[1]
    await pool.close_run("one")
    assert (was in children()) is (change != "run")
    second, user, ask = first, "", None
    match change:
        case "user":
            user = "bob"
        case "argument":
            second = first.model_copy(update={"args": (*first.args, "more")})
        case "variable":
            monkeypatch.setenv("PLACE", "there")
        case "options":
            second = first.model_copy(update={"callsheet": ServerOptions(roots=("/tmp",))})
        case "policy":
            registry = ToolRegistry(Catalog(), {}, pool=pool)
            registry.follow(Loaded(Catalog(), policy=Policy(default="allow")))
        case "killed":
            os.kill(int(was), 9)
        case "asks":
            ask = _never
    with within(CALLER, Caller(user)), within(ASK, ask):
        outcome = await pool.call("two", "b" if change == "agent" else "a", second, "work", {})
    assert outcome.error == ""
    count, now, *_ = outcome.text.split()
    assert (count, now == was) == ("1" if change else "2", not change)
    if change in ("run", "policy", "killed", "argument", "variable", "options"):
        assert await asyncio.to_thread(until, lambda: was not in children())
    else:
        assert was in children()
    pool.close()
    assert not children()


async def _never(message: str, form: object) -> dict[str, str]:
    raise AssertionError(message)


async def test_only_so_many_servers_wait_for_a_run_and_not_for_ever() -> None:
    pool = SessionPool(limits=Limits(start=HANG, warm=2, idle=1))
    pids = []
    for run in "abc":
        pids.append((await pool.call(run, run, server("ok"), "work", {})).text.split()[1])
        await pool.close_run(run)
    assert pids[0] not in children()
    assert await asyncio.to_thread(until, lambda: not children())
    assert (await pool.call("d", "c", server("ok"), "work", {})).text.startswith("1 ")
    pool.close()


async def test_two_runs_at_once_never_share_a_server_that_waits(pool: SessionPool) -> None:
    await work(pool, "ok", run="one")
    await pool.close_run("one")
    outcomes = await asyncio.gather(work(pool, "ok", run="two"), work(pool, "ok", run="three"))
    assert sorted(outcome.text[:2] for outcome in outcomes) == ["1 ", "2 "]


async def test_odd_answers_are_kept(pool: SessionPool) -> None:
    outcome = await work(pool, "odd")
    assert not outcome.error
    assert re.sub(r": /\S*(\.\w+)]", r": *\1]", outcome.text) == (
        "[audio content]\n[hologram content, 3 bytes: *.bin]\n[image image/png, 3 bytes: *.png]\n"
        "[content of no known kind]\nseen"
    )


@pytest.mark.parametrize(
    ("mode", "kind", "words"),
    [
        ("is_error", "tool", "no such row ***"),
        ("rpc_error", "protocol", "error -32000: backend down"),
        ("no_object", "protocol", "not a JSON-RPC response"),
        ("deep", "protocol", "its structured result is nested more than 100 levels deep"),
        ("too_deep", "protocol", "not a JSON-RPC response"),
        ("exit", "start", "cannot open config ***"),
        (
            "crash",
            "crash",
            "status 7 during tools/call; whether the call took effect is unknown\nIts last words: cannot",
        ),
    ],
)
async def test_failures_are_data(pool: SessionPool, mode: str, kind: str, words: str) -> None:
    outcome = await work(pool, mode)
    assert outcome.kind == kind
    assert words in outcome.error
    assert SECRET not in outcome.error


async def test_a_listing_is_what_the_server_sent(pool: SessionPool) -> None:
    listing = await pool.list_tools(server("missing_schema"))
    assert (listing.name, listing.instructions) == ("fault", "Be brief.")
    assert listing.tools[1:] == ({"name": "bare"}, {"description": "nameless"}, "no object")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (ServerConfig(command="no-such-program"), "'no-such-program' was not found"),
        (ServerConfig(command=sys.executable, args=("${CALLSHEET_UNSET}",)), "CALLSHEET_UNSET"),
        (ServerConfig(url="http://127.0.0.1:9/mcp", transport="http"), "ConnectError"),
        (ServerConfig(url="http://127.0.0.1:9/mcp?page=2", transport="http"), "(http://127.0.0.1:9/mcp)"),
        (ServerConfig(url="http://ann:s3cr3t-word@127.0.0.1:9/mcp", transport="http"), "(http://127.0.0.1:9/mcp)"),
    ],
)
async def test_a_server_that_cannot_start_says_why_and_where(
    pool: SessionPool, config: ServerConfig, words: str
) -> None:
    listing = await pool.list_tools(config)
    assert listing.kind == "start"
    assert words in listing.error


async def test_a_value_from_the_environment_is_not_shown(pool: SessionPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", "from-outside-1")
    config = ServerConfig(
        command=sys.executable, args=("-c", "import sys; sys.exit('bad key ' + sys.argv[1])", "${KEY}")
    )
    assert "bad key ***" in (await pool.list_tools(config)).error


async def test_a_session_over_http_is_rebuilt_when_the_server_was_restarted_while_idle(
    pool: SessionPool, tmp_path: Path
) -> None:
    server, outcomes = HttpServer(tmp_path), list[Outcome]()
    for _ in range(2):
        server.start()
        outcomes.append(await pool.call("run", "remote", server.config, "work", {"x": 1}))
    server.kill()
    assert [outcome.error for outcome in outcomes] == ["", ""]
    assert len({outcome.text.split()[0] for outcome in outcomes}) == 2


def test_servers_that_answer_late_are_named_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("callsheet.agents.servers.session_pool.LATE", 0.2)
    options = ServerOptions(limits={"start": 1})
    hung = ServerConfig(command=sys.executable, args=("-c", "import time; time.sleep(60)"), callsheet=options)
    SessionPool().list_all({"slow": hung, "gone": ServerConfig(command="no-such-program")})
    assert "no answer for 0.2 s from slow: waiting" in caplog.text
    assert "gone" not in caplog.text


async def _thread() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("inside", [True, False])
def test_whoever_is_cancelled_cancels_the_work_and_does_not_wait(inside: bool) -> None:
    loop, told = BackgroundLoop("under-test"), list[str]()
    started, went_on, cleaned = threading.Event(), threading.Event(), threading.Event()

    async def slow() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            # It cleans up for as long as its caller needs to go on: nobody waits for that.
            while not went_on.is_set():
                await asyncio.sleep(0.001)
            told.append("cleaned")
            cleaned.set()
            raise

    async def caller() -> None:
        task = asyncio.create_task(loop.awaited(slow()))
        while not started.is_set():
            await asyncio.sleep(0.001)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        told.append("went on")
        went_on.set()

    loop.blocking(caller(), 30) if inside else asyncio.run(caller())
    assert cleaned.wait(30)
    assert told == ["went on", "cleaned"]


def test_a_loop_does_not_wait_for_itself() -> None:
    loop = BackgroundLoop("under-test")

    async def waits() -> None:
        loop.blocking(_thread())

    with pytest.raises(RuntimeError, match="cannot block on itself"):
        loop.blocking(waits(), 5)


def test_only_the_logs_of_clients_are_silenced() -> None:
    """A server of this process logs its failures, of which its clients see an internal error only."""
    import_module("callsheet.agents.servers.transport.client")
    loggers = ("client", "mcp", "mcp.client", "mcp.server", "mcp.shared")
    assert [name for name in loggers if logging.getLogger(name).handlers] == ["client", "mcp.client"]
