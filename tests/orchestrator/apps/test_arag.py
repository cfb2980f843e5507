"""The graph ``arag``: by rules, and with a model that says what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_arag
from callsheet.graphs import SettingsError
from callsheet.orchestrator import ReaderSettings
from callsheet.orchestrator.apps.arag_graph import FORCED, READER, ReaderPrompts, check_citations
from scripted_model import ScriptedModel, calls

Say = dict[str, Callable[..., AIMessage]]


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "more").mkdir(parents=True)
    (folder / "leave.md").write_text("# Leave\n\nEvery employee has 25 days of paid leave. Anna Berg signs requests.\n")
    (folder / "people.md").write_text("# Anna Berg\n\nAnna Berg sits in Oslo.\n")
    (folder / "more" / "trains.md").write_text("# Trains\n\nTrains are booked in second class.\n")
    return folder


def app(docs: Path | None, tmp_path: Path, **how: Any) -> Any:
    saver = how.pop("checkpointer", None)
    return create_arag(docs, index=tmp_path / "index", **how).compile(name="arag", checkpointer=saver)


def asked(app: Any, question: str, thread: str = "1", **context: Any) -> dict[str, Any]:
    given = {"messages": [{"role": "user", "content": question}]}
    config = {"configurable": {"thread_id": thread}}
    state: dict[str, Any] = app.invoke(given, config, context=ReaderSettings(**context) if context else None)
    return state


def test_settings_of_another_graph_are_refused(docs: Path, tmp_path: Path) -> None:
    state = app(docs, tmp_path).invoke({"messages": "Who signs?"}, context=Settings(tools=3))
    assert "the context of this graph is ReaderSettings(...), not Settings(...)" in state["messages"][-1].text


def calls_of(state: dict[str, Any]) -> list[str]:
    return [call["name"] for m in state["messages"] if isinstance(m, AIMessage) for call in m.tool_calls]


def told(state: dict[str, Any]) -> list[str]:
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def test_without_a_model_it_searches_reads_and_quotes(docs: Path, tmp_path: Path) -> None:
    state = asked(app(docs, tmp_path), "How many days of paid leave does an employee have?")
    answer = state["messages"][-1]
    assert answer.text.startswith("Leave: Every employee has 25 days of paid leave. [leave.md#1]")
    assert state["citations"][0] == "leave.md#1"
    assert calls_of(state) == ["semantic_search", "chunk_read"]
    assert set(state) == {"messages", "citations", "loops", "retrieved_tokens"}


def test_without_a_model_it_says_that_the_documents_do_not_answer(docs: Path, tmp_path: Path) -> None:
    state = asked(app(docs, tmp_path), "Which managers repaint bicycles?")
    answer = state["messages"][-1]
    assert answer.text == "The documents do not answer this."
    assert not answer.additional_kwargs["arag"]["answered"]
    assert state["citations"] == []


def test_a_resumed_thread_remembers_what_was_read(docs: Path, tmp_path: Path) -> None:
    made = app(docs, tmp_path, checkpointer=InMemorySaver())
    first = asked(made, "How many days of paid leave does an employee have?")
    again = asked(made, "Who signs requests?")
    assert again["retrieved_tokens"] < first["retrieved_tokens"]
    assert "[leave.md#1] (you have read this chunk before)" in told(again)[-1]
    assert "Anna Berg signs requests. [leave.md#1]" in again["messages"][-1].text
    assert again["loops"] <= first["loops"]


def test_a_model_searches_reads_and_answers(docs: Path, tmp_path: Path) -> None:
    both = [{"name": "chunk_read", "args": {"chunk_ids": [name]}, "id": name} for name in ("leave.md#1", "people.md#1")]
    found, answer = calls("keyword_search", keywords=["leave"]), "25 days [leave.md#1]."
    model = ScriptedModel(replies=[found, AIMessage("", tool_calls=both), AIMessage(answer)])
    state = asked(app(docs, tmp_path, model=model), "How many days?")
    assert (state["messages"][-1].text, state["citations"], state["loops"]) == (answer, ["leave.md#1"], 3)
    assert model.shown[0]["tools"] == ["keyword_search", "semantic_search", "chunk_read"]
    assert calls_of(state) == ["keyword_search", "chunk_read"], "of several calls, only the first is made"
    assert len(told(state)) == 2


def test_a_model_that_answers_at_once_is_taken_at_its_word(docs: Path, tmp_path: Path) -> None:
    state = asked(app(docs, tmp_path, model=ScriptedModel(replies=[AIMessage("Hello.")])), "Hello")
    assert (state["messages"][-1].text, state["citations"], calls_of(state)) == ("Hello.", [], [])


def test_prompts_and_descriptions_can_be_replaced(docs: Path, tmp_path: Path) -> None:
    model = ScriptedModel(replies=[calls("chunk_read", chunk_ids=["leave.md#1"]), AIMessage(""), AIMessage("25.")])
    asked(app(docs, tmp_path, model=model, prompts=ReaderPrompts.paper()), "How many {days}?")
    assert model.shown[0]["messages"][0].text == ReaderPrompts.paper().system
    assert model.shown[-1]["messages"][-1].text == ReaderPrompts.paper().forced
    own = ReaderPrompts(forced="Now: {question}", tools={"chunk_read": "Reads."})
    model = ScriptedModel(replies=[AIMessage(""), AIMessage("25.")])
    asked(app(docs, tmp_path, model=model, prompts=own), "How many {days}?")
    assert (model.shown[0]["messages"][0].text, model.shown[-1]["messages"][-1].text) == (
        READER,
        "Now: How many {days}?",
    )
    with pytest.raises(SettingsError, match="prompts"):
        create_arag(docs, prompts="paper")  # type: ignore[arg-type]


def test_a_citation_that_was_not_read_or_does_not_exist_is_taken_out(docs: Path, tmp_path: Path) -> None:
    answer = "25 days [leave.md#1, people.md#1], signed by Anna [people.md#1] [made-up.md#9] (see trains.md#4)."
    model = ScriptedModel(replies=[calls("chunk_read", chunk_ids=["leave.md#1"]), AIMessage(answer)])
    state = asked(app(docs, tmp_path, model=model), "How many days?")
    final = state["messages"][-1]
    assert final.text == "25 days [leave.md#1], signed by Anna."
    assert state["citations"] == ["leave.md#1"]
    assert final.additional_kwargs["arag"]["dropped"] == ["people.md#1", "made-up.md#9", "see trains.md#4"]


@pytest.mark.parametrize(
    ("text", "kept", "citations"),
    [
        ("Yes [a b.md#1] and [a b.md#12].", "Yes [a b.md#1] and.", ["a b.md#1"]),
        ("See a.md#1.", "See a.md#1.", ["a.md#1"]),
        ("See b.md#2 now.", "See now.", []),
        ("Issue #12, [note], f(x), C#7 stay.", "Issue #12, [note], f(x), C#7 stay.", []),
        ("(a.md#1; b.md#1)", "[a.md#1]", ["a.md#1"]),
        ("", "", []),
    ],
)
def test_citations_are_recognised_by_their_form(text: str, kept: str, citations: list[str]) -> None:
    said, cited, _ = check_citations(text, ["a.md#1", "a b.md#1"])
    assert (said, cited) == (kept, citations)


@pytest.mark.parametrize("spent", [{"max_loops": 2}, {"max_tokens": 1_000}])
def test_once_the_budget_is_spent_the_answer_is_forced(docs: Path, tmp_path: Path, spent: dict[str, int]) -> None:
    (docs / "long.txt").write_text("A very long text about leave. " * 400)

    def endless(messages: Any) -> AIMessage:
        if messages[-1].text == FORCED.format(question="How many days?"):
            return AIMessage("So far: unknown.")
        return calls("chunk_read", chunk_ids=["long.txt#1", "long.txt#2", "long.txt#3"])

    model = ScriptedModel(replies=[endless])
    state = asked(app(docs, tmp_path, model=model), "How many days?", "1", **spent)
    assert state["messages"][-1].text.startswith("So far: unknown.")
    assert state["messages"][-1].additional_kwargs["arag"]["forced"]
    assert model.shown[-1]["tools"] == []
    assert len(calls_of(state)) == spent.get("max_loops", 1)


def test_a_wrong_call_is_answered_with_its_error_and_the_loop_goes_on(docs: Path, tmp_path: Path) -> None:
    replies = [
        calls("web_search", q="leave"),
        calls("keyword_search", words=["leave"]),
        calls("semantic_search", query="leave", top_k=0),
        AIMessage("Unknown."),
    ]
    state = asked(app(docs, tmp_path, model=ScriptedModel(replies=replies)), "How many days?")
    assert told(state)[0] == "there is no tool 'web_search'; there are: keyword_search, semantic_search, chunk_read"
    assert told(state)[1] == "the arguments do not fit: keywords: Field required"
    assert told(state)[2] == "top_k must be 1 to 20, not 0"


def test_a_model_that_fails_is_replaced_by_the_best_passages(docs: Path, tmp_path: Path) -> None:
    replies = [calls("chunk_read", chunk_ids=["leave.md#1"]), ConnectionError("gone")]
    state = asked(app(docs, tmp_path, model=ScriptedModel(replies=replies)), "How many days of paid leave are there?")
    answer = state["messages"][-1].text
    assert "25 days of paid leave. [leave.md#1]" in answer
    assert "the model did not answer: ConnectionError: gone" in answer
    about = state["messages"][-1].additional_kwargs["arag"]
    assert (about["answered"], about["error"]) == (True, "the model did not answer: ConnectionError: gone")


def test_an_empty_reply_is_reported_with_what_was_read(docs: Path, tmp_path: Path) -> None:
    replies = [calls("chunk_read", chunk_ids=["leave.md#1"]), AIMessage("")]
    state = asked(app(docs, tmp_path, model=ScriptedModel(replies=replies)), "How many days?")
    assert state["messages"][-1].text == "The model gave no answer.\n(It cites nothing. Read for it: [leave.md#1])"


@pytest.mark.parametrize(
    ("folder", "context", "said"),
    [
        (None, {}, "set CALLSHEET_DOCUMENTS to a folder"),
        ("docs", {"documents": "/"}, "is not inside the configured folder of documents"),
        ("docs", {"documents": "../"}, "is not inside the configured folder of documents"),
        ("docs", {"documents": "nowhere"}, "there is no such folder"),
        ("docs", {"documents": "\0"}, "cannot be a path"),
        ("nowhere", {}, "there is no such folder"),
        ("docs", {"model": "nonsense"}, "the model 'nonsense' cannot be used"),
    ],
)
def test_a_wrong_setting_is_named_in_the_answer(
    docs: Path, tmp_path: Path, folder: str | None, context: dict[str, Any], said: str
) -> None:
    state = asked(app(tmp_path / folder if folder else None, tmp_path), "How many days?", **context)
    assert said in state["messages"][-1].text
    assert (state["citations"], calls_of(state)) == ([], [])


def test_a_folder_without_documents_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "a.md").write_text("")
    state = asked(app(tmp_path / "empty", tmp_path), "How many days?")
    assert state["messages"][-1].text == "There is no document in empty that can be read. a.md: is empty"


def test_an_inner_folder_can_be_chosen_for_a_run(docs: Path, tmp_path: Path) -> None:
    state = asked(app(docs, tmp_path), "Which class of trains is booked?", documents="more")
    assert state["citations"] == ["trains.md#1"]


def test_an_input_without_a_question_is_answered_with_an_error(docs: Path, tmp_path: Path) -> None:
    state = app(docs, tmp_path).invoke({"messages": []})
    assert "There is no question" in state["messages"][-1].text


def test_the_answer_streams_as_the_last_message(docs: Path, tmp_path: Path) -> None:
    given: Any = {"messages": [{"role": "user", "content": "Who signs requests?"}]}
    seen = [chunk for chunk, _ in app(docs, tmp_path).stream(given, stream_mode="messages")]
    assert isinstance(seen[-1], AIMessage | AIMessageChunk)
    assert "[leave.md#1]" in seen[-1].text
