"""Which tools are asked about: the program's own, those that a person has allowed for good, and all others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from langchain.agents.middleware.human_in_the_loop import (
    ApproveDecision,
    EditDecision,
    HITLRequest,
    HITLResponse,
    RejectDecision,
    RespondDecision,
)
from langchain_core.tools import tool
from langgraph.types import Command
from pydantic import TypeAdapter

from callsheet.agents.calls.review import decision_on, flat
from callsheet.graphs import SettingsError, UnknownNameError, load
from callsheet.graphs.trust.consent import StandingApprovals
from conversation import Conversation
from fake_agents import MODULE, FakeAgents
from scripted_model import ScriptedModel, planned

RATE = "look up the rate of USD"
TOOL = "bank/exchange_rate"
NAME = "bank_exchange_rate"
ANNA = {"identity": "anna"}


class Rates(Conversation):
    """A supervisor that plans to look up a rate; each request has a thread of its own."""

    def __init__(self, source: Any, worker: ScriptedModel, **options: Any) -> None:
        planner = ScriptedModel(replies=[planned(("1", RATE, []))])
        super().__init__(source, planner_model=planner, worker_model=worker, **options)
        self.threads = 0

    def request(self, **configurable: Any) -> Any:
        """Asks for the rate; its result, or the value of the question that came first."""
        self.threads += 1
        self.config = {"configurable": {"thread_id": str(self.threads), **configurable}}
        return self._told(self.ask(RATE))

    def answer(self, answer: Any) -> Any:
        """Answers the question; the result, or the value of the next question."""
        return self._told(self.ask(Command(resume=answer)))

    def _told(self, state: Any) -> Any:
        if waiting := state["waiting"]:
            self.form = waiting[0].response_schema
            return waiting[0].value
        return state["results"].get("1") if state["results"] else state["messages"][-1].text


@pytest.fixture
def named(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> str:
    """The shop as a catalog with a name, for which nobody has vouched."""
    shop.approval = None
    shop.loaded(monkeypatch)
    return f"{MODULE}:agents"


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))


@pytest.fixture
def rates(named: str, worker: ScriptedModel) -> Rates:
    return Rates(named, worker)


@pytest.fixture
def own(shop: FakeAgents, worker: ScriptedModel) -> Callable[..., Any]:
    """The same tools as objects that a program passes."""
    shop.approval = None
    return lambda **more: Rates(shop.agents(), worker, **more)


def test_the_programs_own_tools_are_called(own: Callable[..., Any], shop: FakeAgents) -> None:
    assert own(saved=False).request()["status"] == "done"
    assert shop.called == ["exchange_rate"]


@pytest.mark.parametrize(
    ("more", "decisions"),
    [
        ({"interrupt_on": {TOOL: True}}, ["approve", "edit", "reject", "respond"]),
        ({"interrupt_on": {TOOL: {"allowed_decisions": ["approve", "reject"]}}}, ["approve", "reject"]),
        ({"settings": {"approval": "always"}}, ["approve", "edit", "reject", "respond"]),
    ],
)
def test_tools_are_asked_about_with_interrupt_on_or_approval_always(
    own: Callable[..., Any], shop: FakeAgents, more: Any, decisions: list[str]
) -> None:
    rates = own(**more)
    assert flat(rates.request())["decisions"] == decisions
    assert shop.called == []
    if "respond" not in decisions:
        assert "'respond' is not allowed for this call" in rates.answer({"type": "respond", "message": "1"})["problem"]
    assert rates.answer({"type": "approve"})["status"] == "done"
    assert "approval needs a checkpointer" in own(saved=False, **more).request()


def test_a_tool_with_a_destructive_hint_is_asked_about(worker: ScriptedModel) -> None:
    called = []

    @tool
    def exchange_rate(currency: str) -> str:
        """Looks up the rate of a currency."""
        called.append(currency)
        return "1"

    exchange_rate.metadata = {"annotations": {"destructiveHint": True}}
    rates = Rates({"bank": [exchange_rate]}, worker)
    assert "may delete or overwrite" in rates.request()["why"]
    never = Rates({"bank": [exchange_rate]}, worker, settings={"approval": "never"})
    assert never.request()["confirm"] is True
    assert called == []


@pytest.mark.parametrize("interrupt_on", [{TOOL: False}, {TOOL: True, "bank/other": True}])
def test_interrupt_on_false_is_above_approval_always(named: str, worker: ScriptedModel, interrupt_on: Any) -> None:
    if "bank/other" in interrupt_on:
        with pytest.raises(UnknownNameError, match="bank/other"):
            Rates(named, worker, interrupt_on=interrupt_on)
        return
    rates = Rates(named, worker, interrupt_on=interrupt_on, settings={"approval": "always"})
    assert rates.request()["status"] == "done"


@pytest.mark.parametrize("wrong", ["yes", {"allowed_decisions": []}, {"allowed_decisions": ["sure"]}, {"when": 1}])
def test_another_form_of_interrupt_on_is_refused(named: str, worker: ScriptedModel, wrong: Any) -> None:
    with pytest.raises(SettingsError, match="interrupt_on, 'bank/exchange_rate'"):
        Rates(named, worker, interrupt_on={TOOL: wrong})


@pytest.mark.parametrize(("approval", "allow", "asks"), [
    ("always", (), True), ("always", (TOOL,), False), ("ask", (), True), ("ask", (TOOL,), False), ("never", (), False),
])  # fmt: skip
def test_a_yes_by_name_is_above_every_approval(
    named: str, worker: ScriptedModel, approval: str, allow: Any, asks: bool
) -> None:
    rates = Rates(named, worker, settings={"approval": approval, "allow": allow})
    assert ("action_requests" in rates.request()) is asks


def test_always_is_asked_once_and_until_it_is_revoked(rates: Rates, named: str, shop: FakeAgents) -> None:
    asked = rates.request()
    assert asked["always"] is True
    assert rates.answer(decision_on("approve", asked, always=True))["status"] == "done"
    assert rates.request()["status"] == "done"
    assert shop.called == ["exchange_rate"] * 2
    standing = StandingApprovals.of(load(named).label)
    assert standing is not None
    assert [(one.id, one.user) for one in standing.entries()] == [(TOOL, "")]
    standing.revoke([TOOL])
    assert "action_requests" in rates.request()
    assert shop.called == ["exchange_rate"] * 2


@pytest.mark.parametrize(
    "other", [ANNA, {"identity": ""}, {"identity": "x", "is_authenticated": False}], ids=["anna", "anonymous", "studio"]
)
def test_another_user_is_asked(rates: Rates, other: Any) -> None:
    rates.answer(decision_on("approve", rates.request(), always=True))
    asked = rates.request(langgraph_auth_user=other)
    rates.answer(decision_on("approve", asked, always=True))
    assert rates.request(langgraph_auth_user=other)["status"] == "done"
    assert "action_requests" in rates.request(langgraph_auth_user={"identity": "bert"})


def test_a_changed_tool_is_asked_about_again(
    rates: Rates, shop: FakeAgents, named: str, worker: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates.answer(decision_on("approve", rates.request(), always=True))
    agents = shop.agents()
    agents["bank"][0].description += " And pays it out."
    monkeypatch.setattr(shop, "agents", lambda: agents)
    shop.loaded(monkeypatch)
    assert "action_requests" in Rates(named, worker).request()


@pytest.mark.parametrize("where", ["memory", "interrupt_on", "an edit", "unstored"])
def test_always_counts_only_where_it_is_offered(
    where: str, named: str, shop: FakeAgents, worker: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    more: dict[str, Any] = {"interrupt_on": {TOOL: True}} if where == "interrupt_on" else {}
    rates = Rates(shop.loaded(monkeypatch) if where == "memory" else named, worker, **more)
    asked = rates.request()
    assert ("always" in asked) is (where not in ("memory", "interrupt_on"))
    answer = decision_on("edit" if where == "an edit" else "approve", asked, always=True)
    if where == "unstored":
        monkeypatch.setattr(StandingApprovals, "add", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    problem = rates.answer(answer)["problem"]
    assert ("the disk is full" if where == "unstored" else '"always" is not allowed for this call') in problem
    assert shop.called == []
    assert rates.answer({"type": "approve"})["status"] == "done"


def test_the_question_has_langchains_form_and_takes_its_answers(rates: Rates, shop: FakeAgents) -> None:
    asked = TypeAdapter(HITLRequest).validate_python(shown := rates.request(), strict=True)
    (action,) = asked["action_requests"]
    (review,) = asked["review_configs"]
    assert (action["name"], action["args"]) == (NAME, {"currency": "USD"})
    assert TOOL in action.get("description", "")
    assert review == {"action_name": NAME, "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    answers = [
        ApproveDecision(type="approve"),
        EditDecision(type="edit", edited_action={"name": NAME, "args": {"currency": "NOK"}}),
        RejectDecision(type="reject", message="no"),
        RespondDecision(type="respond", message="1"),
    ]
    for answer in answers:
        jsonschema.validate(HITLResponse(decisions=[answer]), rates.form)
    for kind, more in (("approve", {}), ("edit", {}), ("reject", {"message": "no"}), ("respond", {"message": "1"})):
        jsonschema.validate(given := decision_on(kind, shown, **more), rates.form)  # type: ignore[arg-type]
        TypeAdapter(HITLResponse).validate_python(given)
    both = {**answers[1], "editedAction": answers[1]["edited_action"]}  # type: ignore[typeddict-item]
    again = rates.answer({"decisions": [both]})  # as LangGraph's SDK for JavaScript sends it
    assert flat(again)["args"] == {"currency": "NOK"}
    assert rates.answer(HITLResponse(decisions=[answers[0]]))["status"] == "done"
    assert shop.called == ["exchange_rate"]
