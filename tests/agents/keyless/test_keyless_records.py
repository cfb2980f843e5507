"""Records, such as those of a REST API: which field of one is used or said, and what identifies one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callsheet.agents.keyless.entities.result_values import line
from callsheet.agents.keyless.filling import Filled, fill
from callsheet.agents.planning.plan import Call, StepResult

BOOK = {"id": 2, "title": "Emma", "price": 7.0, "stock": 0}


def got(result: object, text: str = "get the book, the order and the issue") -> StepResult:
    return StepResult(id="1", text=text, result=json.dumps(result))


def takes(name: str, kind: str = "integer", **others: str) -> dict[str, Any]:
    properties = {key: {"type": of} for key, of in {name: kind, **others}.items()}
    return {"title": "cancel_order", "properties": properties, "required": [name, *others]}


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        (BOOK, "book_id", 2),
        (BOOK, "id", 2),
        ({"id": 2, "order_id": 5}, "order_id", 5),
        ({"book_id": 3, "id": 9, "price": 7}, "book_id", 3),
        ({"bookId": 3, "price": 7}, "book_id", 3),
        ({"number": 12, "comments": 4}, "issue_number", 12),
        ({"id": "3", "total": 21.75}, "order_id", 3),
        ({"id": "a-3", "total": 21.75}, "order_id", None),
        ({"author_id": 4, "price": 7.0}, "book_id", None),
        ({"price": 7.0}, "book_id", None),
        ([BOOK], "book_id", None),
        (7, "book_id", None),
        ({"id": True, "price": 7.0}, "book_id", None),
    ],
)
def test_a_reference_to_a_record_is_its_identifier(record: object, name: str, value: object) -> None:
    assert fill(takes(name), "cancel it", [got(record)], plainly=True).args.get(name) == value


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("get book 2", "order_id", None),
        ("get the latest order", "order_id", 2),
        ("get orders of today", "order_id", 2),
        ("get book 2", "id", None),
        ("get order 2", "id", 2),
    ],
)
def test_the_identifier_of_a_record_of_another_kind_is_not_taken(text: str, name: str, value: object) -> None:
    assert fill(takes(name), "cancel it", [got(BOOK, text)], plainly=True).args.get(name) == value


def test_identifiers_that_are_texts() -> None:
    assert fill(takes("order_id", "string"), "cancel it", [got({"id": "a-3"})], plainly=True).args == {
        "order_id": "a-3"
    }
    assert fill(takes("order_id", "string"), "cancel it", [got({"id": 3})], plainly=True).args == {"order_id": "3"}
    assert not fill(takes("message_id", "string"), "cancel it", [got("some text")], plainly=True).args


def test_numbers_of_the_step_go_beside_the_identifier() -> None:
    args = fill(takes("book_id", quantity="integer"), "order 3 copies of it", [got(BOOK)], plainly=True).args
    assert args == {"book_id": 2, "quantity": 3}


@pytest.mark.parametrize(
    "said", ["cancel 3 orders", "cancel all 3 orders", "cancel the last 2 orders", "cancel an order of 3 books"]
)
def test_a_count_is_no_identifier(said: str) -> None:
    filled = fill(takes("order_id"), said, plainly=True)
    assert not filled.args
    assert filled.missing == ("order_id",)


@pytest.mark.parametrize("said", ["cancel order 3", "cancel order number 3", "cancel the order with id 3"])
def test_a_number_after_its_noun_is_an_identifier(said: str) -> None:
    assert fill(takes("order_id"), said, plainly=True).args == {"order_id": 3}


@pytest.mark.parametrize(
    ("text", "result", "said"),
    [
        ("get book 2", BOOK, f"Get book 2: {json.dumps(BOOK)}"),
        ("get the price of book 2", BOOK, "Get the price of book 2: 7.0"),
        ("set the price and the stock of book 2", BOOK, f"Set the price and the stock of book 2: {json.dumps(BOOK)}"),
        (
            "What is the status of order 5?",
            {"order_id": 5, "status": "open", "total": 2},
            "What is the status of order 5? open",
        ),
        ("add 1 and 2", {"request_id": "x", "result": 3}, "Add 1 and 2: 3"),
        ("add a book with price 12", {"id": 4, "price": 12}, 'Add a book with price 12: {"id": 4, "price": 12}'),
        ("get the tags of it", {"id": 4, "tags": ["a"], "title": ""}, 'Get the tags of it: ["a"]'),
        ("make a key", {"id": "k-1"}, "Make a key: k-1"),
        ("convert it", {"value": 3.5, "unit": "km"}, "Convert it: 3.5 km"),
    ],
)
def test_the_field_of_a_record_that_the_step_names_is_said_otherwise_all(text: str, result: object, said: str) -> None:
    assert line(got(result, text)) == said


def test_arithmetic_takes_the_field_that_it_names() -> None:
    schema = takes("a", "number", b="number") | {"title": "multiply"}
    assert fill(schema, "multiply its price by 3", [got(BOOK)]).args == {"a": 7.0, "b": 3}
    assert not fill(schema, "multiply it by 3", [got(BOOK)]).args


GET = {"title": "get_book", "description": "Get a book", **{k: v for k, v in takes("book_id").items() if k != "title"}}


@pytest.mark.parametrize(
    ("said", "unused"),
    [
        ("What is the price of book 2?", ()),
        ("Who is the author of book 2?", ()),
        ("How many pages has book 2?", ()),
        ("Show price and pages of book 2", ()),
        ("What is the weight of book 2?", ("weight",)),
        ("Get book 2 by price", ("price",)),
        ("Get book 2 with the price", ("price",)),
        ("Get book 2 under the price", ("under", "price")),
    ],
)
def test_values_of_a_result_may_be_asked_for(said: str, unused: tuple[str, ...]) -> None:
    found = fill(GET, said, results=("price", "author", "pages"))
    assert (found.args, found.unused) == ({"book_id": 2}, unused)
    assert fill(GET, said, results=("price", "author", "pages"), plainly=True).unused


@pytest.mark.parametrize("more", ["", " and authors", ", please", " in order"])
def test_a_criterion_that_nothing_sorts_by_is_not_dropped(more: str) -> None:
    books = {"title": "list_books", "description": "List the books, with price and authors", "properties": {}}
    assert "price" in fill(books, f"List the books by price{more}").unused
    assert fill({**books, "description": "List the books by price"}, "List the books by price").unused == ()


@pytest.mark.parametrize("country", ["France", "FR"])
def test_the_name_of_a_country_is_its_code(country: str) -> None:
    cost = {"title": "get_shipping_cost", "description": "Get the shipping cost to a country", "required": ["country"]}
    cost["properties"] = {"country": {"type": "string", "enum": ["DE", "FR", "GB"]}}
    assert fill(cost, f"How much is shipping to {country}?") == Filled({"country": "FR"})
    assert fill(cost, f"How much is shipping to {country}?").unused == ()
    assert fill(cost, "How much is shipping to Norway?").unused == ("Norway",)


@pytest.mark.parametrize(
    "said", ["Set the stock of book 1 to 7", "Change the stock of the book 1 to 7", "Update book 1 with stock 7"]
)
def test_a_new_value_comes_after_to(said: str) -> None:
    update = {**takes("book_id"), "title": "update_book", "description": "Update the price or the stock of a book"}
    update["properties"] = {**update["properties"], "price": {"type": "number"}, "stock": {"type": "integer"}}
    assert fill(update, said, plainly=True).args == {"book_id": 1, "stock": 7}


def file_text(*texts: str, kind: str = "") -> StepResult:
    calls = tuple(
        Call(agent="f", tool="f/read_file", args={"path": f"{n}.json"}, output=text, kind="too_large" if kind else "")
        for n, text in enumerate(texts)
    )
    return StepResult(id="1", text="read the files", result="\n".join(texts).strip(), calls=calls)


WRITE = {"title": "write_file", **{k: v for k, v in takes("path", "string", content="string").items() if k != "title"}}


@pytest.mark.parametrize(
    "text", ['{"name": "demo", "port": 1}\n', "", "  a\n\n\tb \n", '{"content": "abc", "n": 3}', "5\n"]
)
def test_the_text_of_a_file_is_written_as_it_is(text: str) -> None:
    assert fill(WRITE, "write it to b.json", [file_text(text)], plainly=True).args == {
        "path": "b.json",
        "content": text,
    }
    assert line(file_text(text)) == f"Read the files: {text.strip()}"


def test_the_texts_of_files_follow_one_another_without_labels() -> None:
    args = fill(WRITE, "write both to b.json", [file_text("a\n", "b"), file_text("c\n")], plainly=True).args
    assert args["content"] == "a\nb\nc\n"


def test_a_text_that_was_cut_is_not_written() -> None:
    assert fill(WRITE, "write it to b.json", [file_text("a", kind="cut")], plainly=True).missing == ("content",)


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({"matches": {"Sales": {"A2": "apple"}}}, '{"matches": {"Sales": {"A2": "apple"}}}'),
        ({"name": "demo", "port": 8080}, '{"name": "demo", "port": 8080}'),
        ({"message": "hello"}, "hello"),
        ({"price": 3, "currency": "EUR"}, "3"),
        ({"result": {"value": 4}}, "4"),
        ({"centimetres": 160.01999999999998}, "160.02"),
    ],
)
def test_no_part_of_a_result_is_dropped_without_a_name_for_it(result: object, said: str) -> None:
    assert line(got(result, "find it")) == f"Find it: {said}"


def test_it_after_a_field_that_was_asked_for_is_that_field() -> None:
    comment = {"title": "add_comment", "properties": {"task_id": {"type": "integer"}, "text": {"type": "string"}}}
    comment["required"] = ["task_id", "text"]
    task = got({"id": 3, "title": "Update it", "status": "todo"}, "get the title of task 3")
    assert fill(comment, "add it as a comment to task 1", [task], plainly=True).args == {
        "task_id": 1,
        "text": "Update it",
    }
    assert fill(comment, "add a comment with it", [task], plainly=True).missing == ("text",)


def test_an_empty_list_is_not_written() -> None:
    assert fill(WRITE, "write them to b.json", [got([], "list them")], plainly=True).missing == ("content",)


def test_an_order_that_sets_fields_shows_the_whole_record() -> None:
    record = {"id": 2, "status": "in_progress", "priority": "low"}
    assert line(got(record, "set the status of 2 to in progress")).endswith(json.dumps(record))
    assert line(got({"id": 6, "estimate": {"amount": 8, "unit": "days"}}, "get the estimate of 6")).endswith(": 8 days")


def test_it_is_the_file_of_an_earlier_step_only_for_tools_that_move_or_copy() -> None:
    taken = got("some text", "get the text of /x/a.docx")
    picture = takes("filename", "string", image_path="string") | {"title": "add_picture"}
    assert "filename" not in fill(picture, "add it to /x/b.docx", [taken], plainly=True).args
    copy = takes("source", "string", destination="string") | {"title": "copy_file"}
    assert fill(copy, "copy it to /x/b.docx", [taken], plainly=True).args == {
        "source": "/x/a.docx",
        "destination": "/x/b.docx",
    }
