"""Servers that greet in every way: one that cannot be used is a problem that says why, and nothing else happens."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from fuzzing import anything, fuzzed, mutated
from puppet import GREETING, Answer, line, result
from stage import Stage

PAGE = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {"listChanged": True}},
    "serverInfo": {"name": "puppet", "version": "1"},
    "instructions": "Be brief.",
    "ttlMs": 0,
    "cacheScope": "private",
}
greetings = mutated({**GREETING, "instructions": "Be brief."}) | anything
errors = st.fixed_dictionaries({"code": anything, "message": anything})


def failing(error: Any) -> Answer:
    """The answer that is this error."""
    return lambda number: line({"jsonrpc": "2.0", "id": number, "error": error})


@given(greeting=greetings.map(result) | errors.map(failing), discovered=st.none() | mutated(DISCOVERED))
def greeted(stage: Stage, greeting: Answer, discovered: Any) -> None:
    async def example() -> None:
        answers, stage.puppet.pages = {"initialize": greeting}, (PAGE,)
        if discovered is not None:
            answers["server/discover"] = result(discovered)
        stage.puppet.answers = answers
        listing = stage.listing = await stage.pool.list_tools(stage.puppet.config)
        loaded = stage.accept()
        assert bool(loaded.catalog.tools) == (not listing.error)
        assert bool(loaded.problems) == bool(listing.error)
        assert listing.kind != "timeout"
        assert not stage.puppet.calls

    stage.run(example())


def test_a_greeting_is_taken_or_is_a_problem(stage: Stage) -> None:
    fuzzed(12)(greeted)(stage)
