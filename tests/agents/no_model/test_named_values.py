"""Without a model: values are given by name, and a request that is refused is answered with one that works."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from callsheet import Settings, create_supervisor
from callsheet.agents.no_model.filling import StepReading, fill
from callsheet.graphs import Agent, Tool
from small import outside

STRING, NUMBER, FLAG = {"type": "string"}, {"type": "number"}, {"type": "boolean"}


def tool_of(name: str, about: str, required: tuple[str, ...] = (), **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required or properties)}
    return Tool(agent="a", name=name, description=about, input_schema=schema)


def filled(given: Tool, text: str, *, harmless: bool = True) -> StepReading:
    return fill(given, Agent(id="a", tools=(given,)), text, harmless=harmless)


ADD = tool_of("add", "Add two numbers.", a=NUMBER, b=NUMBER)
INVOICE = tool_of("get_invoice", "Get one invoice.", invoice_id={**STRING, "title": "Invoice number"})
INVOICES = tool_of("list_invoices", "List invoices.", ("x",), customer=STRING, isPaid=FLAG, tags={"type": "array"})
NOTE = tool_of("create_note", "Create a note.", title=STRING, text=STRING)
DELETE = tool_of("delete_note", "Delete a note.", title=STRING)
COPY = tool_of("copy_note", "Copy a note.", source=STRING, copy_title=STRING)


@pytest.mark.parametrize(
    ("given", "text", "args"),
    [
        (ADD, "add a=2 b=3", {"a": 2, "b": 3}),
        (ADD, "Add a: 2, b: -3.5", {"a": 2, "b": -3.5}),
        (INVOICE, "get invoice invoice_id: 1001.", {"invoice_id": "1001"}),
        (INVOICE, "get invoice, Invoice ID 1001", {"invoice_id": "1001"}),
        (INVOICE, "get invoice with invoice number=A-17", {"invoice_id": "A-17"}),
        (NOTE, 'Create note title: "Groceries", text: "milk, eggs"', {"title": "Groceries", "text": "milk, eggs"}),
        (NOTE, "create note title=Groceries text=2027-05-03", {"title": "Groceries", "text": "2027-05-03"}),
        (INVOICES, "list invoices customer Ann", {"customer": "Ann"}),
        (INVOICES, "list invoices customer: Ann and is paid: true", {"customer": "Ann", "isPaid": True}),
        (INVOICES, 'list invoices tags=["new", "open"]', {"tags": ["new", "open"]}),
    ],
)  # fmt: skip
def test_the_name_or_title_of_a_parameter_fills_it(given: Tool, text: str, args: dict[str, Any]) -> None:
    found = filled(given, text)
    assert (found.args, found.unused) == (args, ())


@pytest.mark.parametrize(
    ("given", "text", "args"),
    [
        (INVOICE, "get invoice 1001", {"invoice_id": "1001"}),
        (tool_of("list_events", "Events of a day.", day=STRING), "list events 2026-12-01", {"day": "2026-12-01"}),
        (ADD, "Add 2 and 3", {"a": 2, "b": 3}),
    ],
)
def test_values_without_a_name_fill_the_required_parameters_if_only_one_reading_is_left(
    given: Tool, text: str, args: dict[str, Any]
) -> None:
    assert filled(given, text).complete
    assert filled(given, text).args == args


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ADD, "Add 2 to 3"),
        (ADD, "add a=2 a=3 b=4"),
        (ADD, "add a=two b=3"),
        (ADD, "add a=NaN b=3"),
        (NOTE, "create note title: Groceries, text: buy milk"),
        (NOTE, "create note title text"),
        (NOTE, 'create note "title: Groceries"'),
        (DELETE, "delete the note title only"),
        (DELETE, "delete 5 notes"),
        (DELETE, "do not delete note 5"),
        (COPY, 'copy note "a" and "b"'),
    ],
)
def test_a_tool_that_changes_something_is_not_filled_by_a_guess(given: Tool, text: str) -> None:
    assert not filled(given, text, harmless=False).complete


class Desk:
    """An agent over notes and invoices, and the calls of what changes something."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def agents(self) -> dict[str, Any]:
        @tool
        def create_note(title: str, text: str) -> str:
            """Create a note."""
            self.done.append((title, text))
            return f"created {title}"

        @tool
        def delete_note(title: str) -> str:
            """Delete a note."""
            self.done.append(title)
            return f"deleted {title}"

        @tool
        def list_events(day: str) -> str:
            """List the events of a day."""
            return f"nothing on {day}"

        list_events.metadata = {"annotations": {"readOnlyHint": True}}
        return {"desk": [create_note, delete_note, list_events]}


@pytest.mark.parametrize(
    ("request_", "hint"),
    [
        # A value of ours is no value of the request, and somebody may send what is proposed as it stands.
        ("delete 5 notes", "Name the values: `callsheet call desk/delete_note title=...`"),
        ("what has Ann deleted", "Name the values: `callsheet call desk/delete_note title=...`"),
        ("which events has Ann planned", 'For example, this works: List events "text"'),
    ],
)
def test_a_refusal_never_fills_in_what_the_request_does_not_say(request_: str, hint: str) -> None:
    allowed = ("desk/create_note", "desk/delete_note")
    app = create_supervisor(outside(Desk().agents()), settings=Settings(allow=allowed)).compile()
    result = app.invoke({"messages": [HumanMessage(request_)]})["results"]["1"]
    assert result["status"] == "needs_input"
    assert result["error"].endswith(f". {hint}")


@pytest.mark.parametrize(
    ("request_", "hint", "works"),
    [
        ("Which events do I have on 2026-12-01?", '. Without "have", this works', "List events 2026-12-01"),
        ("create note title: Groceries, text: buy milk and eggs", ". This works",
         'Create note title: "Groceries", text: "buy milk and eggs"'),
        ("create note title Groceries text milk", ". This works", 'Create note title: "Groceries", text: "milk"'),
        ("delete the note Groceries", ". This works", 'Delete note "Groceries"'),
        ("Remind Ann to delete the note Groceries", '. Without "Remind", "Ann", this works', 'Delete note "Groceries"'),
    ],
)  # fmt: skip
def test_a_refusal_says_this_request_in_words_that_work(request_: str, hint: str, works: str) -> None:
    desk = Desk()
    allowed = ("desk/create_note", "desk/delete_note")
    app = create_supervisor(outside(desk.agents()), settings=Settings(allow=allowed)).compile()
    result = app.invoke({"messages": [HumanMessage(request_)]})["results"]["1"]
    assert (result["status"], desk.done) == ("needs_input", [])
    assert result["error"].endswith(f"{hint}: {works}")
    assert app.invoke({"messages": [HumanMessage(works)]})["results"]["1"]["status"] == "done"
