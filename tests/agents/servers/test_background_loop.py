"""Work on the background loop, awaited from there and from elsewhere."""

from __future__ import annotations

import asyncio
import threading

import pytest

from callsheet.agents.calls.call_context import BackgroundLoop


async def _thread() -> str:
    return threading.current_thread().name


@pytest.mark.parametrize("inside", [True, False])
def test_whoever_is_cancelled_cancels_the_work_and_does_not_wait(inside: bool) -> None:
    loop, told = BackgroundLoop("under-test"), list[str]()
    cleaned = threading.Event()

    async def slow() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            told.append("cleaned")
            cleaned.set()
            raise

    async def caller() -> None:
        task = asyncio.create_task(loop.awaited(slow()))
        await asyncio.sleep(0.05)
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.005)
        with pytest.raises(asyncio.CancelledError):
            await task
        told.append("went on")

    loop.blocking(caller(), 5) if inside else asyncio.run(caller())
    assert cleaned.wait(5)
    assert told == ["went on", "cleaned"]


def test_a_loop_does_not_wait_for_itself() -> None:
    loop = BackgroundLoop("under-test")

    async def waits() -> None:
        loop.blocking(_thread())

    with pytest.raises(RuntimeError, match="cannot wait for itself"):
        loop.blocking(waits(), 5)
