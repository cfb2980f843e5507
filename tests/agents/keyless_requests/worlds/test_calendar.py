"""Requests to a calendar, without a model: dates in words, and dates with times."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless.entities.dates import iso_date
from offered_calls import DAY, TEXT, World, tool

MOMENT = {"type": "string", "format": "date-time"}
TOLD = {"type": "string", "description": "When it ends (ISO 8601)"}
WORLD = World(
    tool("create_event", "Create an event.", "title start", title=TEXT, start=MOMENT, end=TOLD),
    tool("find_flights", "Find flights.", "origin destination", origin=TEXT, destination=TEXT, date=DAY),
)
FLIGHT = {"origin": "Berlin", "destination": "Paris", "date": "2027-03-01"}


@pytest.mark.parametrize(
    ("said", "start", "end"),
    [
        ("on 2027-03-01 at 10:00", "2027-03-01T10:00:00", ""),
        ("at 10am on 1 March 2027", "2027-03-01T10:00:00", ""),
        ("on March 1st, 2027, 10:00", "2027-03-01T10:00:00", ""),
        ("on 2027-03-01 from 10:00 to 11:00", "2027-03-01T10:00:00", "2027-03-01T11:00:00"),
        ("from 10:00 to 11:30 on the 1st of March 2027", "2027-03-01T10:00:00", "2027-03-01T11:30:00"),
        ("from 1 March 2027 10:00 to 2 March 2027 11:30", "2027-03-01T10:00:00", "2027-03-02T11:30:00"),
        ("from 2027-03-01T10:00 to 2027-03-01 11:00", "2027-03-01T10:00", "2027-03-01T11:00"),
    ],
)
def test_a_date_with_a_time(said: str, start: str, end: str) -> None:
    args = {"title": "Stand-up", "start": start} | ({"end": end} if end else {})
    assert WORLD.calls(f"Create an event 'Stand-up' {said}") == [("create_event", args)]


@pytest.mark.parametrize(
    "said",
    [
        "on 2027-03-01",
        "at 10:00",
        "on 1 March at 10:00",
        "on 2027-02-30 at 10:00",
        "on 2027-03-01 and 2027-03-02 at 10:00",
        "on 2027-03-01 at 10:00 and 12:00",
        "on 2027-03-01 from 11:00 to 10:00",
        "on 2027-03-01 at 10:00 for 2 hours",
        "on 2027-03-01 at 10:00 UTC",
        "on Monday at 10:00",
    ],
)
def test_what_is_unclear_or_left_over_is_refused(said: str) -> None:
    assert WORLD.calls(f"Create an event 'Stand-up' {said}") == []


def test_a_day_in_words() -> None:
    assert WORLD.calls("Find flights from Berlin to Paris on 1 March 2027") == [("find_flights", FLIGHT)]
    assert WORLD.calls("Find flights from Berlin to Paris on 1 March") == []
    assert WORLD.calls("Find flights from Berlin to Paris on 1 March 2027 at 10:00") == []


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("3rd of May, 2027", "2027-05-03"),
        ("Sep 9 2027", "2027-09-09"),
        ("2027-05-03 10:00", "2027-05-03T10:00"),
        ("31 April 2027", ""),
        ("3 May", ""),
        ("2027-13-01", ""),
    ],
)
def test_dates_in_iso_8601(said: str, value: str) -> None:
    assert iso_date(said) == value
