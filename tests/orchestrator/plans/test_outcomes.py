"""A step ends as its worker says: what later steps see, what references insert, what items are, what was not done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet.agents.calls.review import decision_on, flat
from deciding_model import own_steps
from disk import BROKEN, MENDED, ONE, RAW, THREAD, Disk, ask, by_step, call, finish, supervised
from scripted_model import calls, unlabelled


@pytest.fixture
def disk() -> Disk:
    return Disk()


# ------------------------------------------------------------------------------- calls are made when they are made

READING, LOGGING = call("read_file", path="a.json"), call("write_file", path="log", content="x")


def again(message: AIMessage) -> AIMessage:
    return message.model_copy(update={"tool_calls": [{**message.tool_calls[0], "id": "again"}]})


@pytest.mark.parametrize(
    ("replies", "called", "answer"),
    [
        pytest.param(
            [READING, call("write_file", path="a.json", content=MENDED), again(READING)],
            ["read_file", "write_file", "read_file"],
            f"At the end: {MENDED}",
            id="reading again after an edit",
        ),
        pytest.param(
            [READING, again(READING)],
            ["read_file"],
            "At the end: You have just made this call, and its result stands above; use it, make another call, or end "
            "the task.",
            id="the same reading at once",
        ),
        pytest.param(
            [LOGGING, again(LOGGING)], ["write_file"] * 2, "At the end: written", id="a change is ordered twice"
        ),
    ],
)
def test_a_worker_makes_the_calls_of_its_model_in_their_order(
    disk: Disk, replies: Any, called: list[str], answer: str
) -> None:
    worker = by_step(mend=[*replies, lambda told: AIMessage(f"At the end: {unlabelled(told[-1])}")])
    state = ask(supervised(disk, worker, ONE))
    assert [name for name, _ in disk.called] == called
    assert (state["results"]["1"]["result"], state["messages"][-1].text) == (answer, answer)


DONE_IN_WORDS = [
    "All statuses are written.",
    "I cannot help with that, sorry.",
    '{"name": "disk_write_file", "arguments": {"path": "a.json", "content": "x"}}',
]


@pytest.mark.parametrize("words", DONE_IN_WORDS)
def test_plain_words_without_a_call_are_asked_about_and_end_nothing(disk: Disk, words: str) -> None:
    worker = by_step(mend=[AIMessage(words), AIMessage(words)])
    state = ask(supervised(disk, worker, ONE))
    assert "call finish, and say how it ended" in worker.shown[1]["messages"][-1].text
    assert (state["results"]["1"]["status"], disk.called) == ("failed", [])
    assert state["messages"][-1].text == f"Not done: {words}"


def test_a_task_without_a_call_is_done_if_the_worker_declares_it(disk: Disk) -> None:
    worker = by_step(mend=[AIMessage("A haiku about autumn."), finish("done", "A haiku about autumn.")])
    state = ask(supervised(disk, worker, ONE))
    assert (state["results"]["1"]["status"], state["results"]["1"]["note"]) == ("done", "no tool was called")
    assert state["messages"][-1].text == "A haiku about autumn."


def test_a_worker_that_is_asked_about_its_words_may_go_to_work(disk: Disk) -> None:
    worker = by_step(mend=[AIMessage("I will look."), call("read_file", path="a.json"), AIMessage("It is broken.")])
    state = ask(supervised(disk, worker, ONE))
    assert (state["results"]["1"]["status"], state["messages"][-1].text) == ("done", "It is broken.")
    assert len(worker.shown) == 3


def test_a_call_that_failed_does_not_make_words_an_end(disk: Disk) -> None:
    missing = calls("need_tool", tools=["disk/none"])
    worker = by_step(mend=[missing, AIMessage("Done."), finish("cannot", "There is no such tool.")])
    state = ask(supervised(disk, worker, ONE))
    assert state["results"]["1"]["error"] == "There is no such tool."


def test_data_without_words_are_shown(disk: Disk) -> None:
    worker = by_step(mend=[call("list_files"), finish("done", "", data={"files": 3})])
    assert ask(supervised(disk, worker, ONE))["messages"][-1].text == '{"files": 3}'


def test_a_task_done_in_part_is_partly_done(disk: Disk) -> None:
    worker = by_step(mend=[call("read_file", path="a.json"), finish("partly", "Read, but not mended.")])
    app = supervised(disk, worker, ONE)
    state = ask(app)
    assert (state["results"]["1"]["status"], state["messages"][-1].text) == ("partly", "Read, but not mended.")


def test_steps_end_as_the_worker_says_of_each(disk: Disk) -> None:
    plan = [
        {"id": "1", "text": "read a file", "tools": ["disk/read_file"]},
        {"id": "2", "text": "measure a file", "tools": ["disk/measure"]},
        {"id": "3", "text": "write a file", "tools": ["disk/write_file"]},
    ]
    ends = {"2": {"status": "done", "data": {"$call": "c2", "path": "rows[].name"}}, "3": {"status": "cannot"}}
    worker = by_step(
        mend=[
            call("read_file", path="a.json"),
            call("measure", path="."),
            finish("partly", "It is read-only.", steps={"9": {"status": "done"}}),
            finish("partly", "It is read-only.", steps=ends),
        ]
    )
    app = supervised(disk, worker, *plan)
    app.planner.replies[:] = [calls("PlanDraft", steps=plan)]
    state = ask(app)
    results = state["results"]
    assert {name: result["status"] for name, result in results.items()} == {"1": "done", "2": "done", "3": "failed"}
    assert results["2"]["data"] == ["b.txt", "c.txt"]
    assert [[one["tool"] for one in results[name]["calls"] if one["agent"]] for name in "123"] == [
        ["disk/read_file"], ["disk/measure"], []
    ]  # fmt: skip
    assert "you have no step '9'; yours are: 1, 2, 3" in worker.shown[3]["messages"][-1].text


# ----------------------------------------------------------------------------------- items are what a worker says

LIST, READ = {"id": "1", "text": "list them"}, {"id": "2", "text": "read {item}", "for_each": "1"}


def reads(told: Sequence[BaseMessage]) -> AIMessage:
    """Reads the file of its step, then says what stands there: several steps run side by side."""
    if isinstance(told[-1], ToolMessage):
        return AIMessage(told[-1].text)
    return call("read_file", path=own_steps(told[1].text).split()[1])


@pytest.mark.parametrize(
    "said",
    [
        finish("done", "Two files, the largest first.", data=["b.txt", "c.txt"]),
        finish("done", "Two files.", data={"files": ["b.txt", "c.txt"]}),
        finish("done", "Two files.", data={"$call": "c2", "path": "rows[].name"}),
        AIMessage("b.txt\nc.txt"),
        AIMessage('["b.txt", "c.txt"]'),
    ],
)
def test_items_are_those_that_the_worker_named_and_not_the_lines_of_its_calls(disk: Disk, said: AIMessage) -> None:
    worker = by_step(list=[call("list_files"), call("measure", path="."), said], read=[reads] * 4)
    state = ask(supervised(disk, worker, LIST, READ))
    items = [path for name, path in disk.called if name == "read_file"]
    assert sorted(items) == ["b.txt", "c.txt"]
    assert sorted(state["results"]) == ["1", "2.1", "2.2"]


def test_a_result_that_is_no_list_has_no_items_and_the_reviser_is_asked(disk: Disk) -> None:
    worker = by_step(list=[call("list_files"), AIMessage("There are a few files.")])
    app = supervised(disk, worker, LIST, READ, revise={"reason": "there is no other way"})
    state = ask(app)
    assert state["results"]["2"]["status"] == "failed"
    assert "is not a list" in state["results"]["2"]["error"]
    assert "is not a list" in app.planner.shown[1]["messages"][-1].text


def test_the_worker_is_told_that_its_result_must_be_a_list(disk: Disk) -> None:
    worker = by_step(list=[finish("done", "None.", data=[])])
    state = ask(supervised(disk, worker, LIST, READ))
    assert "call finish with the items as data" in worker.shown[0]["messages"][-1].text
    assert state["results"]["2"]["result"] == "There are no items."


# ------------------------------------------------------------------------- references insert what is shown under them

WRITE = {"id": "2", "text": "write them", "depends_on": ["1"]}


@pytest.mark.parametrize(
    ("said", "reference", "written"),
    [
        (AIMessage("a.txt b.txt c.txt"), {"$from": "1"}, "a.txt b.txt c.txt"),
        (finish("done", "Sorted.", data="a\nb\nc"), {"$from": "1"}, "a\nb\nc"),
        (finish("done", "Sorted.", data={"text": "a\nb"}), {"$from": "1", "path": "text"}, "a\nb"),
        (AIMessage("Sorted."), {"$call": "1/c1"}, RAW),
    ],
)  # fmt: skip
def test_a_reference_inserts_what_the_worker_said(disk: Disk, said: AIMessage, reference: Any, written: str) -> None:
    worker = by_step(
        list=[call("list_files"), said], write=[call("write_file", path="o.txt", content=reference), AIMessage("Ok")]
    )
    ask(supervised(disk, worker, LIST, WRITE))
    assert disk.files["o.txt"] == written


def test_a_worker_passes_the_result_of_its_own_call_by_reference(disk: Disk) -> None:
    worker = by_step(
        mend=[
            call("read_file", path="a.json"),
            call("write_file", path="b.json", content={"$call": "c1"}),
            AIMessage("Copied."),
        ]
    )
    ask(supervised(disk, worker, ONE))
    assert disk.files["b.json"] == BROKEN


# --------------------------------------------------------------------------------------- what was not done is said


def test_an_honest_cannot_ends_the_request_without_another_plan(disk: Disk) -> None:
    worker = by_step(mend=[call("read_file", path="gone.json"), finish("cannot", "gone.json does not exist.")])
    app = supervised(disk, worker, ONE)
    state = ask(app)
    assert (state["results"]["1"]["status"], state["results"]["1"]["error"]) == ("failed", "gone.json does not exist.")
    assert len(app.planner.shown) == 1
    assert state["messages"][-1].text == "Not done: gone.json does not exist."


def test_a_worker_that_asks_for_another_plan_is_read_by_the_reviser(disk: Disk) -> None:
    worker = by_step(mend=[call("read_file", path="gone.json"), finish("need_plan", "gone.json does not exist.")])
    app = supervised(disk, worker, ONE, revise={"reason": "no other way"})
    state = ask(app)
    told = app.planner.shown[1]["messages"][-1].text
    assert "(failed) the worker asks for another plan: gone.json does not exist." in told
    assert "1/c1 disk/read_file" in told
    assert "cannot be opened by this program" in told
    assert "gone.json does not exist." in state["messages"][-1].text


def test_what_the_worker_did_before_it_gave_up_reaches_the_steps_that_replace_it(disk: Disk) -> None:
    worker = by_step(
        mend=[call("read_file", path="a.json"), finish("need_plan", "a.json has no end; somebody must write it.")],
        write=[call("write_file", path="a.json", content=MENDED), AIMessage("Mended.")],
    )
    new = {"steps": [{"id": "2", "text": "write a.json"}], "drop": ["1"], "open": False, "reason": "it has no end"}
    app = supervised(disk, worker, ONE, revise=new)
    state = ask(app)
    assert disk.files["a.json"] == MENDED
    assert [step["id"] for step in state["plan"]["steps"]] == ["2"]
    assert state["results"]["2"]["status"] == "done"
    opening = worker.shown[2]["messages"][1].text
    assert "the worker asks for another plan: a.json has no end" in opening
    assert f'1/c1 disk/read_file {{"path": "a.json"}} -> 8 characters: {BROKEN}' in opening


def test_finish_beside_other_calls_ends_nothing_before_they_are_seen(disk: Disk) -> None:
    both = call("read_file", path="a.json")
    end = finish("done", "Read.")
    both = both.model_copy(update={"tool_calls": [*both.tool_calls, *end.tool_calls]})
    worker = by_step(mend=[both, lambda told: AIMessage(told[-1].text)])
    state = ask(supervised(disk, worker, ONE))
    assert disk.called == [("read_file", "a.json")]
    assert state["messages"][-1].text == "call finish alone, after you have seen all results"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ({"status": "perfect", "answer": "x"}, "status: Input should be 'done'"),
        ({"answer": "x"}, "status: Field required"),
        ({"status": "done", "answer": "x", "data": {"$call": "c7"}}, "there is no earlier result 'c7'"),
    ],
)
def test_a_wrong_finish_is_answered_and_can_be_corrected(disk: Disk, args: Any, problem: str) -> None:
    worker = by_step(mend=[calls("finish", **args), lambda told: finish("cannot", told[-1].text)])
    result = ask(supervised(disk, worker, ONE, revise={}))["results"]["1"]
    assert problem in result["error"]
    assert result["status"] == "failed"


def test_a_missing_value_is_asked_for_and_the_step_goes_on(disk: Disk) -> None:
    worker = by_step(
        mend=[
            call("read_file", path="a.json"),
            finish("needs_input", "What is the end of the file?", missing=["end of the file"]),
            lambda told: call("write_file", path="a.json", content=told[-1].text.partition("end of the file: ")[2][:8]),
            AIMessage("Mended."),
        ]
    )
    app = supervised(disk, worker, ONE, saver=InMemorySaver(), approval="ask")
    (question,) = ask(app)["__interrupt__"]
    assert question.value["type"] == "needs_input"
    assert [*flat(question.value)["args"]] == ["end of the file"]
    assert "What is the end of the file?" in flat(question.value)["description"]
    state = app.invoke(Command(resume=decision_on("edit", question.value, args={"end of the file": MENDED})), THREAD)
    assert disk.files["a.json"] == MENDED
    result = state["results"]["1"]
    assert (result["status"], [one["id"] for one in result["calls"]]) == ("done", ["c1", "c2"])
    opening = worker.shown[2]["messages"][-1].text
    assert "This was begun before" in opening
    assert "1/c1 disk/read_file" in opening


@pytest.mark.parametrize("answer", [{"type": "reject"}, None])
def test_a_question_that_nobody_answers_leaves_the_step_undone(disk: Disk, answer: Any) -> None:
    worker = by_step(mend=[finish("needs_input", "Which one?")])
    if answer is None:  # nobody is there
        state = ask(supervised(disk, worker, ONE, revise={}))
    else:
        app = supervised(disk, worker, ONE, revise={}, saver=InMemorySaver(), approval="ask")
        ask(app)
        state = app.invoke(Command(resume=answer), THREAD)
    assert (state["results"]["1"]["status"], state["results"]["1"]["error"]) == ("needs_input", "Which one?")
    assert "Which one?" in state["messages"][-1].text


def test_a_worker_at_its_last_turn_may_still_say_what_came_of_it(disk: Disk) -> None:
    write = call("write_file", path="b", content="x")
    worker = by_step(mend=[write, AIMessage("Written, and nothing else.")])
    state = ask(supervised(disk, worker, ONE, max_turns=1))
    assert (state["results"]["1"]["status"], state["messages"][-1].text) == ("done", "Written, and nothing else.")
    assert worker.shown[1]["tools"] == []
    assert "No further call can be made" in worker.shown[1]["messages"][0].text


def test_the_cost_of_every_reply_is_counted(disk: Disk) -> None:
    def priced(message: AIMessage) -> AIMessage:
        usage: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}
        return message.model_copy(update={"usage_metadata": usage})

    many = call("read_file", path="a.json")
    many = many.model_copy(update={"tool_calls": [{**many.tool_calls[0], "id": str(n)} for n in range(9)]})
    worker = by_step(mend=[priced(call("read_file", path="a.json")), priced(many)])
    result = ask(supervised(disk, worker, ONE, max_calls=5, planning="none"))["results"]["1"]
    assert "more than 5 calls" in result["error"]
    assert (result["usage"]["calls"], result["usage"]["input_tokens"]) == (2, 20)
    end = by_step(mend=[priced(finish("done", "Nothing to do."))])
    assert ask(supervised(disk, end, ONE, planning="none"))["usage"]["input_tokens"] == 10


def test_a_worker_is_told_that_a_person_is_present(disk: Disk) -> None:
    worker = by_step(mend=[AIMessage("Ok")])
    ask(supervised(disk, worker, ONE, saver=InMemorySaver(), approval="ask"))
    assert "A person is present" in worker.shown[0]["messages"][-1].text


def test_a_worker_of_several_knows_the_request_and_its_place(disk: Disk) -> None:
    worker = by_step(list=[call("list_files"), AIMessage("a")], write=[call("list_files"), AIMessage("b")])
    ask(supervised(disk, worker, LIST, WRITE), "List them and write them")
    told = worker.shown[2]["messages"][-1].text
    assert told.startswith("List them and write them\n")
    assert "Do your own steps and nothing else" in told
    assert "1. list them [done]\n2. write them (after 1) <- yours" in told


def test_a_worker_gets_the_tools_that_the_planner_named_and_no_others(disk: Disk) -> None:
    worker = by_step(mend=[call("measure", path="a.json"), AIMessage("Measured.")])
    state = ask(supervised(disk, worker, {**ONE, "tools": ["measure"]}, tools=1))
    tools = state["results"]["1"]["tools"]
    assert tools == ["disk/measure"]
    assert [one["tool"] for one in state["results"]["1"]["calls"]] == ["disk/measure"]


def test_names_that_no_tool_has_go_back_to_the_planner_once(disk: Disk) -> None:
    worker = by_step(mend=[call("measure", path="a.json"), AIMessage("Measured.")])
    wrong = {**ONE, "tools": ["disk/mesure", "nobody/x"]}
    app = supervised(disk, worker, wrong)
    app.planner.replies[:] = [calls("PlanDraft", steps=[wrong])]
    state = ask(app)
    complaint = app.planner.shown[1]["messages"][-1].text
    assert "there is no tool 'disk/mesure' (did you mean disk/measure" in complaint
    assert len(app.planner.shown) == 2
    assert state["results"]["1"]["status"] == "done"
    opening = worker.shown[0]["messages"][-1].text
    assert "The plan also names these tools, which you do not have" in opening
    assert "- nobody/x: " in opening
