"""Files that are nested as deeply as one likes: each is read or refused with an error of ours, and soon."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path

from hypothesis import given, strategies as st

from callsheet.graphs import CallsheetError, load
from fuzzing import fuzzed

FILES = {
    "spec.yaml": 'openapi: 3.0.0\ninfo: {{title: t, version: "1"}}\npaths: {{}}\nx-d:\n  {}',
    "paths.yaml": "openapi: 3.0.0\ninfo: {{title: t}}\npaths:\n  /x: {{get: {{operationId: x, parameters: {}",
    "spec.json": '{{"openapi": "3.1.0", "paths": {{"/x": {{"get": {{"operationId": "x", "requestBody": {}',
    "a.json": '{{"name": "a", "tools": [{{"name": "t", "inputSchema": {}',
    "mcp.json": '{{"mcpServers": {{"a": {{"command": "true", "env": {}',
    "skills/a/SKILL.md": "---\nname: a\ndescription: b\nx: {}\n---\nText.",
    "skills/b/SKILL.md": "---\ndescription: b\nallowed-tools:\n  {}\n---\n",
    "a.ttl": "@prefix x: <http://x/> . x:a x:b {} .",
    "a.jsonld": '{{"@context": {{"a": "http://x/"}}, "@graph": {}',
    "a.nt": "<http://a> <http://b> {} .",
}
PAIRS = [
    ("[", "]"), ("{a: ", "}"), ('{"a": ', "}"), ('{"properties": ', "}"), ('{"$ref": ', "}"), ("- ", ""), ("? ", ""),
    ("[{", "}]"), ("&a [", "]"), ("!!seq [", "]"), ("(", ")"), ("[ x:b ", "]"), ("<<", ">>"), ("{", "}"), ("a: ", ""),
    ("> ", ""), ("#", ""),
]  # fmt: skip
depths = st.sampled_from([1, 20, 99, 101, 199, 201, 400, 900, 1_500, 20_000, 60_000])


@given(
    name=st.sampled_from(sorted(FILES)),
    pairs=st.lists(st.sampled_from(PAIRS), min_size=1, max_size=3),
    depth=depths,
    inner=st.sampled_from(["", "1", "x", '"x"', "*a", "\n"]),
    is_closed=st.booleans(),
    rest=st.sampled_from(["", "}", "}}}}", "}]}", "]"]),
)
def read(
    folder: Path, name: str, pairs: list[tuple[str, str]], depth: int, inner: str, is_closed: bool, rest: str
) -> None:
    opened = "".join(start for start, _ in pairs) * depth
    closed = "".join(end for _, end in reversed(pairs)) * depth if is_closed else ""
    place = folder / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(FILES[name].format(f"{opened}{inner}{closed}") + rest)
    before = time.thread_time()
    with suppress(CallsheetError):
        load(place.parent.parent if place.name == "SKILL.md" else place, yes=False)
    place.unlink()
    assert time.thread_time() - before < 20


def test_a_file_that_is_nested_is_read_or_refused(tmp_path: Path) -> None:
    fuzzed(125, long=10_000)(read)(tmp_path)
