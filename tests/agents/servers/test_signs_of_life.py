"""What a server says while it works: progress gives it time, and no number of words ends its call."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import INTERNAL_ERROR, URL_ELICITATION_REQUIRED

from callsheet.agents.calls.call_context import PROGRESS, Limits, within
from callsheet.agents.calls.outcome import Outcome, failed_outcome
from callsheet.agents.calls.tool_result import outcome_of, text_of
from callsheet.agents.safety.secrets import Redaction
from callsheet.agents.servers.circuits import Circuits
from callsheet.agents.servers.faults import Faults
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.agents.servers.transport.allowance import Allowance
from callsheet.agents.servers.transport.messages import parse_message
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from http_puppet import HttpPuppet, Reply, event
from puppet import Puppet, line, result
from servers import FIXTURES, HANG

DONE = {"content": [{"type": "text", "text": "done"}]}


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    pool = SessionPool(limits=Limits(start=HANG, list=HANG, call=HANG, failures=50))
    yield pool
    pool.close()


def talking(*words: object, **limits: float) -> ServerConfig:
    args = (str(FIXTURES / "talking_server.py"), *map(str, words))
    return ServerConfig(command=sys.executable, args=args, callsheet=ServerOptions(limits=limits))


async def work(pool: SessionPool, server: ServerConfig) -> Outcome:
    return await pool.call("run", "talker", server, "work", {})


async def test_a_call_that_reports_progress_may_take_longer_than_one_that_is_silent(pool: SessionPool) -> None:
    outcome = await work(pool, talking("progress", 8, 0.4, call=1.5))
    assert (outcome.text, outcome.error) == ("done", "")
    assert outcome.seconds > 3


async def test_each_progress_report_is_passed_on(pool: SessionPool) -> None:
    reports = list[tuple[float, float | None, str | None]]()

    async def watch(*report: Any) -> None:
        reports.append(report)

    with within(PROGRESS, watch):
        await work(pool, talking("progress", 3, 0.2))
    assert reports == [(0, 3, "part 0"), (1, 3, "part 1"), (2, 3, "part 2")]


async def test_a_call_times_out_after_its_last_progress_report(pool: SessionPool) -> None:
    outcome = await work(pool, talking("stuck", call=1))
    assert (outcome.kind, outcome.effect) == ("timeout", "unknown")
    assert "within 1 s of its last report of progress (0 of 1)" in outcome.error


async def test_progress_extends_a_call_up_to_a_maximum_only(pool: SessionPool) -> None:
    began = time.monotonic()
    outcome = await work(pool, talking("endless", 9, 0.1, call=1, longest_call=2))
    assert time.monotonic() - began < 10
    assert outcome.kind == "timeout"
    assert "within 2 s, the most that a call may take; its last report of progress was 0 of 9" in outcome.error


async def test_progress_over_http_counts_too(pool: SessionPool) -> None:
    web = HttpPuppet("http", call=HANG)
    reports = list[float]()

    async def watch(progress: float, *_: Any) -> None:
        reports.append(progress)

    def told(answer: bytes) -> Reply:
        token = web.calls[-1]["_meta"]["progressToken"]
        report = {"progressToken": token, "progress": 1}
        said = event(line({"jsonrpc": "2.0", "method": "notifications/progress", "params": report})) + event(answer)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
        return Reply(head % len(said) + said)

    web.pages, web.answers["tools/call"] = ({"tools": [{"name": "work", "inputSchema": {}}]},), result(DONE)
    web.replies["tools/call"] = told
    with within(PROGRESS, watch):
        outcome = await work(pool, web.config)
    web.close()
    assert (outcome.text, reports) == ("done", [1])


@pytest.mark.parametrize(("mode", "number"), [("logs", 6_000), ("logs", 18_000), ("lines", 6_000), ("progress", 6_000)])
async def test_no_log_of_some_thousand_lines_ends_a_call(pool: SessionPool, mode: str, number: int) -> None:
    server = talking(mode, number)
    for _ in range(2):  # an answer refills what the next call may say
        outcome = await work(pool, server)
        assert (outcome.text, outcome.error) == ("done", "")
        time.sleep(0.0 if mode != "lines" else 0.1)


async def test_a_thousand_events_of_a_stream_end_no_call(pool: SessionPool) -> None:
    web = HttpPuppet("http", call=HANG)
    log = event(line({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}))

    def told(answer: bytes) -> Reply:
        said = log * 6_000 + event(answer)
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n"
        return Reply(head % len(said) + said)

    web.pages, web.answers["tools/call"] = ({"tools": [{"name": "work", "inputSchema": {}}]},), result(DONE)
    web.replies["tools/call"] = told
    outcome = await work(pool, web.config)
    web.close()
    assert (outcome.text, outcome.error) == ("done", "")


def test_who_sends_slowly_enough_never_uses_the_allowance_up() -> None:
    now = 0.0
    slow = Allowance(10, 5, clock=lambda: now)
    for _ in range(1_000):
        assert slow.spend()
        now += 0.2
    fast = Allowance(10, 5, clock=lambda: now)
    assert [fast.spend() for _ in range(11)] == [True] * 10 + [False]
    fast.refill()
    assert fast.spend(10)


async def test_notifications_that_are_not_valid_reach_neither_terminal_nor_log(
    pool: SessionPool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        outcome = await work(pool, talking("invalid", 20))
    assert (outcome.text, outcome.error) == ("done", "")
    assert not caplog.records


def test_no_logger_of_the_client_library_falls_back_to_the_terminal() -> None:
    import callsheet.agents.servers.transport.client  # noqa: F401 (it sets the loggers up)

    for name in ("client", "mcp.client.streamable_http", "mcp.client.sse", "httpx2", "httpcore2.http11"):
        logger: logging.Logger | None = logging.getLogger(name)
        handlers = list[logging.Handler]()
        while logger is not None and logger is not logging.root:
            handlers += logger.handlers
            logger = logger.parent
        assert handlers, name


CONSENT = {"mode": "url", "elicitationId": "1", "url": "https://example.org/consent", "message": "Connect your account"}


@pytest.mark.parametrize(
    ("code", "data", "kind", "says"),
    [
        (
            URL_ELICITATION_REQUIRED,
            {"elicitations": [CONSENT]},
            "tool",
            "https://example.org/consent (Connect your acc",
        ),
        (
            URL_ELICITATION_REQUIRED,
            {"elicitations": [CONSENT, {**CONSENT, "url": "https://b.example/"}]},
            "tool",
            "b.ex",
        ),
        (URL_ELICITATION_REQUIRED, {"elicitations": "none"}, "tool", 'data: {"elicitations": "none"}'),
        (INTERNAL_ERROR, {"field": "city", "allowed": ["Oslo"]}, "protocol", '"allowed": ["Oslo"]'),
        (INTERNAL_ERROR, "the disk is full", "protocol", "data: the disk is full"),
        (INTERNAL_ERROR, ["x\u202ey"], "protocol", 'data: ["xy"]'),
    ],
)
async def test_the_data_of_an_error_is_in_the_fault(code: int, data: Any, kind: str, says: str) -> None:
    fault = await Faults(Redaction([])).of(MCPError(code, "no", data), "tools/call")
    assert (fault.kind, fault.effect) == (kind, "reported")
    assert says in str(fault)
    circuits = Circuits(Limits(failures=1, pause=10))
    circuits.told("a", failed_outcome("a", "t", fault.kind, str(fault), fault.effect))
    assert bool(circuits.refusal("a")) is (kind == "protocol")


async def test_secrets_and_length_of_an_errors_data_are_bounded_too() -> None:
    fault = await Faults(Redaction(["canary-8c41f"])).of(MCPError(1, "no", {"key": "canary-8c41f" + "x" * 9_000}), "a")
    assert "canary" not in str(fault)
    assert len(str(fault)) < 3_000


async def test_a_call_says_which_address_a_person_must_open_first(pool: SessionPool) -> None:
    puppet = Puppet()
    error = {
        "code": URL_ELICITATION_REQUIRED,
        "message": "URL elicitation required",
        "data": {"elicitations": [CONSENT]},
    }
    puppet.pages = ({"tools": [{"name": "work", "inputSchema": {}}]},)
    puppet.answers["tools/call"] = lambda number: line({"jsonrpc": "2.0", "id": number, "error": error})
    outcome = await work(pool, puppet.config)
    puppet.close()
    assert (outcome.kind, outcome.effect) == ("tool", "reported")
    assert "a person must open https://example.org/consent (Connect your account)" in outcome.error


def answer_of(content: list[Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": content}})


def test_thousands_of_small_texts_are_read_as_one() -> None:
    small, picture = {"type": "text", "text": "x"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    marked = {**small, "annotations": {"audience": ["user"]}}
    content = [*[small] * 40_000, picture, marked, *[small] * 40_000, "odd"]
    found = parse_message(answer_of(content)).result["content"]
    assert [len(block.get("text", "")) for block in found[:-1]] == [79_999, 0, 80_001]
    assert (found[1], found[-1]) == (picture, "odd")
    assert text_of(found)[0] == text_of(content)[0]


@pytest.mark.parametrize(
    "more", [{}, {"annotations": {"audience": ["user"]}}, {"_meta": {}}], ids=["plain", "annotated", "with meta"]
)
def test_small_texts_take_little_more_memory_than_their_message(more: dict[str, Any]) -> None:
    block = {"type": "text", "text": "abc", **more}
    message = answer_of([block] * (600_000 // len(json.dumps(block))))
    tracemalloc.start()
    outcome = outcome_of("a", "work", parse_message(message).result, Limits())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.text.startswith("abc\nabc\n")
    assert peak < 12 * len(message)


@pytest.mark.parametrize("block", [1, {}, {"type": "resource_link", "uri": "a:b"}])
def test_more_blocks_than_can_be_read_are_refused_and_counted(block: Any) -> None:
    outcome = outcome_of("a", "work", {"content": [block] * 20_001}, Limits())
    assert (outcome.kind, outcome.effect, outcome.media) == ("too_large", "reported", ())
    assert "its result has 20,001 content blocks, 20,000 are read at most" in outcome.error
    assert not outcome_of("a", "work", {"content": [block] * 20_000}, Limits()).error


def test_a_few_texts_stay_as_they_are() -> None:
    content = [{"type": "text", "text": "x" * 100_000}, {"type": "text", "text": "y"}]
    assert parse_message(answer_of(content)).result["content"] == content


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"' + "x" * 70_000 + '"}}',
        '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"' + "x" * 70_000 + '"}}',
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\\ud83d' + "x" * 70_000 + '"}]}}',
        '{"jsonrpc":"2.0","id":"' + "7" * 70_000 + '","result":{}}',
        '{"jsonrpc":"2.0","id":1,"result":' + "[" * 70_000,
        '{"jsonrpc":"2.0","id":1,"result":"' + "x" * 70_000 + '"}',
    ],
)
def test_a_large_message_is_read_as_a_small_one_would_be(text: str) -> None:
    large, small = parse_message(text), parse_message(re.sub("x{70000}", "x", re.sub("7{70000}", "7" * 300, text)))
    assert type(large) is type(small)


async def test_a_large_answer_of_small_texts_delays_nobody(pool: SessionPool) -> None:
    """85,000 blocks took a second, in which calls of other servers waited for a third of one."""
    puppet = Puppet()
    content = [{"type": "text", "text": "x"}] * 85_000
    puppet.pages = ({"tools": [{"name": "work", "inputSchema": {}}]},)
    puppet.answers["tools/call"] = result({"content": content})
    outcome = await work(pool, puppet.config)
    puppet.close()
    assert len(outcome.text) == 169_999
    assert outcome.text[:5] == "x\nx\nx"


DEEP = "[" * 50_000 + "]" * 50_000


@pytest.mark.parametrize(
    "message",
    [
        f'{{"jsonrpc": "2.0", "id": 7, "result": {{"content": [], "structuredContent": {{"id": 8, "a": {DEEP}}}}}}}',
        f'{{"result": {{"a": {DEEP}, "b": "}}]\\"{{"}}, "id": 7, "jsonrpc": "2.0"}}',
        f'{{"jsonrpc": "2.0", "id": 7, "error": {{"code": 5, "message": "no", "data": {DEEP}}}}}',
    ],
)
def test_an_answer_that_is_nested_too_deeply_ends_its_call_at_once(message: str) -> None:
    answer = parse_message(message)
    assert (answer.id, answer.error.message) == (7, "its answer is nested too deeply")


@pytest.mark.parametrize(
    "message", [f'{{"jsonrpc": "2.0", "method": "x", "params": {DEEP}}}', f'{{"id": 7, "result": {DEEP[:-1]}', DEEP]
)
def test_other_messages_that_are_nested_too_deeply_are_dropped(message: str) -> None:
    assert parse_message(message) is None
