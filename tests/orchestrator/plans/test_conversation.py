"""What planner, workers and answer are told of the conversation before a request; with a model, and by rules."""

from __future__ import annotations

from typing import Any

import pytest

from conversation import Conversations
from deciding_model import DecidingModel
from fake_agents import FakeAgents


def asked_for(text: str) -> Any:
    """Reads the file that a step names."""
    return "read_file", {"path": text.partition("\n")[0].split()[-1].rstrip("?")}


@pytest.mark.parametrize("planning", ["auto", "none"])
def test_planner_and_worker_see_the_conversation_before_the_request(conversation: Conversations, planning: str) -> None:
    model = DecidingModel(work=lambda _: ("read_file", {"path": "june.txt"}))
    run = conversation(model, planning=planning)
    run.ask("read june.txt")
    state = run.ask("And once more?")
    assert state["plan"]["request"] == "And once more?"
    before = "The conversation before:\nUser: read june.txt\nAssistant: rent 720\n\nThe request:\nAnd once more?"
    openings = [text for text in model.told("worker") if "once more" in text]
    assert openings[0].startswith(before)
    if planning == "auto":
        assert model.told("planner")[1].startswith(before)
        assert "t1.1" in model.told("planner")[1]
    else:
        assert "<step id='t1.1'>" in openings[0]


def test_the_roster_is_the_same_text_in_every_prompt(conversation: Conversations) -> None:
    model = DecidingModel(work=asked_for)
    run = conversation(model)
    run.ask("read may.txt")
    run.ask("read june.txt")
    first, second = model.prompts("planner")
    assert first == second
    assert first.endswith("files: list_files, read_file\nledger: write_row\npost: send_letter\nwire: send_telegram")


def test_results_of_earlier_requests_are_used_by_id(conversation: Conversations, office: FakeAgents) -> None:
    def plan(text: str) -> Any:
        if text.startswith("The conversation"):
            return {"steps": [{"id": "1", "text": "write it down", "depends_on": ["t1.1"]}]}
        return {"steps": [{"id": "1", "text": "read may.txt"}]}

    def work(text: str) -> Any:
        if text.startswith("The conversation"):
            return "write_row", {"text": {"$from": "t1.1"}}
        return asked_for(text)

    run = conversation(DecidingModel(plan=plan, work=work))
    run.ask("read may.txt")
    state = run.ask("write it down")
    assert office.calls[-1] == ("write_row", {"text": "rent 700"})
    assert state["results"]["1"]["calls"][0]["args"] == {"text": "rent 700"}
    assert state["plan"]["steps"][0]["uses"] == ["t1.1"]


def test_a_long_conversation_is_cut_to_its_budget(conversation: Conversations) -> None:
    model = DecidingModel(work=lambda _: ("read_file", {"path": "may.txt"}))
    run = conversation(model, conversation_tokens=120)
    for number in range(12):
        run.ask(f"({number} {'again ' * 10}) read may.txt")
    assert "(10 " in model.told("planner")[-1]
    assert "(2 " not in model.told("planner")[-1]
    assert len(run.app.get_state(run.config).values["turns"]) <= 5


def test_without_a_model_a_reference_is_to_the_last_result(conversation: Conversations, office: FakeAgents) -> None:
    run = conversation(None, allow=("ledger/write_row",))
    run.ask("Read the file may.txt")
    state = run.ask("Write the result as a row")
    assert state["plan"]["steps"][0]["uses"] == ["t1.1"]
    assert office.calls[1:] == [("write_row", {"text": "rent 700"})]
