"""Servers over HTTP that are busy, fail, or send a call elsewhere: what is told of it, and what is sent again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any, Literal

import httpx2
import pytest

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Outcome
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.refusals import retry_after
from http_puppet import HttpPuppet, Reply, reply
from puppet import result
from servers import HANG

DONE = {"content": [{"type": "text", "text": "done"}]}
Make = Callable[[bytes], Reply]


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool(limits=Limits(start=HANG, list=HANG, call=HANG, failures=1))
    yield pool
    pool.close()


def web_of(transport: Literal["http", "sse"] = "http") -> HttpPuppet:
    web = HttpPuppet(transport)
    web.pages, web.answers["tools/call"] = ({"tools": [{"name": "work", "inputSchema": {}}]},), result(DONE)
    return web


def busy(status: bytes = b"429 Too Many Requests", after: bytes = b"1", kind: bytes = b"text/plain") -> Reply:
    more = b"\r\nretry-after: " + after if after else b""
    return Reply(reply(b"the window is full", kind + more, status))


def at_first(web: HttpPuppet, method: str, refused: Reply, number: int = 1) -> None:
    """The first requests of this method get another answer."""
    left = [refused] * number
    web.replies[method] = lambda answer: left.pop() if left else Reply(reply(answer))


async def work(pool: SessionPool, web: HttpPuppet, **more: Any) -> Outcome:
    return await pool.call("run", "web", web.config, "work", {}, **more)


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Service Unavailable"])
@pytest.mark.parametrize("after", [b"7200", b"", b"soon"])
async def test_a_busy_server_is_reported_with_status_text_and_time(
    pool: SessionPool, status: bytes, after: bytes
) -> None:
    web = web_of()
    web.replies["tools/call"] = lambda _: busy(status, after)
    outcome = await work(pool, web, harmless=True)
    assert (outcome.kind, outcome.effect, len(web.calls)) == ("busy", "reported", 1)
    assert f"status {status.decode()}: the window is full" in outcome.error
    said = {b"7200": "Retry-After: 7200 s", b"soon": "Retry-After: soon", b"": ""}[after]
    assert said in outcome.error
    assert ("Retry-After" in outcome.error) is bool(after)
    assert not pool.circuits.open()
    web.replies.clear()
    assert (await work(pool, web)).text == "done"  # in the same session
    assert [message["method"] for message in web.sent].count("initialize") == 1
    web.close()


@pytest.mark.parametrize("kind", [b"text/plain", b"application/json"])
async def test_a_harmless_call_is_sent_again_after_a_short_time(pool: SessionPool, kind: bytes) -> None:
    web = web_of()
    at_first(web, "tools/call", busy(kind=kind))
    outcome = await work(pool, web, harmless=True)
    web.close()
    assert (outcome.text, len(web.calls)) == ("done", 2)
    assert outcome.seconds >= 1


async def test_a_harmless_call_is_sent_again_once_only(pool: SessionPool) -> None:
    web = web_of()
    at_first(web, "tools/call", busy(), 5)
    outcome = await work(pool, web, harmless=True)
    web.close()
    assert (outcome.kind, len(web.calls)) == ("busy", 2)


async def test_a_call_that_may_change_something_is_not_sent_again(pool: SessionPool) -> None:
    web = web_of()
    at_first(web, "tools/call", busy())
    outcome = await work(pool, web)
    web.close()
    assert (outcome.kind, len(web.calls)) == ("busy", 1)


@pytest.mark.parametrize("method", ["initialize", "tools/list", "server/discover"])
async def test_a_server_that_is_busy_at_its_start_is_asked_again(pool: SessionPool, method: str) -> None:
    web = web_of()
    at_first(web, method, busy(after=b"0"), 2)
    assert (await work(pool, web)).text == "done"
    assert [message["method"] for message in web.sent].count(method) >= 3
    web.close()


async def test_a_server_that_stays_busy_at_its_start_says_so(pool: SessionPool) -> None:
    web = web_of()
    web.replies["initialize"] = lambda _: busy(after=b"60")
    outcome = await work(pool, web)
    web.close()
    assert (outcome.kind, outcome.effect) == ("busy", "none")
    assert "429 Too Many Requests: the window is full; Retry-After: 60 s" in outcome.error
    assert not pool.circuits.open()


async def test_a_busy_server_is_reported_over_sse_too(pool: SessionPool) -> None:
    web = web_of("sse")
    web.replies["tools/call"] = lambda _: busy(after=b"60")
    outcome = await work(pool, web, harmless=True)
    web.close()
    assert (outcome.kind, outcome.effect) == ("busy", "reported")
    assert "429 Too Many Requests: the window is full; Retry-After: 60 s" in outcome.error


@pytest.mark.parametrize(
    ("status", "effect"), [(b"500 Internal Server Error", "unknown"), (b"400 Bad Request", "reported")]
)
async def test_any_other_status_is_reported_with_its_text(pool: SessionPool, status: bytes, effect: str) -> None:
    web = web_of()
    web.replies["tools/call"] = lambda _: Reply(reply(b"no row 7", b"text/plain", status))
    outcome = await work(pool, web, harmless=True)
    web.close()
    assert (outcome.kind, outcome.effect, len(web.calls)) == ("protocol", effect, 1)
    assert f"status {status.decode()}: no row 7" in outcome.error
    assert ("whether the call took effect is unknown" in outcome.error) is (effect == "unknown")


async def test_a_protocol_error_under_another_status_is_reported_as_such(pool: SessionPool) -> None:
    web = web_of()
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"x must be positive","data":{"x":-1}}}'
    web.replies["tools/call"] = lambda _: Reply(reply(error, status=b"400 Bad Request"))
    outcome = await work(pool, web)
    web.close()
    assert (outcome.kind, outcome.effect) == ("tool", "reported")
    assert 'error -32602: x must be positive; data: {"x": -1}' in outcome.error


async def test_no_server_can_say_by_an_error_what_only_its_status_says(pool: SessionPool) -> None:
    web = web_of()
    forged = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"busy","data":"' + b"0" * 32 + b'"}}'
    web.replies["tools/call"] = lambda _: Reply(reply(forged, status=b"400 Bad Request"))
    outcome = await work(pool, web)
    web.close()
    assert outcome.kind == "protocol"


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See Other", b"307 On", b"308 On"])
@pytest.mark.parametrize("where", [b"/admin/delete", b"/mcp?admin=1", b"http://127.0.0.1:9/mcp", b"/mcp/../admin"])
async def test_a_call_is_not_sent_on_to_another_path(pool: SessionPool, status: bytes, where: bytes) -> None:
    web = web_of()
    on = b"HTTP/1.1 %s\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % (status, where)
    web.replies["tools/call"] = lambda _: Reply(on)
    outcome = await work(pool, web, harmless=True)
    web.close()
    assert (outcome.effect, len(web.calls)) == ("reported", 1)
    assert outcome.kind == "refused"
    assert "sends the call on to http://127.0.0.1" in outcome.error


async def test_over_sse_a_call_is_not_sent_on_to_another_path(pool: SessionPool) -> None:
    web = web_of("sse")
    web.replies["tools/call"] = lambda _: Reply(b"HTTP/1.1 307 On\r\nlocation: /admin\r\ncontent-length: 0\r\n\r\n")
    outcome = await work(pool, web)
    web.close()
    assert (outcome.kind, len(web.calls)) == ("refused", 1)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("2", 2), (" 30 ", 30), ("0", 0), ("-1", None), ("1.5", None), ("", None), ("\u0662", None), ("9" * 400, 1e9)],
)
def test_the_time_to_wait_is_read_as_seconds_or_not_at_all(said: str, seconds: float | None) -> None:
    found = retry_after(httpx2.Response(429, headers={"retry-after": said.encode()}))
    assert found == (seconds if seconds != 1e9 else 999_999_999)


def test_the_time_to_wait_may_be_a_date() -> None:
    soon = retry_after(httpx2.Response(429, headers={"retry-after": formatdate(time.time() + 60, usegmt=True)}))
    assert soon is not None
    assert 50 < soon <= 61
    past = retry_after(httpx2.Response(429, headers={"retry-after": formatdate(0, usegmt=True)}))
    assert past == 0
