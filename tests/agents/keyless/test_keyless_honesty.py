"""Requests that lack a value: what is not said is asked for, never invented."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import fill

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
        {},
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
