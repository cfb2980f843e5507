"""What a worker makes of the replies of its model: broken, cut, repeated, or words with nothing done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from scripted_model import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "1"}}
USAGE: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}


class Printer:
    """A printer whose jobs take a while, and a log of the calls."""

    def __init__(self, *, approval: str = "never") -> None:
        self.log: list[str] = []
        self.approval = approval

    def agents(self) -> dict[str, list[Any]]:
        @tool
        def print_text(text: str) -> str:
            """Prints a text on the printer."""
            self.log.append(f"print {text}")
            return '{"job": 7}'

        @tool
        def job_status(job: int) -> str:
            """Tells how far a job of the printer is."""
            self.log.append(f"status {job}")
            return "ready" if self.log.count(f"status {job}") > 3 else "printing"

        @tool
        def read_counter(page: int = 0) -> str:
            """Reads the counter of printed pages of the printer."""
            self.log.append("counter")
            raise ValueError("the counter is stuck")

        print_text.metadata = {"callsheet/approval": self.approval}
        for made in (job_status, read_counter):
            made.metadata = {"callsheet/approval": "never", "annotations": {"readOnlyHint": True}}
        return {"printer": [print_text, job_status, read_counter]}


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    """A call under the name that a model sees; one of the worker's own begins with a dot."""
    named = name.removeprefix(".") if name.startswith(".") else f"printer_{name}"
    return {"name": named, "args": args, "id": call_id, "type": "tool_call"}


def turn(*made: dict[str, Any], words: str = "", **fields: Any) -> AIMessage:
    return AIMessage(words, tool_calls=list(made), **fields)


def broken(name: str, args: str, call_id: str = "x") -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "error": None, "type": "invalid_tool_call"}


def finish(status: str, answer: str = "", **more: Any) -> AIMessage:
    return turn(call(".finish", f"finish {status}", status=status, answer=answer, **more))


def worked(printer: Printer, *replies: Any, saver: Any = None, **settings: Any) -> tuple[Any, ScriptedModel]:
    """The result of the worker that gives these replies, and its model."""
    model = ScriptedModel(replies=list(replies))
    options = Settings(**{"planning": "none", "tool_floor": 0, **settings})
    app: Any = create_supervisor(printer.agents(), worker_model=model, settings=options).compile(checkpointer=saver)
    state = app.invoke({"messages": "print a text on the printer, and wait for the job"}, THREAD)
    while asked := state.get("__interrupt__"):
        state = app.invoke(Command(resume={one.id: {"type": "reject"} for one in asked}), THREAD)
    assert len(model.replies) == 1, "not all replies were asked for"
    return state["results"]["1"], model


def answers(model: ScriptedModel, shown: int) -> dict[str, ToolMessage]:
    """What the calls were answered, by their ids, as the model saw it at this request."""
    messages: Sequence[BaseMessage] = model.shown[shown]["messages"]
    return {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}


# ------------------------------------------------------------------------------------------- calls that cannot be read


@pytest.mark.parametrize("name", ["printer_print_text", "printer_unknown", "finish", "need_tool", "read_result", ""])
def test_whatever_a_broken_call_calls_it_is_answered(name: str) -> None:
    printer = Printer()
    reply = AIMessage("I print it now.", invalid_tool_calls=[broken(name, '{"text": "a')])
    result, model = worked(printer, reply, turn(call("print_text", "2", text="a")), AIMessage("Printed."))
    assert "the arguments of this call are no JSON object" in answers(model, 1)["x"].text
    assert (result["status"], printer.log) == ("done", ["print a"])


def test_several_broken_calls_of_a_turn_are_answered_each() -> None:
    printer = Printer()
    invalid = [broken("printer_print_text", "{", "x"), broken("printer_job_status", "[7]", "y")]
    reply = turn(call("print_text", "z", text="b"), invalid_tool_calls=invalid)
    _, model = worked(printer, reply, AIMessage("Printed."))
    told = answers(model, 1)
    assert {name: message.status for name, message in told.items()} == {"x": "error", "y": "error", "z": "success"}
    assert printer.log == ["print b"]


CUT = pytest.mark.parametrize(
    "metadata", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}, {"finish_reason": "MAX_TOKENS"}]
)


@CUT
def test_the_last_call_of_a_cut_reply_is_not_made_because_its_arguments_may_be_cut(metadata: Any) -> None:
    printer = Printer()
    calls = [call("print_text", "1", text="whole"), call("print_text", "2", text="ha")]
    whole = turn(call("print_text", "3", text="half"))
    result, model = worked(printer, turn(*calls, response_metadata=metadata), whole, AIMessage("Printed."))
    assert printer.log == ["print whole", "print half"]
    assert "your reply was cut at its token limit in this call, so it was not made" in answers(model, 1)["2"].text
    assert "ha" not in str(model.shown[1]["messages"][2].tool_calls[1]["args"])
    assert result["status"] == "done"


def test_a_cut_finish_does_not_end_the_task() -> None:
    printer = Printer()
    cut = finish("done", "The pages").model_copy(update={"response_metadata": {"finish_reason": "length"}})
    printed = turn(call("print_text", "1", text="a"))
    result, _ = worked(printer, printed, cut, finish("done", "The pages are printed."))
    assert result["result"] == "The pages are printed."


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (AIMessage(""), "Your last message was empty."),
        (AIMessage(" \n"), "Your last message was empty."),
        (AIMessage([{"type": "reasoning", "reasoning": "Hm."}]), "Your last message was empty."),
        (AIMessage("", response_metadata={"finish_reason": "MALFORMED_FUNCTION_CALL"}), "Your last message was empty."),
        (AIMessage("The job", response_metadata={"finish_reason": "length"}), "Your last message was cut"),
        (AIMessage("", response_metadata={"stop_reason": "max_tokens"}), "Your last message was cut"),
    ],
)
def test_an_empty_or_cut_reply_is_asked_for_again_with_the_same_tools(bad: AIMessage, complaint: str) -> None:
    printer = Printer()
    result, model = worked(printer, bad, turn(call("print_text", "1", text="a")), AIMessage("Printed."))
    assert model.shown[1]["messages"][-1].text.startswith(complaint)
    assert model.shown[1]["tools"] == model.shown[0]["tools"]
    assert complaint not in str(model.shown[2]["messages"])
    assert (result["status"], result["usage"]["calls"]) == ("done", 3)


def test_a_model_that_stays_silent_is_asked_once_and_the_step_fails() -> None:
    result, model = worked(Printer(), AIMessage(""))
    assert (result["status"], result["error"]) == ("failed", "the model gave neither a tool call nor an answer")
    assert len(model.shown) == 2


def test_a_reply_that_is_empty_and_then_cut_is_asked_for_once_each() -> None:
    printer = Printer()
    cut = AIMessage("I will", response_metadata={"finish_reason": "length"})
    result, model = worked(printer, AIMessage(""), cut, turn(call("print_text", "1", text="a")), AIMessage("Printed."))
    assert (result["status"], len(model.shown)) == ("done", 4)


# --------------------------------------------------------------------------------------------------- repeated calls


def polls(number: int) -> list[AIMessage]:
    return [turn(call("job_status", f"p{n}", job=7)) for n in range(number)]


def test_a_job_is_polled_until_it_is_ready_and_its_last_answer_can_be_referred_to() -> None:
    printer = Printer()
    refer = turn(call("print_text", "r", text={"$call": "c5"}))
    first = turn(call("print_text", "0", text="a"))
    result, model = worked(printer, first, *polls(5), refer, AIMessage("It is ready."))
    assert printer.log == ["print a", *["status 7"] * 4, "print ready"]
    assert "its result stands above" in answers(model, 6)["p1"].text
    assert answers(model, 6)["p4"].text == "ready\n[c5]"
    assert result["status"] == "done"


def test_a_reminder_is_no_result_and_has_no_label() -> None:
    printer = Printer()
    refer = turn(call("print_text", "r", text={"$call": "c2"}))
    result, model = worked(printer, *polls(2), refer, AIMessage("Nothing."))
    assert "[c" not in answers(model, 2)["p1"].text
    assert "there is no earlier result 'c2'" in answers(model, 3)["r"].text
    assert [one["id"] for one in result["calls"]] == ["c1", "c2"]


def test_one_reminder_for_each_call_and_none_for_other_arguments() -> None:
    printer = Printer()
    other = [turn(call("job_status", f"o{n}", job=8)) for n in range(3)]
    _, model = worked(printer, *polls(2), *other, AIMessage("Printing."))
    assert printer.log == ["status 7", "status 8", "status 8"]
    reminded = [name for name, message in answers(model, 5).items() if "stands above" in message.text]
    assert reminded == ["p1", "o1"]


def test_a_failed_call_is_repeated_without_a_reminder() -> None:
    printer = Printer()
    tries = [turn(call("read_counter", f"t{n}")) for n in range(3)]
    worked(printer, *tries, finish("cannot", "The counter is stuck."))
    assert printer.log == ["counter"] * 3


def test_the_same_calls_of_one_turn_are_all_made() -> None:
    printer = Printer()
    worked(printer, turn(call("job_status", "1", job=7), call("job_status", "2", job=7)), AIMessage("Printing."))
    assert printer.log == ["status 7"] * 2


# ------------------------------------------------------------------------------------- done needs something done

NOTHING = "No call has succeeded, so plain words do not end this task"
BEFORE = {
    "nothing": [],
    "a call that failed": [turn(call("read_counter", "1"))],
    "a call of an unknown tool": [turn(call("fold_paper", "1"))],
    "a call that cannot be read": [AIMessage("", invalid_tool_calls=[broken("printer_print_text", "{")])],
    "a request for a tool": [turn(call(".need_tool", "1", tools=["printer/fold"]))],
    "a wrong end": [turn(call(".finish", "1", status="finished"))],
    "two ends": [turn(call(".finish", "1", status="done"), call(".finish", "2", status="done"))],
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("words", ["All pages are printed.", "I am sorry, I can't do that."])
def test_words_after_nothing_was_done_are_asked_about_once_and_then_fail(before: list[AIMessage], words: str) -> None:
    printer = Printer()
    result, model = worked(printer, *before, AIMessage(words), AIMessage(words))
    asked = model.shown[-1]["messages"][-1]
    assert isinstance(asked, HumanMessage)
    assert asked.text.startswith(NOTHING)
    assert (result["status"], result["error"], result["result"]) == ("failed", words, "")
    assert len(model.shown) == len(before) + 2


@pytest.mark.parametrize(
    "written",
    [
        '{"name": "printer_print_text", "arguments": {"text": "a"}}',
        '<tool_call>\n{"name": "printer_print_text", "arguments": {"text": "a"}}\n</tool_call>',
        "```python\nprinter_print_text(text='a')\n```",
    ],
)
def test_a_call_that_is_written_as_text_is_not_made_and_ends_nothing(written: str) -> None:
    printer = Printer()
    result, _ = worked(printer, AIMessage(written), AIMessage(written))
    assert (result["status"], printer.log) == ("failed", [])


def test_the_question_is_asked_once_even_if_a_call_fails_in_between() -> None:
    words = AIMessage("Done.")
    result, model = worked(Printer(), words, turn(call("read_counter", "1")), words)
    assert (result["status"], result["error"], len(model.shown)) == ("failed", "Done.", 3)


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (finish("done", "Nothing to print."), "done", "Nothing to print."),
        (finish("done", data=[1, 2]), "done", "[1, 2]"),
        (finish("partly", "One page of two."), "partly", "One page of two."),
        (finish("cannot", "No paper."), "failed", "No paper."),
    ],
)
def test_what_a_model_declares_stands_as_its_word(end: AIMessage, status: str, said: str) -> None:
    result, model = worked(Printer(), end)
    assert (result["status"], result["result"] or result["error"]) == (status, said)
    assert result["note"] == ("" if status == "failed" else "no tool was called")
    assert len(model.shown) == 1


def test_words_after_a_rejected_call_are_not_asked_about_and_the_persons_word_stands() -> None:
    printer = Printer(approval="always")
    replies = turn(call("print_text", "1", text="a")), AIMessage("It is printed.")
    result, model = worked(printer, *replies, saver=InMemorySaver())
    assert (result["status"], printer.log, len(model.shown)) == ("failed", [], 2)
    assert "a person refused this call" in result["error"]


PROGRAMS = {
    "it only computes": ("1 + 1", "done"),
    "one of its calls succeeded": ("printer_job_status(job=7)", "done"),
    "all of its calls failed": ("try:\n    printer_read_counter()\nexcept RuntimeError:\n    print('stuck')", "failed"),
    "it failed": ("1 / 0", "failed"),
}


@pytest.mark.parametrize(("code", "status"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_counts_by_its_calls_or_by_itself_if_it_makes_none(code: str, status: str) -> None:
    program = turn(call(".run_program", "1", code=code))
    words = [AIMessage("Done.")] * (2 if status == "failed" else 1)
    result, _ = worked(Printer(), program, *words)
    assert result["status"] == status


# ------------------------------------------------------------------------------------ what was done is never hidden


class DownError(Exception):
    """An error of a provider."""


def fails(told: Sequence[BaseMessage]) -> Any:
    return DownError("HTTP 500")


def test_a_model_that_fails_later_does_not_hide_what_was_done() -> None:
    printer = Printer()
    printed = turn(call("print_text", "1", text="a"), usage_metadata=USAGE)
    result, _ = worked(printer, printed, fails)
    assert (result["status"], printer.log) == ("failed", ["print a"])
    assert result["error"] == "the model did not answer: DownError: HTTP 500"
    assert [one["tool"] for one in result["calls"]] == ["printer/print_text"]
    assert result["usage"]["input_tokens"] == 10


def test_the_calls_stay_if_the_model_fails_after_the_question_about_plain_words() -> None:
    result, _ = worked(Printer(), turn(call("read_counter", "1")), AIMessage("Done."), fails)
    assert (result["status"], len(result["calls"])) == ("failed", 1)


def test_a_model_that_never_answers_has_done_nothing() -> None:
    result, _ = worked(Printer(), fails)
    assert (result["status"], result["calls"]) == ("failed", [])


# ------------------------------------------------------------------------------------------ the prefix and the labels


def test_own_tools_are_offered_from_the_start_and_labels_stay() -> None:
    printer = Printer()
    replies = [turn(call("print_text", "1", text="a")), *polls(3), AIMessage("Printing.")]
    _, model = worked(printer, *replies)
    assert {"finish", "need_tool", "read_result"} <= set(model.shown[0]["tools"])
    assert all(shown["tools"] == model.shown[0]["tools"] for shown in model.shown)
    for before, after in zip(model.shown, model.shown[1:], strict=False):
        told = [(message.type, message.content) for message in before["messages"]]
        assert [(message.type, message.content) for message in after["messages"]][: len(told)] == told


def test_the_question_about_words_stays_in_the_conversation() -> None:
    printer = Printer()
    replies = [AIMessage("I print."), turn(call("print_text", "1", text="a")), AIMessage("Printed.")]
    _, model = worked(printer, *replies)
    told = [message.content for message in model.shown[1]["messages"]]
    assert [message.content for message in model.shown[2]["messages"]][: len(told)] == told


def test_each_result_has_a_label_failed_ones_too() -> None:
    printer = Printer()
    made = turn(call("print_text", "1", text="a"), call("read_counter", "2"), call("job_status", "3", job=7))
    _, model = worked(printer, made, AIMessage("Printed."))
    assert [message.text.rpartition("\n")[2] for message in answers(model, 1).values()] == ["[c1]", "[c2]", "[c3]"]
