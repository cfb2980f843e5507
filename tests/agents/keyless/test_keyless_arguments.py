"""Arguments by schema on sentences of many domains; the held-out list was never tuned on."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import Filled, fill


def schema(required: str, /, **properties: Any) -> dict[str, Any]:
    """A schema from a compact form: a bare string is a type, a dict is the property itself."""
    specs = {name: {"type": spec} if isinstance(spec, str) else spec for name, spec in properties.items()}
    return {"type": "object", "properties": specs, "required": required.split()}


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


LENGTH = {"type": "string", "enum": ["centimeter", "foot", "inch", "kilometer", "meter", "mile", "nautical mile"]}
CONVERT = schema("value from_unit to_unit", value="number", from_unit=LENGTH, to_unit=LENGTH)
TEMPERATURE = {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]}
HEAT = schema("value from_unit to_unit", value="number", from_unit=TEMPERATURE, to_unit=TEMPERATURE)
IANA = "IANA timezone name (e.g., 'America/New_York', 'Europe/London')."
ZONES = schema(
    "source_timezone time target_timezone",
    source_timezone=text("Source " + IANA),
    time=text("Time to convert in 24-hour format (HH:MM)"),
    target_timezone=text("Target " + IANA),
)
WRITE = schema(
    "file_path text",
    file_path=text("name of file"),
    text=text("text to write to file"),
    append={"type": "boolean", "default": False, "description": "Whether to append to an existing file."},
)
ENTITIES = schema(
    "entities",
    entities={
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "name": text("The name of the entity"),
                "entityType": text("The type of the entity"),
                "observations": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "An array of observations",
                },
            },
            "required": ["name", "entityType", "observations"],
        },
    },
)
MAIL = schema(
    "to subject body",
    to=text("Recipient's e-mail address"),
    subject=text("Subject line"),
    body=text("Text of the mail"),
)
ORDER = schema("order_id", order_id=text("Id of the order"), reason=text("Why"), notify={"type": "boolean"})
SQL = schema("query", query=text("SELECT SQL query to execute"))
SEARCH = schema("query", query=text("What to search for"), max_results="integer")
NUMBERS = schema(
    "numbers operation",
    numbers={"type": "array", "items": {"type": "number"}},
    operation=text("One of: mean, median, mode, std_dev, variance"),
)
PRIORITY = schema(
    "title",
    title=text("Title of the ticket"),
    priority={"type": "string", "enum": ["low", "medium", "high"]},
    due_date=text("Due date", format="date"),
)
EXPR = schema("expression", expression="string")
MOVE = schema("source destination", source="string", destination="string")
CSV = schema(
    "path", path=text("CSV file"), has_header={"type": "boolean"}, delimiter={"enum": ["comma", "semicolon", "tab"]}
)
CURRENCY = schema("amount from_currency to_currency", amount="number", from_currency="string", to_currency="string")
LAMP = schema(
    "room state",
    room={"enum": ["living_room", "kitchen", "bed_room"]},
    state={"enum": ["on", "off"]},
    brightness="integer",
)

CASES = list[tuple[dict[str, Any], str, dict[str, Any], tuple[str, ...]]]

DEVELOPED: CASES = [
    (CONVERT, "Convert 26.2 miles to kilometres", {"value": 26.2, "from_unit": "mile", "to_unit": "kilometer"}, ()),
    (CONVERT, "how many km are 3 miles", {"value": 3, "from_unit": "mile", "to_unit": "kilometer"}, ()),
    (CONVERT, "convert miles to feet", {"from_unit": "mile", "to_unit": "foot"}, ("value",)),
    (HEAT, "What is 72 °F in Celsius?", {"value": 72, "from_unit": "fahrenheit", "to_unit": "celsius"}, ()),
    (
        ZONES,
        "what time is it in Tokyo when it is 9:30 in Berlin",
        {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Tokyo"},
        (),
    ),
    (
        ZONES,
        "When it is 3pm in New York, what time is it in India?",
        {"source_timezone": "America/New_York", "time": "15:00", "target_timezone": "Asia/Kolkata"},
        (),
    ),
    (ZONES, "What time is it in Lima?", {"target_timezone": "America/Lima"}, ("source_timezone", "time")),
    (schema("timezone", timezone=text(IANA)), "current time in Sydney", {"timezone": "Australia/Sydney"}, ()),
    (WRITE, "Write 'hello, world' to notes/hello.txt", {"file_path": "notes/hello.txt", "text": "hello, world"}, ()),
    (WRITE, "write it to out.txt", {"file_path": "out.txt"}, ("text",)),
    (ENTITIES, "Create an entity named 'Probe'", {}, ("entities",)),
    (
        MAIL,
        "Email ann@example.com with subject 'Lunch' and body 'At noon?'",
        {"to": "ann@example.com", "subject": "Lunch", "body": "At noon?"},
        (),
    ),
    (MAIL, "Email ann@example.com", {"to": "ann@example.com"}, ("subject", "body")),
    (ORDER, "Refund order ORD-551", {"order_id": "ORD-551"}, ()),
    (ORDER, "Refund order ORD-551 and do not notify", {"order_id": "ORD-551", "notify": False}, ()),
    (ORDER, "Refund my order", {}, ("order_id",)),
    (SQL, "run `SELECT * FROM users`", {"query": "SELECT * FROM users"}, ()),
    (
        SQL,
        "Run SELECT name, age FROM people WHERE age > 3",
        {"query": "SELECT name, age FROM people WHERE age > 3"},
        (),
    ),
    (SQL, "show me the users", {}, ("query",)),
    (SEARCH, "Search the web for cheap flights to Oslo", {"query": "cheap flights to Oslo"}, ()),
    (SEARCH, "Please search", {}, ("query",)),
    (NUMBERS, "Compute the median of 3, 5 and 9", {"numbers": [3, 5, 9], "operation": "median"}, ()),
    (PRIORITY, "Open a high priority ticket titled 'Login broken'", {"title": "Login broken", "priority": "high"}, ()),
    (EXPR, "Calculate 12 * 7 + 3", {"expression": "12 * 7 + 3"}, ()),
    (EXPR, "factor x**2-1 symbolically", {"expression": "x**2-1"}, ()),
    (EXPR, "Calculate the tax", {}, ("expression",)),
    (EXPR, "What is 1,000 + 2,500.5?", {"expression": "1000 + 2500.5"}, ()),
    (EXPR, "What is 2^10 ÷ 4 × 3?", {"expression": "2**10 / 4 * 3"}, ()),
    (EXPR, "round(1,200)", {"expression": "round(1,200)"}, ()),
    (MOVE, "Move a.txt to archive/a.txt", {"source": "a.txt", "destination": "archive/a.txt"}, ()),
    (CSV, "Read data.csv without headers", {"path": "data.csv", "has_header": False}, ()),
    (
        CSV,
        "Read data.csv, semicolon separated, with a header",
        {"path": "data.csv", "has_header": True, "delimiter": "semicolon"},
        (),
    ),
    (LAMP, "Turn off the lamp in the living room", {"room": "living_room", "state": "off"}, ()),
    (
        schema("a b", a=text("First number", type="number"), b=text("Second number", type="number")),
        "What is the sum of 3 and 4.5?",
        {"a": 3, "b": 4.5},
        (),
    ),
    (
        schema("url", url=text("URL to fetch")),
        "Fetch https://example.org/x?y=1.",
        {"url": "https://example.org/x?y=1"},
        (),
    ),
]

HELD_OUT: CASES = [
    (CONVERT, "How many inches are there in 2.5 feet?", {"value": 2.5, "from_unit": "foot", "to_unit": "inch"}, ()),
    (
        CONVERT,
        "change 40 nautical miles into km",
        {"value": 40, "from_unit": "nautical mile", "to_unit": "kilometer"},
        (),
    ),
    (HEAT, "express 300 K in degrees Fahrenheit", {"value": 300, "from_unit": "kelvin", "to_unit": "fahrenheit"}, ()),
    (
        ZONES,
        "Convert 18:45 from Los Angeles to Paris time",
        {"source_timezone": "America/Los_Angeles", "time": "18:45", "target_timezone": "Europe/Paris"},
        (),
    ),
    (
        schema("city country", city=text("City name"), country=text("Country name")),
        "What is the weather in Lyon?",
        {"city": "Lyon"},
        ("country",),
    ),
    (
        schema(
            "sku quantity",
            sku=text("Stock keeping unit"),
            quantity=text("How many", type="integer"),
            warehouse="string",
        ),
        "Reserve 12 pieces of SKU-9917",
        {"sku": "SKU-9917", "quantity": 12},
        (),
    ),
    (
        schema(
            "principal rate years", principal="number", rate=text("Percent per year", type="number"), years="number"
        ),
        "Interest on a principal of 2,500 at a rate of 4% over 3 years",
        {"principal": 2500, "rate": 4, "years": 3},
        (),
    ),
    (
        schema("paths", paths={"type": "array", "items": {"type": "string"}, "description": "Files to read"}),
        "Read a.txt, b.txt and src/c.py",
        {"paths": ["a.txt", "b.txt", "src/c.py"]},
        (),
    ),
    (
        schema("directory", directory="string", recursive="boolean", pattern="string"),
        "List /var/log recursively",
        {"directory": "/var/log", "recursive": True},
        (),
    ),
    (LAMP, "set the kitchen light on with brightness 40", {"room": "kitchen", "state": "on", "brightness": 40}, ()),
    (PRIORITY, "Open a ticket about the broken login", {}, ("title",)),
    (EXPR, "What is 15% of 240?", {"expression": "15/100*240"}, ()),
    (
        schema("to message", to=text("Phone number"), message=text("Text to send")),
        'Text +49 170 1234567 "I\'m late"',
        {"to": "+49 170 1234567", "message": "I'm late"},
        (),
    ),
]


@pytest.mark.parametrize(("given", "said", "args", "missing"), DEVELOPED)
def test_developed(given: dict[str, Any], said: str, args: dict[str, Any], missing: tuple[str, ...]) -> None:
    assert fill(given, said) == Filled(args, missing)


@pytest.mark.parametrize(("given", "said", "args", "missing"), HELD_OUT)
def test_held_out(given: dict[str, Any], said: str, args: dict[str, Any], missing: tuple[str, ...]) -> None:
    assert fill(given, said) == Filled(args, missing)


BEYOND: list[tuple[dict[str, Any], str]] = [
    (ENTITIES, "Create an entity named 'Probe' of type 'device' with the observation 'is blue'"),
    (CURRENCY, "Convert 100 USD to EUR"),
    (CURRENCY, "how much is 20 euros in yen"),
    (schema("table_name", table_name=text("Name of the table to describe")), "Describe the customers table"),
    (
        schema("repo_path branch_name", repo_path="string", branch_name="string"),
        "Create a branch named fix/login in ./shop",
    ),
    (
        schema("text target_language", text="string", target_language=text("The code of a language")),
        "Translate 'good morning' into Portuguese",
    ),
    (
        schema("event start", event=text("Title"), start=text("Start", format="date-time")),
        "Add an event called 'Stand-up' on 2026-05-04 at 9am",
    ),
]
"""What rules do not read."""


@pytest.mark.parametrize(("given", "said"), BEYOND)
def test_what_rules_do_not_read_is_asked_for(given: dict[str, Any], said: str) -> None:
    assert fill(given, said).missing


@pytest.mark.parametrize(
    ("description", "rate"),
    [
        ("Annual rate as a decimal", 0.05),
        ("Share, between 0 and 1", 0.05),
        ("Rate, e.g. 0.07", 0.05),
        ("Percent per year", 5),
        ("Rate from 0 to 100", 5),
        ("", 5),
    ],
)
@pytest.mark.parametrize(
    "said", ["interest on 1000 at 5% for 3 years", "interest on 1000 at a rate of 5 percent over 3 years"]
)
def test_a_percentage_is_a_share_of_1_where_the_tool_says_so(description: str, rate: float, said: str) -> None:
    tool = schema("principal rate years", principal="number", rate=text(description, type="number"), years="number")
    assert fill(tool, said) == Filled({"principal": 1000, "rate": rate, "years": 3}, ())


def test_the_tools_own_line_about_a_parameter_counts() -> None:
    tool = schema("principal rate years", principal="number", rate="number", years="number")
    about = "compound interest\n- p = principal\n- r = annual rate (as decimal)\n- t = time in years"
    assert fill({**tool, "description": about}, "interest on 1000 at 5% for 3 years").args["rate"] == 0.05
