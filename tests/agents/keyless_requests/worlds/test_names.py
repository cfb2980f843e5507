"""Names without quotation marks, places that a description gives its parameters, and politeness, without a model."""

from __future__ import annotations

import pytest

from offered_calls import NUMBER, TEXT, WHOLE, Calls, World, tool

WORLD = World(
    tool("lend_book", "Lend a book to a reader.", "title reader", title=TEXT, reader=TEXT),
    tool("send_message", "Send a message to a user.", "user text", user=TEXT, text=TEXT),
    tool("add_song", "Add a song to a playlist.", "playlist song", playlist=TEXT, song=TEXT),
    tool("create_playlist", "Create a playlist.", "name", name=TEXT),
    tool("assign_ticket", "Assign a ticket to a person.", "ticket_id assignee", ticket_id=WHOLE, assignee=TEXT),
    tool("create_ticket", "Create a ticket.", "title", title=TEXT),
    tool("comment_ticket", "Add a comment to a ticket.", "ticket_id comment", ticket_id=WHOLE, comment=TEXT),
    tool("delete_branch", "Delete a branch.", "branch", branch=TEXT),
    tool("create_branch", "Create a branch.", "name", name=TEXT, base=TEXT),
    tool("restart_server", "Restart a server.", "server", server=TEXT),
    tool("restart_service", "Restart a service.", "name", name=TEXT),
    tool("book_room", "Book a room for a guest.", "guest room", guest=TEXT, room=WHOLE, nights=WHOLE),
    tool("find_flights", "Find flights.", "origin destination", origin=TEXT, destination=TEXT),
    tool("change_password", "Change a password.", "old_password new_password", old_password=TEXT, new_password=TEXT),
    tool("delete_room", "Delete a room.", "room_id", room_id=WHOLE),
    tool("set_price", "Set the price of a room.", "room_id price", room_id=WHOLE, price=NUMBER),
)
LENT = {"title": "Dune", "reader": "Nora"}
FLIGHT = {"origin": "Berlin", "destination": "New York"}


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Lend 'Dune' to 'Nora'", [("lend_book", LENT)]),
        ("Lend Dune to the reader Nora", [("lend_book", LENT)]),
        ("Lend to Nora 'Dune'", [("lend_book", LENT)]),
        ("Send 'hi' to Bob", [("send_message", {"user": "Bob", "text": "hi"})]),
        ("Send a message to Bob saying 'hi'", [("send_message", {"user": "Bob", "text": "hi"})]),
        ("Comment 'done' on ticket 5", [("comment_ticket", {"ticket_id": 5, "comment": "done"})]),
        ("Add 'Yesterday' to 'Old songs'", [("add_song", {"playlist": "Old songs", "song": "Yesterday"})]),
        ("Book room 12 for Dr. Lee for 3 nights", [("book_room", {"guest": "Dr. Lee", "room": 12, "nights": 3})]),
        ("Assign ticket 5 to Anna Smith", [("assign_ticket", {"ticket_id": 5, "assignee": "Anna Smith"})]),
        ("Assign Anna to ticket 5", [("assign_ticket", {"ticket_id": 5, "assignee": "Anna"})]),
        ("Find flights to New York from Berlin", [("find_flights", FLIGHT)]),
        ("Find flights from 'Berlin' to 'New York'", [("find_flights", FLIGHT)]),
        ("Change the password from 'a' to 'b'", [("change_password", {"old_password": "a", "new_password": "b"})]),
    ],
)
def test_values_in_the_places_of_the_description(request_: str, calls: Calls) -> None:
    assert WORLD.calls(request_) == calls


@pytest.mark.parametrize(
    "request_",
    [
        "Lend 'Nora' 'Dune'",
        "Lend Nora Dune",
        "Lend 'Dune' from 'Nora'",
        "Lend Dune to Nora and Ann",
        "Lend Dune to Nora on Monday",
        "Send Bob to Anna",
        "Send 'hi' to Bob in Slack",
        "Assign ticket 5 from Anna",
        "Add 2 of 'milk'",  # a comment to ticket 2
        "Assign ticket 5 to Monday",
        "Assign ticket 5 to Anna's team",
        "Book room 12 by 'Ann'",
        "Find flights from Berlin",
        "Find flights from Berlin to Paris or Rome",
    ],
)
def test_other_places_are_refused(request_: str) -> None:
    assert WORLD.calls(request_) == []


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Create a playlist called Focus", [("create_playlist", {"name": "Focus"})]),
        ("Create a playlist named Morning Run", [("create_playlist", {"name": "Morning Run"})]),
        ("Restart the service Nginx", [("restart_service", {"name": "Nginx"})]),
        ("Restart the server web-1", [("restart_server", {"server": "web-1"})]),
        ("Delete the branch feature/login", [("delete_branch", {"branch": "feature/login"})]),
        ("Create a branch release_2 from Main", [("create_branch", {"name": "release_2", "base": "Main"})]),
    ],
)
def test_names(request_: str, calls: Calls) -> None:
    assert WORLD.calls(request_) == calls


@pytest.mark.parametrize(
    "request_",
    [
        "Restart Nginx",  # a server, or a service
        "Restart Nginx and Apache",
        "Create a Ticket",
        "Create a Jira ticket",
        "Create a ticket in Jira",
        "Create a ticket for Anna",
        "Create a ticket about Login",
        "Create a ticket NOW",
        "Create a playlist on Monday",
        "Create a playlist Immediately",
        "Create a branch from Main",
        "Delete the branch of Main",
    ],
)
def test_no_names(request_: str) -> None:
    assert WORLD.calls(request_) == []


@pytest.mark.parametrize(
    "request_",
    [
        "just delete room 5",
        "Ok, delete room 5",
        "Hey, delete room 5!",
        "now delete room 5 pls",
        "Go ahead and delete room 5",
        "Can u delete room 5?",
        "Delete room 5, thanks",
        "Delete room 5, please.",
    ],
)
def test_politeness(request_: str) -> None:
    assert WORLD.calls(request_) == [("delete_room", {"room_id": 5})]


@pytest.mark.parametrize(
    "request_",
    [
        "I want to delete room 5",
        "Now that it is empty, delete room 5",
        "Just kidding, delete room 5",
        "Okay to delete room 5?",
        "Delete room 5? Thanks",
        "Hey, did you delete room 5?",
    ],
)
def test_no_orders(request_: str) -> None:
    assert WORLD.calls(request_) == []
