"""A2A endpoints that are broken, hostile or too large: nothing gets past what holds for every other agent."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.responses import RedirectResponse, Response, StreamingResponse

from a2a_server import answering
from callsheet import A2AAgent, ToolRegistry
from callsheet.agents import Limits
from callsheet.graphs import Loaded, load

SSE = "text/event-stream"


def card(url: str = "{here}", *, streaming: bool = False, **more: Any) -> dict[str, Any]:
    way = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    return {
        "name": "clerk",
        "description": "Works in an office.",
        "version": "1",
        "supportedInterfaces": [way],
        "capabilities": {"streaming": streaming},
        **more,
    }


def replied(result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "1", "result": result}


def told(*parts: Any, **more: Any) -> dict[str, Any]:
    return replied({"message": {"messageId": "1", "role": "ROLE_AGENT", "parts": list(parts), **more}})


def unused(_: Any) -> Any:
    raise AssertionError("nothing should be sent")


def read(url: str) -> Loaded:
    return load({"clerk": A2AAgent(url)})


async def called(url: str, **limits: float) -> Any:
    bound = ToolRegistry.from_catalog(read(url), limits=Limits(**limits)).bind(["clerk/run"], "run")["clerk_run"]
    return await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": "file a form"}, "id": "1"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "its answer cannot be read: JSONDecodeError"),
        ("[]", "its answer cannot be read: ParseError"),
        ('"clerk"', "its answer cannot be read: ParseError"),
        ({"name": ["clerk"]}, "its answer cannot be read: ParseError"),
        ({"name": "clerk"}, "its card names no address that speaks JSON-RPC"),
        ({"name": "clerk", "skills": "all"}, "its answer cannot be read"),
        ({**card(), "supportedInterfaces": [{"url": "{here}", "protocolBinding": "GRPC"}]}, "speaks JSON-RPC"),
        ("[" * 100_000, "its answer cannot be read: RecursionError"),
        (card(description="x" * 300_000), "it sent more than 262,144 bytes"),
        (card("http://127.0.0.2:1/a"), "names another host, http://127.0.0.2:1/a"),
        (card("https://127.0.0.1/a"), "names another host"),
        (card("//evil"), "names another host"),
        (card("http://127.0.0.1:x/"), "it cannot be reached: InvalidURL"),
        (Response("no", 404), "HTTPStatusError: Client error '404"),
        (RedirectResponse("http://127.0.0.1:9/elsewhere"), "Redirect response '307"),
        (Response("x", headers={"content-encoding": "gzip"}), "a compressed message unasked"),
    ],
)
def test_a_card_that_cannot_be_used_is_a_problem_that_says_why(given: Any, said: str) -> None:
    with answering(given, unused) as (url, sent):
        loaded = read(url)
        assert loaded.catalog.agents == ()
        assert said in loaded.problems[0].message
        assert len(loaded.problems[0].message) < 2_500
        assert len(sent) == 1


def test_a_card_that_does_not_come_is_waited_for_no_longer_than_a_start(monkeypatch: Any) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_START", "0.3")

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(5)

    with answering(StreamingResponse(never()), unused) as (url, _):
        assert "no answer within 0.3 s" in read(url).problems[0].message


def test_what_a_card_hides_is_shown_to_nobody() -> None:
    hidden = "Files forms.\u202e\U000e0041\x1b[31m\u200b Gladly."
    skills = [{"id": "s", "name": "Forms\u200b", "description": hidden * 10, "tags": []}] * 200
    with answering(card(description=hidden, skills=skills, name="cl\u200berk/../\n"), unused) as (url, _):
        loaded = load([A2AAgent(url)])
        assert [agent.id for agent in loaded.catalog.agents] == ["clerk-.."]
        bound = ToolRegistry.from_catalog(loaded).bind(["clerk-../run"], "run")["clerk-___run"]
        assert bound.description.startswith("Files forms. Gladly. It has these skills. Forms: Files forms. Gladly.")
        assert len(bound.description) <= 4_096


@pytest.mark.parametrize(
    ("given", "kind", "effect", "said"),
    [
        (Response("oops", 500), "protocol", "unknown", "500"),
        (Response("who?", 401), "protocol", "none", "401"),
        (RedirectResponse("http://127.0.0.1:9/"), "protocol", "none", "Redirect"),
        (Response("{", 200), "protocol", "unknown", "cannot be read"),
        ([], "protocol", "unknown", "expected an object"),
        ({"jsonrpc": "2.0", "id": "1"}, "protocol", "unknown", "neither 'result' nor 'error'"),
        (replied({}), "protocol", "unknown", "neither task nor message"),
        (replied([]), "protocol", "unknown", "cannot be read"),
        (replied({"task": {"id": "1"}}), "protocol", "unknown", "neither a message nor the state of a task"),
        ({"jsonrpc": "2.0", "id": "1", "error": {"code": -32602, "message": "no"}}, "protocol", "reported", "no"),
        ({"jsonrpc": "2.0", "id": "1", "error": {"code": -1, "message": "no"}}, "protocol", "unknown", "no"),
        (told({"text": "x" * 2_000_000}), "too_large", "unknown", "more than 1,000,000 bytes"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_data(given: Any, kind: str, effect: str, said: str) -> None:
    with answering(card(), lambda _: given) as (url, sent):
        answer = await called(url, message=1_000_000)
        assert (answer.artifact["kind"], answer.artifact["effect"]) == (kind, effect)
        assert said in answer.text
        assert answer.text.startswith("agent 'clerk', tool 'run': ")
        methods = [what["method"] for what, _ in sent if what != "card"]
        assert (methods[0], methods.count("SendMessage")) == ("SendMessage", 1)


async def test_numbers_text_and_data_come_as_they_were_written() -> None:
    data = {"a": 3, "b": 2.5, "c": [1, None, True, "Größe"]}
    with answering(card(), lambda _: told({"data": data}, {"data": [1]})) as (url, _):
        answer = await called(url)
        assert answer.artifact["structured"] == [data, [1]]
        assert json.loads(answer.text) == [data, [1]]


def streamed(*events: Any, end: bytes = b"") -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        for event in events:
            yield event if isinstance(event, bytes) else f"data: {json.dumps(replied(event))}\n\n".encode()
        if end:
            while True:
                yield end
                await asyncio.sleep(0)

    return lambda _: StreamingResponse(pieces(), media_type=SSE)


WORKING = {"task": {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (streamed(WORKING, end=b"x" * 10_000), "too_large", "more than 100,000 bytes"),
        (streamed(WORKING, end=b"data: x\n"), "too_large", "more than 100,000 bytes"),
        (
            streamed(
                *(
                    {
                        "artifactUpdate": {
                            "taskId": "1",
                            "artifact": {"artifactId": str(n), "parts": [{"text": "x" * 9_000}]},
                        }
                    }
                    for n in range(20)
                )
            ),
            "too_large",
            "artifacts of more than 100,000 bytes",
        ),
        (streamed(WORKING, b"data: {\n\n"), "protocol", "cannot be read"),
        (streamed(b"\xff\xfe\n\n"), "protocol", "neither a message nor the state of a task"),
        (streamed(), "protocol", "neither a message nor the state of a task"),
        (streamed({"statusUpdate": {"status": {"state": "TASK_STATE_UNSPECIFIED"}}}), "protocol", "neither a message"),
    ],
)
async def test_a_stream_is_bounded_and_need_not_make_sense(answer: Any, kind: str, said: str) -> None:
    with answering(card(streaming=True), answer) as (url, sent):
        found = await called(url, message=100_000)
        assert (found.artifact["kind"], found.artifact["effect"]) == (kind, "unknown")
        assert said in found.text
        methods = [what["method"] for what, _ in sent if what != "card"]
        assert methods.count("SendStreamingMessage") == 1


async def test_signs_of_life_are_no_word() -> None:
    with answering(card(streaming=True), streamed(WORKING, end=b": still here\n\n")) as (url, _):
        found = await called(url, call=0.5)
        assert (found.artifact["kind"], found.artifact["effect"]) == ("timeout", "unknown")
        assert "no answer within 0.5 s" in found.text


async def test_a_task_that_goes_on_after_the_answer_is_looked_at_until_it_is_done() -> None:
    done = {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}
    done["artifacts"] = [{"artifactId": "a", "parts": [{"text": "filed"}]}]  # type: ignore[assignment]
    replies = iter([replied(WORKING), replied(WORKING["task"]), replied(done)])
    with answering(card(), lambda _: next(replies)) as (url, sent):
        assert (await called(url)).text == "filed"
        assert [what["method"] for what, _ in sent if what != "card"] == ["SendMessage", "GetTask", "GetTask"]


async def test_one_that_works_for_ever_is_left_at_the_limit_and_told_so() -> None:
    with answering(card(), lambda _: replied(WORKING)) as (url, sent):
        answer = await called(url, call=0.5)
        assert (answer.artifact["kind"], answer.artifact["effect"]) == ("timeout", "unknown")
        assert [what["method"] for what, _ in sent if what != "card"][-1] == "CancelTask"


def test_what_speaks_a2a_is_an_extra_that_is_named(monkeypatch: Any) -> None:
    for module in [name for name in sys.modules if name.startswith(("callsheet.agents.servers.a2a.wire", "a2a."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "a2a.client", None)
    with pytest.raises(ImportError, match="needs the extra a2a, which is not installed: pip install a2a-sdk"):
        read("http://127.0.0.1:9")
