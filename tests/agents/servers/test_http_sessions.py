"""Streamable HTTP: servers that are killed and come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.tool_result import Outcome
from callsheet.agents.servers.session_pool import SessionPool
from servers import HANG, HttpServer, until

LIMITS = Limits(start=HANG, list=HANG, call=HANG, message=1_000_000, failures=20)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    server = HttpServer(tmp_path)
    yield server
    server.kill()


@pytest.fixture
async def pool() -> AsyncIterator[SessionPool]:
    pool = SessionPool(limits=LIMITS)
    yield pool
    await asyncio.to_thread(pool.close)


@pytest.fixture
async def hasty() -> AsyncIterator[SessionPool]:
    """Waits for two seconds only, for servers that hang."""
    pool = SessionPool(limits=LIMITS.own({"call": 2}))
    yield pool
    await asyncio.to_thread(pool.close)


async def work(pool: SessionPool, server: HttpServer) -> Outcome:
    return await pool.call("run", "remote", server.config, "work", {"x": 1})


async def test_a_session_is_rebuilt_when_the_server_was_restarted_while_idle(
    pool: SessionPool, server: HttpServer
) -> None:
    server.start()
    first = await work(pool, server)
    server.start()
    second = await work(pool, server)
    assert (first.error, second.error) == ("", "")
    assert first.text.split()[0] != second.text.split()[0]


async def test_a_server_killed_during_a_call_is_noticed_within_the_limit(
    pool: SessionPool, hasty: SessionPool, server: HttpServer
) -> None:
    server.start("hang")
    call = asyncio.create_task(work(hasty, server))
    assert await asyncio.to_thread(until, lambda: server.log.exists() and "call" in server.log.read_text())
    server.kill()
    outcome = await call
    assert outcome.kind in ("crash", "timeout")
    assert outcome.effect == "unknown"
    assert "agent 'remote', tool 'work'" in outcome.error
    server.start()
    assert (await work(pool, server)).error == ""
    assert server.log.read_text().count("call") == 2


async def test_a_server_that_is_down_did_surely_nothing(pool: SessionPool, server: HttpServer) -> None:
    server.start()
    assert (await work(pool, server)).error == ""
    server.kill()
    for _ in range(2):
        outcome = await work(pool, server)
        assert (outcome.kind, outcome.effect) == ("start", "none")
        assert "ConnectError" in outcome.error
    server.start()
    assert (await work(pool, server)).error == ""


@pytest.mark.parametrize("mode", ["big", "big_sse"])
async def test_no_more_is_read_than_a_message_may_hold(pool: SessionPool, server: HttpServer, mode: str) -> None:
    server.start(mode)
    outcome = await work(pool, server)
    assert (outcome.kind, outcome.effect) == ("too_large", "unknown")
    server.start("ok_sse")
    assert (await work(pool, server)).error == ""
