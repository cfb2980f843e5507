"""Requests that lack a value: what is not said is asked for, never invented."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import Filled, fill
from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.tool_choice import Candidate, candidates
from callsheet.agents.safety.tool_effects import harm_of
from callsheet.agents.work.brief import Brief, Offer
from callsheet.graphs import Tool

STRING = {"type": "string"}
NUMBER = {"type": "number"}


def schema(required: str, /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


ASKED: list[tuple[dict[str, Any], str, dict[str, Any]]] = [
    (schema("ssid password", ssid=STRING, password=STRING), "Create a WiFi code for my network", {}),
    (schema("order_id amount", order_id=STRING, amount=NUMBER), "Refund the last order of ann@example.com", {}),
    (schema("title body", title=STRING, body=STRING), "Open an issue about the login page", {}),
    (schema("path content", path=STRING, content=STRING), "Save the file please", {}),
    (
        schema("text target_language", text=STRING, target_language=STRING),
        "Translate the menu into French",
        {},
    ),
    (schema("query", query={**STRING, "description": "SQL query"}), "Delete old rows from users", {}),
    (
        schema("user_id role", user_id=STRING, role={"enum": ["admin", "viewer"]}),
        "Make Bob an admin",
        {"role": "admin"},
    ),
    (
        schema("start end", start={**STRING, "format": "date"}, end={**STRING, "format": "date"}),
        "Report for last week",
        {},
    ),
    (schema("numbers", numbers={"type": "array", "items": NUMBER}), "Average the sales", {}),
    (schema("phone", phone={**STRING, "description": "Phone number"}), "Call my mother at 5pm", {}),
    (schema("principal rate time", principal=NUMBER, rate=NUMBER, time=NUMBER), "Interest on 1000 for 3 years", {}),
    (schema("a b", a=NUMBER, b=NUMBER), "Add 3 to it", {}),
    (schema("command", command={"type": "array", "items": STRING}), "Restart the machine", {}),
    (schema("name", name=STRING), "Load the variable", {}),
    (
        schema(
            "items client",
            items={
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"description": STRING, "qty": NUMBER, "price": NUMBER},
                    "required": ["description", "qty", "price"],
                },
            },
            client=STRING,
        ),
        "Invoice Acme for 3 widgets",
        {"client": "Acme"},
    ),
    (
        schema("thought nextThoughtNeeded", thought=STRING, nextThoughtNeeded={"type": "boolean"}),
        "Think about the plan",
        {},
    ),
    (schema("city", city=STRING), "What is the weather like today?", {}),
    (schema("symbol", symbol={**STRING, "description": "Ticker symbol"}), "price of Apple stock", {}),
    (schema("sheet range", sheet=STRING, range=STRING), "Clear the sheet", {}),
    (
        schema("issue_number comment", issue_number={"type": "integer"}, comment=STRING),
        "Comment on issue 42 that it is fixed",
        {"issue_number": 42},
    ),
]


@pytest.mark.parametrize(("given", "said", "known"), ASKED)
def test_nothing_is_invented(given: dict[str, Any], said: str, known: dict[str, Any]) -> None:
    filled = fill(given, said)
    assert filled.args == known
    assert set(filled.missing) == set(given["required"]) - set(known)


LENGTH = {"type": "string", "enum": ["kilometer", "mile", "nanometer"]}
CONVERT = schema("value from_unit to_unit", value=NUMBER, from_unit=LENGTH, to_unit=LENGTH)
NUMBERS = schema("numbers", numbers={"type": "array", "items": NUMBER})
FORECAST = schema("city", city=STRING, days=NUMBER)
COPY = {**schema("source_path destination_path", source_path=STRING, destination_path=STRING), "title": "copy file"}


@pytest.mark.parametrize(
    ("given", "said", "unused"),
    [
        (CONVERT, "<5 miles to km", ("<",)),
        (CONVERT, "~5 miles to km", ("~",)),
        (CONVERT, "1,5 miles to km", ("1", "5")),
        (CONVERT, "5 NM to km", ("NM",)),
        (CONVERT, "3rd mile to km", ("3rd",)),
        (CONVERT, "a third of a mile to km", ("third",)),
        (FORECAST, "in Oslo in 3 days", ("3 days",)),
        (FORECAST, "in Oslo 3 days ago", ("3 days ago",)),
        (FORECAST, "in Oslo for 3 days", ()),
        (NUMBERS, "1 to 10", ("10",)),
        (NUMBERS, "1-5", ("5",)),
        (NUMBERS, "3/4 and 1/2", ("4", "1", "2")),
        (NUMBERS, "5+1", ("+1",)),
        (NUMBERS, "1.5 and 2,5", ("2", "5")),
    ],
)
def test_what_changes_the_meaning_of_a_number_is_not_left_out(
    given: dict[str, Any], said: str, unused: tuple[str, ...]
) -> None:
    assert fill(given, said).unused == unused


@pytest.mark.parametrize("said", ["100,200,300", "1,200,1,300"])
def test_a_list_that_may_be_one_number_is_asked_for(said: str) -> None:
    assert fill(NUMBERS, said).missing == ("numbers",)


@pytest.mark.parametrize(
    ("said", "numbers"),
    [("1,2,2,3", [1, 2, 2, 3]), ("1,200 and 300", [1200, 300]), ("-3, 4 and 5", [-3, 4, 5]), ("1; 2; 3", [1, 2, 3])],
)
def test_a_list_is_read(said: str, numbers: list[float]) -> None:
    assert fill(NUMBERS, said) == Filled({"numbers": numbers})


def test_a_huge_number_can_be_stored() -> None:
    (value,) = fill(NUMBERS, "99999999999999999999").args["numbers"]
    assert isinstance(value, float)


def test_a_pictogram_counts_where_an_effect_is_ordered() -> None:
    assert fill(COPY, "copy a.txt to b.txt 🚫", plainly=True).unused == ("🚫",)
    assert fill(COPY, "copy a.txt to b.txt 🙂").unused == ()


@pytest.mark.parametrize("said", ["Mb", "Gb", "NM", "ton"])
def test_a_unit_with_two_meanings_is_not_guessed(said: str) -> None:
    assert unit_of(said) is None


def chosen(said: str, name: str, description: str, /, **properties: Any) -> Candidate:
    tool = Tool(agent="agent", name=name, description=description)
    offer = Offer(name=name, tool=tool.id, harm=harm_of(tool, trusted=False), confirmed=True)
    function = {"name": name, "description": description, "parameters": schema(" ".join(properties), **properties)}
    (one,) = candidates(Brief(text=said, offers=(offer,)), {name: function})
    return one


def test_a_value_that_a_parameter_does_not_take_is_told_with_the_reason() -> None:
    count = {"type": "integer", "maximum": 100}
    one = chosen("place an order of 200 copies", "place_order", "Order copies of a book", quantity=count)
    assert one.invalid == ("quantity: 200 is greater than the maximum of 100",)
    assert not one.ready
    assert chosen("order 3 copies", "place_order", "Order copies of a book", quantity=count).ready


@pytest.mark.parametrize("verb", ["update", "cancel", "get"])
def test_an_object_in_the_name_of_a_tool_is_no_order(verb: str) -> None:
    name, said = f"{verb}_book", f"{verb.title()}s a book"
    assert not chosen("Reserve book 1", name, said, book_id={"type": "integer"}).ready
    assert chosen(f"{verb} book 1", name, said, book_id={"type": "integer"}).ready


@pytest.mark.parametrize(
    ("name", "takes", "args"),
    [
        ("delete_sheet", "path sheet", [{"sheet": "Notes"}, {"sheet": "Q2"}]),
        ("delete_note", "path sheet cell", None),
        ("copy_sheet", "path sheet new_name", None),
        ("delete_image", "path name", None),
    ],
)
def test_a_list_of_names_is_for_one_parameter(name: str, takes: str, args: list[dict[str, str]] | None) -> None:
    verb = name.partition("_")[0]
    properties = dict.fromkeys(takes.split(), STRING)
    one = chosen(f"{verb} the sheets 'Notes' and 'Q2' in /x/q.xlsx", name, f"{verb.title()} it.", **properties)
    assert one.ready is (args is not None)
    if args:
        assert [call.args for call in one.calls] == [{"path": "/x/q.xlsx", **each} for each in args]


@pytest.mark.parametrize(("said", "divided"), [("'a' and 'b'", ("'b'",)), ("'a', 'b'", ("'b'",)), ("'a' as 'b'", ())])
def test_values_side_by_side_do_not_go_to_two_parameters(said: str, divided: tuple[str, ...]) -> None:
    copy = schema("sheet new_name", sheet=STRING, new_name=STRING) | {"title": "copy_sheet"}
    filled = fill(copy, f"copy sheet {said}", plainly=True)
    assert filled.unused == divided or "'b'" in filled.unused


def test_a_pair_of_parameters_may_take_them() -> None:
    merge = schema("first_file second_file", first_file=STRING, second_file=STRING) | {"title": "merge_files"}
    filled = fill(merge, "merge a.txt and b.txt", plainly=True)
    assert filled.args == {"first_file": "a.txt", "second_file": "b.txt"}
    assert filled.unused == ()


ROWS = schema("axis start", axis={"enum": ["rows", "columns"]}, start={"type": "integer", "description": "A row"})


@pytest.mark.parametrize(("said", "args"), [("2 rows", {"axis": "rows"}), ("row 2", {"axis": "rows", "start": 2})])
def test_a_count_is_no_position(said: str, args: dict[str, Any]) -> None:
    assert fill(ROWS | {"title": "delete_rows"}, f"delete {said}", plainly=True).args == args


@pytest.mark.parametrize(
    ("said", "files"),
    [
        ("add new.txt to the index of /srv/site", ["new.txt"]),
        ("add new.txt and a.md to the repository /srv/site", ["new.txt", "a.md"]),
        ("add new.txt and a.md in /srv/site", ["new.txt", "a.md"]),
    ],
)
def test_the_folder_of_files_is_none_of_them(said: str, files: list[str]) -> None:
    add = schema("repo_path files", repo_path=STRING, files={"type": "array", "items": STRING}) | {"title": "git_add"}
    assert fill(add, said, plainly=True).args == {"repo_path": "/srv/site", "files": files}


@pytest.mark.parametrize("name", ["delete_sheet", "delete_observations", "delete_sparklines"])
@pytest.mark.parametrize("said", ["Delete list.txt", "Delete 'list'"])
def test_a_tool_that_destroys_something_else_does_not_fit(name: str, said: str) -> None:
    assert chosen(said, name, "Delete it.", sheet=STRING).other
    assert not chosen(f"{said} in the {name.partition('_')[2]}", name, "Delete it.", sheet=STRING).other


def test_counting_is_not_describing() -> None:
    assert chosen("count its sheets", "describe_workbook", "The sheets and object counts.", path=STRING).other
    assert not chosen("count the lines of a.txt", "count_lines", "Count the lines.", path=STRING).other


@pytest.mark.parametrize(
    "name", ["shell_execute", "execute_command", "run_python_code", "bash", "terminal_run_command"]
)
def test_a_tool_that_runs_any_program_may_destroy_something(name: str) -> None:
    hints = {"readOnlyHint": True}
    assert harm_of(Tool(agent="a", name=name, description="Executes it."), trusted=True) == "destroy"
    assert harm_of(Tool(agent="a", name=name, annotations=hints), trusted=False) == "destroy"
    assert harm_of(Tool(agent="a", name=name, annotations=hints), trusted=True) == "none"


@pytest.mark.parametrize("name", ["get_command_history", "list_scripts", "get_country_code", "run_query"])
def test_other_tools_with_such_words_run_none(name: str) -> None:
    assert harm_of(Tool(agent="a", name=name, description="Gets it."), trusted=False) == "none"


UPDATE = {
    "task_id": {"type": "integer"},
    "title": STRING,
    "priority": {"enum": ["low", "high"]},
}


@pytest.mark.parametrize(
    ("said", "missing"),
    [
        ("Update the title of task 2", ("title",)),
        ("Set the priority of task 2", ("priority",)),
        ("Set the priority of task 2 to low", ()),
        ("Set the priority of task 2 to critical", ("priority",)),
    ],
)
def test_a_value_that_is_to_be_set_is_needed(said: str, missing: tuple[str, ...]) -> None:
    tool = schema("task_id", **UPDATE) | {"title": "update_task", "description": "Update title or priority of a task"}
    assert fill(tool, said, plainly=True).missing == missing


@pytest.mark.parametrize("said", ["Update task 2", "Change the task 2"])
def test_an_order_that_changes_nothing_is_not_sent(said: str) -> None:
    tool = Tool(agent="agent", name="update_task", description="Update a task")
    offer = Offer(name=tool.name, tool=tool.id, harm="change")
    function = {"name": tool.name, "description": tool.description, "parameters": schema("task_id", **UPDATE)}
    (one,) = candidates(Brief(text=said, offers=(offer,)), {tool.name: function})
    assert one.objection == "it gives no new value"


def test_a_flag_that_a_step_names_is_an_order_too() -> None:
    write = {"path": STRING, "text": STRING, "append": {"type": "boolean"}}
    assert chosen("Append 'x' to a.txt", "write_file", "Write file to disk", **write).ready
    assert chosen("Append 'x' to a.txt", "write_file", "Write file to disk", path=STRING, text=STRING).other
