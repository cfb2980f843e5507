"""What differs between providers of models, and what a worker makes of it: ids, cut replies, replies with errors."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from callsheet import Settings, create_supervisor
from scripted_model import ScriptedModel


class Lamp:
    """A lamp that is set and read, and a log of the calls."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def agents(self) -> dict[str, list[Any]]:
        @tool
        def set_lamp(level: int) -> str:
            """Sets the level of the lamp."""
            self.log.append(f"set {level}")
            return f"level {level}"

        @tool
        def read_lamp() -> str:
            """Reads the level of the lamp."""
            self.log.append("read")
            return "level 9"

        set_lamp.metadata = {"callsheet/approval": "never"}
        read_lamp.metadata = {"callsheet/approval": "never", "annotations": {"readOnlyHint": True}}
        return {"lamp": [set_lamp, read_lamp]}


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": call_id, "type": "tool_call"}


def turn(*made: dict[str, Any], words: str = "", **fields: Any) -> AIMessage:
    return AIMessage(words, tool_calls=list(made), **fields)


def level(number: int, call_id: str = "1") -> dict[str, Any]:
    return call("lamp_set_lamp", call_id, level=number)


def finish(status: str, answer: str) -> AIMessage:
    return turn(call("finish", "end", status=status, answer=answer))


def worked(lamp: Lamp, *replies: Any, config: Any = None, **settings: Any) -> tuple[Any, ScriptedModel]:
    """The result of the worker that gives these replies, and its model."""
    model = ScriptedModel(replies=list(replies))
    options = Settings(**{"planning": "none", "tool_floor": 0, **settings})
    app: Any = create_supervisor(lamp.agents(), worker_model=model, settings=options).compile()
    state = app.invoke({"messages": "set the level of the lamp"}, config)
    assert len(model.replies) == 1, "not all replies were asked for"
    return state["results"]["1"], model


# ------------------------------------------------------------------------------------------------------------- ids


def outputs(result: Any) -> list[tuple[str, str]]:
    return [(one["id"], one["output"]) for one in result["calls"]]


def test_ids_that_begin_anew_at_each_turn_do_not_mix_up_results() -> None:
    lamp = Lamp()
    replies = [turn(level(number, "call_0")) for number in (1, 2)]
    result, model = worked(lamp, *replies, AIMessage("It is at 2."))
    assert outputs(result) == [("c1", "level 1"), ("c2", "level 2")]
    told = [message.text for message in model.shown[2]["messages"] if message.type == "tool"]
    assert told == ["level 1\n[c1]", "level 2\n[c2]"]


@pytest.mark.parametrize("call_id", ["same", None])
def test_calls_of_one_turn_with_one_id_or_none_are_all_made_in_their_order(call_id: Any) -> None:
    lamp = Lamp()
    result, _ = worked(lamp, turn(*[level(n, call_id) for n in range(1, 6)]), AIMessage("It is at 5."))
    assert lamp.log == [f"set {n}" for n in range(1, 6)]
    assert outputs(result) == [(f"c{n}", f"level {n}") for n in range(1, 6)]


def test_turns_with_the_same_ids_keep_their_order_each() -> None:
    lamp = Lamp()
    replies = [turn(*[level(first + n, f"call_{n}") for n in range(4)]) for first in (0, 4)]
    result, _ = worked(lamp, *replies, AIMessage("It is at 7."))
    assert lamp.log == [f"set {n}" for n in range(8)]
    assert result["status"] == "done"


def test_order_holds_where_only_one_task_runs_at_once() -> None:
    lamp = Lamp()
    worked(lamp, turn(*[level(n, f"{n}") for n in range(4)]), AIMessage("Set."), config={"max_concurrency": 1})
    assert lamp.log == [f"set {n}" for n in range(4)]


# ----------------------------------------------------------------------------------------------------- cut replies

CUT: dict[str, dict[str, Any]] = {
    "OpenAI, chat": {"finish_reason": "length"},
    "OpenAI, responses": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
    "Anthropic": {"stop_reason": "max_tokens"},
    "Anthropic, end of the context": {"stop_reason": "model_context_window_exceeded"},
    "Google": {"finish_reason": "MAX_TOKENS"},
    "Bedrock": {"stopReason": "max_tokens"},
    "Mistral": {"finish_reason": "model_length"},
    "Ollama": {"done_reason": "length"},
}


@pytest.mark.parametrize("metadata", CUT.values(), ids=CUT)
def test_a_cut_reply_does_not_end_the_step_for_any_finish_reason(metadata: dict[str, Any]) -> None:
    lamp = Lamp()
    cut = AIMessage("The lamp was", response_metadata=metadata)
    result, model = worked(lamp, turn(level(1)), cut, AIMessage("The lamp is at 1."))
    assert "was cut at its token limit" in model.shown[2]["messages"][-1].text
    assert (result["status"], result["result"]) == ("done", "The lamp is at 1.")


def test_a_reply_that_ended_for_another_reason_is_taken() -> None:
    whole = AIMessage("Set.", response_metadata={"status": "completed", "incomplete_details": None})
    result, model = worked(Lamp(), turn(level(1)), whole)
    assert (result["status"], len(model.shown)) == ("done", 2)


# ------------------------------------------------------------------------------------- replies that cannot be read

UNREADABLE = {
    "arguments that are no JSON": OutputParserException("Function set_lamp arguments: {level are not valid JSON"),
    "a list as arguments": ValueError("1 validation error for AIMessage: tool_calls.0.args"),
}


@pytest.mark.parametrize("error", UNREADABLE.values(), ids=UNREADABLE)
def test_a_reply_that_the_client_cannot_read_is_asked_for_again_with_the_same_tools(error: Exception) -> None:
    lamp = Lamp()
    result, model = worked(lamp, error, turn(level(1)), AIMessage("Set."))
    assert str(error) in model.shown[1]["messages"][-1].text
    assert model.shown[1]["tools"] == model.shown[0]["tools"]
    assert (result["status"], lamp.log) == ("done", ["set 1"])


def test_a_reply_that_is_never_read_ends_the_step_after_two_requests() -> None:
    result, model = worked(Lamp(), ValueError("no reply"))
    assert (result["status"], len(model.shown)) == ("failed", 2)
    assert "no reply" in result["error"]


def test_a_request_is_not_repeated_after_another_error() -> None:
    result, model = worked(Lamp(), RuntimeError("no credit"))
    assert (result["status"], len(model.shown)) == ("failed", 1)


def test_the_usage_of_a_discarded_reply_is_counted_although_the_next_fails() -> None:
    empty = AIMessage("", usage_metadata={"input_tokens": 100, "output_tokens": 1, "total_tokens": 101})
    result, _ = worked(Lamp(), empty, RuntimeError("no credit"))
    assert (result["status"], result["usage"]["input_tokens"]) == ("failed", 100)
    assert "no credit" in result["error"]


# ------------------------------------------------------------------------------------------------------- the last turn


def test_the_question_about_plain_words_is_not_counted_as_a_turn() -> None:
    lamp = Lamp()
    replies = [AIMessage("I set it."), turn(level(1)), AIMessage("The lamp is at 1.")]
    result, model = worked(lamp, *replies, max_turns=1)
    assert model.shown[2]["tools"] == []
    assert (result["status"], result["result"]) == ("done", "The lamp is at 1.")
    assert not any(isinstance(message, HumanMessage) for message in model.shown[2]["messages"][-1:])
