"""Requests without a model, over tools that count their calls."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.registry.assurance import assurance_of
from callsheet.graphs import Policy, ServerConfig, Tool
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.trust.consent import starts_of

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Office:
    """Agents that read and write, and what was written; ``content`` of all files, if not empty."""

    def __init__(self) -> None:
        self.content = ""
        self.written: list[tuple[str, str]] = []

    def agents(self) -> dict[str, Any]:
        @tool
        def read_file(file_path: str) -> str:
            """Read a file."""
            return self.content or f"content of {file_path}"

        @tool
        def write_file(file_path: str, text: str) -> str:
            """Write file to disk."""
            self.written.append((file_path, text))
            return "written"

        return {"files": {"description": "Files of the office.", "tools": [read_file, write_file]}}


@pytest.fixture
def office() -> Office:
    return Office()


def ask(office: Office, request: str, *, keep: bool = False, **settings: Any) -> Any:
    app = create_supervisor(office.agents(), settings=Settings(**{"approval": "never", **settings}))
    compiled = app.compile(checkpointer=InMemorySaver() if keep else None)
    state = compiled.invoke({"messages": [HumanMessage(request)]}, THREAD)
    return (compiled, state) if keep else state


def text(state: Any) -> str:
    return str(state["messages"][-1].text)


def test_a_harmless_tool_is_called_and_its_result_is_the_answer(office: Office) -> None:
    state = ask(office, "Read a.txt")
    assert text(state) == "Read a.txt: content of a.txt"
    assert state["usage"]["calls"] == 0
    assert "planned without a model" in state["plan"]["note"]


@pytest.mark.parametrize("said", ["Error budget: 98 % left", "errors.log\nnotes.txt", "ERROR is a word of four sounds"])
def test_a_result_is_no_failure_by_its_first_word(office: Office, said: str) -> None:
    office.content = said
    state = ask(office, "Read a.txt")
    assert (state["results"]["1"]["status"], state["results"]["1"]["result"]) == ("done", said)


def test_what_is_left_over_is_said_and_nothing_is_called(office: Office) -> None:
    state = ask(office, "Read the first line of a.txt")
    result = state["results"]["1"]
    assert (result["status"], result["calls"]) == ("needs_input", [])
    assert 'nothing would be done with "first", "line"' in result["error"]
    assert 'It would be called for "Read file notes.txt"' in result["error"]


def test_a_tool_that_may_change_something_is_never_called_unless_allowed(office: Office) -> None:
    state = ask(office, "Write 'hello' to a.txt")
    assert state["results"]["1"]["status"] == "needs_input"
    assert "allow the tool with --allow files/write_file" in state["results"]["1"]["error"]
    assert office.written == []
    assert ask(office, "Write 'hello' to a.txt", allow=("files/write_file",))["results"]["1"]["status"] == "done"
    assert office.written == [("a.txt", "hello")]


def test_a_tool_may_be_allowed_by_name_in_the_catalog() -> None:
    server = ServerConfig(command="x", callsheet=ServerOptions(allow=("write_file",)))
    allowed, other = (assurance_of(Tool(agent="files", name=n), server, trusted=False) for n in ("write_file", "move"))
    assert (allowed.allowed, allowed.why("risky")) == (True, "")
    assert allowed.why("always")
    assert (other.allowed, bool(other.why("risky"))) == (False, True)
    assert "called without asking: write_file" in str(starts_of({"files": server}))


@pytest.mark.parametrize("approval", ["never", "risky", "always"])
def test_its_form_is_put_before_a_person_whatever_approval_is(office: Office, approval: str) -> None:
    app, state = ask(office, "Write 'hello' to a.txt", keep=True, approval=approval)
    (question,) = state["__interrupt__"]
    assert (question.value["type"], question.value["confirm"]) == ("tool_approval", True)
    assert question.value["args"] == {"file_path": "a.txt", "text": "hello"}
    edited = {"type": "edit", "args": {"file_path": "b.txt", "text": "hello"}}
    (again,) = app.invoke(Command(resume=edited), THREAD)["__interrupt__"]
    assert again.value["args"]["file_path"] == "b.txt"
    assert office.written == []
    assert text(app.invoke(Command(resume={"type": "approve"}), THREAD)) == "Write 'hello' to a.txt: written"
    assert office.written == [("b.txt", "hello")]


def test_nobody_is_asked_in_a_run_that_nobody_attends(office: Office) -> None:
    _, state = ask(office, "Write 'hello' to a.txt", keep=True, attended=False)
    assert state["results"]["1"]["status"] == "needs_input"
    assert office.written == []


@pytest.mark.parametrize(
    "request_",
    [
        "Write 'hello' to a.txt. Check with Ann first.",
        "Do not write 'hello' to a.txt",
        "Should I write 'hello' to a.txt?",
        "Write 'hello' to a.txt unless it exists",
        "He said: write 'hello' to a.txt",
        "How do I write 'hello' to a.txt?",
    ],
)
def test_an_allowed_tool_changes_nothing_unless_all_is_understood(office: Office, request_: str) -> None:
    state = ask(office, request_, allow=("files/write_file",))
    assert all(result["status"] != "done" for result in state["results"].values())
    assert office.written == []


def test_steps_wait_for_the_results_that_they_use_and_for_effects(office: Office) -> None:
    state = ask(office, "Read a.txt and write the result to b.txt, then read b.txt", allow=("files/write_file",))
    assert [step["depends_on"] for step in state["plan"]["steps"]] == [[], ["1"], ["2"]]
    assert office.written == [("b.txt", "content of a.txt")]


@pytest.mark.parametrize("request_", ["hi", "what can you do?"])
def test_agents_and_requests_that_work_are_listed(office: Office, request_: str) -> None:
    said = text(ask(office, request_))
    assert "- files: Files of the office." in said
    assert "Requests that work:\n- Read file notes.txt" in said


def test_several_values_become_several_calls(office: Office) -> None:
    state = ask(office, "Read a.txt and b.txt")
    assert [step["text"] for step in state["plan"]["steps"]] == ["Read a.txt", "Read b.txt"]


def test_a_hidden_agent_is_not_listed(office: Office) -> None:
    hidden = Policy(callsheet_policy=1, default="deny")
    app = create_supervisor(office.agents(), settings=Settings(approval="never"), policy=hidden).compile()
    assert "files" not in text(app.invoke({"messages": [HumanMessage("what can you do?")]}, THREAD))
