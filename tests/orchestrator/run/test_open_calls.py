"""A call whose outcome is unknown is not repeated by a later run unseen, however it was allowed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.calls.review import TOOK_EFFECT, decision_on, flat
from callsheet.graphs import CallLedger, User
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway, Waiting
from callsheet.retrievers import AgentGraphRetriever
from scripted_model import ScriptedModel, calls, ended
from small import outside

PAY = "bank/pay"
ORDER = "Pay 'Ann'"
ALLOWED = Settings(allow=(PAY,))
SETTLE = "callsheet.graphs.CallLedger"


class Bank:
    """Pays; while it is ``slow``, the effect is there and the answer is not.

    Attributes:
        paid: Who was paid so far.
        slow: Whose payments get no answer.
    """

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.slow = {"Ann"}
        self.released = threading.Event()

    def agents(self) -> Any:
        def pay(name: str) -> str:
            """Pays a person by name."""
            self.paid.append(name)
            if name in self.slow:
                self.released.wait(60)
            return f"paid {name}"

        return outside({"bank": [StructuredTool.from_function(pay)]})


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bank]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    made = Bank()
    yield made
    made.released.set()


def thread(name: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": name, **more}}


def app_of(bank: Bank, settings: Settings = ALLOWED, *, saved: bool = True, **more: Any) -> Any:
    workflow = create_supervisor(bank.agents(), settings=settings, **more)
    return workflow.compile(checkpointer=InMemorySaver() if saved else None)


def order(text: str = ORDER) -> Any:
    return {"messages": [HumanMessage(text)]}


async def cut_off(run: Any, until: Callable[[], bool]) -> None:
    """Cancels a run in the middle of a call, as a server does."""
    task = asyncio.ensure_future(run)
    async with asyncio.timeout(60):
        while not until():
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


@pytest.fixture
async def stopped(bank: Bank) -> Bank:
    """A bank that has paid Ann in a run that was cancelled before it knew."""
    await cut_off(app_of(bank).ainvoke(order(), thread("first")), lambda: bank.paid == ["Ann"])
    bank.slow = set()
    return bank


def question(state: Any) -> Any:
    (asked,) = state["__interrupt__"]
    return asked


async def test_a_later_run_asks_and_a_yes_by_name_is_no_answer(stopped: Bank) -> None:
    app = app_of(stopped)
    asked = question(await app.ainvoke(order(), thread("second"))).value
    assert (asked["type"], flat(asked)["args"], stopped.paid) == ("unknown_outcome", {"name": "Ann"}, ["Ann"])
    assert "a call like this was running when first stopped" in asked["why"]
    assert flat(asked)["description"].startswith("Step 1 wants to call bank/pay")
    assert SETTLE in flat(asked)["description"]


@pytest.mark.parametrize(
    ("answer", "paid", "status", "open_calls"),
    [("respond", 1, "done", 0), ("edit", 2, "done", 0), ("reject", 1, "outcome_unknown", 1)],
)
async def test_the_answer_settles_the_call(stopped: Bank, answer: Any, paid: int, status: str, open_calls: int) -> None:
    app, more = app_of(stopped), {"message": TOOK_EFFECT} if answer == "respond" else {}
    asked = question(await app.ainvoke(order(), thread("second")))
    state = await app.ainvoke(Command(resume={asked.id: decision_on(answer, asked.value, **more)}), thread("second"))
    assert (state["results"]["1"]["status"], len(stopped.paid)) == (status, paid)
    assert len(CallLedger("").unsettled()) == open_calls
    if not open_calls:  # the next one is a new call
        state = await app.ainvoke(order(), thread("third"))
        assert (state["results"]["1"]["status"], len(stopped.paid)) == ("done", paid + 1)


UNASKED: dict[str, dict[str, Any]] = {
    "never": {"settings": Settings(allow=(PAY,), approval="never")},
    "no checkpointer": {"saved": False},
    "interrupt_on": {"settings": Settings(approval="never"), "interrupt_on": {PAY: False}},
}


@pytest.mark.parametrize("how", UNASKED)
async def test_where_nobody_can_be_asked_nothing_is_sent(stopped: Bank, how: str) -> None:
    state = await app_of(stopped, **UNASKED[how]).ainvoke(order(), thread("second"))
    result = state["results"]["1"]
    assert (result["status"], stopped.paid) == ("outcome_unknown", ["Ann"])
    assert SETTLE in result["error"]


async def test_a_run_that_waits_takes_the_verdict_of_the_command(stopped: Bank) -> None:
    app, ledger = app_of(stopped), CallLedger("")
    await app.ainvoke(order(), thread("second"))
    ledger.settle(ledger.unsettled()[0].id, "done")
    state = await app.ainvoke(None, thread("second"))
    assert (state["results"]["1"]["result"], stopped.paid) == (TOOK_EFFECT, ["Ann"])


@pytest.mark.parametrize("approval", ["ask", "never"])
@pytest.mark.parametrize(("verdict", "paid"), [("done", 1), ("not-done", 2)])
async def test_the_stopped_run_itself_takes_the_verdict_of_the_command(
    bank: Bank, approval: Any, verdict: Any, paid: int
) -> None:
    app, ledger = app_of(bank, Settings(allow=(PAY,), approval=approval)), CallLedger("")
    await cut_off(app.ainvoke(order(), thread("first")), lambda: bank.paid == ["Ann"])
    bank.slow = set()
    ledger.settle(ledger.unsettled()[0].id, verdict)
    state = await app.ainvoke(None, thread("first"))
    assert (state["results"]["1"]["status"], len(bank.paid), ledger.entries()) == ("done", paid, ())


async def test_a_new_run_is_told_once_that_it_was_done(stopped: Bank) -> None:
    app, ledger = app_of(stopped), CallLedger("")
    ledger.settle(ledger.unsettled()[0].id, "done")
    state = await app.ainvoke(order(), thread("second"))
    assert state["results"]["1"]["result"].endswith("It was sent in first, and was not sent again.")
    assert stopped.paid == ["Ann"]
    await app.ainvoke(order(), thread("third"))
    assert stopped.paid == ["Ann", "Ann"]


async def test_other_arguments_and_other_users_are_not_asked(stopped: Bank) -> None:
    app = app_of(stopped)
    await app.ainvoke(order("Pay 'Bob'"), thread("second"))
    await app.ainvoke(order(), thread("third", langgraph_auth_user={"identity": "anna"}))
    assert stopped.paid == ["Ann", "Bob", "Ann"]


async def test_two_runs_at_the_same_time_may_do_the_same(bank: Bank) -> None:
    app = app_of(bank)
    runs = [asyncio.ensure_future(app.ainvoke(order(), thread(name))) for name in ("first", "second")]
    async with asyncio.timeout(60):
        while len(bank.paid) < 2:
            await asyncio.sleep(0.01)
    bank.released.set()
    assert [(await run)["results"]["1"]["status"] for run in runs] == ["done", "done"]
    assert CallLedger("").entries() == ()


async def test_a_call_that_cannot_be_recorded_is_not_sent(bank: Bank) -> None:
    CallLedger("").file.replace(b"{")
    state = await app_of(bank).ainvoke(order(), thread("first"))
    assert (state["results"]["1"]["status"], bank.paid) == ("failed", [])
    assert "nothing was sent, because the record of open calls cannot be written" in state["results"]["1"]["error"]


async def test_the_ledger_has_no_arguments(stopped: Bank) -> None:
    assert "Ann" not in CallLedger("").file.text()


async def test_a_worker_is_told_of_open_calls_of_its_tools(stopped: Bank) -> None:
    model = ScriptedModel(replies=[calls("bank_pay", name="Ann Smith"), lambda told: ended(told[-1])])
    await app_of(stopped, worker_model=model).ainvoke(order("Pay Ann Smith"), thread("second"))
    (request,) = [m.text for m in model.shown[0]["messages"] if isinstance(m, HumanMessage)]
    assert "- bank/pay: a call was running when first stopped" in request
    assert not [m for m in model.shown[0]["messages"] if not isinstance(m, HumanMessage) and "first stopped" in m.text]


PROGRAM = "for name in ('Cid', 'Dan', 'Ann'):\n    bank_pay(name=name)\n'done'"


async def test_a_program_that_was_cut_off_asks_about_the_item_that_was_under_way(bank: Bank) -> None:
    def app() -> Any:
        model = ScriptedModel(replies=[calls("run_program", code=PROGRAM), lambda told: ended(told[-1])])
        return app_of(bank, worker_model=model)

    await cut_off(app().ainvoke(order("Pay all three"), thread("first")), lambda: len(bank.paid) == 3)
    bank.slow, again = set(), app()
    asked = question(await again.ainvoke(order("Pay all three"), thread("second")))
    assert (flat(asked.value)["args"], len(bank.paid)) == ({"name": "Ann"}, 5)
    decision = decision_on("respond", asked.value, message=TOOK_EFFECT)
    state = await again.ainvoke(Command(resume={asked.id: decision}), thread("second"))
    assert (state["results"]["1"]["status"], bank.paid.count("Ann")) == ("done", 1)


async def test_an_agent_with_callsheet_tools_is_told_of_an_open_call_and_does_not_repeat_it(stopped: Bank) -> None:
    model = ScriptedModel(replies=[calls("bank_pay", name="Ann"), AIMessage("It is open.")])
    tools = CallsheetTools(stopped.agents(), approval="never")
    state = await create_agent(model, middleware=[tools]).ainvoke(order("Pay Ann"))
    (answer,) = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert "a call like this was running when first stopped" in answer.text
    assert (answer.artifact["effect"], stopped.paid) == ("unknown", ["Ann"])
    assert "- bank/pay: a call was running when first stopped" in model.shown[0]["messages"][-1].text


async def test_a_client_of_the_gateway_that_vanished_is_asked_when_it_comes_again(bank: Bank) -> None:
    loaded = bank.agents()
    parts = AgentGraphRetriever.from_catalog(loaded, index=":memory:"), ToolRegistry.from_catalog(loaded)
    gateway, asking = Gateway(*parts, approval="never"), Gateway(*parts)
    await cut_off(gateway.call(PAY, {"name": "Ann"}, Caller("one")), lambda: bank.paid == ["Ann"])
    answer = await gateway.call(PAY, {"name": "Ann"}, Caller("two"))
    assert not isinstance(answer, Waiting)
    assert (answer.status, answer.artifact["effect"], bank.paid) == ("error", "unknown", ["Ann"])
    assert "a call was running when process" in gateway.read([PAY], Caller("two"))
    waiting = await asking.call(PAY, {"name": "Ann"}, Caller("three"))
    assert isinstance(waiting, Waiting)
    assert waiting.question["type"] == "unknown_outcome"
    bank.slow = set()
    await asking.relay.answer(waiting.id, decision_on("edit", waiting.question), User())
    assert bank.paid == ["Ann", "Ann"]
