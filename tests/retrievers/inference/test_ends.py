"""What a tool asks for and what it gives."""

from __future__ import annotations

from typing import Any

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ask, Give, asks_of, gives_of
from callsheet.retrievers.inference.word_roles import stems


def tool(name: str, description: str = "", *, output: dict[str, Any] | None = None, **properties: Any) -> Tool:
    required = [key for key, spec in properties.items() if not spec.pop("optional", False)]
    schema = {"type": "object", "properties": properties, "required": required}
    return Tool(agent="a", name=name, description=description, input_schema=schema, output_schema=output)


def asks(*args: Any, **properties: Any) -> dict[str, Ask]:
    return {ask.parameter: ask for ask in asks_of(0, tool(*args, **properties))}


def gives(made: Tool) -> dict[str, Give]:
    return {give.field or give.source: give for give in gives_of(0, made)}


def test_what_only_the_caller_can_choose_is_not_asked_for() -> None:
    found = asks("list_users", limit={}, page_size={}, sort={"enum": ["a"]}, active={"type": "boolean"}, team_id={})
    assert list(found) == ["team_id"]


def test_an_id_is_of_what_holds_it_or_of_what_the_tool_is_about() -> None:
    user = {"type": "object", "properties": {"id": {}}}
    assert asks("delete_user", id={})["id"].words == stems("user id")
    assert asks("send", user=user)["user.id"].words == stems("user id")
    found = asks("get_an_artists_albums", id={"description": "The ID of the artist."})
    assert found["id"].words == stems("artist id")
    assert found["id"].text == "artists id: The ID of the artist."


def test_optional_free_numeric_and_made_values_are_worth_less() -> None:
    found = asks(
        "send_mail", order_id={}, other_order_id={"optional": True}, place={}, note_text={}, weight={"type": "number"}
    )
    worth = {name: ask.worth for name, ask in found.items()}
    assert worth["order_id"] == 1.0
    assert worth["order_id"] > worth["other_order_id"]
    assert worth["place"] > worth["weight"] > worth["note_text"]
    assert asks("create_user", user_name={})["user_name"].worth < asks("greet_user", user_name={})["user_name"].worth
    assert asks("run", value={})["value"].worth < 0.5


def test_fields_of_a_result_are_given_and_so_is_what_the_name_says() -> None:
    output = {"properties": {"items": {"items": {"properties": {"id": {}, "name": {}, "count": {}}}}, "ok": {}}}
    found = gives(tool("list_popular_movies", "Lists movies. Returns: ids and names of movies.", output=output))
    assert found["items.id"].words == stems("popular movies id")
    assert found["items.id"].many
    assert found["items.id"].among(frozenset(stems("movie"))).words == stems("movie id")
    assert "items.count" not in found, "a count says nothing of what"
    assert found["name"].words == stems("popular movies")
    assert found["returns"].words >= stems("movies")
    assert found["ok"].borrowed == frozenset()


def test_words_before_the_last_of_a_holder_count_only_where_an_input_knows_them() -> None:
    output = {"properties": {"production_companies": {"items": {"properties": {"id": {}}}}}}
    held = gives(tool("get_movie", output=output))["production_companies.id"]
    assert held.words == stems("production company id")
    assert held.among(frozenset(stems("company"))).words == stems("company id")
    assert held.among(frozenset(stems("production company"))).words == held.words


def test_hostile_text_is_short_and_clean() -> None:
    found = asks("find_user", user_id={"description": "a\u202eb\x1b[31m" + "x" * 5_000_000})
    assert len(found["user_id"].text) < 200
    assert "\u202e" not in found["user_id"].text
    assert "\x1b" not in found["user_id"].text
    assert max(len(give.text) for give in gives(tool("a", "returns " + "y" * 5_000_000)).values()) < 400
