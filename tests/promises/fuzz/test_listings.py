"""Listings of every sort, first to be pinned, then instead of what was pinned: only what was accepted is called."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given, strategies as st

from fuzzing import fuzzed, mutated, written
from puppet import Puppet, result
from stage import Stage

SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
WORK = {
    "name": "work",
    "title": "Work",
    "description": "Does work.",
    "inputSchema": SCHEMA,
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True},
    "_meta": {
        "callsheet/core": True,
        "callsheet/depends_on": [{"tool": "rest", "kind": "tool_directly_depends_on"}],
        "callsheet/capabilities": ["plan"],
    },
}
REST = {"name": "rest", "description": "Rests.", "inputSchema": {"type": "object"}}
PAGE = {"tools": [WORK, REST, {**REST, "name": "sleep"}]}
LOOPS = [{**PAGE, "nextCursor": cursor} for cursor in ("", "again", 1)]
pages = st.lists(mutated(PAGE) | st.sampled_from([PAGE, *LOOPS]), min_size=1, max_size=3) | st.just([PAGE])


def offered(entries: list[Any]) -> dict[str, str]:
    """Name -> definition, of the tools that a listing holds in one form."""
    tools = [entry for entry in written(entries) if isinstance(entry, dict) and isinstance(entry.get("name"), str)]
    forms = {(tool["name"], json.dumps(tool, sort_keys=True)) for tool in tools}
    times = Counter(name for name, _ in forms)
    return {name: form for name, form in forms if times[name] == 1}


def called(puppet: Puppet) -> set[str]:
    """The tools that it was called for; each call is one that was made."""
    calls = [call["name"] for call in puppet.calls]
    puppet.sent.clear()
    return set(calls)


@given(first=pages, second=pages)
def listings(stage: Stage, first: list[Any], second: list[Any]) -> None:
    async def example() -> None:
        puppet = stage.puppet
        failed = await stage.offer(*first)
        accepted, ids = offered(puppet.served), list(stage.accept().catalog.tools)
        if failed:
            assert not ids
            return
        answers = [await stage.call(tool_id, {}) for tool_id in ids]
        reached = called(puppet)
        assert reached <= {name for name, definition in accepted.items() if "\\u202e" not in definition}
        trouble = await stage.offer(*second)
        unchanged = {name for name, definition in offered(puppet.served).items() if accepted.get(name) == definition}
        assert [answer.status for answer in answers].count("success") == len(reached)
        for tool_id in ids:
            await stage.call(tool_id, {})
            sent = called(puppet)
            name = tool_id.removeprefix("puppet/")
            assert sent <= {name} & unchanged
            assert sent or trouble or name not in unchanged & reached
        for tool_id in stage.read().catalog.tools:  # one that does not answer keeps what is known of it
            assert trouble or tool_id.removeprefix("puppet/") in unchanged
            await stage.call(tool_id, {})
        assert called(puppet) <= unchanged

    stage.run(example())


def test_only_what_was_accepted_is_called(stage: Stage) -> None:
    stage.puppet.answers["tools/call"] = result({"content": [{"type": "text", "text": "done"}]})
    fuzzed(25)(listings)(stage)
