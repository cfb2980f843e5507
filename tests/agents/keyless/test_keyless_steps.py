"""The rule-based planner on requests of many domains; the held-out list was never tuned on."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless import split
from callsheet.graphs.catalog.errors import PlanError

# request -> (step text, numbers of the steps it depends on)
Expected = list[tuple[str, tuple[int, ...]]]

DEVELOPED: list[tuple[str, Expected]] = [
    (
        "Convert 26.2 miles to kilometres, find out what time it is in Tokyo when it is 9:30 in Berlin, "
        "and write both results to trip.txt",
        [
            ("Convert 26.2 miles to kilometres", ()),
            ("find out what time it is in Tokyo when it is 9:30 in Berlin", ()),
            ("write both results to trip.txt", (1, 2)),
        ],
    ),
    (
        "Convert 26.2 miles to kilometres, find out what time it is in Tokyo when it is 9:30 in Berlin, look up in the "
        "club's guide when the bag drop closes, and write all three results to trip.txt",
        [
            ("Convert 26.2 miles to kilometres", ()),
            ("find out what time it is in Tokyo when it is 9:30 in Berlin", ()),
            ("look up in the club's guide when the bag drop closes", ()),
            ("write all three results to trip.txt", (1, 2, 3)),
        ],
    ),
    (
        "What time is it in Tokyo when it is 10:00 in Berlin?",
        [("What time is it in Tokyo when it is 10:00 in Berlin?", ())],
    ),
    (
        "Refund order ORD-551 and then email the customer at pia@example.org that it is done",
        [("Refund order ORD-551", ()), ("email the customer at pia@example.org that it is done", (1,))],
    ),
    (
        "Book a table for two at 19:30, order a taxi to 5 Main Street, cancel my dentist appointment.",
        [
            ("Book a table for two at 19:30", ()),
            ("order a taxi to 5 Main Street", ()),
            ("cancel my dentist appointment", ()),
        ],
    ),
    (
        "Show the weather for Paris, Rome and Madrid",
        [("Show the weather for Paris, Rome and Madrid", ())],
    ),
    (
        "1. Read sales.csv\n2. Compute the total revenue\n3. Defenestrate the old report",
        [("Read sales.csv", ()), ("Compute the total revenue", (1,)), ("Defenestrate the old report", ())],
    ),
    (
        "Translate 'read and write, then stop' into German",
        [("Translate 'read and write, then stop' into German", ())],
    ),
    (
        "Summarise https://example.org/a,b;c?x=1 and save the summary as notes.md",
        [("Summarise https://example.org/a,b;c?x=1", ()), ("save the summary as notes.md", (1,))],
    ),
    (
        "Turn report.docx into a PDF. The file should be saved as report.pdf.",
        [("Turn report.docx into a PDF", ()), ("The file should be saved as report.pdf", (1,))],
    ),
    (
        "Defragment the disk; recalibrate the sensor; reboot",
        [("Defragment the disk", ()), ("recalibrate the sensor", ()), ("reboot", ())],
    ),
    (
        "Count the words in a.txt and the lines in b.txt",
        [("Count the words in a.txt and the lines in b.txt", ())],
    ),
    (
        "Get the price of AAPL, get the price of MSFT, and tell me which of the two is higher",
        [
            ("Get the price of AAPL", ()),
            ("get the price of MSFT", ()),
            ("tell me which of the two is higher", (1, 2)),
        ],
    ),
    (
        "Multiply 12 by 7. After that, subtract 4 from the result.",
        [("Multiply 12 by 7", ()), ("subtract 4 from the result", (1,))],
    ),
    (
        "Two independent jobs: (a) factor x**2-1 symbolically; (b) report how the project repository stands "
        "(clean or not). Save both lines in status.txt in the shared files.",
        [
            ("factor x**2-1 symbolically", ()),
            ("report how the project repository stands (clean or not)", ()),
            ("Save both lines in status.txt in the shared files", (1, 2)),
        ],
    ),
    (
        "Convert 26.2 miles to kilometres, take the average of that and 10 km, and put the average (2 decimals) "
        "into the memory graph as observation of entity 'training' of type 'plan'.",
        [
            ("Convert 26.2 miles to kilometres", ()),
            ("take the average of that and 10 km", (1,)),
            (
                "put the average (2 decimals) into the memory graph as observation of entity 'training' of type 'plan'",
                (2,),
            ),
        ],
    ),
    (
        "Turn files/a.html into markdown and save it as a.md next to it; then list the directory to confirm.",
        [
            ("Turn files/a.html into markdown", ()),
            ("save it as a.md next to it", (1,)),
            ("list the directory to confirm", (2,)),
        ],
    ),
    (
        "When it is 10:00 in Berlin, what time is it in Tokyo? Store the answer as an entity named 'Tokyo call' "
        "of type 'meeting' in the memory graph with the Tokyo time as an observation.",
        [
            ("When it is 10:00 in Berlin, what time is it in Tokyo?", ()),
            (
                "Store the answer as an entity named 'Tokyo call' of type 'meeting' in the memory graph "
                "with the Tokyo time as an observation",
                (1,),
            ),
        ],
    ),
    (
        "Write CHANGES.md with the line '- first release' into the project repository, stage it and commit it "
        "with the message 'Add changes file'.",
        [
            ("Write CHANGES.md with the line '- first release' into the project repository", ()),
            ("stage it", (1,)),
            ("commit it with the message 'Add changes file'", (2,)),
        ],
    ),
    (
        "Find the cheapest flight from Oslo to Lima on 2026-03-04 and then book it",
        [("Find the cheapest flight from Oslo to Lima on 2026-03-04", ()), ("book it", (1,))],
    ),
    (
        "Please list all open tickets, count them, and post the number to the #support channel",
        [
            ("list all open tickets", ()),
            ("count them", (1,)),
            ("post the number to the #support channel", (2,)),
        ],
    ),
    (
        "How many litres are 3 gallons and what is 72 F in Celsius?",
        [("How many litres are 3 gallons", ()), ("what is 72 F in Celsius?", ())],
    ),
    (
        "Compute the mean as well as the median of 3, 5 and 9",
        [("Compute the mean as well as the median of 3, 5 and 9", ())],
    ),
    (
        "Find the name and address of customer 42 and delete the duplicate record",
        [("Find the name and address of customer 42", ()), ("delete the duplicate record", ())],
    ),
    (
        "- resize logo.png to 64x64\n- upload it to the CDN\n- notify the design team",
        [("resize logo.png to 64x64", ()), ("upload it to the CDN", (1,)), ("notify the design team", ())],
    ),
    (
        "Quelle heure est-il ? Merci de traduire le texte.",
        [("Quelle heure est-il ?", ()), ("Merci de traduire le texte", ())],
    ),
    ("东京现在几点？把结果写入文件。", [("东京现在几点？", ()), ("把结果写入文件", ())]),
]

HELD_OUT: list[tuple[str, Expected]] = [
    (
        "Look up the population of Chile, look up the population of Peru, and work out the difference between them",
        [
            ("Look up the population of Chile", ()),
            ("look up the population of Peru", ()),
            ("work out the difference between them", (1, 2)),
        ],
    ),
    (
        "Scan the inbox for invoices, forward them to accounting@example.com and archive the originals",
        [
            ("Scan the inbox for invoices", ()),
            ("forward them to accounting@example.com", (1,)),
            ("archive the originals", ()),
        ],
    ),
    (
        "Create a branch named fix/login, and finally push it",
        [("Create a branch named fix/login", ()), ("push it", (1,))],
    ),
    (
        "Can you check whether server web-3 is up and restart it if it is down?",
        [("check whether server web-3 is up", ()), ("restart it if it is down?", (1,))],
    ),
    (
        "Measure 3 cups of flour, knead the dough and preheat the oven to 220 C",
        [("Measure 3 cups of flour", ()), ("knead the dough", ()), ("preheat the oven to 220 C", ())],
    ),
    (
        "I'd like to know the capital of Mongolia. Also, what is 17% of 340?",
        [("I'd like to know the capital of Mongolia", ()), ("what is 17% of 340?", ())],
    ),
    (
        "Run the tests, then deploy version 2.4.1 to staging, then send a message to Slack",
        [
            ("Run the tests", ()),
            ("deploy version 2.4.1 to staging", (1,)),
            ("send a message to Slack", (2,)),
        ],
    ),
    (
        "Give Mark, Rose and Bill access to the budget sheet",
        [("Give Mark, Rose and Bill access to the budget sheet", ())],
    ),
    (
        "Query the orders table with `SELECT a, b FROM orders WHERE x = 1 and y = 2; ` and export the rows to out.csv",
        [
            ("Query the orders table with `SELECT a, b FROM orders WHERE x = 1 and y = 2; `", ()),
            ("export the rows to out.csv", (1,)),
        ],
    ),
    (
        "Extract the text from scan.pdf, translate it into French, and email the translation to luc@example.fr",
        [
            ("Extract the text from scan.pdf", ()),
            ("translate it into French", (1,)),
            ("email the translation to luc@example.fr", (2,)),
        ],
    ),
    (
        "Generate a QR code for https://example.org as well as print a label for parcel PX-77",
        [("Generate a QR code for https://example.org", ()), ("print a label for parcel PX-77", ())],
    ),
    (
        "Calculate 12 * 7 + 3 and append the answer to log.txt",
        [("Calculate 12 * 7 + 3", ()), ("append the answer to log.txt", (1,))],
    ),
]


def steps_of(request: str) -> Expected:
    return [(step.text, tuple(map(int, step.depends_on))) for step in split(request).steps]


@pytest.mark.parametrize(("request_", "expected"), DEVELOPED)
def test_developed(request_: str, expected: Expected) -> None:
    assert steps_of(request_) == expected


@pytest.mark.parametrize(("request_", "expected"), HELD_OUT)
def test_held_out(request_: str, expected: Expected) -> None:
    assert steps_of(request_) == expected


@pytest.mark.parametrize("request_", ["", "   ", "\n\t "])
def test_nothing_asked(request_: str) -> None:
    with pytest.raises(PlanError, match="empty"):
        split(request_)


@pytest.mark.parametrize(
    "request_", ["?", "...", ";;;", "and then", "1.", "- \n- ", "'", "(a)", "then then then", "\u3002", "a" * 5000]
)
def test_odd_requests_give_a_plan(request_: str) -> None:
    plan = split(request_)
    assert all(step.text.strip() for step in plan.steps)


@pytest.mark.parametrize("request_", [request for request, _ in DEVELOPED + HELD_OUT])
def test_every_word_is_the_requests_own(request_: str) -> None:
    assert all(step.text in request_ for step in split(request_).steps)


def test_a_number_after_a_noun_is_no_order() -> None:
    assert [step.text for step in split("List issues, limit 5").steps] == ["List issues, limit 5"]
    assert [step.text for step in split("Convert 3 miles to km, add 5").steps] == ["Convert 3 miles to km", "add 5"]
