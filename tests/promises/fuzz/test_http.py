"""Whatever a server answers over HTTP: the call ends as data, and in time, and nobody else is asked."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fuzzing import fuzzed, mutated, numbers, scalars
from http_puppet import Ending, HttpPuppet, Reply, event
from odd_messages import FORMS, RAW, TEXT
from puppet import result
from stage import CAP, Stage

LIMIT = 1.5
"""Seconds of a call."""
TOOL = {"name": "work", "inputSchema": {"type": "object"}}
JSON, EVENTS = b"application/json", b"text/event-stream"
METHODS = ("tools/call",) * 5 + (
    "initialize",
    "server/discover",
    "tools/list",
    "notifications/initialized",
    "GET",
    "DELETE",
)
STATUSES = (b"200 OK",) * 8 + tuple(
    b"%d Odd" % number
    for number in (
        101,
        201,
        202,
        204,
        206,
        301,
        302,
        303,
        304,
        307,
        308,
        400,
        401,
        403,
        404,
        405,
        429,
        500,
        503,
        600,
        0,
    )
)
KINDS = (JSON,) * 4 + (EVENTS,) * 4 + (
    b"", b"text/html", b"Application/JSON; charset=utf-16", b"application/jsonx", b"\xff", b"text/event-streams",
    *(EVENTS + b"; charset=" + name for name in (b"punycode", b"zlib", b"utf-16", b"undefined", b"idna", b"\xff")),
)  # fmt: skip
HEADERS = (b"",) * 8 + (
    b"mcp-session-id: \xff\xfe\r\n", b"mcp-session-id: " + b"a" * 90_000 + b"\r\n", b"mcp-session-id: x\r\n",
    b"set-cookie: a=b; expires=" + b" " * 30_000 + b"x\r\n", b"a: b\r\n" * 15_000, b"a: " + b"b" * 300_000 + b"\r\n",
    b"".join(b"set-cookie: a%d=b\r\n" % number for number in range(5_000)),
    b"a: \0\r\n", b" folded\r\n", b"no colon\r\n", b"content-encoding: gzip\r\n",
    b"content-encoding: identity, gzip\r\n", b"transfer-encoding: gzip, chunked\r\n", b"connection: close\r\n",
)  # fmt: skip
PLACES = (
    "TRAP", "SELF", "file:///etc/passwd", "/mcp", "//evil.example/", "http://[::1", "http://\xff/", "ftp://x/", "",
    "javascript:1", "?x", "TRAP#", "http://u:p@127.0.0.1/", "\\\\x",
)  # fmt: skip
STREAMED = (
    b": comment\n\n", b"id: 1\n\n", b"retry: 0\n\n", b"retry: -1\n\n", b"retry: 99999999999\n\n", b"\n" * 30_000,
    b"id: 2\nretry: 0\ndata:\n\n", b"event: endpoint\ndata: http://evil.example/\n\n", b"event: x\ndata: y\n\n",
    b"event: endpoint\ndata: http://[\n\n", b"data: {}\n\n", b"data: \xff\n\n", b"data: " + b"A" * 90_000 + b"\n\n",
    b": " + b"A" * (CAP + 1), b"retry: " + b"9" * 5_000 + b"\n\n", b"data: {\r\n", b"x\n" * 3_000,
)  # fmt: skip
ENDINGS: tuple[Ending, ...] = ("keep", "keep", "keep", "close", "close", "close", "reset", "hold", "drip")


@dataclass(frozen=True)
class Odd:
    """How an answer is spoiled."""

    status: bytes
    kind: bytes
    headers: bytes
    place: str
    body: Callable[[bytes], bytes]
    framing: Callable[[bytes], tuple[bytes, bytes]]
    before: bytes
    streamed: tuple[bytes, ...]
    ending: Ending

    def reply(self, answer: bytes, web: HttpPuppet) -> Reply:
        """The bytes of it."""
        body = self.body(answer)
        where = self.place.replace("TRAP", web.trap).replace("SELF", str(web.config.url)).encode("latin-1")
        events = b"".join(self.streamed) + (event(body) if body else b"")
        head, framed = self.framing(events if self.kind.startswith(EVENTS) else body)
        lines = b"content-type: %s\r\nlocation: %s\r\n" % (self.kind, where)
        wire = self.before + b"HTTP/1.1 " + self.status + b"\r\n" + lines + head + self.headers + b"\r\n" + framed
        return Reply(wire, self.ending, events if web.config.transport == "sse" else b"")


def chunked(body: bytes, size: int = 1_000, end: bytes = b"0\r\n\r\n") -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + end


def changed(change: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    return lambda answer: json.dumps(change(json.loads(answer))).encode() if answer else answer


exact = lambda body: (b"content-length: %d\r\n" % len(body), body)  # noqa: E731
CHUNKED = b"transfer-encoding: chunked\r\n"
framings = st.sampled_from([
    *[exact] * 8,
    lambda body: (b"content-length: %d\r\n" % (len(body) // 2), body),
    lambda body: (b"content-length: %d\r\n" % (len(body) + 10), body),
    lambda body: (b"content-length: 99999999999999\r\n", body),
    lambda body: (b"content-length: -1\r\n", body),
    lambda body: (b"content-length: 1\r\ncontent-length: 2\r\n", body),
    lambda body: (b"content-length: 1\r\n" + CHUNKED, chunked(body)),
    lambda body: (CHUNKED, chunked(body)),
    lambda body: (CHUNKED, chunked(body, 1)),
    lambda body: (CHUNKED, chunked(body, 1, b"0\r\na: b\r\n\r\n")),
    lambda body: (CHUNKED, chunked(body, end=b"")),
    lambda body: (CHUNKED, chunked(body, end=b"0\r\n" + b"a: b\r\n" * 30_000)),
    lambda body: (CHUNKED, b"ffffffffffffffff\r\n" + body),
    lambda body: (CHUNKED, b"-1\r\n" + body),
    lambda body: (CHUNKED, b"5;" + b"x" * 200_000 + b"\r\n" + body),
    lambda body: (CHUNKED, b"%x\r\n%s\r\n" % (len(body) // 2, body)),
    lambda body: (b"", body),
])  # fmt: skip
bodies = st.one_of(
    st.just(lambda answer: answer),
    st.just(lambda answer: answer),
    st.just(lambda answer: answer),
    st.floats(0, 1).map(lambda part: lambda answer: answer[: int(part * len(answer))]),
    st.sampled_from(FORMS).flatmap(mutated).map(lambda form: lambda _: json.dumps(form).encode()),
    (numbers | scalars | st.sampled_from(["1", "2", "3"])).map(lambda other: changed(lambda it: {**it, "id": other})),
    st.sampled_from(["id", "jsonrpc", "result"]).map(lambda key: changed(lambda it: it | {key: None})),
    mutated({"content": [{"type": "text", "text": "x"}]}).map(lambda new: changed(lambda it: {**it, "result": new})),
    st.sampled_from([raw for raw in RAW if raw]).map(lambda raw: lambda _: raw),
    st.sampled_from([
        lambda answer: answer + answer, lambda answer: b"[" + answer + b"]", lambda answer: answer + b"\xff",
        lambda answer: answer.replace(b"done", b"\xff\xfe"), lambda answer: b"\xef\xbb\xbf" + answer, lambda _: b"",
        lambda answer: answer.decode().encode("utf-16"), lambda _: b"<html>\x1b[31m" + b"x" * 50_000,
        lambda answer: answer + b" " * CAP, lambda answer: gzip.compress(answer + b" " * 30 * CAP),
        lambda answer: answer.replace(b"done", b"done" * 200_000), lambda answer: answer.replace(b"done", b"\\ud800"),
        lambda answer: answer.replace(b'"done"', b"[" * 90_000),
    ]),
)  # fmt: skip
odds = st.builds(
    Odd,
    status=st.sampled_from(STATUSES),
    kind=st.sampled_from(KINDS),
    headers=st.sampled_from(HEADERS),
    place=st.sampled_from(PLACES),
    body=bodies,
    framing=framings,
    before=st.sampled_from([b""] * 12 + [b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, b"\0", b"garbage\r\n\r\n"]),
    streamed=st.lists(st.sampled_from(STREAMED), max_size=3).map(tuple) | st.just(()),
    ending=st.sampled_from(ENDINGS),
)


@pytest.fixture(params=["http", "sse"])
def puppet(request: pytest.FixtureRequest) -> HttpPuppet:
    """One over each of the two."""
    return HttpPuppet(request.param, start=2 * LIMIT, list=LIMIT, call=LIMIT)


def answered(stage: Stage, odd: Odd, method: str) -> None:
    web = stage.puppet
    assert isinstance(web, HttpPuppet)

    async def example() -> None:
        web.answers["tools/call"] = result(TEXT)
        if method != "tools/call":
            await stage.pool.close_run("fuzz")
        web.replies = {method: lambda answer: odd.reply(answer, web)}
        began = time.monotonic()
        assert await stage.call("puppet/work", {"x": "y"}) is not None
        spent = time.monotonic() - began
        await stage.pool.close_run("fuzz")
        web.replies = {}
        again = await stage.call("puppet/work", {"x": "y"})
        assert again.content.endswith("done"), again
        assert not web.trapped
        assert spent < 8 * LIMIT

    stage.run(example())


def test_a_call_over_http_ends_as_data(stage: Stage) -> None:
    stage.open(TOOL)
    fuzzed(6)(given(odd=odds, method=st.sampled_from(METHODS))(answered))(stage)
