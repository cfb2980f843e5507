"""Several orders that share one verb."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless import split


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        ("Convert 3 miles to km and 5 lb to kg", ["Convert 3 miles to km", "Convert 5 lb to kg"]),
        (
            "convert 3 miles to km, 5 lb to kg, and 10 F to C",
            ["convert 3 miles to km", "convert 5 lb to kg", "convert 10 F to C"],
        ),
        (
            "Find flights from Paris to London and trains from Rome to Milan",
            ["Find flights from Paris to London", "Find trains from Rome to Milan"],
        ),
        ("Send 'red and blue' to Ann & 'bye' to Bob", ["Send 'red and blue' to Ann", "Send 'bye' to Bob"]),
        ("Show me hotels in Rome and bars in Milan", ["Show me hotels in Rome", "Show me bars in Milan"]),
        ("Look up cats in a.txt and dogs in b.txt", ["Look up cats in a.txt", "Look up dogs in b.txt"]),
    ],
)
def test_each_object_with_the_same_prepositions_is_an_order(request_: str, steps: list[str]) -> None:
    assert [step.text for step in split(request_).steps] == steps


@pytest.mark.parametrize(
    "request_",
    [
        "Find flights from Paris to London and Berlin",
        "Convert 5 km to miles and yards",
        "Compare rents in Berlin and prices in Rome",
        "Write a story about life in Paris and love in Rome",
        "Schedule a meeting with Ann on Monday and Bob on Tuesday",
        "Send an email to Ann and Bob about the trip to Rome",
        "What is the time in Tokyo and the weather in Rome?",
        "Add to the list and to the cart",
        "Zip and",
    ],
)
def test_anything_else_stays_whole(request_: str) -> None:
    assert len(split(request_).steps) == 1


def test_what_comes_after_waits_for_all_of_them() -> None:
    steps = split("Convert 3 miles to km and 5 lb to kg, then save all results to a.txt").steps
    assert [(step.text, step.depends_on) for step in steps[2:]] == [("save all results to a.txt", ("1", "2"))]


def test_a_pronoun_waits_for_the_first() -> None:
    steps = split("Create a folder in /tmp and a file in it").steps
    assert [step.depends_on for step in steps] == [(), ("1",)]
