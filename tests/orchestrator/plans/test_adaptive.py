"""Plans that change by what comes back: added, changed, dropped and mapped steps, the bounds of it, and resumption."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langgraph.types import Command

from callsheet.agents.calls.review import decision_on
from conversation import Conversation, Conversations
from deciding_model import DecidingModel
from fake_agents import FakeAgents
from office_plans import SUM, steps, sums, worker

BROKEN = "the post is out of order"
NEWEST = "Read the newest file in notes"
READ = {"id": "2", "text": "read {item}", "for_each": "1.files[*].name"}
MAPPED = [*steps("list notes"), READ]


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


def test_a_step_is_added_when_its_input_is_known(
    conversation: Conversations, office: FakeAgents, model: DecidingModel
) -> None:
    run = conversation(model)
    state = run.ask(NEWEST)
    assert office.calls == [("list_files", {"folder": "notes"}), ("read_file", {"path": "june.txt"})]
    assert "rent 720" in state["messages"][-1].text
    assert [(r["wave"], r["added"], r["reason"]) for r in state["revisions"]] == [(1, ["2"], "june.txt is the newest")]
    assert [event["added"] for event in run.revisions()] == [["2"]]


def asked(
    conversation: Any,
    request: str,
    plan: Any,
    *,
    revise: Callable[[str], Any] = lambda _: {},
    work: Callable[[str], Any] = worker,
    opened: bool = False,
    **settings: Any,
) -> tuple[Any, DecidingModel]:
    """The state after a request with this plan and these revisions, and the model with what it was told."""
    model = DecidingModel(plan=lambda _: {"steps": plan, "open": opened}, revise=revise, work=work)
    return conversation(model, **settings).ask(request), model


def test_a_worker_that_asks_for_another_plan_gets_one(conversation: Conversations, office: FakeAgents) -> None:
    office.broken = {"send_letter"}

    def work(text: str) -> Any:
        return worker(text) if "wire" in text else ("finish", {"status": "need_plan", "answer": BROKEN})

    def revise(told: str) -> dict[str, Any]:
        assert BROKEN in told
        return {"steps": [{"id": "2", "text": "wire hello"}], "drop": ["1"], "reason": "the post is out of order"}

    state, _ = asked(conversation, "post hello to Ann", steps("post hello"), revise=revise, work=work)
    assert office.called == ["send_telegram"]
    assert [step["id"] for step in state["plan"]["steps"]] == ["2"]
    assert state["results"]["2"]["status"] == "done"
    assert state["revisions"][0]["dropped"] == ["1"]


def test_a_failed_step_that_a_revision_drops_stays_in_the_results(
    conversation: Conversations, office: FakeAgents
) -> None:
    office.broken = {"send_letter"}
    revise = {"drop": ["1"], "done": True}
    state, _ = asked(conversation, "post hello to Ann", steps("post hello"), revise=lambda _: revise, opened=True)
    assert [(i, r["status"]) for i, r in state["results"].items()] == [("1", "failed")]


def test_a_branch_that_is_not_taken_is_dropped(conversation: Conversations, office: FakeAgents) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "write nothing there", "depends_on": ["1"]},
            {"id": "3", "text": "write some there", "depends_on": ["1"]}]  # fmt: skip
    revise = {"drop": ["2"], "open": False, "reason": "there are files"}
    request = "If notes is empty write nothing there, otherwise write some there"
    state, _ = asked(conversation, request, plan, revise=lambda _: revise, opened=True)
    assert office.calls[1:] == [("write_row", {"text": "some there"})]
    assert state["revisions"][0]["dropped"] == ["2"]
    assert state["revisions"][0]["texts"] == {"2": "write nothing there"}


def test_a_revision_can_end_a_run_early(conversation: Conversations, office: FakeAgents) -> None:
    plan = [*steps("list attic"), {"id": "2", "text": "write a row", "depends_on": ["1"]}]
    revise = {"done": True, "reason": "no files"}
    state, _ = asked(conversation, "Write a row if attic has files", plan, revise=lambda _: revise, opened=True)
    assert office.called == ["list_files"]
    assert state["revisions"][0]["dropped"] == ["2"]


def test_a_step_is_made_for_each_item(conversation: Conversations, office: FakeAgents) -> None:
    plan = [*MAPPED, {"id": "3", "text": "write the sum", "depends_on": ["2"]}]
    state, model = asked(conversation, "list notes, read each file and write the sum", plan)
    assert office.called[:4] == ["list_files", "read_file", "read_file", "read_file"]
    assert {args["path"] for name, args in office.calls if name == "read_file"} == {"may.txt", "june.txt", "april.txt"}
    assert list(state["results"]) == ["1", "2.1", "2.2", "2.3", "3"]
    assert state["results"]["3"]["depends_on"] == ["2.1", "2.2", "2.3"]
    assert state["revisions"][0]["reason"] == "step 2 is done once for each of 3 items of step 1"
    assert model.told("reviser") == []


def test_one_item_that_fails_loses_none_of_the_others(conversation: Conversations, office: FakeAgents) -> None:
    def work(text: str) -> Any:
        return ("read_file", {"path": "gone.txt"}) if "june" in text else worker(text)

    state, _ = asked(conversation, "list notes and read each file", MAPPED, work=work)
    status = {name: result["status"] for name, result in state["results"].items()}
    assert status == {"1": "done", "2.1": "done", "2.2": "failed", "2.3": "done"}


def test_too_many_items_are_refused_with_their_number(conversation: Conversations, office: FakeAgents) -> None:
    state, _ = asked(conversation, "list notes and read each file", MAPPED, max_items=2)
    assert office.called == ["list_files"]
    assert "would be done for 3 items, at most 2 are allowed" in state["results"]["2"]["error"]


def greedy(told: str) -> dict[str, Any]:
    """Always asks for more."""
    number = told.count("<step id=") + 1
    return {"steps": [{"id": f"n{number}", "text": f"write row {number}"}], "reason": "more is better"}


@pytest.mark.parametrize(
    ("bound", "words", "calls"),
    [
        ({"max_steps": 4}, "the request needs 5 steps, at most 4 are allowed", 4),
        ({"max_waves": 3}, "the plan has taken 3 waves of workers, its limit", 3),
        ({"token_budget": 700}, "the token budget of 700 is spent", 2),
        ({"run_seconds": 1e-6}, "its limit (run_seconds)", 0),
    ],
)
def test_a_reviser_that_always_asks_for_more_is_stopped(
    conversation: Conversations, office: FakeAgents, bound: Any, words: str, calls: int
) -> None:
    request = "write rows until it is enough"
    state, _ = asked(conversation, request, steps("write row 1"), revise=greedy, opened=True, **bound)
    assert len(office.calls) == calls
    said = [state["plan"]["incomplete"], *(result["error"] for result in state["results"].values())]
    assert any(words in text for text in said)
    assert words in state["messages"][-1].text


@pytest.mark.parametrize(
    ("step", "why"),
    [
        ({"id": "7", "text": "List notes."}, "step 7 repeats step 1"),
    ],
)
def test_a_revision_that_cannot_be_used_is_refused(
    conversation: Conversations, office: FakeAgents, step: Any, why: str
) -> None:
    state, model = asked(conversation, NEWEST, steps("list notes"), revise=lambda _: {"steps": [step]}, opened=True)
    assert office.called == ["list_files"]
    assert state["revisions"][0]["refused"] is True
    assert why in state["plan"]["incomplete"]
    assert "Give a corrected one" in model.told("reviser")[1]


def test_a_reviser_that_does_not_answer_leaves_the_plan(conversation: Conversations, office: FakeAgents) -> None:
    def dead(_: str) -> Any:
        raise ConnectionError("no route to the provider")

    plan = [*steps("list notes"), {"id": "2", "text": "write a row", "depends_on": ["1"]}]
    state, _ = asked(conversation, "list notes and write a row", plan, revise=dead, opened=True)
    assert office.called == ["list_files", "write_row"]
    assert "no route to the provider" in state["messages"][-1].text


def test_an_invalid_plan_does_no_harm(conversation: Conversations, office: FakeAgents) -> None:
    wrong: list[Callable[[str], Any]] = [
        lambda _: {"steps": [{"id": "1", "text": "", "for_each": "9"}]},
        lambda _: {"steps": [{"id": "1", "text": "read x", "for_each": "1"}]},
        lambda _: {"steps": "all of it"},
        lambda _: {},
    ]
    for plan in wrong:
        state = conversation(DecidingModel(plan=plan, work=lambda _: "I cannot")).ask("list notes and read")
        assert state["messages"][-1].text
        assert office.calls == []


def test_a_step_for_items_can_depend_on_items(conversation: Conversations, office: FakeAgents) -> None:
    plan = [*MAPPED, {"id": "3", "text": "write {item}", "for_each": "2"}]
    request = "list notes, read each file and write a row for each line"
    state, _ = asked(conversation, request, plan)
    assert {args["text"] for name, args in office.calls if name == "write_row"} == {"rent 700", "rent 720", "(empty)"}
    assert list(state["results"])[4:] == ["3.1", "3.2", "3.3"]


def test_a_mapped_step_that_is_asked_for_again_is_refused(conversation: Conversations, office: FakeAgents) -> None:
    revise = {"steps": [READ]}
    state, _ = asked(conversation, "list notes and read each file", MAPPED, revise=lambda _: revise, opened=True)
    assert office.called.count("read_file") == 3
    assert "repeats step 2.1" in state["plan"]["incomplete"]


def test_a_mapped_step_without_its_list_is_not_run(conversation: Conversations, office: FakeAgents) -> None:
    office.broken = {"list_files"}
    plan = [*steps("list notes", "write hello"), {**READ, "id": "3", "depends_on": ["1", "2"]}]
    state, _ = asked(conversation, "list notes, write hello and read each file", plan)
    assert sorted(office.called) == ["list_files", "write_row"]
    assert state["results"]["3"]["status"] == "skipped"
    assert "the step with its items was not done (step 1)" in state["results"]["3"]["error"]


@pytest.mark.parametrize("late", [[], ["4", "5"]])
def test_a_step_for_each_of_no_items_has_no_items(
    conversation: Conversations, office: FakeAgents, late: list[str]
) -> None:
    plan = [{"id": "3", "text": "write {item}", "for_each": "2", "depends_on": ["2", *late]}, READ,
            *steps("list attic"), {"id": "4", "text": "read may.txt"},
            {"id": "5", "text": "read june.txt", "depends_on": ["4"]}]  # fmt: skip
    request = "list attic, read each file and write a row for each, then read two"
    state, _ = asked(conversation, request, plan)
    assert sorted(office.called) == ["list_files", "read_file", "read_file"]
    assert {name: state["results"][name]["result"] for name in "23"} == dict.fromkeys("23", "There are no items.")


def test_each_step_of_items_is_approved_by_itself(office: FakeAgents) -> None:
    plan = [*steps("list notes"), {"id": "2", "text": "write {item}", "for_each": "1.files[*].name"}]
    office.approval = "always"
    run = Conversation(office.agents(), model=DecidingModel(plan=lambda _: {"steps": plan}, work=worker))
    run.ask(Command(resume={q.id: {"type": "approve"} for q in run.ask("list notes and write each")["waiting"]}))
    waiting = run.app.get_state(run.config).interrupts
    assert sorted(question.value["step_id"] for question in waiting) == ["2.1", "2.2", "2.3"]
    answers = {q.id: {"type": "reject" if q.value["step_id"] == "2.2" else "approve"} for q in waiting}
    state = run.ask(Command(resume=answers))
    assert office.called == ["list_files", "write_row", "write_row"]
    assert {i: r["status"] for i, r in state["results"].items()} | {"2.2": ""} == {
        "1": "done", "2.1": "done", "2.2": "", "2.3": "done"
    }  # fmt: skip
    assert state["results"]["2.2"]["status"] != "done"


def test_two_threads_of_one_app_run_at_once(office: FakeAgents) -> None:
    run = Conversation(office.agents(), model=sums())

    def one(thread: str) -> Any:
        config = {"configurable": {"thread_id": thread}}
        given = {"messages": [{"role": "user", "content": SUM}]}
        return run.app.invoke(given, config)

    with ThreadPoolExecutor(2) as pool:
        states = list(pool.map(one, ["a", "b"]))
    assert [list(state["results"]) for state in states] == [["1", "2.1", "2.2", "2.3", "9"]] * 2
    assert sorted(office.called) == sorted(["list_files", *["read_file"] * 3, "write_row"] * 2)


async def test_a_cancelled_run_of_mapped_steps_is_taken_up(office: FakeAgents) -> None:
    run = Conversation(office.agents(), model=sums())
    given = {"messages": [{"role": "user", "content": SUM}]}

    async def go(given: Any) -> Any:
        return await run.app.ainvoke(given, run.config, durability="sync")

    task = asyncio.create_task(go(given))
    while "read_file" not in office.called:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await go(None)
    waiting = run.app.get_state(run.config).interrupts  # nobody knows whether the call that was cut off took effect
    assert {question.value["type"] for question in waiting} == {"unknown_outcome"}
    state = await go(Command(resume={question.id: decision_on("edit", question.value) for question in waiting}))
    assert {result["status"] for result in state["results"].values()} == {"done"}
    assert office.called.count("write_row") == 1
    assert office.called.count("list_files") == 1
