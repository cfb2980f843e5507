"""A session that has ended keeps nothing of its run: no timer that was set while it was idle holds on to it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.credentials import Caller
from callsheet.agents.servers.session import Session
from callsheet.agents.servers.session_pool import SessionPool, end_all
from callsheet.graphs.catalog.formats.server_config import read_configuration
from fleet import Fleet, definition

pytestmark = pytest.mark.server
IDLE = 3_000.0
End = Callable[[SessionPool, Session], Awaitable[Any]]


async def closed(pool: SessionPool, session: Session) -> None:
    await pool._close("run")


async def retired(pool: SessionPool, session: Session) -> None:
    session.retire()
    await session.ended()


async def killed(pool: SessionPool, session: Session) -> None:
    """The server ends by itself."""
    assert session._faults.child is not None
    os.kill(session._faults.child.transport.get_pid(), signal.SIGKILL)
    await session.ended()


async def all_ended(pool: SessionPool, session: Session) -> None:
    await end_all()


@pytest.mark.parametrize("end", [closed, retired, killed, all_ended])
async def test_no_timer_outlives_its_session(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, end: End) -> None:
    fleet.serve("a", definition("work"))
    (server,) = read_configuration(json.loads(fleet.config.read_text()), fleet.config).servers.values()
    loop, timers = asyncio.get_running_loop(), list[asyncio.TimerHandle]()
    real = loop.call_later

    def call_later(seconds: float, *given: Any, **more: Any) -> asyncio.TimerHandle:
        handle = real(seconds, *given, **more)
        timers.extend([handle] if seconds == IDLE else [])
        return handle

    monkeypatch.setattr(loop, "call_later", call_later)
    pool = SessionPool(limits=Limits(idle=IDLE))
    session = await pool._ready(("run", "a", ""), server, Caller())
    await session.ask("tools/call", {"name": "work", "arguments": {}}, 30)
    assert not timers[-1].cancelled()
    await end(pool, session)
    await pool._close(None)
    assert all(timer.cancelled() for timer in timers)
