"""Questions about the calls of programs: those that are known before the first are one, with a decision on each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import Assurance
from callsheet.agents.calls.review import decision_on, each_call, flat
from callsheet.agents.registry import tool_registry
from callsheet.graphs import Tool
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, ended

RATE = "look up the rate of USD"
THREAD: Any = {"configurable": {"thread_id": "1"}}


def settings(**more: Any) -> Settings:
    return Settings(**{"agents": 4, "tools": 5, "tool_floor": 0, **more})


TWO = "first = bank_exchange_rate(currency='USD')\nsecond = bank_exchange_rate(currency='GBP')\nprint(first, second)"


@pytest.fixture
def asking(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The shop, for which nobody has vouched, and a program with two calls."""
    shop.approval = None

    def compiled(code: str = TWO, **more: Any) -> Any:
        model = ScriptedModel(replies=[calls("run_program", code=code), lambda told: ended(told[-1])])
        workflow = create_supervisor(shop.loaded(monkeypatch), worker_model=model, settings=settings(**more))
        return workflow.compile(checkpointer=InMemorySaver())

    return compiled


def listed(state: Any) -> Any:
    """The calls in the only question of a run."""
    (question,) = state["__interrupt__"]
    shown = flat(question.value)
    return [call["args"] for call in shown["args"]["calls"]] if "calls" in shown else shown["args"]


def test_calls_that_are_known_before_the_first_are_one_question(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking()
    state = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    assert listed(state) == [{"currency": "USD"}, {"currency": "GBP"}]
    assert shop.called == []
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert shop.called == ["exchange_rate"] * 2
    assert state["results"]["1"]["result"] == "1 USD = 0.9 EUR 1 GBP = 0.9 EUR"


LOOP = "for c in ('USD', 'GBP', 'CHF', 'SEK', 'NOK', 'DKK'):\n    bank_exchange_rate(currency=c)\n'done'"


def test_a_loop_over_six_items_is_one_question_and_its_answer_holds_for_each_once(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    app = asking(f"{LOOP}\nbank_exchange_rate(currency='USD')")
    state = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    assert [args["currency"] for args in listed(state)] == ["USD", "GBP", "CHF", "SEK", "NOK", "DKK", "USD"]
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert len(shop.called) == 7
    assert "__interrupt__" not in state


def test_a_call_that_depends_on_an_earlier_result_is_asked_about_when_it_is_known(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    app = asking(
        "a = bank_exchange_rate(currency='USD')\nb = bank_exchange_rate(currency='GBP')\n"
        "notebook_write_note(text=a)\n'noted'"
    )
    state = app.invoke({"messages": [HumanMessage(f"{RATE} and write a note")]}, THREAD)
    assert listed(state) == [{"currency": "USD"}, {"currency": "GBP"}]
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert listed(state) == {"text": "1 USD = 0.9 EUR"}
    assert shop.called == ["exchange_rate"] * 2
    app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert shop.called == ["exchange_rate"] * 2 + ["write_note"]


def test_a_branch_on_a_result_is_not_approved_unseen(asking: Callable[..., Any], shop: FakeAgents) -> None:
    code = (
        "a = bank_exchange_rate(currency='USD')\n"
        "if '0.9' in a:\n    bank_exchange_rate(currency='GBP')\nelse:\n    bank_exchange_rate(currency='CHF')\n'x'"
    )
    app = asking(code)
    state = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    assert listed(state) == [{"currency": "USD"}, {"currency": "CHF"}]  # a guess, which decides nothing
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert listed(state) == {"currency": "GBP"}
    assert shop.called == ["exchange_rate"]


def test_calls_that_a_person_refuses_together_are_not_sent(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking()
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    state = app.invoke(Command(resume={"type": "reject", "message": "too dear"}), THREAD)
    assert shop.called == []
    assert "a person refused this call: too dear" in state["results"]["1"]["error"]


@pytest.fixture
def noting(asking: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, Any]]:
    """Runs a program until it asks; rates are known to be harmless, notes are not. Returns the app and the state."""
    real = tool_registry.assurance_of

    def of_the_bank(tool: Tool, *args: Any, **more: Any) -> Assurance:
        known = real(tool, *args, **more)
        return replace(known, harm="none") if tool.id == "bank/exchange_rate" else known

    monkeypatch.setattr(tool_registry, "assurance_of", of_the_bank)

    def begin(code: str) -> tuple[Any, Any]:
        app = asking(code, allow=("bank/exchange_rate",))
        return app, app.invoke({"messages": [HumanMessage(f"{RATE} and write a note")]}, THREAD)

    return begin


def test_what_is_read_on_another_server_is_read_once_and_the_effects_are_one_question(
    noting: Callable[..., tuple[Any, Any]], shop: FakeAgents
) -> None:
    app, state = noting(
        "for c in ('USD', 'GBP'):\n    notebook_write_note(text=c + ': ' + bank_exchange_rate(currency=c))\n'noted'"
    )
    assert listed(state) == [{"text": "USD: 1 USD = 0.9 EUR"}, {"text": "GBP: 1 GBP = 0.9 EUR"}]
    assert shop.called == ["exchange_rate"] * 2
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert shop.called == ["exchange_rate"] * 2 + ["write_note"] * 2
    assert "__interrupt__" not in state


def test_nothing_is_read_with_a_value_that_is_not_known_yet(
    noting: Callable[..., tuple[Any, Any]], shop: FakeAgents
) -> None:
    _, state = noting(
        "a = notebook_write_note(text='x')\nbank_exchange_rate(currency=a)\nnotebook_write_note(text='y')"
    )
    assert listed(state) == {"text": "x"}
    assert shop.called == []


def test_effects_that_need_no_approval_are_not_made_before_those_that_do(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    code = "for c in ('a', 'b'):\n    notebook_write_note(text=c)\n    notebook_delete_note(title=c)\n'noted'"
    app = asking(code, allow=("notebook/write_note",))
    state = app.invoke({"messages": [HumanMessage("Write a note and delete a note")]}, THREAD)
    assert listed(state) == [{"title": "a"}, {"title": "b"}]
    assert shop.called == ["write_note"]  # it stands before the first call that is asked about
    app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert shop.called == ["write_note", "delete_note"] * 2


def test_what_was_read_for_a_program_that_is_refused_stands_in_the_result(
    noting: Callable[..., tuple[Any, Any]], shop: FakeAgents
) -> None:
    app, _ = noting(
        "notebook_write_note(text='x')\nr = bank_exchange_rate(currency='USD')\nnotebook_write_note(text=r)\n'noted'"
    )
    state = app.invoke(Command(resume={"type": "reject"}), THREAD)
    assert shop.called == ["exchange_rate"]
    assert [call["tool"] for call in state["results"]["1"]["calls"]] == [
        "notebook/write_note",
        "bank/exchange_rate",
        "run_program",
    ]


def test_a_refusal_ends_a_program_that_would_catch_it(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking(
        "for _ in range(3):\n    try:\n        bank_exchange_rate(currency='USD')\n"
        "    except BaseException:\n        pass"
    )
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    state = app.invoke(Command(resume={"type": "reject", "message": "no"}), THREAD)
    assert "__interrupt__" not in state
    assert shop.called == []
    (call, program) = state["results"]["1"]["calls"]
    assert call["kind"] == "rejected"
    assert "the program was ended" in program["error"]


def test_a_refusal_of_one_call_ends_a_program_too(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking("try:\n    bank_exchange_rate(currency='USD')\nexcept BaseException:\n    pass")
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    state = app.invoke(Command(resume={"type": "reject", "message": "no"}), THREAD)
    (call, program) = state["results"]["1"]["calls"]
    assert call["kind"] == "rejected"
    assert "the program was ended" in program["error"]
    assert shop.called == []


def test_a_person_changes_arguments_in_the_middle(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking("first = bank_exchange_rate(currency='USD')\nsecond = bank_exchange_rate(currency=first[-3:])\nsecond")
    (question,) = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)["__interrupt__"]
    app.invoke(Command(resume=decision_on("edit", question.value, args={"currency": "CHF"})), THREAD)
    state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    while state.get("__interrupt__"):
        state = app.invoke(Command(resume={"type": "approve"}), THREAD)
    assert state["results"]["1"]["calls"][0]["args"] == {"currency": "CHF"}
    assert shop.called == ["exchange_rate"] * 2


def decisions(*kinds: str) -> Any:
    return Command(resume={"decisions": [{"type": kind} for kind in kinds]})


def test_each_call_has_a_decision_and_the_program_ends_at_the_one_that_is_rejected(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    app = asking(LOOP)
    state = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    (question,) = state["__interrupt__"]
    assert [action["name"] for action in question.value["action_requests"]] == ["bank_exchange_rate"] * 6
    assert [config["allowed_decisions"] for config in question.value["review_configs"]] == [["approve", "reject"]] * 6
    state = app.invoke(decisions("approve", "approve", "reject", "approve", "approve", "approve"), THREAD)
    assert shop.called == ["exchange_rate"] * 2
    calls = state["results"]["1"]["calls"]
    assert [call["kind"] for call in calls[:3]] == ["", "", "rejected"]
    assert calls[2]["args"] == {"currency": "CHF"}
    assert calls[-1]["error"].startswith("line 2: the program was ended: ")
    assert "made 2 calls: do not repeat" in calls[-1]["error"]


def test_after_a_refusal_a_program_makes_no_other_call_even_if_that_was_approved(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    made = "    try:\n        bank_exchange_rate(currency=c)\n    except RuntimeError:\n        pass"
    app = asking(f"for c in ('USD', 'GBP'):\n{made}")
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    app.invoke(decisions("reject", "approve"), THREAD)
    assert shop.called == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ({"decisions": [{"type": "approve"}]}, "2 decisions, one for each call in their order, and this one 1"),
        ({"decisions": [{"type": "approve"}, {"type": "edit"}]}, "decision 2: 'edit' is not allowed for this call"),
        ({"decisions": [{"type": "approve"}, {"type": "approve", "always": True}]}, '"always" is not allowed'),
        ({"decisions": [{"type": "approve"}, {"type": "approve", "hash": "x"}]}, "decision 2 has the hash of another"),
        ("yes", "2 decisions"),
    ],
)
def test_an_answer_that_does_not_fit_sends_nothing_and_the_calls_are_asked_about_again(
    asking: Callable[..., Any], shop: FakeAgents, answer: Any, problem: str
) -> None:
    app = asking()
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    (question,) = app.invoke(Command(resume=answer), THREAD)["__interrupt__"]
    assert problem in question.value["problem"]
    assert shop.called == []
    app.invoke(Command(resume=decision_on("approve", question.value)), THREAD)
    assert shop.called == ["exchange_rate"] * 2


def test_whoever_gives_no_answer_three_times_has_rejected_the_calls(
    asking: Callable[..., Any], shop: FakeAgents
) -> None:
    app = asking()
    app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    for _ in range(3):
        state = app.invoke(Command(resume="yes"), THREAD)
    assert "__interrupt__" not in state
    assert shop.called == []
    assert "asked 3 times without a valid answer" in state["results"]["1"]["error"]


def test_decisions_in_another_order_are_refused_by_their_hashes(asking: Callable[..., Any], shop: FakeAgents) -> None:
    app = asking()
    (question,) = app.invoke({"messages": [HumanMessage(RATE)]}, THREAD)["__interrupt__"]
    answer = decision_on("approve", question.value)
    answer["decisions"].reverse()
    (again,) = app.invoke(Command(resume=answer), THREAD)["__interrupt__"]
    assert "the hash of another call" in again.value["problem"]
    assert shop.called == []


@pytest.mark.parametrize(
    ("use", "known"),
    [
        ("if a:\n    bank_exchange_rate(currency='GBP')", False),
        ("if len(a) > 5:\n    bank_exchange_rate(currency='GBP')", False),
        ("bank_exchange_rate(currency=a)", False),
        ("bank_exchange_rate(currency=a['id'])", False),
        ("print('made: ' + a)\nbank_exchange_rate(currency='GBP')", True),
        ("all = []\nall.append(a)\nbank_exchange_rate(currency='GBP')\nall", True),
    ],
)
def test_a_call_is_asked_about_with_others_if_it_does_not_depend_on_their_results(
    asking: Callable[..., Any], use: str, known: bool
) -> None:
    state = asking(f"a = bank_exchange_rate(currency='USD')\n{use}").invoke({"messages": [HumanMessage(RATE)]}, THREAD)
    both = [{"currency": "USD"}, {"currency": "GBP"}]
    assert listed(state) == (both if known else {"currency": "USD"})


def test_a_question_about_several_calls_has_a_question_for_each(asking: Callable[..., Any]) -> None:
    (question,) = asking().invoke({"messages": [HumanMessage(RATE)]}, THREAD)["__interrupt__"]
    alone = [flat(one) for one in each_call(question.value)]
    assert [(one["tool"], one["step_id"], one["args"]) for one in alone] == [
        ("bank/exchange_rate", "1", {"currency": currency}) for currency in ("USD", "GBP")
    ]
    assert len({one["hash"] for one in alone}) == 2


def test_the_calls_of_a_program_are_known_after_a_later_question(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.approval = None
    by_hand = calls("notebook_write_note", text="x")
    model = ScriptedModel(replies=[calls("run_program", code=TWO), by_hand, lambda told: ended(told[-1])])
    loaded = shop.loaded(monkeypatch)
    app = create_supervisor(loaded, worker_model=model, settings=settings()).compile(checkpointer=InMemorySaver())
    state = app.invoke({"messages": [HumanMessage(f"{RATE} and write a note")]}, THREAD)
    while waiting := state.get("__interrupt__"):
        state = app.invoke(Command(resume=decision_on("approve", waiting[0].value)), THREAD)
    made = [(call["id"], call["output"], call["error"]) for call in state["results"]["1"]["calls"]]
    assert made[:2] == [("c1.1", "1 USD = 0.9 EUR", ""), ("c1.2", "1 GBP = 0.9 EUR", "")]
