"""Requests to a cloud, trips, books and recipes, without a model: labels, flags, lists, periods and bounds."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless.entities.result_values import line
from callsheet.agents.planning.plan import StepResult
from offered_calls import DAY, FLAG, NUMBER, TEXT, TEXTS, WHOLE, Calls, World, one_of, tool

WORLD = World(
    tool("move_book", "Move a book.", "title from_shelf to_shelf", title=TEXT, from_shelf=TEXT, to_shelf=TEXT),
    tool("lend_book", "Lend a book to a person.", "title person", title=TEXT, person=TEXT),
    tool("return_book", "Return a book.", "title", title=TEXT),
    tool("find_books", "Find books.", min_pages=WHOLE, max_pages=WHOLE),
    tool("change_password", "Change a password.", "user old_password new_password", user=TEXT, old_password=TEXT,
         new_password=TEXT),
    tool("set_alarm", "Set the alarm of a sensor.", "sensor lower_limit upper_limit", sensor=TEXT, lower_limit=WHOLE,
         upper_limit=WHOLE),
    tool("rollback", "Roll back a service to a version.", "service to_version", service=TEXT, to_version=TEXT),
    tool("attach_volume", "Attach a volume to a server.", "volume server", volume=TEXT, server=TEXT),
    tool("restart_server", "Restart a server.", "name", name=TEXT, force=FLAG),
    tool("stop_server", "Stop a server.", "name", name=TEXT),
    tool("move_trip", "Move a trip.", "trip_code start_date end_date", trip_code=TEXT, start_date=DAY, end_date=DAY),
    tool("cancel_booking", "Cancel a booking; refund=false keeps the credit.", "booking_ref", booking_ref=TEXT,
         refund={**FLAG, "default": True}),
    tool("set_budget", "Set the budget of a trip.", "trip_code amount", trip_code=TEXT, amount=NUMBER,
         currency=one_of("EUR", "USD")),
    tool("list_trips", "List the trips with dates, budget, rating and guests."),
    tool("add_to_list", "Put items on the shopping list.", "items", items=TEXTS, store=TEXT),
    tool("set_env_var", "Set an environment variable.", "service key value", service=TEXT, key=TEXT, value=TEXT),
    tool("search_flights", "Search flights.", "origin destination", origin=TEXT, destination=TEXT),
    tool("reserve_lodging", "Reserve lodging for a trip.", "trip_code checkIn checkOut", trip_code=TEXT, checkIn=TEXT,
         checkOut=TEXT),
    tool("convert_file", "Convert a file.", "from_format to_format", from_format=one_of("md", "html"),
         to_format=one_of("md", "html")),
    tool("record_grade", "Record the grade of a student.", "student grade", student=TEXT, grade=WHOLE),
)  # fmt: skip
SHELVES = [("move_book", {"title": "Dune", "from_shelf": "A", "to_shelf": "B"})]
JUNE = [("move_trip", {"trip_code": "TRIP-2", "start_date": "2027-06-03", "end_date": "2027-06-10"})]


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ('move book title "Dune" from shelf "A" to shelf "B"', SHELVES),
        ('move book title "Dune" to shelf "B" from shelf "A"', SHELVES),
        (
            'change the password of user "bob" with new password "y" and old password "x"',
            [("change_password", {"user": "bob", "old_password": "x", "new_password": "y"})],
        ),
        (
            'set the alarm of sensor "T1" upper limit 10 lower limit 5',
            [("set_alarm", {"sensor": "T1", "lower_limit": 5, "upper_limit": 10})],
        ),
        ("move TRIP-2 from 2027-06-03 to 2027-06-10", JUNE),
        ("cancel BK-1 with refund=false", [("cancel_booking", {"booking_ref": "BK-1", "refund": False})]),
        ("cancel BK-1 with refund on", [("cancel_booking", {"booking_ref": "BK-1", "refund": True})]),
        ('force restart "web-1"', [("restart_server", {"name": "web-1", "force": True})]),
        ('put "milk" and "eggs" on the list', [("add_to_list", {"items": ["milk", "eggs"]})]),
        ("find books up to 500 pages", [("find_books", {"max_pages": 500})]),
        ("find books over 500 pages", [("find_books", {"min_pages": 500})]),
        ('return "Dune"', [("return_book", {"title": "Dune"})]),
        (
            'stop "web-2" and return "Dune"',
            [("stop_server", {"name": "web-2"}), ("return_book", {"title": "Dune"})],
        ),
        (
            'set the variable of service "api" with the key "A" and the value "b"',
            [("set_env_var", {"service": "api", "key": "A", "value": "b"})],
        ),
        (
            'search flights with origin "JFK" and destination "FRA"',
            [("search_flights", {"origin": "JFK", "destination": "FRA"})],
        ),
        (
            "reserve lodging for TRIP-2 from 2027-06-03 to 2027-06-10",
            [("reserve_lodging", {"trip_code": "TRIP-2", "checkIn": "2027-06-03", "checkOut": "2027-06-10"})],
        ),
        ("list the trips", [("list_trips", {})]),
        ("convert a file from md to html", [("convert_file", {"from_format": "md", "to_format": "html"})]),
    ],
)
def test_what_is_said_is_called(request_: str, calls: Calls) -> None:
    assert WORLD.calls(request_) == calls


@pytest.mark.parametrize(
    "request_",
    [
        'change the password of user "bob" with password "y" and password "x"',
        'roll back service "api" from version "1.1.0"',
        'attach volume "backup" from server "web-2"',
        'lend title "Dune" from person "Nora"',
        "move TRIP-2 to 2027-06-03 - 2027-06-10",
        'set the alarm of sensor "T1" lower limit 10 upper limit 5',
        'put "milk" from "Lidl" on the list',
        'put "milk" from "Lidl" and "eggs" from "Aldi" on the list',
        "cancel the refund of BK-1",
        "refund BK-1",
        "cancel BK-1 really",
        'force "web-1"',
        'return the title of "Dune"',
        "set the budget of TRIP-2 to A$500",
        "set the budget of TRIP-2 to 3.000 EUR",
        'record the grade 2- of student "Jonas"',
        "which trips have guests?",
        "list the trips with a rating",
    ],
)
def test_nothing_is_left_over(request_: str) -> None:
    assert WORLD.calls(request_) == []


def test_a_bound_is_not_asked_for() -> None:
    found = StepResult(id="1", text="list recipes up to 30 minutes", result='{"title": "Soup", "minutes": 20}')
    assert line(found) == 'List recipes up to 30 minutes: {"title": "Soup", "minutes": 20}'
