"""Replies of a model that cannot be used as they are, and calls that are made again."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from disk import BROKEN, ONE, Disk, ask, by_step, call, supervised


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (AIMessage(""), "Your last message was empty."),
        (AIMessage("The rate is", response_metadata={"finish_reason": "length"}), "Your last message was cut"),
        (AIMessage("", response_metadata={"stop_reason": "max_tokens"}), "Your last message was cut"),
    ],
)
def test_a_reply_that_is_empty_or_cut_is_asked_for_again_with_the_same_tools(
    disk: Disk, bad: AIMessage, complaint: str
) -> None:
    worker = by_step(mend=[bad, call("read_file", path="a.json"), AIMessage("Read.")])
    state = ask(supervised(disk, worker, ONE))
    assert worker.shown[1]["messages"][-1].text.startswith(complaint)
    assert worker.shown[1]["tools"] == worker.shown[0]["tools"]
    assert complaint not in str(worker.shown[2]["messages"])
    assert (state["results"]["1"]["status"], state["results"]["1"]["usage"]["calls"]) == ("done", 3)


@pytest.mark.parametrize("words", ["", "I read the file now."])
def test_a_call_whose_arguments_are_no_json_is_answered_with_the_error(disk: Disk, words: str) -> None:
    invalid: Any = {"name": "disk_read_file", "args": '{"path": ', "id": "x", "error": "no JSON"}
    broken = AIMessage(words, invalid_tool_calls=[{**invalid, "type": "invalid_tool_call"}])
    worker = by_step(mend=[broken, call("read_file", path="a.json"), AIMessage("Read.")])
    state = ask(supervised(disk, worker, ONE))
    answer = worker.shown[1]["messages"][-1]
    assert (answer.tool_call_id, answer.status) == ("x", "error")
    assert "the arguments of this call are no JSON object" in answer.text
    assert (state["results"]["1"]["status"], disk.called) == ("done", [("read_file", "a.json")])


def test_a_valid_call_beside_a_broken_one_is_made(disk: Disk) -> None:
    invalid: Any = {"name": "disk_write_file", "args": "{", "id": "x", "error": "", "type": "invalid_tool_call"}
    both = call("read_file", path="a.json").model_copy(update={"invalid_tool_calls": [invalid]})
    worker = by_step(mend=[both, AIMessage("Read.")])
    ask(supervised(disk, worker, ONE))
    assert disk.called == [("read_file", "a.json")]


def test_a_harmless_call_may_be_repeated_after_one_reminder(disk: Disk) -> None:
    one = call("read_file", path="a.json")
    polls = [one.model_copy(update={"tool_calls": [{**one.tool_calls[0], "id": f"p{n}"}]}) for n in range(4)]
    worker = by_step(mend=[*polls, call("write_file", path="o", content={"$call": "c3"}), AIMessage("Done.")])
    state = ask(supervised(disk, worker, ONE))
    assert [name for name, _ in disk.called] == ["read_file"] * 3 + ["write_file"]
    assert "its result stands above" in worker.shown[2]["messages"][-1].text
    assert [one["id"] for one in state["results"]["1"]["calls"]] == ["c1", "c2", "c3", "c4"]
    assert disk.files["o"] == BROKEN
