"""Planning modes: what each costs, what it shows the planner, and what it does where a model is missing or weak."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command

from callsheet.agents.calls.review import decision_on, flat
from conversation import Conversations
from deciding_model import DecidingModel
from fake_agents import FakeAgents

ONE = "read may.txt"
FOUR = "read may.txt, then read june.txt, then read april.txt, then write a row"


def work(text: str) -> Any:
    line = text.partition("\n")[0]
    if line == FOUR:
        return "read_file", {"path": "may.txt"}
    return ("write_row", {"text": "sum"}) if line.startswith("write") else ("read_file", {"path": line.split()[-1]})


def plan(text: str) -> dict[str, Any]:
    clauses = text.partition("\n")[0].split(", then ")
    return {"steps": [{"id": str(n), "text": clause} for n, clause in enumerate(clauses, 1)]}


@pytest.mark.parametrize(
    ("planning", "request_text", "mode", "roles"),
    [
        ("none", ONE, "none", ["worker"] * 2),
        ("auto", ONE, "auto", ["planner", "worker", "worker"]),
        ("none", FOUR, "none", ["worker"] * 2),
        ("auto", FOUR, "auto", ["planner", *["worker"] * 8, "answer"]),
    ],
)
def test_each_planning_mode_makes_its_number_of_requests(
    conversation: Conversations, planning: str, request_text: str, mode: str, roles: list[str]
) -> None:
    model = DecidingModel(plan=plan, work=work)
    state = conversation(model, planning=planning).ask(request_text)
    assert model.roles() == roles
    assert state["plan"]["mode"] == mode
    usage = state["usage"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (
        len(roles),
        100 * len(roles),
        10 * len(roles),
    )
    assert sum(spent["calls"] for spent in usage["by_role"].values()) == len(roles)
    assert {step: spent["calls"] for step, spent in usage["by_step"].items()} == dict.fromkeys(state["results"], 2)


def test_a_prompt_for_the_answer_is_followed_in_every_mode(conversation: Conversations) -> None:
    model = DecidingModel(work=work, answer=lambda _: "Seven hundred, by the books.")
    state = conversation(model, answer_prompt="You answer like a bookkeeper.").ask(ONE)
    assert state["messages"][-1].text == "Seven hundred, by the books."


def test_a_failure_of_the_one_worker_is_said(conversation: Conversations, office: FakeAgents) -> None:
    office.broken = {"read_file"}
    state = conversation(DecidingModel(work=work)).ask(ONE)
    assert "read_file is out of order" in state["messages"][-1].text
    assert state["results"]["1"]["status"] == "failed"


def test_a_greeting_is_answered_without_a_step(conversation: Conversations, office: FakeAgents) -> None:
    model = DecidingModel(plan=lambda _: {"steps": [], "answer": "Hello! What can I do?"})
    state = conversation(model).ask("Good morning to you, dear assistant")
    assert state["messages"][-1].text == "Hello! What can I do?"
    assert state["plan"]["steps"] == []
    assert office.calls == []


@pytest.mark.parametrize("planning", ["auto", "none"])
def test_without_a_model_a_request_is_planned_and_the_plan_says_so(
    conversation: Conversations, office: FakeAgents, planning: str
) -> None:
    state = conversation(None, planning=planning).ask("Read the file may.txt")
    assert office.calls == [("read_file", {"path": "may.txt"})]
    assert "planned without a model" in state["plan"]["note"]
    assert state["usage"]["calls"] == 0


def test_a_budget_of_tokens_ends_a_worker(conversation: Conversations, office: FakeAgents) -> None:
    state = conversation(DecidingModel(work=work), token_budget=150).ask(ONE)
    assert state["results"]["1"]["status"] == "failed"
    assert "the run's token budget is spent" in state["messages"][-1].text


def test_a_question_is_asked_and_its_answer_planned_with(conversation: Conversations, office: FakeAgents) -> None:
    def asking(text: str) -> dict[str, Any]:
        if "The user answered: june.txt" in text:
            return {"steps": [{"id": "1", "text": "read june.txt"}]}
        return {"ask": {"question": "Which file?", "choices": ["may.txt", "june.txt"]}}

    def told(text: str) -> Any:
        assert "read the file\nYou asked: Which file? The user answered: june.txt" in text
        return "read_file", {"path": "june.txt"}

    run = conversation(DecidingModel(plan=asking, work=told))
    state = run.ask("read the file")
    (question,) = state["waiting"]
    assert question.value["type"] == "question"
    assert flat(question.value)["args"]["choices"] == ["may.txt", "june.txt"]
    state = run.ask(Command(resume={question.id: decision_on("respond", question.value, message="june.txt")}))
    assert office.calls == [("read_file", {"path": "june.txt"})]
    assert state["usage"]["by_role"]["planner"]["calls"] == 2


@pytest.mark.parametrize("left", [{"type": "reject"}, "", {"type": "respond"}, 5, None])
def test_a_question_that_is_left_open_does_nothing(conversation: Conversations, office: FakeAgents, left: Any) -> None:
    run = conversation(DecidingModel(plan=lambda _: {"ask": "Which file?"}, work=work))
    (question,) = run.ask("read the file")["waiting"]
    state = run.ask(Command(resume={question.id: left}))
    assert office.calls == []
    assert "a question was not answered: Which file?" in state["messages"][-1].text


def test_a_question_of_the_reviser_is_asked_in_the_middle(conversation: Conversations, office: FakeAgents) -> None:
    def revise(told: str) -> dict[str, Any]:
        if "The user answered: yes" in told:
            return {"steps": [{"id": "2", "text": "read june.txt"}]}
        return {"ask": "Shall I read the newest?"} if 'june.txt"' in told else {"done": True}

    def decide(text: str) -> Any:
        return ("list_files", {"folder": "notes"}) if text.startswith("list") else work(text)

    listing = {"steps": [{"id": "1", "text": "list notes"}], "open": True}
    run = conversation(DecidingModel(plan=lambda _: listing, revise=revise, work=decide))
    (question,) = run.ask("list notes")["waiting"]
    assert office.called == ["list_files"]
    state = run.ask(Command(resume={question.id: decision_on("respond", question.value, message="yes")}))
    assert office.called == ["list_files", "read_file"]
    assert state["revisions"][0]["added"] == ["2"]
