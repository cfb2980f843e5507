"""Questions that a server asks in the middle of a call, through the gateway, between all versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from mcp import types

from callsheet.agents.calls.call_context import ask_of_caller
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.safety.secrets import Redaction
from callsheet.agents.servers.server_questions import CallClock, ServerQuestions
from callsheet.graphs import SettingsError, User
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, QuestionRelay, Waiting
from callsheet.retrievers import MiniLMEmbeddings
from local_gateway import LocalGateway, answering, said

pytestmark = pytest.mark.server
OLD = Path(__file__).with_name("old_asking_server.py")
SERVERS = {"modern": OLD.with_name("asking_server.py"), "legacy": OLD}
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@pytest.fixture(scope="module", params=["modern", "legacy"])
def asking(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, minilm: MiniLMEmbeddings
) -> Iterator[LocalGateway]:
    folder = tmp_path_factory.mktemp(request.param)
    made = LocalGateway(folder, minilm, names=("asks",), server=SERVERS[request.param])
    yield made
    made.registry.close()


@pytest.fixture
def old(tmp_path: Path, minilm: MiniLMEmbeddings) -> Iterator[LocalGateway]:
    made = LocalGateway(tmp_path, minilm, names=("asks",), server=OLD)
    yield made
    made.registry.close()


@pytest.fixture(autouse=True)
async def no_session(request: pytest.FixtureRequest) -> Any:
    """Each test begins a session, which tells the server whether a person can be asked."""
    yield
    if "asking" in request.fixturenames:
        await request.getfixturevalue("asking").registry.close_run("desk")


@ERAS
async def test_a_question_reaches_the_client_and_its_answer_the_server(asking: LocalGateway, mode: str) -> None:
    heard: list[types.ElicitRequestFormParams] = []
    answer = types.ElicitResult(action="accept", content={"size": "XL"})
    async with asking.client(mode, answering(answer, heard)) as client:
        ordered = await client.call_tool("call_tool", {"tool": "asks/order"})
        again = await client.call_tool("call_tool", {"tool": "asks/order"})
    assert "XL" in said(ordered)
    assert said(again) == said(ordered)
    assert [one.message for one in heard] == ["The server 'asks' asks: Which size?"] * 2
    field = heard[0].requested_schema["properties"]["size"]
    assert field["type"] == "string"
    assert field.get("title") in (None, "Size Password")


@ERAS
async def test_a_person_may_decline_or_cancel_a_question_and_sampling_is_refused(
    asking: LocalGateway, mode: str
) -> None:
    for action in ("decline", "cancel"):
        ordered = await asking.call("asks/order", mode, answering(types.ElicitResult(action=action)))
        assert action in said(ordered)
    thought = await asking.call("asks/think", mode, answering(types.ElicitResult(action="accept")))
    assert "sampling" in said(thought).lower()


@ERAS
async def test_a_client_that_cannot_be_asked_is_an_error_that_says_so(asking: LocalGateway, mode: str) -> None:
    ordered = await asking.call("asks/order", mode)
    assert "licitation" in said(ordered) or "nobody can be asked" in said(ordered)


@ERAS
async def test_the_number_of_questions_is_bounded_and_a_page_is_named_with_its_host_and_address(
    old: LocalGateway, mode: str
) -> None:
    heard: list[Any] = []
    answer = types.ElicitResult(action="accept", content={"size": "S"})
    async with old.client(mode, answering(answer, heard)) as client:
        many = said(await client.call_tool("call_tool", {"tool": "asks/many"})).splitlines()
        opened = said(await client.call_tool("call_tool", {"tool": "asks/open"}))
    assert "5 questions at most" in many[5]
    assert len(heard) == 6
    assert heard[5].message == "The server 'asks' asks: Pay (open this page on x.example: https://x.example/ )"
    assert "decline" in opened  # the answer did not say that the page was opened
    assert old.log == ["['extensions']", "['elicitation', 'extensions']"]  # first its tools were listed, for nobody


async def test_a_server_is_not_told_of_elicitation_if_the_client_cannot_be_asked(old: LocalGateway) -> None:
    ordered = said(await old.call("asks/order"))
    assert old.log == ["['extensions']"] * 2
    assert "not supported" in ordered


async def test_only_who_called_may_answer_and_a_call_can_be_given_up(old: LocalGateway) -> None:
    anna, bert = Caller("a", User("anna"), asks=True), Caller("b", User("bert"), asks=True)
    asked = await old.gateway.call("asks/order", {}, anna)
    assert isinstance(asked, Waiting)
    assert asked.question["agent"] == "asks"
    with pytest.raises(SettingsError):
        await old.gateway.relay.answer(asked.id, {"action": "accept"}, bert.user)
    answered = await old.gateway.relay.answer(asked.id, {"action": "accept", "content": {"size": "M"}}, anna.user)
    assert not isinstance(answered, Waiting)
    assert '"size": "M"' in answered.text
    dropped = await old.gateway.call("asks/order", {}, anna)
    assert isinstance(dropped, Waiting)
    old.gateway.relay.drop(dropped.id, bert.user)
    assert old.gateway.relay.waiting(dropped.id, anna.user)
    old.gateway.relay.drop(dropped.id, anna.user)
    old.gateway.relay.drop(dropped.id, anna.user)  # its client may go at the same moment
    with pytest.raises(SettingsError):
        old.gateway.relay.waiting(dropped.id, anna.user)


async def test_the_answer_of_a_call_that_did_not_wait_for_the_person_is_not_lost() -> None:
    relay, ended = QuestionRelay(), asyncio.Event()

    async def call() -> ToolMessage:
        ask = ask_of_caller()
        assert ask is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(ask("Which?", {}), 0.05)
        ended.set()
        return ToolMessage("done without", tool_call_id="1")

    asked = await relay.run(lambda ask: call(), "a", User(), asks=True)
    assert isinstance(asked, Waiting)
    await ended.wait()
    assert relay.waiting(asked.id, User()) == asked
    answered = await relay.answer(asked.id, {"action": "accept"}, User())
    assert isinstance(answered, ToolMessage)
    assert answered.text == "done without"


EMPTY: dict[str, Any] = {"type": "object", "properties": {}}


def question(message: str) -> types.ElicitRequestFormParams:
    return types.ElicitRequestFormParams(message=message, requested_schema=EMPTY)


async def test_a_question_during_two_calls_of_one_server_is_refused() -> None:
    questions, answers = ServerQuestions(Redaction([])), list[Any]()

    async def ask(message: str, form: dict[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {"asked": message}}

    async def send(params: Any) -> dict[str, Any]:
        await asyncio.sleep(0.02)
        answers.append(await questions.elicited(None, question("Which?")))  # type: ignore[arg-type]
        return {}

    await asyncio.gather(
        questions.answered(send, {}, CallClock(5), ask), questions.answered(send, {}, CallClock(5), ask)
    )
    await questions.answered(send, {}, CallClock(5), ask)
    first, _, alone = answers
    assert isinstance(first, types.ErrorData)
    assert "several calls are running" in first.message
    assert alone == types.ElicitResult(action="accept", content={"asked": "Which?"})


async def test_the_timeout_waits_for_the_person_with_all_questions_and_goes_on_then() -> None:
    questions = ServerQuestions(Redaction([]))

    async def person(message: str, form: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.5 if message == "slow" else 0)
        return {"action": "decline"}

    async def send(params: dict[str, Any]) -> dict[str, Any]:
        asked = [asyncio.create_task(questions.elicited(None, question(one))) for one in ("quick", "slow")]  # type: ignore[arg-type]
        await asyncio.gather(*asked)
        await asyncio.sleep(params["then"])
        return {"done": True}

    assert await questions.answered(send, {"then": 0}, CallClock(0.2), person) == {"done": True}  # type: ignore[arg-type]
    with pytest.raises(TimeoutError):
        await questions.answered(send, {"then": 5}, CallClock(0.2), person)  # type: ignore[arg-type]


def _form(schema: dict[str, Any]) -> dict[str, Any]:
    params = {"message": "x", "requestedSchema": schema}
    return {"inputRequests": {"a": {"method": "elicitation/create", "params": params}}}


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"inputRequests": {}},
        {"inputRequests": {"a": 5}},
        {"inputRequests": {"a": {"method": "roots/list"}}},
        {"inputRequests": {"a": {"method": "elicitation/create", "params": {"mode": "url", "message": "x"}}}},
        *map(_form, ({}, {"type": "string"}, {"type": "object", "properties": "none"}, {"$ref": "#"})),
        {"inputRequests": {str(n): {"method": "elicitation/create"} for n in range(6)}},
        _form({"type": "object", "properties": {"x": {"title": "y" * 30_000}}}),
    ],
)
async def test_a_question_that_cannot_be_answered_ends_the_call(result: dict[str, Any]) -> None:
    async def ask(message: str, form: dict[str, Any]) -> dict[str, Any]:
        raise AssertionError(message)

    async def send(params: Any) -> dict[str, Any]:
        return {"resultType": "input_required", **result}

    with pytest.raises(Fault) as raised:
        await ServerQuestions(Redaction([])).answered(send, {}, CallClock(5), ask)
    assert raised.value.kind == "protocol"


async def test_a_server_that_repeats_its_question_is_stopped() -> None:
    asked = list[str]()

    async def ask(message: str, form: dict[str, Any]) -> dict[str, Any]:
        asked.append(message)
        return {"action": "accept", "content": {}}

    async def send(params: Any) -> dict[str, Any]:
        return {"resultType": "input_required", **_form(EMPTY), "requestState": "s"}

    with pytest.raises(Fault, match="more than 5 times"):
        await ServerQuestions(Redaction([])).answered(send, {}, CallClock(5), ask)
    assert len(asked) == 5
