"""What planner, workers and answer are told of the conversation before a request; with a model, and by rules."""

from __future__ import annotations

from typing import Any

import pytest

from deciding_model import DecidingModel


def asked_for(text: str) -> Any:
    """Reads the file that a step names."""
    return "read_file", {"path": text.partition("\n")[0].split()[-1].rstrip("?")}


CONDENSED = {
    "And june.txt?": "read june.txt",
    "und april.txt?": "read april.txt",
    "The newer one of the two": "read june.txt",
    "write both into the ledger": "write may.txt and june.txt into the ledger",
}


@pytest.mark.parametrize(
    ("turns", "meant"),
    [
        (["read may.txt", "And june.txt?"], ["read may.txt", "read june.txt"]),
        (["read may.txt", "And june.txt?", "und april.txt?"], ["read may.txt", "read june.txt", "read april.txt"]),
        (["read may.txt", "And june.txt?", "The newer one of the two"], ["read may.txt", *["read june.txt"] * 2]),
    ],
)  # fmt: skip
def test_a_request_is_made_self_contained_before_anything_else(office: Any, turns: Any, meant: Any) -> None:
    model = DecidingModel(condense=lambda text: CONDENSED[text.rpartition("\n")[2]], work=asked_for)
    run = office(model)
    states = [run.ask(turn) for turn in turns]
    assert [state["plan"]["request"] for state in states] == meant
    assert [state["results"]["1"]["text"] for state in states] == meant
    assert [text.partition("\n")[0] for text in model.told("worker") if text.startswith("read")] == meant
    assert "read may.txt" in model.told("condenser")[0]
    assert "rent 700" in model.told("condenser")[0]


def test_results_of_earlier_requests_are_used_by_id(office: Any, desk: Any) -> None:
    def plan(text: str) -> Any:
        if text.startswith("write"):
            return {"steps": [{"id": "1", "text": "write it down", "depends_on": ["t1.1"]}]}
        return {"steps": [{"id": "1", "text": "read may.txt"}]}

    def work(text: str) -> Any:
        return ("write_row", {"text": {"$from": "t1.1"}}) if text.startswith("write") else asked_for(text)

    run = office(DecidingModel(plan=plan, work=work))
    run.ask("read may.txt")
    state = run.ask("write it down")
    assert desk.calls[-1] == ("write_row", {"text": "rent 700"})
    assert state["results"]["1"]["calls"][0]["args"] == {"text": "rent 700"}
    assert state["plan"]["steps"][0]["uses"] == ["t1.1"]


def test_a_long_conversation_is_cut_to_its_budget(office: Any) -> None:
    model = DecidingModel(work=asked_for)
    run = office(model, conversation_tokens=120)
    for number in range(12):
        run.ask(f"({number} {'again ' * 10}) read may.txt")
    assert "(11 " in model.told("condenser")[-1]
    assert "(2 " not in model.told("condenser")[-1]
    assert len(run.app.get_state(run.config).values["turns"]) <= 5


@pytest.mark.parametrize("answer", ["", "x" * 9_000])
def test_what_is_no_request_is_not_taken_for_one(office: Any, answer: str) -> None:
    run = office(DecidingModel(condense=lambda _: answer, work=asked_for))
    run.ask("read may.txt")
    state = run.ask("And june.txt?")
    assert state["plan"]["request"] == "And june.txt?"
    assert "the conversation was not taken into account" in state["plan"]["note"]


def test_without_a_model_a_reference_is_to_the_last_result(office: Any, desk: Any) -> None:
    run = office(None, allow=("ledger/write_row",))
    run.ask("Read the file may.txt")
    state = run.ask("Write the result as a row")
    assert state["plan"]["steps"][0]["uses"] == ["t1.1"]
    assert desk.calls[1:] == [("write_row", {"text": "rent 700"})]
