"""Requests to an issue tracker, a warehouse and a clinic, without a model: two records of a kind, directions."""

from __future__ import annotations

import pytest

from callsheet.agents.planning.plan import Call, StepResult
from offered_calls import CLOCK, DAY, NUMBER, TEXT, WHOLE, Calls, World, one_of, tool

KIND, PLACE = one_of("blocks", "relates to", "duplicates"), one_of("north", "south")
WORLD = World(
    tool("get_issue", "Get an issue.", "number", number=WHOLE),
    tool("close_issue", "Close an issue.", "number", number=WHOLE),
    tool("delete_issue", "Delete an issue.", "number", number=WHOLE),
    tool("move_issue", "Move an issue to a project.", "number project_id", number=WHOLE, project_id=WHOLE),
    tool(
        "delete_issue_comment", "Delete a comment of an issue.", "number comment_id", number=WHOLE, comment_id=WHOLE
    ),
    tool("merge_issues", "Merge an issue into another.", "source target", source=WHOLE, target=WHOLE),
    tool("link_issues", "Link two issues.", "from_issue to_issue", from_issue=WHOLE, to_issue=WHOLE, kind=KIND),
    tool("set_parent", "Make an issue the child of a parent issue.", "child parent", child=WHOLE, parent=WHOLE),
    tool("rename_project", "Rename a project.", "project_id name", project_id=WHOLE, name=TEXT),
    tool("set_price", "Set the price of a product.", "sku price", sku=TEXT, price=NUMBER),
    tool("apply_discount", "Lower the price of a product by a discount.", "sku percent", sku=TEXT, percent=NUMBER),
    tool("adjust_stock", "Adjust the stock of a product.", "sku quantity", sku=TEXT, quantity=WHOLE),
    tool(
        "move_stock",
        "Move stock of a product between warehouses.",
        "sku quantity from_warehouse to_warehouse",
        sku=TEXT,
        quantity=WHOLE,
        from_warehouse=PLACE,
        to_warehouse=PLACE,
    ),
    tool("set_limit", "Set the limit of an account.", "account_id limit", account_id=TEXT, limit=NUMBER),
    tool(
        "bookAppointment",
        "Book an appointment for a patient.",
        "patientId date startTime",
        patientId=TEXT,
        date=DAY,
        startTime=CLOCK,
        endTime=CLOCK,
    ),
    tool("cancelAppointment", "Cancel an appointment.", "appointmentId", appointmentId=TEXT),
    tool("setAppointmentStatus", "Set the status of an appointment.", "appointmentId status", appointmentId=TEXT,
         status=one_of("scheduled", "in progress")),
    tool("sendReminder", "Send a patient a reminder.", "patientId message", patientId=TEXT, message=TEXT),
    tool("findPatients", "Find patients.", name=TEXT, bloodType=TEXT),
    tool("prescribeMedication", "Prescribe a medication.", "patientId medication dosageMg timesPerDay", patientId=TEXT,
         medication=TEXT, dosageMg=WHOLE, timesPerDay=WHOLE),
)  # fmt: skip
APPOINTMENT = {"patientId": "P-17", "date": "2027-03-03"}
STOCK = {"sku": "SKU-205", "quantity": 20, "from_warehouse": "north", "to_warehouse": "south"}


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Close issues 1, 2 and 3", [("close_issue", {"number": number}) for number in (1, 2, 3)]),
        ("Close issue #1", [("close_issue", {"number": 1})]),
        ("Move issue 4 to project 1", [("move_issue", {"number": 4, "project_id": 1})]),
        ("Set the parent of 3 to 7", [("set_parent", {"child": 3, "parent": 7})]),
        ("Set parent of 3 = 7", [("set_parent", {"child": 3, "parent": 7})]),
        ("Set 7 as the parent of 3", [("set_parent", {"child": 3, "parent": 7})]),
        ("Set 3 as the child of 7", [("set_parent", {"child": 3, "parent": 7})]),
        ("Merge 7 into 2", [("merge_issues", {"source": 7, "target": 2})]),
        ("Merge issue 7 into issue 2", [("merge_issues", {"source": 7, "target": 2})]),
        ("Merge 2 with 7 as the source", [("merge_issues", {"source": 7, "target": 2})]),
        ("Link 3 to 5", [("link_issues", {"from_issue": 3, "to_issue": 5})]),
        ("Link to 5 from 3", [("link_issues", {"from_issue": 3, "to_issue": 5})]),
        ("Link to issue 5 from issue 3", [("link_issues", {"from_issue": 3, "to_issue": 5})]),
        ("Link issue 5 from issue 3", [("link_issues", {"from_issue": 3, "to_issue": 5})]),
        ("Delete comment 11 of issue 3", [("delete_issue_comment", {"number": 3, "comment_id": 11})]),
        ("Move 20 SKU-205 from north to south", [("move_stock", STOCK)]),
        ("Move 20 SKU-205 to south from north", [("move_stock", STOCK)]),
        ("Move 20 SKU-205 to the south warehouse from the north warehouse", [("move_stock", STOCK)]),
        ("Adjust the stock of SKU-205 by 5", [("adjust_stock", {"sku": "SKU-205", "quantity": 5})]),
        (
            "Book an appointment for P-17 on 2027-03-03 to 09:00 from 08:00",
            [("bookAppointment", {**APPOINTMENT, "startTime": "08:00", "endTime": "09:00"})],
        ),
        (
            "Book an appointment for P-17 on 2027-03-03 at 09:00 and cancel appointment A-203",
            [
                ("bookAppointment", {**APPOINTMENT, "startTime": "09:00"}),
                ("cancelAppointment", {"appointmentId": "A-203"}),
            ],
        ),
        (
            'Set the status of A-203 to "in progress"',
            [("setAppointmentStatus", {"appointmentId": "A-203", "status": "in progress"})],
        ),
    ],
)
def test_what_is_said_is_called(request_: str, calls: Calls) -> None:
    assert WORLD.calls(request_) == calls


@pytest.mark.parametrize(
    "request_",
    [
        "Delete 5 issues",
        "Delete 1 issue",
        "Move issues 4 and 5 to projects 1 and 2",
        "Delete comment 11 and issue 3",
        "Set the parent from 3 to 7",
        "Move issue 4 from project 3",
        "Move project 1 to issue 4",
        "Rename project 2 to 7",
        "Rename issue 4 to project 1",
        "Link issue 3 as blocked by issue 5",
        "Move 20 SKU-205 south north",
        "Move 20 SKU-205 from north and south",
        "Adjust the stock of SKU-205 to 5",
        "Lower SKU-205 to 10",
        "Apply a discount of 10 EUR to SKU-205",
        "Set the limit of A-1 to 500 USD",
        "Adjust the stock of SKU-205 by 5 EUR",
        "Book an appointment for P-17 on 2027-03-03 at 09:00 and 11:00",
        'Prescribe "ibuprofen" 3 500 to P-17',
        "What is the blood type of P-18?",
        "Cancel that",
        "Find the patients and the issues",
    ],
)
def test_nothing_is_left_over(request_: str) -> None:
    assert WORLD.calls(request_) == []


def done(text: str, result: str, *tools: str) -> StepResult:
    calls = tuple(Call(agent="house", tool=f"house/{name}", output=result) for name in tools)
    return StepResult(id="1", text=text, result=result, calls=calls)


def test_it_is_the_record_that_was_read() -> None:
    issue = done("Get issue 5", '{"number": 5, "title": "x", "project": 3}', "get_issue")
    assert WORLD.calls("Move it to project 1", [issue]) == [("move_issue", {"number": 5, "project_id": 1})]
    comment = done("Delete comment 2 of issue 5", "Comment 2 deleted.", "delete_issue_comment")
    assert WORLD.calls("Close it", [comment]) == []


def test_it_is_of_the_kind_that_the_tool_is_for() -> None:
    price = done("Set the price of SKU-100 to 3", "SKU-100 costs 3.0 now", "set_price")
    assert WORLD.calls("Set it to 5", [price]) == []


def test_a_quotation_is_no_identifier_beside_a_pronoun() -> None:
    patient = done("Get patient P-17", '{"fullName": "Lena"}', "findPatients")
    assert WORLD.calls('Send them the reminder "hi"', [patient]) == []
