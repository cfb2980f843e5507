"""Without a model: what stands in a step is filled in, what is left over is said; over tools that count their calls."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.calls.plan import StepResult
from callsheet.agents.calls.review import decision_on, flat
from callsheet.agents.no_model.filling import fill, spread, unanswered_words
from callsheet.agents.no_model.values import in_words, unit_in, values_in, zone_of
from callsheet.agents.registry.tool_registry import assurance_of
from callsheet.graphs import Agent, Policy, ServerConfig, Tool
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.trust.consent import starts_of
from small import outside

THREAD: Any = {"configurable": {"thread_id": "1"}}
READS = {"annotations": {"readOnlyHint": True}}


class FileAgents:
    """Agents that read and write, and what was written; ``content`` of all files, if not empty.

    ``marked``: whether it is said that ``read_file`` only reads.
    """

    marked = True

    def __init__(self) -> None:
        self.content = ""
        self.written: list[tuple[str, str]] = []

    def agents(self) -> dict[str, Any]:
        @tool
        def read_file(file_path: str) -> str:
            """Read a file."""
            return self.content or f"content of {file_path}"

        if self.marked:
            read_file.metadata = READS

        @tool
        def write_file(file_path: str, text: str) -> str:
            """Write file to disk."""
            self.written.append((file_path, text))
            return "written"

        return {"files": {"description": "Files of the office.", "tools": [read_file, write_file]}}


@pytest.fixture
def files() -> FileAgents:
    return FileAgents()


def ask(files: FileAgents, request: str, *, keep: bool = False, **settings: Any) -> Any:
    app = create_supervisor(outside(files.agents()), settings=Settings(**{"approval": "never", **settings}))
    compiled = app.compile(checkpointer=InMemorySaver() if keep else None)
    state = compiled.invoke({"messages": [HumanMessage(request)]}, THREAD)
    return (compiled, state) if keep else state


def text(state: Any) -> str:
    return str(state["messages"][-1].text)


def test_a_harmless_tool_is_called_and_its_result_is_the_answer(files: FileAgents) -> None:
    state = ask(files, "Read a.txt")
    assert text(state) == "Read a.txt: content of a.txt"
    assert state["usage"]["calls"] == 0
    assert "planned without a model" in state["plan"]["note"]


@pytest.mark.parametrize("said", ["Error budget: 98 % left", "errors.log\nnotes.txt", "ERROR is a word of four sounds"])
def test_a_result_is_no_failure_by_its_first_word(files: FileAgents, said: str) -> None:
    files.content = said
    state = ask(files, "Read a.txt")
    assert (state["results"]["1"]["status"], state["results"]["1"]["result"]) == ("done", said)


@pytest.mark.parametrize(("approval", "name", "about"), [
    ("never", "find_and_replace", "Find and replace a text."),
    ("ask", "fetch_and_merge", "Fetch and merge."),
    ("never", "get_time", "Get time of day."),
])  # fmt: skip
def test_a_verb_of_reading_does_not_call_a_tool(approval: str, name: str, about: str) -> None:
    sent: list[str] = []
    made = StructuredTool.from_function(lambda text: str(sent.append(text)), name=name, description=about, args_schema={
        "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"],
    })  # fmt: skip
    settings: Any = {"approval": approval, "attended": False}
    request_ = {"messages": [HumanMessage(f"{name.replace('_', ' ')} 'draft'")]}
    alone = create_supervisor(outside({"work": [made]}), settings=Settings(**settings))
    step = alone.compile(checkpointer=InMemorySaver()).invoke(request_, THREAD)["results"]["1"]
    assert (step["status"], sent) == ("needs_input", [])
    assert "it is not marked as read-only. Nobody is here to confirm the call" in step["error"]
    watched = create_supervisor(outside({"work": [made]}), settings=Settings(**{**settings, "attended": True}))
    (question,) = watched.compile(checkpointer=InMemorySaver()).invoke(request_, THREAD)["__interrupt__"]
    assert (question.value["confirm"], flat(question.value)["args"], sent) == (True, {"text": "draft"}, [])


def test_a_tool_that_nobody_marked_is_asked_about_although_it_reads(files: FileAgents) -> None:
    files.marked = False
    step = ask(files, "Read a.txt")["results"]["1"]
    assert step["status"] == "needs_input"
    assert "--allow files/read_file" in step["error"]
    step = ask(files, "Show me the file a.txt")["results"]["1"]
    assert 'it would ignore "Show", "me" (a question is understood only for a tool that is known to be' in step["error"]
    assert text(ask(files, "Read a.txt", allow=("files/read_file",))) == "Read a.txt: content of a.txt"


def test_of_two_tools_that_a_step_names_the_one_whose_value_has_its_kind_is_called() -> None:
    @tool
    def read_query(query: str) -> str:
        """Read rows of a database."""
        return f"rows of {query}"

    files = FileAgents().agents()
    read_query.metadata = READS
    app = create_supervisor(outside({"base": [read_query], **files}), settings=Settings(approval="never")).compile()
    for request_, called in (("Read a.txt", "files/read_file"), ('Read query "a.txt"', "base/read_query")):
        calls = app.invoke({"messages": [HumanMessage(request_)]}, THREAD)["results"]["1"]["calls"]
        assert [call["tool"] for call in calls] == [called]


def test_what_is_left_over_is_said_and_nothing_is_called(files: FileAgents) -> None:
    state = ask(files, "Read the first line of a.txt")
    result = state["results"]["1"]
    assert (result["status"], result["calls"]) == ("needs_input", [])
    assert 'it would ignore "first", "line"' in result["error"]
    assert result["error"].endswith('. Without "first", "line", this works: Read file a.txt')


def test_a_tool_that_may_change_something_is_never_called_unless_allowed(files: FileAgents) -> None:
    state = ask(files, "Write 'hello' to a.txt")
    assert state["results"]["1"]["status"] == "needs_input"
    assert "allow the tool with --allow files/write_file" in state["results"]["1"]["error"]
    assert files.written == []
    assert ask(files, "Write 'hello' to a.txt", allow=("files/write_file",))["results"]["1"]["status"] == "done"
    assert files.written == [("a.txt", "hello")]


def test_a_tool_may_be_allowed_or_called_harmless_by_name_in_the_catalog() -> None:
    server = ServerConfig(command="x", callsheet=ServerOptions(allow=("write_file",), reads=("look",)))
    names = ("write_file", "move", "look")
    allowed, other, look = (assurance_of(Tool(agent="files", name=name), server, trusted=False) for name in names)
    # Whoever allows a tool does not say that its order or a second call does not matter.
    assert (allowed.harm, allowed.repeatable, look.harm, look.repeatable) == ("change", False, "none", True)
    assert (look.refusal("ask"), look.confirmation) == (None, None)
    assert "known to only read: look" in str(starts_of({"files": server}))
    assert (allowed.allowed, allowed.refusal("ask")) == (True, None)
    assert allowed.refusal("always") is None
    assert (other.allowed, bool(other.refusal("ask"))) == (False, True)
    assert "called without asking: write_file" in str(starts_of({"files": server}))


@pytest.mark.parametrize("approval", ["never", "ask", "always"])
def test_its_form_is_put_before_a_person_whatever_approval_is(files: FileAgents, approval: str) -> None:
    app, state = ask(files, "Write 'hello' to a.txt", keep=True, approval=approval)
    (question,) = state["__interrupt__"]
    assert (question.value["type"], question.value["confirm"]) == ("tool_approval", True)
    assert flat(question.value)["args"] == {"file_path": "a.txt", "text": "hello"}
    edited = decision_on("edit", question.value, args={"file_path": "b.txt", "text": "hello"})
    (again,) = app.invoke(Command(resume=edited), THREAD)["__interrupt__"]
    assert flat(again.value)["args"]["file_path"] == "b.txt"
    assert files.written == []
    assert text(app.invoke(Command(resume={"type": "approve"}), THREAD)) == "Write 'hello' to a.txt: written"
    assert files.written == [("b.txt", "hello")]


def test_nobody_is_asked_in_a_run_that_nobody_attends(files: FileAgents) -> None:
    _, state = ask(files, "Write 'hello' to a.txt", keep=True, attended=False)
    assert state["results"]["1"]["status"] == "needs_input"
    assert files.written == []


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
def test_an_allowed_tool_changes_nothing_unless_all_is_understood(files: FileAgents, request_: str) -> None:
    state = ask(files, request_, allow=("files/write_file",))
    assert all(result["status"] != "done" for result in state["results"].values())
    assert files.written == []


def test_steps_wait_for_the_results_that_they_use_and_for_effects(files: FileAgents) -> None:
    state = ask(files, "Read a.txt and write the result to b.txt, then read b.txt", allow=("files/write_file",))
    assert [step["depends_on"] for step in state["plan"]["steps"]] == [[], ["1"], ["2"]]
    assert files.written == [("b.txt", "content of a.txt")]


def test_a_step_goes_on_beside_an_effect_that_it_cannot_see(files: FileAgents) -> None:
    @tool
    def get_weather(city: Literal["Oslo", "Rome"]) -> str:
        """Get the weather of a city."""
        return f"sun in {city}"

    get_weather.metadata = READS
    settings = Settings(attended=False, approval="never")
    supervisor = create_supervisor(outside({**files.agents(), "meteo": [get_weather]}), settings=settings)
    request_ = HumanMessage("Write 'x' to a.txt and get the weather of Oslo")
    state = supervisor.compile(checkpointer=InMemorySaver()).invoke({"messages": [request_]}, THREAD)
    assert [step["depends_on"] for step in state["plan"]["steps"]] == [[], []]
    assert [result["status"] for result in state["results"].values()] == ["needs_input", "done"]
    hello = supervisor.compile(checkpointer=InMemorySaver()).invoke({"messages": [HumanMessage("hello")]}, THREAD)
    assert "Requests that work:\n- Get weather Oslo" in text(hello)


@pytest.mark.parametrize("request_", ["hi", "what can you do?"])
def test_agents_and_requests_that_work_are_listed(files: FileAgents, request_: str) -> None:
    said = text(ask(files, request_))
    assert "- files: Files of the office." in said
    assert "Requests that work" not in said  # nobody knows a file that is there


def test_a_hidden_agent_is_not_listed(files: FileAgents) -> None:
    hidden = Policy(callsheet_policy=1, default="deny")
    app = create_supervisor(outside(files.agents()), settings=Settings(approval="never"), policy=hidden).compile()
    assert "files" not in text(app.invoke({"messages": [HumanMessage("what can you do?")]}, THREAD))


STRING, NUMBER = {"type": "string"}, {"type": "number"}
LENGTHS: dict[str, Any] = {"type": "string", "enum": ["mile", "kilometer", "foot"]}


def tool_of(name: str, about: str, *required: str, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required or properties)}
    return Tool(agent="a", name=name, description=about, input_schema=schema)


def filled(given: Tool, text: str, results: Any = (), *, harmless: bool = True) -> Any:
    return fill(given, Agent(id="a", tools=(given,)), text, results, harmless=harmless)


LENGTH = tool_of("convert_length", "Convert length between units.", value=NUMBER, from_unit=LENGTHS, to_unit=LENGTHS)
CLOCK = tool_of("convert_time", "Convert time.", source_timezone=STRING, time=STRING, target_timezone=STRING)
READ = tool_of("read_file", "Read a file.", file_path=STRING)
WRITE = tool_of("write_file", "Write file to disk.", file_path=STRING, text=STRING)
COPY = tool_of("copy_file", "Copy a file.", source_path=STRING, destination_path=STRING)
SEARCH = tool_of("search", "Answers questions about the race.", question=STRING)
DONE = [StepResult(id="1", text="Convert it", result="42 km"), StepResult(id="2", text="Ask", result="08:15")]


@pytest.mark.parametrize(
    ("given", "text", "args"),
    [
        (LENGTH, "Convert 26.2 miles to kilometres", {"value": 26.2, "from_unit": "mile", "to_unit": "kilometer"}),
        (LENGTH, "How many feet is 3 km?", {"value": 3, "from_unit": "kilometer", "to_unit": "foot"}),
        (CLOCK, "What time is it in Tokyo when it is 9:30 in Berlin?",
         {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Tokyo"}),
        (CLOCK, "find out what time it is in Tokyo when it is 9:30 in Berlin",
         {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Tokyo"}),
        (CLOCK, "Convert 3pm from London to New York",
         {"source_timezone": "Europe/London", "time": "15:00", "target_timezone": "America/New_York"}),
        (READ, "Read a.txt", {"file_path": "a.txt"}),
        (READ, "Show me the file 'notes/a.txt'", {"file_path": "notes/a.txt"}),
        (tool_of("mail", "Mail to.", to_email=STRING), "Mail to ann@example.com", {"to_email": "ann@example.com"}),
        (tool_of("fetch", "Fetch.", url=STRING), "Fetch https://example.org/x.", {"url": "https://example.org/x"}),
        (tool_of("due", "Tasks due.", date=STRING), "Tasks due 3 May 2027", {"date": "2027-05-03"}),
        (tool_of("calculate", "Calculate.", expression=STRING), "Calculate 12 × 7", {"expression": "12 * 7"}),
    ],
)  # fmt: skip
def test_typed_values_are_filled_in_and_nothing_is_left(given: Tool, text: str, args: dict[str, Any]) -> None:
    found = filled(given, text)
    assert (found.args, found.missing, found.unused) == (args, (), ())
    assert found.complete


@pytest.mark.parametrize(
    ("given", "text", "missing"),
    [
        (COPY, "Copy a.txt to b.txt", ("source_path", "destination_path")),
        (READ, "Read a.txt and b.txt", ("file_path",)),
        (LENGTH, "Convert 5 miles", ("from_unit", "to_unit")),
        (CLOCK, "Convert 9:30 in Berlin to 10:30 in Tokyo", ("source_timezone", "time", "target_timezone")),
    ],
)
def test_a_value_that_fits_two_parameters_fills_none(given: Tool, text: str, missing: tuple[str, ...]) -> None:
    assert filled(given, text).missing == missing


@pytest.mark.parametrize(
    ("given", "text", "unused"),
    [
        (READ, "Read the first line of a.txt", ("first", "line")),
        (READ, "Do not read a.txt", ("not",)),
        (READ, "Read a.txt if it exists", ("if", "it", "exists")),
        (LENGTH, "Convert 5 miles to km for runners", ("runners",)),
        (LENGTH, "Convert 5a miles to km", ("a", "miles", "km")),
        (LENGTH, "Convert <5 miles to km", ("<",)),
        (WRITE, "Could you write 'x' to a.txt", ("Could", "you")),
        (WRITE, "How do I write 'x' to a.txt?", ("How", "do", "I")),
    ],
)
def test_every_word_that_went_nowhere_is_said(given: Tool, text: str, unused: tuple[str, ...]) -> None:
    assert filled(given, text, harmless=given is not WRITE).unused == unused


def test_a_changing_tool_is_not_named_by_verbs_of_asking() -> None:
    delete = tool_of("file_delete", "Delete a file.", file_path=STRING)
    assert filled(delete, "Check a.txt", harmless=False).unused == ("Check",)
    assert filled(delete, "Delete a.txt", harmless=False).complete


def test_results_are_what_is_written_only_if_their_number_is_right() -> None:
    found = filled(WRITE, "write both results to t.txt", DONE, harmless=False)
    assert found.args == {"file_path": "t.txt", "text": "Convert it: 42 km\nAsk: 08:15"}
    assert filled(WRITE, "write the result to t.txt", DONE, harmless=False).args["text"] == "08:15"
    assert filled(WRITE, "write all three results to t.txt", DONE, harmless=False).missing == ("text",)
    assert filled(WRITE, "write the result to t.txt", harmless=False).missing == ("text",)
    assert filled(WRITE, "write that to t.txt", DONE, harmless=False).unused == ("that",)


def test_a_question_is_an_argument_whose_words_the_answer_must_contain() -> None:
    found = filled(SEARCH, "When does the race start, and what is that in Tokyo time?")
    assert found.question
    assert "Tokyo" in found.open
    assert unanswered_words(found, "The race starts at 08:30.") == ("Tokyo",)
    assert unanswered_words(filled(SEARCH, "When does the race start?"), "The race starts at 08:30.") == ()
    assert not filled(SEARCH, "good morning").question


def test_an_enumeration_is_one_call_for_each_value(files: FileAgents) -> None:
    assert spread(LENGTH, "Convert 3, 5 and 8 miles to km") == [f"Convert {n} miles to km" for n in (3, 5, 8)]
    assert spread(READ, "Read a.txt") == []
    assert [step["text"] for step in ask(files, "Read a.txt and b.txt")["plan"]["steps"]] == [
        "Read a.txt",
        "Read b.txt",
    ]


def test_units_and_time_zones_are_recognised() -> None:
    assert unit_in("kilometres", LENGTHS["enum"]) == "kilometer"
    assert unit_in("kg", LENGTHS["enum"]) is None
    assert unit_in("tons", ["short ton", "long ton"]) is None
    assert (zone_of("Denmark"), zone_of("Springfield"), zone_of("nowhere")) == ("Europe/Copenhagen", None, None)


def test_values_have_one_place_and_results_are_told_in_words() -> None:
    assert [value.value for value in values_in('Put "a.txt" at 9:30 on 2027-05-03 into x/y.md, 1,234.5')] == [
        "a.txt", "09:30", "2027-05-03", "x/y.md", 1234.5,
    ]  # fmt: skip
    assert in_words('{"value": 1.50000000000001, "unit": "km", "to": {"x": [1, 2]}}') == "value 1.5; unit km; to x 1, 2"
    assert in_words("plain") == "plain"


def test_a_result_does_not_repeat_what_was_asked() -> None:
    output = '{"original_value": 26.2, "original_unit": "mile", "converted_value": 42.16, "converted_unit": "km"}'
    given = {"value": 26.2, "from_unit": "mile", "to_unit": "km"}
    assert in_words(output, given) == "converted value 42.16"
    # An equal value of another name is news, and so is a second one of the same name.
    assert in_words('{"count": 5, "rows": 2}', {"limit": 5}) == "count 5; rows 2"
    assert in_words('{"old_value": 3, "new_value": 3}', {"value": 3}) == "new value 3"
    assert in_words('{"id": 7}', {"id": 7}) == "id 7"
