"""What a server over HTTP answers in place of an answer: the call ends at once, says why, and costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from callsheet.agents import Limits
from callsheet.agents.servers.session_pool import Outcome, SessionPool
from http_puppet import HttpPuppet, Reply, event, reply
from puppet import result
from servers import HANG

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PATIENT = Limits(start=HANG, list=HANG, call=HANG, failures=50)
DONE = {"content": [{"type": "text", "text": "done"}]}
NO_ANSWER = "its answer is not a JSON-RPC response"


def stream(data: bytes) -> Callable[[bytes], Reply]:
    """A stream of this and no more, whose connection stays open."""
    return lambda answer: Reply(STREAM + data, "hold")


def session(number: bytes) -> Callable[[bytes], Reply]:
    """An answer that opens a session with this id."""
    return lambda answer: Reply(reply(answer, b"application/json\r\nmcp-session-id: " + number))


async def outcome(web: HttpPuppet, limits: Limits = PATIENT) -> Outcome:
    """What becomes of a call; the server is closed then."""
    pool = SessionPool(limits=limits)
    web.pages, web.answers["tools/call"] = ({"tools": [{"name": "work", "inputSchema": {}}]},), result(DONE)
    try:
        given = await pool.call("run", "web", web.config, "work", {})
        await pool.close_run("run")
    finally:
        web.close()
    return given


@pytest.mark.parametrize(
    ("method", "made", "kind", "says"),
    [
        ("tools/call", lambda answer: Reply(reply(answer.replace(b'"id": ', b'"id": 9'))), "protocol", NO_ANSWER),
        ("tools/call", lambda _: Reply(reply(b'{"jsonrpc":"2.0","method":"ping","id":1}')), "protocol", NO_ANSWER),
        ("tools/call", lambda answer: Reply(reply(answer[:20])), "protocol", NO_ANSWER),
        ("tools/call", lambda _: Reply(reply(event(b"{}"), b"text/event-stream")), "protocol", NO_ANSWER),
        ("tools/call", stream(b": x\n\n" * 100_000), "too_large", "events"),
        ("tools/call", stream((b"data: " + b"x" * 90_000 + b"\n\n")[:-1] * 120), "too_large", "byte limit"),
        ("initialize", session(b"\xff"), "protocol", "not visible ASCII"),
    ],
    ids=["other id", "a request", "cut", "no JSON-RPC", "comments", "long", "session id"],
)
async def test_an_answer_that_is_none_ends_the_call_at_once(
    method: str, made: Callable[[bytes], Reply], kind: str, says: str
) -> None:
    web = HttpPuppet("http")
    web.replies[method] = made
    given = await outcome(web)
    assert given.kind == kind
    assert says in given.error
    assert "pydantic" not in given.error


async def test_half_a_character_costs_nothing_but_itself() -> None:
    web = HttpPuppet("http")
    web.replies["tools/call"] = lambda answer: Reply(reply(answer.replace(b"done", b"done\\ud83d")))
    given = await outcome(web)
    assert (given.text[:4], given.kind) == ("done", "")


@pytest.mark.parametrize(
    ("method", "made", "kind", "says"),
    [
        ("GET", stream(event(b"http://evil.example/", b"endpoint")), "timeout", "did not start within 1 s"),
        ("GET", stream(event(b"http://[", b"endpoint")), "timeout", "did not start within 1 s"),
        ("GET", stream(event(b'{"jsonrpc":"2.0","method":"x"}')), "timeout", "did not start within 1 s"),
        ("GET", lambda _: Reply(STREAM, "close"), "start", "did not start"),
        ("initialize", lambda _: Reply(reply(b"", status=b"500 No")), "crash", "status 500"),
        ("tools/call", lambda _: Reply(reply(b"", status=b"404 No")), "crash", "status 404"),
        ("tools/call", lambda _: Reply(b"", "reset"), "crash", "RemoteProtocolError"),
        ("tools/call", lambda _: Reply(reply(b"x")[:-1] + b"\0", "close"), "timeout", "no answer"),
    ],
    ids=["foreign", "no address", "message", "empty", "refused", "forgotten", "reset", "unanswered"],
)
async def test_a_stream_that_is_none_and_a_message_that_is_refused_end_the_call(
    method: str, made: Callable[[bytes], Reply], kind: str, says: str
) -> None:
    web = HttpPuppet("sse")
    web.replies[method] = made
    limits = PATIENT.own({"call": 1, "start": 1 if method == "GET" else HANG}) if kind == "timeout" else PATIENT
    given = await outcome(web, limits)
    assert given.kind == kind
    assert says in given.error


@pytest.mark.parametrize("method", ["GET", "tools/call"])
async def test_a_stream_that_ends_again_and_again_is_asked_for_twice_a_second(method: str) -> None:
    """It was asked for 170 times a second, for as long as the session lived."""
    web = HttpPuppet("http")
    ended = lambda _: Reply(STREAM + b"retry: 0\nid: 1\ndata:\n\n", "close")  # noqa: E731
    web.replies = {"GET": ended, method: ended, "initialize": session(b"a")}
    began = time.monotonic()
    given = await outcome(web, PATIENT.own({"call": 2}))
    assert given.kind == ("timeout" if method == "tools/call" else "")
    assert web.requests.count(b"GET") <= 2 + 2 * (time.monotonic() - began)


async def test_a_call_is_sent_on_where_a_slash_was_missing() -> None:
    web = HttpPuppet("http")
    on = b"HTTP/1.1 307 On\r\nlocation: /mcp/\r\ncontent-length: 0\r\n\r\n"
    web.replies["tools/call"] = lambda answer: Reply(on if len(web.calls) == 1 else reply(answer))
    given = await outcome(web)
    assert (given.text, given.error) == ("done", "")


async def test_a_call_is_not_sent_again_and_again_where_it_is_redirected() -> None:
    """It was sent 21 times."""
    web = HttpPuppet("http")
    again = b"HTTP/1.1 307 Again\r\nlocation: /mcp\r\ncontent-length: 0\r\n\r\n"
    web.replies["tools/call"] = lambda _: Reply(again)
    given = await outcome(web)
    assert (given.kind, given.effect, len(web.calls)) == ("protocol", "unknown", 4)


async def test_a_listing_that_is_not_answered_takes_no_longer_than_it_may() -> None:
    web = HttpPuppet("http")
    web.replies["notifications/initialized"] = lambda _: Reply(b"", "hold")
    given = await outcome(web, PATIENT.own({"list": 1}))
    assert given.kind == "timeout"
    assert given.seconds < 4
