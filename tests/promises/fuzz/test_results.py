"""Results of every sort: each becomes a message that is bounded and can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from fuzzing import anything, fuzzed, mutated
from puppet import line, result
from stage import CAP, OUTPUT, Stage

BLOCKS = (
    {"type": "text", "text": "done", "annotations": {"audience": ["user"]}},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "file:///etc/passwd", "name": "x"},
    {"type": "resource", "resource": {"uri": "a:b", "mimeType": "text/plain", "text": "x"}},
    {"type": "resource", "resource": {"uri": "a:b", "mimeType": "../../x", "blob": "AAAA"}},
)
RESULT = {"content": list(BLOCKS), "structuredContent": {"n": [1, {"a": None}]}, "isError": False, "_meta": {"a": 1}}
TOOL = {"name": "work", "inputSchema": {"type": "object"}}
results = mutated(RESULT) | mutated({"content": [BLOCKS[0]], "isError": True}) | anything
long = st.builds(
    lambda text: {"content": [{"type": "text", "text": text * 3 * OUTPUT}]}, st.sampled_from(["a", "é", "\0"])
)


@given(value=results | long, odd=st.sampled_from([{}, {}, {}, {"error": None}, {"jsonrpc": 2}, {"method": "x"}]))
def read(stage: Stage, value: Any, odd: dict[str, Any]) -> None:
    async def example() -> None:
        answer = {"jsonrpc": "2.0", "result": value, **odd}
        stage.puppet.answers["tools/call"] = lambda number: line({"id": number, **answer}) + result({})(number)
        message = await stage.call("puppet/work", {})
        assert message.artifact["kind"] not in ("timeout", "refused", "start")
        for kept in message.artifact["media"]:
            assert Path(kept["path"]).resolve().is_relative_to(results_folder)
            assert Path(kept["path"]).stat().st_size == kept["size"] <= 2 * CAP

    results_folder = stage.results
    stage.run(example())


def test_every_result_can_be_kept(stage: Stage) -> None:
    stage.open(TOOL)
    fuzzed(50)(read)(stage)
