"""Plans that change by what comes back: added, changed, dropped and mapped steps, and the bounds of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from deciding_model import DecidingModel
from desk import steps, worker

NEWEST = "Read the newest file in notes"


def newest(told: str) -> dict[str, Any]:
    """Reads the newest of the files that the results name."""
    if "rent 720" in told:
        return {"done": True, "reason": "it was read"}
    assert '"june.txt"' in told
    return {"steps": [{"id": "2", "text": "read june.txt", "depends_on": ["1"]}], "reason": "june.txt is the newest"}


@pytest.fixture
def model() -> DecidingModel:
    return DecidingModel(
        plan=lambda _: {"steps": steps("list notes"), "open": True}, revise=newest, work=worker, answer=lambda t: t
    )


def test_a_step_is_added_when_its_input_is_known(office: Any, desk: Any, model: DecidingModel) -> None:
    run = office(model, planning="adaptive")
    state = run.ask(NEWEST)
    assert desk.calls == [("list_files", {"folder": "notes"}), ("read_file", {"path": "june.txt"})]
    assert "rent 720" in state["messages"][-1].text
    assert [(r["wave"], r["added"], r["reason"]) for r in state["revisions"]] == [(1, ["2"], "june.txt is the newest")]
    assert [event["added"] for event in run.revisions()] == [["2"]]


def test_once_cannot_do_it(office: Any, desk: Any, model: DecidingModel) -> None:
    office(model, planning="once").ask(NEWEST)
    assert desk.names() == ["list_files"]
    assert model.told("reviser") == []


def test_a_plan_that_runs_as_foreseen_costs_what_once_costs(office: Any, desk: Any) -> None:
    def planned(_: str) -> dict[str, Any]:
        return {"steps": steps("list notes", "write hello")}

    asked = {}
    for planning in ("once", "adaptive"):
        model = DecidingModel(plan=planned, work=worker)
        state = office(model, planning=planning).ask("list notes and write hello")
        asked[planning] = (model.roles(), state["usage"]["calls"], state["usage"]["input_tokens"])
        assert state["revisions"] == []
    assert asked["once"] == asked["adaptive"]
    assert asked["once"][1:] == (6, 600)


def test_after_a_failure_another_agent_is_tried(office: Any, desk: Any) -> None:
    desk.broken = {"send_letter"}

    def revise(told: str) -> dict[str, Any]:
        assert "send_letter is out of order" in told
        assert "wire" in told
        return {"steps": [{"id": "2", "text": "wire hello"}], "drop": ["1"], "reason": "the post is out of order"}

    model = DecidingModel(plan=lambda _: {"steps": steps("post hello")}, revise=revise, work=worker)
    state = office(model, planning="adaptive").ask("post hello to Ann")
    assert desk.names() == ["send_letter", "send_telegram"]
    assert [step["id"] for step in state["plan"]["steps"]] == ["2"]
    assert state["results"]["2"]["status"] == "done"
    assert state["revisions"][0]["dropped"] == ["1"]


def test_a_failure_that_is_only_dropped_stays(office: Any, desk: Any) -> None:
    desk.broken = {"send_letter"}
    model = DecidingModel(
        plan=lambda _: {"steps": steps("post hello")}, revise=lambda _: {"drop": ["1"], "done": True}, work=worker
    )
    state = office(model, planning="adaptive").ask("post hello to Ann")
    assert [(i, r["status"]) for i, r in state["results"].items()] == [("1", "failed")]


def test_a_branch_that_is_not_taken_is_dropped(office: Any, desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "write nothing there", "depends_on": ["1"]},
            {"id": "3", "text": "write some there", "depends_on": ["1"]}]  # fmt: skip
    model = DecidingModel(
        plan=lambda _: {"steps": plan, "open": True},
        revise=lambda _: {"drop": ["2"], "open": False, "reason": "there are files"},
        work=worker,
    )
    state = office(model, planning="adaptive").ask("If notes is empty write nothing there, otherwise write some there")
    assert desk.calls[1:] == [("write_row", {"text": "some there"})]
    assert state["revisions"][0]["dropped"] == ["2"]
    assert state["revisions"][0]["texts"] == {"2": "write nothing there"}


def test_a_run_ends_early(office: Any, desk: Any) -> None:
    plan = [*steps("list attic"), {"id": "2", "text": "write a row", "depends_on": ["1"]}]
    model = DecidingModel(
        plan=lambda _: {"steps": plan, "open": True}, revise=lambda _: {"done": True, "reason": "no files"}, work=worker
    )
    state = office(model, planning="adaptive").ask("Write a row if attic has files")
    assert desk.names() == ["list_files"]
    assert state["revisions"][0]["dropped"] == ["2"]


def test_one_step_an_item(office: Any, desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"},
            {"id": "3", "text": "write the sum", "depends_on": ["2"]}]  # fmt: skip
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=worker)
    state = office(model, planning="adaptive").ask("list notes, read each file and write the sum")
    assert desk.names()[:4] == ["list_files", "read_file", "read_file", "read_file"]
    assert {args["path"] for name, args in desk.calls if name == "read_file"} == {"may.txt", "june.txt", "april.txt"}
    assert list(state["results"]) == ["1", "2.1", "2.2", "2.3", "3"]
    assert state["results"]["3"]["depends_on"] == ["2.1", "2.2", "2.3"]
    assert state["revisions"][0]["reason"] == "step 2 is done once for each of 3 items of step 1"
    assert model.told("reviser") == []


def test_one_item_that_fails_loses_none_of_the_others(office: Any, desk: Any) -> None:
    def work(text: str) -> Any:
        return ("read_file", {"path": "gone.txt"}) if "june" in text else worker(text)

    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=work, revise=lambda _: {})
    state = office(model, planning="adaptive").ask("list notes and read each file")
    status = {name: result["status"] for name, result in state["results"].items()}
    assert status == {"1": "done", "2.1": "done", "2.2": "failed", "2.3": "done"}


def test_nothing_to_do_is_done(office: Any, desk: Any) -> None:
    plan = [*steps("list attic"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    state = office(DecidingModel(plan=lambda _: {"steps": plan}, work=worker), planning="adaptive").ask("read all")
    assert desk.names() == ["list_files"]
    assert (state["results"]["2"]["status"], state["results"]["2"]["result"]) == ("done", "There are no items.")


def test_too_many_items_are_refused_with_their_number(office: Any, desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=worker, revise=lambda _: {})
    state = office(model, planning="adaptive", max_items=2).ask("list notes and read each file")
    assert desk.names() == ["list_files"]
    assert "would be done for 3 items, at most 2 are allowed" in state["results"]["2"]["error"]


def greedy(told: str) -> dict[str, Any]:
    """Always asks for more."""
    number = told.count("<step id=") + 1
    return {"steps": [{"id": f"n{number}", "text": f"write row {number}"}], "reason": "more is better"}


@pytest.mark.parametrize(
    ("bound", "words", "calls"),
    [
        ({"max_steps": 4}, "the request needs 5 steps, at most 4 are allowed", 4),
        ({"max_waves": 3}, "the plan has taken 3 waves of steps, its limit", 3),
        ({"token_budget": 700}, "the token budget of 700 is spent", 2),
        ({"run_seconds": 1e-6}, "its limit (run_seconds)", 0),
    ],
)
def test_a_reviser_that_always_asks_for_more_is_stopped(
    office: Any, desk: Any, bound: Any, words: str, calls: int
) -> None:
    model = DecidingModel(plan=lambda _: {"steps": steps("write row 1"), "open": True}, revise=greedy, work=worker)
    state = office(model, planning="adaptive", **bound).ask("write rows until it is enough")
    assert len(desk.calls) == calls
    said = [state["plan"]["incomplete"], *(result["error"] for result in state["results"].values())]
    assert any(words in text for text in said)
    assert words in state["messages"][-1].text


def test_a_revision_that_repeats_a_step_is_refused(office: Any, desk: Any) -> None:
    model = DecidingModel(
        plan=lambda _: {"steps": steps("list notes"), "open": True},
        revise=lambda _: {"steps": [{"id": "7", "text": "List notes."}]},
        work=worker,
    )
    state = office(model, planning="adaptive").ask(NEWEST)
    assert desk.names() == ["list_files"]
    assert state["revisions"][0]["refused"] is True
    assert "step 7 repeats step 1" in state["plan"]["incomplete"]
    assert "Give a corrected one" in model.told("reviser")[1]


def test_a_reviser_that_does_not_answer_leaves_the_plan(office: Any, desk: Any) -> None:
    def dead(_: str) -> Any:
        raise ConnectionError("no route to the provider")

    plan = [*steps("list notes"), {"id": "2", "text": "write a row", "depends_on": ["1"]}]
    model = DecidingModel(plan=lambda _: {"steps": plan, "open": True}, revise=dead, work=worker)
    state = office(model, planning="adaptive").ask("list notes and write a row")
    assert desk.names() == ["list_files", "write_row"]
    assert "no route to the provider" in state["messages"][-1].text


@pytest.mark.parametrize("planning", ["none", "once", "adaptive", "auto"])
def test_bad_drafts_do_no_harm(office: Any, desk: Any, planning: str) -> None:
    wrong: list[Callable[[str], Any]] = [
        lambda _: {"steps": [{"id": "1", "text": "", "for_each": "9"}]},
        lambda _: {"steps": [{"id": "1", "text": "read x", "for_each": "1"}]},
        lambda _: {"steps": "all of it"},
        lambda _: {},
    ]
    for plan in wrong:
        state = office(DecidingModel(plan=plan, work=lambda _: "I cannot"), planning=planning).ask(
            "list notes and read"
        )
        assert state["messages"][-1].text
        assert desk.calls == []


def test_items_of_items(office: Any, desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"},
            {"id": "3", "text": "write {item}", "for_each": "2"}]  # fmt: skip
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=worker)
    state = office(model, planning="once").ask("list notes, read each file and write a row for each line")
    assert {args["text"] for name, args in desk.calls if name == "write_row"} == {"rent 700", "rent 720", "(empty)"}
    assert list(state["results"])[4:] == ["3.1", "3.2", "3.3"]


def test_a_mapped_step_that_is_asked_for_again_is_refused(office: Any, desk: Any) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}]
    model = DecidingModel(
        plan=lambda _: {"steps": plan, "open": True}, revise=lambda _: {"steps": plan[1:]}, work=worker
    )
    state = office(model, planning="adaptive").ask("list notes and read each file")
    assert desk.names().count("read_file") == 3
    assert "repeats step 2.1" in state["plan"]["incomplete"]


def test_a_revision_with_a_step_without_a_text_is_refused(office: Any, desk: Any) -> None:
    model = DecidingModel(
        plan=lambda _: {"steps": steps("list notes"), "open": True},
        revise=lambda _: {"steps": [{"id": "2", "text": ""}]},
        work=worker,
    )
    state = office(model, planning="adaptive").ask(NEWEST)
    assert state["revisions"][0]["refused"] is True
    assert "at least 1 character" in state["plan"]["incomplete"]


def test_a_mapped_step_without_its_list_is_not_run(office: Any, desk: Any) -> None:
    desk.broken = {"list_files"}
    plan = [*steps("list notes", "write hello"),
            {"id": "3", "text": "read {item}", "for_each": "1.files[*].name", "depends_on": ["1", "2"]}]  # fmt: skip
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=worker)
    state = office(model, planning="once").ask("list notes, write hello and read each file")
    assert sorted(desk.names()) == ["list_files", "write_row"]
    assert state["results"]["3"]["status"] == "skipped"
    assert "the step with its items was not done (step 1)" in state["results"]["3"]["error"]


@pytest.mark.parametrize("late", [[], ["4", "5"]])
def test_a_step_for_each_of_no_items_has_no_items(office: Any, desk: Any, late: list[str]) -> None:
    plan = [{"id": "3", "text": "write {item}", "for_each": "2", "depends_on": ["2", *late]},
            {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}, *steps("list attic"),
            {"id": "4", "text": "read may.txt"}, {"id": "5", "text": "read june.txt", "depends_on": ["4"]}]  # fmt: skip
    model = DecidingModel(plan=lambda _: {"steps": plan}, work=worker)
    state = office(model, planning="once").ask("list attic, read each file and write a row for each, then read two")
    assert sorted(desk.names()) == ["list_files", "read_file", "read_file"]
    assert {name: state["results"][name]["result"] for name in "23"} == dict.fromkeys("23", "There are no items.")
