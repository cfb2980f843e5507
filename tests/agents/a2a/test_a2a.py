"""Agents that speak A2A, over loopback: handed the step, heard out, asked back, stopped."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from starlette.responses import RedirectResponse, Response, StreamingResponse

from a2a_server import Clerk, answering, clerk, free_port
from callsheet import A2AAgent, CatalogError, Settings, ToolRegistry, TrustError, create_supervisor
from callsheet.agents import Limits, SessionPool
from callsheet.graphs import Loaded, dump, load
from callsheet.graphs.sources.loading import servers_in
from servers import HANG

THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture(scope="module")
def served_clerk() -> Iterator[tuple[str, Clerk]]:
    with clerk() as served:
        yield served


@pytest.fixture
def url(served_clerk: tuple[str, Clerk]) -> str:
    served_clerk[1].heard.clear()
    served_clerk[1].cancelled.clear()
    return served_clerk[0]


@pytest.fixture
def heard(served_clerk: tuple[str, Clerk]) -> list[str]:
    return served_clerk[1].heard


def supervised(url: str, **settings: Any) -> Any:
    agent = {"clerk": A2AAgent(url)}
    workflow = create_supervisor(agent, settings=Settings(**{"approval": "never", "allow": ("clerk/run",), **settings}))
    return workflow.compile(checkpointer=InMemorySaver())


def asking(text: str) -> Any:
    return {"messages": [("user", text)]}


def test_the_card_of_an_a2a_agent_gives_its_name_and_description(url: str) -> None:
    agent = load([A2AAgent(url)]).catalog.agent("The-Clerk")
    assert (agent.name, agent.description) == ("The Clerk", "Works in an office.")
    (tool,) = agent.tools
    assert tool.id == "The-Clerk/run"
    assert tool.description == "Works in an office. It has these skills. Forms: Files, signs and loses forms."
    assert [parameter.name for parameter in tool.parameters] == ["request"]


def test_an_a2a_agent_can_be_given_another_name_and_description(url: str) -> None:
    assert list(load(A2AAgent(url, name="desk")).catalog.tools) == ["desk/run"]
    described = load({"desk": {"description": "Knows forms.", "tools": A2AAgent(url)}}).catalog.agent("desk")
    assert described.description == "Knows forms."
    assert load(A2AAgent(f"{url}.well-known/agent-card.json")).catalog.agents[0].id == "The-Clerk"


@pytest.mark.parametrize(("streaming", "old"), [(True, False), (False, False), (True, True), (False, True)])
async def test_an_answer_is_text_data_and_notes_of_files(streaming: bool, old: bool) -> None:
    with clerk(streaming=streaming, old=old) as (url, agent):
        answer = await called(url, "file a form")
        text, _, data = answer.text.rpartition("\n")
        assert text == "filed form 12\n[file copy.txt, 4 bytes]\n[file f: http://127.0.0.1:9/form]"
        assert json.loads(data) == {"form": 12, "filed": True}
        assert answer.artifact["structured"] == {"form": 12, "filed": True}
        assert agent.heard == ["file a form"]


async def test_the_step_is_handed_over_and_its_progress_is_told(url: str, heard: list[str]) -> None:
    app = supervised(url)
    stream = app.astream(asking("Ask the clerk to write a letter"), THREAD, stream_mode="custom", subgraphs=True)
    told = [event async for _, event in stream if event["event"] == "progress"]
    assert heard == ["Ask the clerk to write a letter"]
    assert {(event["step_id"], event["agent"]) for event in told} == {("1", "clerk")}
    assert [(event["state"], event["text"]) for event in told] == [
        ("submitted", ""),
        ("working", "looking for the form"),
        ("working", "Dear "),
        ("working", "all, "),
        ("working", "bye"),
        ("completed", ""),
    ]
    assert app.get_state(THREAD).values["results"]["1"]["result"] == "Dear all, bye"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("lose a form", "it reports that the task is failed: the form is lost"),
        ("forge a form", "it reports that the task is rejected: that is not done here"),
    ],
)
async def test_a_failed_task_is_an_error_with_the_words_of_the_agent(url: str, request_: str, said: str) -> None:
    answer = await called(url, request_)
    assert answer.status == "error"
    assert answer.text == f"agent 'clerk', tool 'run': {said}"
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("tool", "reported")


async def test_a_question_of_an_a2a_agent_is_asked_by_the_run_and_answered_in_its_task(
    url: str, heard: list[str]
) -> None:
    app = supervised(url)
    (first,) = (await app.ainvoke(asking("Ask the clerk to sign a form"), THREAD))["__interrupt__"]
    assert first.value == {"type": "input_required", "agent": "clerk", "question": "which form?", "data": []}
    (second,) = (await app.ainvoke(Command(resume="another"), THREAD))["__interrupt__"]
    assert second.value["question"] == "which other?"
    result = (await app.ainvoke(Command(resume="form 13"), THREAD))["results"]["1"]
    assert (result["status"], result["result"]) == ("done", "signed form 13")
    assert heard == ["Ask the clerk to sign a form", "another", "form 13"]
    assert len(result["calls"]) == 1


def test_a_question_of_an_a2a_agent_resumes_a_blocking_caller(url: str) -> None:
    app = supervised(url)
    (asked,) = app.invoke(asking("Ask the clerk to unlock a form"), THREAD)["__interrupt__"]
    assert asked.value == {"type": "auth_required", "agent": "clerk", "question": "log in at x", "data": []}
    assert app.invoke(Command(resume="done"), THREAD)["results"]["1"]["result"] == "signed done"


async def test_an_answer_that_is_no_text_is_sent_as_data(url: str, heard: list[str]) -> None:
    app = supervised(url)
    await app.ainvoke(asking("Ask the clerk to sign a form"), THREAD)
    await app.ainvoke(Command(resume={"form": 13}), THREAD)
    assert heard[1] == "(no text)"


async def test_a_person_is_asked_first_unless_somebody_said_otherwise(url: str, heard: list[str]) -> None:
    (approval,) = (
        await supervised(url, approval="ask", allow=()).ainvoke(asking("Ask the clerk to file a form"), THREAD)
    )["__interrupt__"]
    assert approval.value["type"] == "tool_approval"
    assert heard == []
    sure = ToolRegistry.from_catalog(load({"clerk": A2AAgent(url, approval="never")}))
    assert sure.assurance("clerk/run").refusal("ask") is None
    assert not sure.assurance("clerk/run").repeatable


async def test_a_silent_a2a_agent_is_cancelled_at_the_time_limit(
    served_clerk: tuple[str, Clerk], url: str, heard: list[str]
) -> None:
    answer = await called(url, "wait for a form", call=2)
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("timeout", "unknown")
    assert "no answer within 2 s; whether the call took effect is unknown" in answer.text
    assert await asyncio.to_thread(served_clerk[1].cancelled.wait, HANG)
    assert heard == ["wait for a form"]


async def test_a_step_of_unknown_outcome_is_not_done_again(url: str, heard: list[str]) -> None:
    app = supervised(url, step_seconds=4.0)
    result = (await app.ainvoke(asking("Ask the clerk to wait for a form"), THREAD))["results"]["1"]
    assert result["status"] == "outcome_unknown"
    assert heard == ["Ask the clerk to wait for a form"]


async def test_a_run_that_is_cancelled_cancels_the_task(
    served_clerk: tuple[str, Clerk], url: str, heard: list[str]
) -> None:
    at_work = asyncio.Event()

    async def run() -> None:
        given = asking("Ask the clerk to wait for a form")
        async for _, _, event in supervised(url).astream(given, THREAD, stream_mode=["custom"], subgraphs=True):
            if event["event"] == "progress":
                at_work.set()

    running = asyncio.create_task(run())
    await at_work.wait()
    assert heard
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(served_clerk[1].cancelled.wait, HANG)


async def test_a_call_of_an_unreachable_a2a_agent_has_no_effect(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with clerk() as (url, _):
        loaded = load({"clerk": A2AAgent(url)})
    bound = ToolRegistry.from_catalog(loaded).bind(["clerk/run"], "run")["clerk_run"]
    answer = await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": "file"}, "id": "1"})
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("start", "none")
    assert "it cannot be reached" in answer.text
    again = load({"clerk": A2AAgent(url)})
    assert list(again.catalog.tools) == ["clerk/run"]
    assert "Its last known tools are kept" in again.problems[0].message


def test_an_a2a_agent_that_was_never_reached_is_a_problem_or_has_no_name() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    loaded = load({"clerk": A2AAgent(url)})
    assert loaded.catalog.agents == ()
    assert "it cannot be reached: ConnectError" in str(loaded.problems[0])
    with pytest.raises(CatalogError, match="an A2A agent has no name: give it one: it cannot be reached"):
        load([A2AAgent(url)])


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


async def called(url: str | Loaded, request: str = "file a form", **limits: float) -> Any:
    loaded = read(url) if isinstance(url, str) else url
    bound = ToolRegistry.from_catalog(loaded, limits=Limits(**limits)).bind(["clerk/run"], "run")["clerk_run"]
    return await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": request}, "id": "1"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "its answer cannot be read: JSONDecodeError"),
        ("[]", "its answer cannot be read: ParseError"),
        ({"name": "clerk"}, "its agent card names no address for JSON-RPC"),
        ({**card(), "supportedInterfaces": [{"url": "{here}", "protocolBinding": "GRPC"}]}, "no address for JSON-RPC"),
        ("[" * 100_000, "its answer cannot be read: RecursionError"),
        (card(description="x" * 300_000), "a message of more than 262,144 bytes"),
        (card("http://127.0.0.2:1/a"), "names another host, http://127.0.0.2:1/a"),
        (card("https://127.0.0.1/a"), "names another host"),
        (card("//evil"), "names another host"),
        (card("http://127.0.0.1:x/"), "'http://127.0.0.1:x/' is not an address"),
        (Response("no", 404), "HTTPStatusError: Client error '404"),
        (RedirectResponse("http://127.0.0.1:9/elsewhere"), "Redirect response '307"),
        (Response("x", headers={"content-encoding": "gzip"}), "a compressed message, which was not requested"),
    ],
)
def test_a_card_that_cannot_be_used_is_a_problem_that_says_why(given: Any, said: str) -> None:
    with answering(given, unused) as (url, sent):
        loaded = read(url)
        assert loaded.catalog.agents == ()
        assert said in loaded.problems[0].message
        assert len(loaded.problems[0].message) < 2_500
        assert len(sent) == 1


def test_a_card_that_does_not_come_is_waited_for_no_longer_than_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
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
        ([], "protocol", "unknown", "expected an object"),
        ({"jsonrpc": "2.0", "id": "1"}, "protocol", "unknown", "neither 'result' nor 'error'"),
        (replied({}), "protocol", "unknown", "neither task nor message"),
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


def streamed(*events: Any, end: bytes = b"", pause: float = 0.0) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        for event in events:
            yield event if isinstance(event, bytes) else f"data: {json.dumps(replied(event))}\n\n".encode()
        if end:
            while True:
                yield end
                await asyncio.sleep(pause)

    return lambda _: StreamingResponse(pieces(), media_type=SSE)


WORKING = {"task": {"id": "1", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}}


def made(number: int) -> dict[str, Any]:
    artifact = {"artifactId": str(number), "parts": [{"text": "x" * 9_000}]}
    return {"artifactUpdate": {"taskId": "1", "artifact": artifact}}


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (streamed(WORKING, end=b"x" * 10_000), "too_large", "or bytes than 100,000 at once and 5,000 a second"),
        (streamed(WORKING, end=b"data: x\n"), "too_large", "or bytes than 100,000 at once and 5,000 a second"),
        (streamed(*map(made, range(20))), "too_large", "artifacts of more than 100,000 bytes"),
        (streamed(WORKING, b"data: {\n\n"), "protocol", "cannot be read"),
        (streamed(b"\xff\xfe\n\n"), "protocol", "neither a message nor the state of a task"),
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


async def test_comments_in_a_stream_do_not_extend_the_time_of_a_call() -> None:
    with answering(card(streaming=True), streamed(WORKING, end=b": still here\n\n", pause=0.01)) as (url, _):
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


def test_without_the_extra_for_a2a_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith(("callsheet.agents.servers.a2a.wire", "a2a."))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "a2a.client", None)
    with pytest.raises(ImportError, match=r"needs the extra a2a, which is not installed: .*'\.\[a2a\]'"):
        read("http://127.0.0.1:9")


SECRET = "CANARY-token-5e8d"


def entry(folder: Path, url: str, **more: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"clerk": {"a2a": url, **more}}}))
    return file


def requests(sent: list[Any]) -> list[Mapping[str, Any]]:
    return [what for what, _ in sent if what != "card"]


def said(text: str) -> dict[str, Any]:
    return told({"text": text})


CARD = card(name="The Clerk", description="Files forms.")


async def test_an_address_is_an_agent_by_the_name_and_with_the_terms_of_its_entry(tmp_path: Path) -> None:
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        terms = {"limits": {"output": 100, "message": 10_000}, "approval": "never"}
        loaded = load(entry(tmp_path, url, callsheet=terms), yes=True)
        agent = loaded.catalog.agent("clerk")
        assert (agent.name, agent.description) == ("The Clerk", "Files forms.")
        assert ToolRegistry.from_catalog(loaded).assurance("clerk/run").refusal("ask") is None
        for options, harm in ({"allow": ["run"]}, "change"), ({"reads": ["run"]}, "none"):
            assured = ToolRegistry.from_catalog(load(entry(tmp_path, url, callsheet=options), yes=True)).assurance(
                "clerk/run"
            )
            assert (assured.refusal("ask"), assured.harm) == (None, harm)
        assert (await called(loaded)).text == "filed"
        (request,) = requests(sent)
        assert request["params"]["message"]["parts"] == [{"text": "file a form"}]


async def test_nothing_is_sent_with_a_variable_before_somebody_agreed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLERK_TOKEN", SECRET)
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        file = entry(tmp_path, url, headers={"Authorization": "Bearer ${CLERK_TOKEN}"})
        with pytest.raises(TrustError) as refused:
            load(file)
        assert f"clerk: {url}  with Authorization" in str(refused.value)
        assert sent == []
        await called(load(file, yes=True))
        assert [headers["authorization"] for _, headers in sent] == [f"Bearer {SECRET}"] * len(sent)
        assert len(requests(sent)) == 1


async def test_the_secrets_of_an_a2a_agent_are_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CLERK_TOKEN", SECRET)
    echo = {**CARD, "description": f"Knows {SECRET}."}
    with answering(echo, lambda _: said(f"filed with {SECRET}")) as (url, _), caplog.at_level(logging.DEBUG):
        file = entry(tmp_path, f"{url}?token={SECRET}", headers={"X-Key": "${CLERK_TOKEN}"})
        loaded = load(file, yes=True)
        answer = await called(loaded)
        assert answer.text == "filed with ***"
        assert SECRET not in dump(loaded.catalog)
        assert SECRET not in caplog.text
        assert "HTTP Request" in caplog.text
    failed = await called(loaded)
    assert failed.status == "error"
    assert SECRET not in failed.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("token", [f"{SECRET}\n", f"{SECRET} für Büros", f"{SECRET}\x01"])
def test_a_header_that_cannot_be_sent_is_a_problem_without_its_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("CLERK_TOKEN", token)
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        loaded = load(entry(tmp_path, url, headers={"Authorization": "Bearer ${CLERK_TOKEN}"}), yes=True)
        assert loaded.catalog.agents == ()
        assert SECRET not in str(loaded.problems[0])
        assert sent == []


async def test_a_card_that_says_something_else_is_not_used_before_it_was_looked_at(tmp_path: Path) -> None:
    card = dict(CARD)
    with answering(card, lambda _: said("filed")) as (url, sent):
        file = entry(tmp_path, url)
        loaded = load(file)
        card["description"] = "Files forms, and reads your mail."
        answer = await called(loaded)
        assert (answer.artifact["kind"], answer.artifact["effect"]) == ("refused", "none")
        assert "its card has changed since the catalog was read" in answer.text
        assert requests(sent) == []
        again = load(file, anew=True)
        assert list(again.catalog.tools) == []
        assert [change.kind for change in again.changes if change.quarantines] == ["changed"]


async def test_an_agent_has_no_mcp_session(tmp_path: Path) -> None:
    server = servers_in(str(entry(tmp_path, "http://127.0.0.1:9")))["clerk"]
    outcome = await SessionPool().call("run", "clerk", server, "run", {})
    assert "it is an A2A agent, so it has no MCP session" in outcome.error
