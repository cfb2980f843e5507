"""What planner, workers and answer are told of the conversation before a request; with a model, and by rules."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import complete_request, one_clause
from callsheet.graphs import PlanError
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


def test_a_first_request_costs_no_call_for_that(office: Any) -> None:
    model = DecidingModel(work=asked_for)
    office(model).ask("read may.txt")
    assert model.roles() == ["planner", "worker", "worker"]


def test_results_of_earlier_requests_are_used_by_id(office: Any, desk: Any) -> None:
    def plan(text: str) -> Any:
        if text.startswith("write"):
            return {"steps": [{"id": "1", "text": "write it down", "depends_on": ["t1.1"]}]}
        return {"steps": [{"id": "1", "text": "read may.txt"}]}

    def work(text: str) -> Any:
        return ("write_row", {"text": {"$from": "t1.1"}}) if text.startswith("write") else asked_for(text)

    run = office(DecidingModel(plan=plan, work=work), planning="once")
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


@pytest.mark.parametrize(
    ("before", "said", "meant"),
    [
        ("What time is it in Oslo?", "And in Sydney?", "What time is it in Sydney?"),
        ("What time is it in Oslo when it is noon in Rome?", "What about in Cairo?", None),
        ("How far is 5 km in miles?", "and 20 km?", "How far is 20 km in miles?"),
        ("Convert 3 miles to km", "and 20 km?", None),
        ("Convert 3 miles to km", "What about 7 miles?", "Convert 7 miles to km?"),
        ("read may.txt", "And june.txt?", "read june.txt?"),
        ("read may.txt and april.txt", "And june.txt?", None),
        ("What is the weather in New York?", "And Buenos Aires?", "What is the weather in Buenos Aires?"),
        ("What time is it in Tokyo when it is 9:30 in Berlin?", "and at 5 pm?", None),
        ("Send hello to ann@example.com", "And to bob@example.com", "Send hello to bob@example.com"),
        ("Send hello to ann@example.com", "And to bob@example.com?", "Send hello to bob@example.com?"),
        ("Could you send 'hi' to ann@example.com?", "Or to bob@example.com", "send 'hi' to bob@example.com?"),
        ("read may.txt", "And in Sydney?", None),
        ("What time is it in Paris, France?", "And in London?", None),
        ("What time is it in Rio de Janeiro?", "And in Oslo?", None),
        ("What time is it in Oslo?", "And in Rio de Janeiro?", None),
        ("What time is it in Oslo?", "And in Rome and delete a.txt?", None),
        ("Send 'hi' to Ann, then tell me the time in Oslo", "And in Tokyo?", None),
        ("read may.txt", "multiply the result by 3", "multiply the result by 3"),
        ("read may.txt", "What is in june.txt?", "What is in june.txt?"),
        ("read may.txt", "hello", "hello"),
        ("What is the weather in Oslo?", "What about Thursday?", None),
        ("What is the weather in Oslo on Monday?", "What about Thursday?", "What is the weather in Oslo on Thursday?"),
        ("What is the weather in Oslo?", "And why?", None),
        ("What is the weather in Oslo?", "Who?", "Who?"),
        ("Wie ist das Wetter in Oslo?", "Und wie spät?", "Und wie spät?"),
        ("read may.txt", "", ""),
    ],
)
def test_rules_complete_what_a_request_leaves_out(before: str, said: str, meant: str | None) -> None:
    if meant is None:
        with pytest.raises(PlanError, match=r"does not say wh(at is to be done|ich part)"):
            complete_request(said, [before])
    else:
        assert complete_request(said, [before]) == meant
    assert complete_request(said, []) == said


def test_without_a_model_a_request_goes_on_from_the_last_one(office: Any, desk: Any) -> None:
    run = office(None)
    run.ask("Read the file may.txt")
    state = run.ask("And june.txt?")
    assert state["plan"]["request"] == "Read the file june.txt?"
    assert desk.calls == [("read_file", {"path": "may.txt"}), ("read_file", {"path": "june.txt"})]
    lost = run.ask("And in Sydney?")
    assert lost["results"] == {}
    assert "does not say what is to be done" in lost["messages"][-1].text
    assert run.ask("And april.txt?")["plan"]["request"] == "Read the file april.txt?"


def test_without_a_model_a_reference_is_to_the_last_result(office: Any, desk: Any) -> None:
    run = office(None)
    run.ask("Read the file may.txt")
    state = run.ask("Write it as a row into the ledger")
    assert state["plan"]["steps"][0]["uses"] == ["t1.1"]
    assert desk.calls[1:] == [("write_row", {"text": "rent 700"})]


@pytest.mark.parametrize(
    ("request_text", "one"),
    [
        ("What time is it in Oslo?", True),
        ("read may.txt and june.txt", False),
        ("do the work of a, then the work of b", False),
        ("明天天气如何", True),
        ("明天天气如何，然后发邮件", False),
        ("say 'this and that'", True),
        ("- read a.txt\n- read b.txt", False),
        ("x" * 9_000, False),
    ],
)
def test_what_is_surely_one_clause(request_text: str, one: bool) -> None:
    assert one_clause(request_text) is one
