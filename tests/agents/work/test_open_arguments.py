"""Where a schema leaves an argument open, a worker is told what other tools of the agent say of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import StructuredTool

from callsheet import Settings, create_supervisor
from callsheet.agents.work.open_arguments import siblings
from callsheet.graphs import Agent, Catalog, Tool
from scripted_model import ScriptedModel, calls

ROWS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}
SUM, PRINT = "Add up the rows of an invoice.", "Print an invoice. Each row needs 'name', 'amount' and 'price'."


def shop(open_rows: Any, print_rows: Any, about: str = PRINT) -> Catalog:
    def tool(name: str, description: str, rows: Any) -> Tool:
        schema = {"type": "object", "properties": {"rows": rows, "tax": {"type": "number"}}}
        return Tool(agent="shop", name=name, description=description, input_schema=schema)

    tools = (tool("sum_rows", SUM, open_rows), tool("print_rows", about, print_rows))
    return Catalog(agents=(Agent(id="shop", description="Invoices", tools=tools),))


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"anyOf": [{"type": "null"}, ROWS]},
        {"type": "array", "items": {"type": "array", "items": {"type": "object"}}},
    ],
)
def test_an_open_argument_is_described_by_another_tool_of_the_agent(rows: Any) -> None:
    told = siblings(shop(rows, ROWS), ["shop/sum_rows"])
    assert told == (
        "What other tools, which you do not have, say of single arguments (in brackets) that yours have too:\n"
        f"- shop/print_rows (rows): {PRINT}"
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"type": "array", "items": {"properties": {"name": {}, "price": {}}, "required": ["name"]}},
            "objects with name*, price (* required)",
        ),
        ({**ROWS, "description": "Objects with name and price"}, "Objects with name and price"),
        (ROWS, "Print it."),
    ],
)
def test_the_schema_says_more_than_a_description_and_that_of_the_argument_more_than_that_of_the_tool(
    rows: Any, said: str
) -> None:
    assert siblings(shop(ROWS, rows, "Print it.\n\nMore on printers."), ["shop/sum_rows"]).endswith(f"(rows): {said}")


@pytest.mark.parametrize(
    "rows",
    [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"name": {"type": "string"}}},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"enum": ["all", "none"]},
        {"type": "string"},
    ],
)
def test_an_argument_whose_schema_says_what_it_is_needs_no_note(rows: Any) -> None:
    assert siblings(shop(rows, ROWS), ["shop/sum_rows"]) == ""


def test_the_note_repeats_nothing_that_the_worker_sees() -> None:
    assert siblings(shop(ROWS, ROWS), ["shop/sum_rows", "shop/print_rows"]) == ""
    assert siblings(shop(ROWS, ROWS, SUM), ["shop/sum_rows"]) == ""


def test_the_note_is_one_line_without_hidden_characters() -> None:
    told = siblings(shop(ROWS, ROWS, "Rows\nneed\u202e a \x1b[31mname."), ["shop/sum_rows"])
    (_, line) = told.split("\n")
    assert not {"\u202e", "\x1b"} & set(line)


def test_the_opening_of_a_worker_has_the_note() -> None:
    def rows_tool(name: str, about: str) -> StructuredTool:
        schema = {"type": "object", "properties": {"rows": ROWS}}
        made = StructuredTool(name=name, description=about, args_schema=schema, func=lambda **_: "12")
        made.metadata = {"callsheet/approval": "never"}
        return made

    model = ScriptedModel(replies=[calls("shop_sum_rows", rows=[]), AIMessage("12")])
    agents = {"shop": [rows_tool("sum_rows", SUM), rows_tool("print_rows", PRINT)]}
    settings = Settings(planning="none", tools=1, tool_floor=0)
    app = create_supervisor(agents, worker_model=model, settings=settings).compile()
    app.invoke({"messages": "add up the rows of the invoice"})
    assert f"- shop/print_rows (rows): {PRINT}" in model.shown[0]["messages"][1].text
