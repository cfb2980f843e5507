"""Requests to a hotel and a smart home, without a model: the calls, or none where something is left over."""

from __future__ import annotations

import pytest

from callsheet.agents.planning.plan import StepResult
from offered_calls import DAY, FLAG, NUMBER, TEXT, TEXTS, WHOLE, Calls, World, one_of, tool

STATUS, COLOUR = one_of("free", "occupied", "cleaning"), one_of("red", "green", "blue", "white")
ROOM, DOOR = one_of("kitchen", "bedroom", "office"), one_of("front", "back", "garage")
HOTEL = World(
    tool("delete_room", "Delete a room from the hotel's inventory.", "room_number", room_number=WHOLE),
    tool(
        "get_room",
        "Get one room by its number.",
        "room_number",
        "room_number price_per_night status",
        room_number=WHOLE,
    ),
    tool(
        "list_rooms",
        "List the hotel's rooms, optionally by floor, status or maximum price per night.",
        floor=WHOLE,
        status=STATUS,
        max_price=NUMBER,
    ),
    tool(
        "set_room_price",
        "Set the price per night of a room, in EUR.",
        "room_number price_per_night",
        room_number=WHOLE,
        price_per_night=NUMBER,
    ),
    tool("set_room_status", "Set the status of a room.", "room_number status", room_number=WHOLE, status=STATUS),
    tool(
        "create_booking",
        "Book a room for a guest.",
        "guest_name room_number check_in check_out",
        guest_name=TEXT,
        room_number=WHOLE,
        check_in=DAY,
        check_out=DAY,
        breakfast=FLAG,
    ),
    tool("cancel_booking", "Cancel a booking, by default with a refund.", "booking_id", booking_id=WHOLE),
    tool("add_booking_note", "Add a note to a booking.", "booking_id text", booking_id=WHOLE, text=TEXT),
    tool(
        "charge_booking",
        "Charge an amount of money to a booking.",
        "booking_id amount",
        booking_id=WHOLE,
        amount=NUMBER,
        currency=one_of("EUR", "USD", "GBP"),
    ),
    tool("send_email", "Send an e-mail to a guest.", "to", to=TEXT, subject=TEXT, body=TEXT),
    tool("turnOn", "Turn devices on.", "deviceIds", deviceIds=TEXTS),
    tool("turnOff", "Turn devices off.", "deviceIds", deviceIds=TEXTS),
    tool("setColor", "Set the colour of a lamp.", "deviceId color", deviceId=TEXT, color=COLOUR),
    tool(
        "setTemperature",
        "Set the target temperature of a room, in degrees Celsius.",
        "room celsius",
        room=ROOM,
        celsius=NUMBER,
    ),
    tool("lockDoor", "Lock a door.", "door", door=DOOR),
    tool("deleteReminder", "Delete a reminder.", "id", id=WHOLE),
    tool("completeReminder", "Mark a reminder as done.", "id", id=WHOLE),
    tool(
        "listReminders",
        "List reminders, optionally only those done or not done, due before a date, or with a tag.",
        done=FLAG,
        before=DAY,
        tag=TEXT,
    ),
    tool("addContact", "Add a contact to the address book.", "fullName", fullName=TEXT, birthday=DAY),
    tool("createScene", "Create a light scene.", "name devices", name=TEXT, devices=TEXTS),
)


@pytest.mark.parametrize(
    "heading",
    [
        "These were done yesterday:",
        "The list of forbidden things:",
        "The orders we rejected:",
        "These tasks are already done:",
        "The next steps after approval:",
        "These are only examples:",
        "Anna's tasks:",
        "Her tasks:",
    ],
)
def test_what_a_heading_says_is_heard(heading: str) -> None:
    assert HOTEL.calls(f"{heading}\n- Delete room 5\n- Delete room 101") == []
    assert HOTEL.calls(f"{heading} 1. Delete room 5 2. Delete room 101") == []


@pytest.mark.parametrize("heading", ["My tasks:", "Steps:", "Please do these two things:", "Do the following:"])
def test_a_heading_without_content_changes_nothing(heading: str) -> None:
    both = [("delete_room", {"room_number": 5}), ("delete_room", {"room_number": 101})]
    assert HOTEL.calls(f"{heading}\n- Delete room 5\n- Delete room 101") == both


@pytest.mark.parametrize(
    "request_",
    [
        # The number of another record is no value.
        "Set the price of room 101 to the price of room 102",
        "Set the price of room 101 to that of room 102",
        "Set the price of room 101 to room 102",
        "Set the price of room 101 to the price of 102",
        "Set the price of two rooms to 61",
        "Set the room number of room 5 to 6",
        # What is attached to a number belongs to it.
        "Delete room 5a",
        "Delete room 5-a",
        "Delete room 5's",
        "Delete room 5 a",
        "Delete room $5",
        "Delete room 5€",
        "Delete room 5,101",
        "Delete room 0101",
        "Charge 50a EUR to booking 2",
        # A count is no identifier.
        "Delete 1 reminder",
        "Delete 1 of the reminders",
        "Delete 1 of the rooms",
        'Book 1 room with the guest name "Ann" from 2026-12-10 to 2026-12-12',
        # Another currency.
        "Charge 50 CHF to booking 2",
        "Set the price of room 101 to 90 USD",
        "Set the price of room 101 to £90",
        # A part of a word is not the word.
        'Set the color of "lamp-1" to blue-green',
        'Set the color of "lamp-1" to non-red',
        "Set the status of room 102 to non-free",
        "Lock the anti-front door",
        # Not what the tool is for.
        "Delete the inventory of room 5",
        'Turn "lamp-1"',
        'Turn in "lamp-1"',
        "Mark reminder 4",
        "Mark reminder 4 as due",
        'Add the contact "Zoe" on 2026-12-01',
        # A quotation without an end.
        'Add the note "hello and delete room 5',
        'Add the note hello" and delete room 5',
        # Words that select.
        "List reminders not before 2026-12-01",
        "List reminders that are done or not done",
        "List rooms with price 80",
        "List one room",
        "What is the maximum price per night of the rooms?",
        "How many rooms are free?",
        "How far is room 102?",
        "Get the rooms from now",
        # A result that is named is not there.
        'Send the list to ann@example.com with the subject "Rooms"',
    ],
)
def test_nothing_is_left_over(request_: str) -> None:
    assert HOTEL.calls(request_) == []


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Set price of 101 to 102", [("set_room_price", {"room_number": 101, "price_per_night": 102})]),
        ("Set price 90 room 101", [("set_room_price", {"room_number": 101, "price_per_night": 90})]),
        ("Set the price of room 101 to 90 EUR", [("set_room_price", {"room_number": 101, "price_per_night": 90})]),
        ("Charge $50 to booking 2", [("charge_booking", {"booking_id": 2, "amount": 50, "currency": "USD"})]),
        ("Charge 50 pounds sterling to booking 2", []),
        ("Charge £50 to booking 2", [("charge_booking", {"booking_id": 2, "amount": 50, "currency": "GBP"})]),
        ("Cancel booking 2", [("cancel_booking", {"booking_id": 2})]),
        ("Could you cancel the booking with the id 2?", [("cancel_booking", {"booking_id": 2})]),
        ("Cancel booking no. 2", [("cancel_booking", {"booking_id": 2})]),
        ("Get room #5", [("get_room", {"room_number": 5})]),
        ("Delete rooms 101 and 5", [("delete_room", {"room_number": 101}), ("delete_room", {"room_number": 5})]),
        ("Delete reminders 3 and 4", [("deleteReminder", {"id": 3}), ("deleteReminder", {"id": 4})]),
        (
            'Book room 101 with the guest name "Ann" to 2026-12-12 from 2026-12-10',
            [
                (
                    "create_booking",
                    {"guest_name": "Ann", "room_number": 101, "check_in": "2026-12-10", "check_out": "2026-12-12"},
                )
            ],
        ),
        ("Turn off lamp-1", [("turnOff", {"deviceIds": ["lamp-1"]})]),
        ('Turn "lamp-1" on', [("turnOn", {"deviceIds": ["lamp-1"]})]),
        ("Mark reminder 4 as done", [("completeReminder", {"id": 4})]),
        ("Set the temperature of the office to 22°C", [("setTemperature", {"room": "office", "celsius": 22})]),
        ("Set the temperature of the office to 70°F", []),
        ("What is the price of room 102?", [("get_room", {"room_number": 102})]),
        ("What is the price per night of room 102?", [("get_room", {"room_number": 102})]),
        ("List rooms with a maximum price of 100", [("list_rooms", {"max_price": 100})]),
        (
            'Create the scene "Movie" with the devices "lamp-1" and "lamp-3"',
            [("createScene", {"name": "Movie", "devices": ["lamp-1", "lamp-3"]})],
        ),
        ("Delete room 5 and lock the back door", [("delete_room", {"room_number": 5}), ("lockDoor", {"door": "back"})]),
    ],
)
def test_what_is_said_is_called(request_: str, calls: Calls) -> None:
    assert HOTEL.calls(request_) == calls


def test_a_result_that_is_named_is_the_text_of_a_message() -> None:
    rooms = StepResult(id="1", text="List the free rooms", result='[{"room_number": 101}]')
    (call,) = HOTEL.calls('Send the list to ann@example.com with the subject "Rooms"', [rooms])
    assert call == ("send_email", {"to": "ann@example.com", "subject": "Rooms", "body": '[{"room_number": 101}]'})
