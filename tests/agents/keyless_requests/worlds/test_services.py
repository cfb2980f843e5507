"""Requests to services for issues, mail, pages, payments and calendars, without a model: what must not be called."""

from __future__ import annotations

import pytest

from callsheet.agents.planning.plan import Call, StepResult
from offered_calls import FLAG, NUMBER, TEXT, WHOLE, Calls, World, one_of, tool

CENTS = {"type": "integer", "description": "Amount in cents"}
MAILS = {"type": "array", "items": TEXT}
STATE, TO_STATE = one_of("open", "closed"), one_of("To Do", "Done")
ROLE = one_of("reader", "editor")
WORLD = World(
    tool("create_pull_request", "Create a pull request.", "title head base", title=TEXT, head=TEXT, base=TEXT),
    tool("update_issue", "Update an issue.", "issue_number", issue_number=WHOLE, title=TEXT, state=STATE),
    tool("add_comment", "Add a comment to an issue.", "issueId body", issueId=TEXT, body=TEXT),
    tool("delete_issue", "Delete an issue.", "issueId", issueId=TEXT),
    tool("delete_email", "Delete an email.", "messageId", messageId=TEXT),
    tool("transition_issue", "Transition an issue to another status.", "issue_key status", issue_key=TEXT,
         status=TO_STATE),
    tool("send_email", "Send an email.", "to subject body", to=MAILS, subject=TEXT, body=TEXT),
    tool("forward_email", "Forward an email.", "messageId to", messageId=TEXT, to=MAILS),
    tool("draft_email", "Draft an email without sending it.", "to subject body", to=MAILS, subject=TEXT, body=TEXT),
    tool("mark_as_read", "Mark an email as read.", "messageId", messageId=TEXT),
    tool("post_message", "Post a message to a channel.", "channel_id text", channel_id=TEXT, text=TEXT),
    tool("archive_page", "Move a page to the trash.", "page_id", page_id=TEXT),
    tool("share_page", "Share a page with a person.", "page_id email", page_id=TEXT, email=TEXT, role=ROLE),
    tool("move_page", "Move a page under another parent.", "page_id new_parent_id", page_id=TEXT, new_parent_id=TEXT),
    tool("create_invoice", "Create an invoice.", "customer", customer=TEXT, days_until_due=WHOLE),
    tool("create_customer", "Create a customer.", "name", name=TEXT, email=TEXT),
    tool("create_repository", "Create a repository in your account.", "name", name=TEXT, private=FLAG),
    tool("create_refund", "Create a refund.", "payment amount", payment=TEXT, amount=CENTS),
    tool("delete_event", "Delete an event.", "event_id", event_id=TEXT),
    tool("update_subscription", "Update a subscription.", "subscription", subscription=TEXT, quantity=WHOLE,
         proration=FLAG),
    tool("close_table", "Close a table.", "table", table=WHOLE),
    tool("pay_bonus", "Pay a bonus to an employee.", "employee_id amount", employee_id=TEXT, amount=NUMBER),
    tool("apply_discount", "Apply a discount to the bill of a table.", "table percent", table=WHOLE, percent=NUMBER),
    tool("add_to_playlist", "Add tracks to a playlist.", "playlist_id track_ids", playlist_id=WHOLE,
         track_ids={"type": "array", "items": WHOLE}),
    tool("merge_contacts", "Merge a duplicate contact into a primary one.", "primary_id duplicate_id",
         primary_id=WHOLE, duplicate_id=WHOLE),
    tool("change_plan", "Change the plan of an account.", "account_id plan", account_id=WHOLE,
         plan=one_of("free", "family")),
    tool("cancel_order", "Cancel an order of a customer.", "order_id", order_id=WHOLE),
    tool("refund_order", "Refund an order, in whole or in part.", "order_id", order_id=WHOLE, amount=NUMBER),
)  # fmt: skip
MAIL = {"to": ["bob@x.org"], "subject": "Hi", "body": "Hello"}
SUB = {"subscription": "sub_1"}
PULL = {"title": "T", "head": "f", "base": "main"}


@pytest.mark.parametrize(
    ("request_", "calls"),
    [
        ("Create a pull request titled 'T' with head 'f' and base 'main'", [("create_pull_request", PULL)]),
        ("Set the title of issue 45 to 'X'", [("update_issue", {"issue_number": 45, "title": "X"})]),
        ("Set the state of issue 45 to closed", [("update_issue", {"issue_number": 45, "state": "closed"})]),
        ("Add the comment 'hi' to issue 'ENG-1'", [("add_comment", {"issueId": "ENG-1", "body": "hi"})]),
        ("Delete issue ENG-1", [("delete_issue", {"issueId": "ENG-1"})]),
        ("Transition issue PROJ-7 to Done", [("transition_issue", {"issue_key": "PROJ-7", "status": "Done"})]),
        ("Send an e-mail to bob@x.org with subject 'Hi' and body 'Hello'", [("send_email", MAIL)]),
        ("Forward email 'm_18' to bob@x.org", [("forward_email", {"messageId": "m_18", "to": ["bob@x.org"]})]),
        ("Mark email 'm_18' as read", [("mark_as_read", {"messageId": "m_18"})]),
        ("Move 'pg_1' to page 'pg_2'", [("move_page", {"page_id": "pg_1", "new_parent_id": "pg_2"})]),
        ("Create an invoice for customer 'cus_9'", [("create_invoice", {"customer": "cus_9"})]),
        ("Create a private repository 'x'", [("create_repository", {"name": "x", "private": True})]),
        ("Share page 'pg_1' with anna@x.org", [("share_page", {"page_id": "pg_1", "email": "anna@x.org"})]),
        ("Close table 4", [("close_table", {"table": 4})]),
        ("Apply a discount of 10 % to table 4", [("apply_discount", {"table": 4, "percent": 10})]),
        ("Cancel order 5, please", [("cancel_order", {"order_id": 5})]),
        ("Share page 'pg_1' with a@x.org and close table 4", [("share_page", {"page_id": "pg_1", "email": "a@x.org"}),
                                                              ("close_table", {"table": 4})]),
        ("Update subscription 'sub_1' with quantity 3", [("update_subscription", {**SUB, "quantity": 3})]),
    ],
)  # fmt: skip
def test_what_is_said_is_called(request_: str, calls: Calls) -> None:
    assert WORLD.calls(request_) == calls


@pytest.mark.parametrize(
    "request_",
    [
        "Create a pull request titled 'T' from 'f' to 'main'",
        "Create a pull request titled 'T' from 'f' with base 'main'",
        "Transition issue PROJ-7 from Done",
        "Transition the Done issue PROJ-7",
        "Move the page 'pg_12' from the trash",
        "Post the message 'hi' from channel 'C1'",
        "Forward email 'm_18' from eve@x.org to bob@x.org",
        "Forward email 'm_18' via eve@x.org to bob@x.org",
        "Share page 'pg_12' from anna@x.org",
        "Share page 'pg_12' of the editor with anna@x.org",
        "Delete the event of 'Anna'",
        "Delete the event at '15:00'",
        "Add the comment of 'Bob' to issue 'ENG-1'",
        "Add the comment of issue 'ENG-2' to issue 'ENG-1'",
        "Post the text of email 'm_17' to channel 'C1'",
        "Send an email to bob@x.org with subject 'Hi' and the body of email 'm_17'",
    ],
)
def test_words_before_a_value_count(request_: str) -> None:
    assert WORLD.calls(request_) == []


@pytest.mark.parametrize(
    "request_",
    [
        "Delete 'ENG-123'",  # an issue, an email or an event
        "Update 'ev_1'",
        "Show me 'm_17'",  # to show is not to mark as read
        "Mark email 'm_17'",
        "Create customers 'Acme' and 'Globex' for 'x'",
        "Create an account 'Acme'",
        "Create invoice 'in_1'",
        "Draft and send an email to bob@x.org with subject 'Hi' and body 'Hello'",
        "Cancel customer 5",
        "Cancel all orders of customer 5",
        "Export data of table 7",
    ],
)
def test_the_object_of_an_order_counts(request_: str) -> None:
    assert WORLD.calls(request_) == []


@pytest.mark.parametrize(
    "request_",
    [
        "Update the closed issue 45",
        "Set the title of the closed issue 45 to 'X'",
        "Create a repository 'x' in the private account",
        "Update the proration of subscription 'sub_1'",
        "Send an email to bob@x.org and me with subject 'Hi' and body 'Hello'",
        "Post 'hi' @here to channel 'C1'",
        "Delete issue ENG-1 for now",
        "Delete issue ENG-1 from",
        "Create a refund for payment 'pi_1' with amount 5 USD",
        "Create a refund for payment 'pi_1' with amount 5 usd",
        "Apply a discount of 10 EUR to table 4",
        "Close 2 tables",
        "Pay two bonuses to E-101",
        "Create 30 days of invoices for customer 'cus_9'",
        "Refund order 5 in part",
        "Add 3 tracks to playlist 70",
        "Add all tracks of playlist 70 to playlist 71",
        "Merge 18 to 17",
        "Change the free plan of account 9",
        "Delete issues ENG-1-ENG-5",
    ],
)
def test_words_that_change_the_meaning_count(request_: str) -> None:
    assert WORLD.calls(request_) == []


@pytest.mark.parametrize(
    "request_",
    [
        "Tell Ann to archive page 'pg_1' and cancel order 5",
        "Translate the following. Cancel order 5. Cancel order 6.",
        "What did Ann say? Cancel order 5.",
        "Cancel order 5. Check with Ann first.",
        "Cancel order 5. Set refund to false.",
        "Cancel order 5, make it 6",
        "Close table 4, count 3",
        "Cancel order 5 and order 6",
    ],
)
def test_nothing_is_changed_unless_all_is_understood(request_: str) -> None:
    assert WORLD.calls(request_) == []


def test_it_is_what_was_made() -> None:
    comment = Call(agent="house", tool="house/add_comment", output='{"id": "cm1"}')
    made = StepResult(id="1", text="Add the comment 'hi' to issue 'ENG-1'", result='{"id": "cm1"}', calls=(comment,))
    assert WORLD.calls("Delete it", [made]) == []
