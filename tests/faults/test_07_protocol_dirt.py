"""Fault 7: a server does not keep to the protocol."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

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
SHARED = {
    **dict.fromkeys(("garbage", "surrogate", "null_result", "unknown_content", "audio", "out_schema_mismatch"), ""),
    **dict.fromkeys(("stderr_flood", "stdout_noise"), ""),
    "half": "crash",
    "rpc_error": "protocol",
    "is_error": "tool",
}
UNKNOWN = ("half", "no_object")


async def survive(scenario: Any, kinds: dict[str, str], before: str = "") -> dict[str, Any]:
    """All of these modes, four at a time; what became of step 2 in each."""
    made, gate = {mode: scenario() for mode in kinds}, asyncio.Semaphore(4)

    async def one(mode: str) -> Any:
        kind = kinds[mode]
        status = "done" if not kind else "outcome_unknown" if mode in UNKNOWN else "failed"
        async with gate:
            return await made[mode].survives(kind, mode=f"{before}{mode}", status=status)

    return dict(zip(kinds, await asyncio.gather(*map(one, kinds)), strict=True))


async def test_dirt_costs_at_most_its_own_step(scenario: Any) -> None:
    results = await survive(scenario, KINDS)
    assert "unsupported protocol" in results["modern_only"]["error"]
    assert results["odd"]["calls"][0]["output"].startswith("[audio content]\n[hologram content, 3 bytes")
    assert results["bad_utf8"]["calls"][0]["output"] == "\ufffd\ufffd!"
    assert len(str(results["stderr_flood"])) < 10_000


async def test_dirt_of_the_shared_server_does_so_too(scenario: Any, chaos: str) -> None:
    await survive(scenario, SHARED, chaos)


@pytest.mark.parametrize("mode", ["modern_only", "bad_proto"])
async def test_an_unsupported_protocol_is_called_that(scenario: Any, chaos: str, mode: str) -> None:
    made = scenario()
    made.be("faulty", f"{chaos}{mode}")
    result = (await made.run())["results"]["2"]
    assert result["status"] == "failed"
    assert "protocol" in result["error"].lower()
