"""Lists of records whose type only their fields tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ends
from callsheet.retrievers.inference.structural_signals import record_types

PERSON = ("id", "name", "profile_path", "birthday")
MOVIE = ("id", "title", "release_date", "poster_path")


def tool(name: str, *needs: str, output: Any = None) -> Tool:
    properties = {need: {"type": "string"} for need in needs}
    return Tool(
        agent="films",
        name=name,
        input_schema={"type": "object", "properties": properties, "required": list(needs)},
        output_schema={"type": "object", "properties": output} if output else None,
    )


def record(names: Sequence[str], **more: Any) -> dict[str, Any]:
    return {name: {"type": "string"} for name in names} | more


def many(names: Sequence[str], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": record(names, **more)}}


READ = (
    tool("get_person", "person_id", output=record(PERSON)),
    tool("get_movie", "movie_id", output=record(MOVIE)),
    tool("search_movie", "query", output={"results": many(MOVIE)}),
)
CAST = ("id", "name", "profile_path", "role")


def hints(*tools: Tool) -> list[tuple[str, str, str | None, float]]:
    tools = (*READ, *tools)
    found = record_types(Ends.of(tools))
    return [(tools[one.source].name, tools[one.target].name, one.parameter, one.confidence) for one in found]


def test_a_cast_is_a_list_of_persons() -> None:
    cast = tool("movie_credits", "movie_id", output=record(["id"], cast=many(CAST)))
    # id and name are shared with movies (id) or not: person = 1/2 + 1 + 1, movie = 1/2; 4 of 5 fields are in the list
    assert hints(cast) == [("get_person", "movie_credits", "person_id", pytest.approx(0.75 * 4 / 5))]


def test_other_required_inputs_of_the_call_make_it_less_sure() -> None:
    cast = tool("movie_credits", "movie_id", output={"cast": many(CAST)})
    awards = tool("person_awards", "person_id", "year", "country")
    sure = {source: confidence for source, _, _, confidence in hints(cast, awards)}
    assert sure == {"get_person": pytest.approx(0.75), "person_awards": pytest.approx(0.75 / 3)}


@pytest.mark.parametrize(
    "output",
    [
        {"cast": many(("id", "name", "role"))},
        {"cast": many(("id", "name", "profile_path", "role", "order", "job", "part"))},
        {"cast": many(("name", "profile_path", "birthday"))},
        {"movies": many(PERSON)},
        {"lead": {"type": "object", "properties": record(PERSON)}},
        {"groups": many(("id", "label"), members=many(PERSON))},
    ],
    ids=["nothing of its own", "less than half", "no identifier", "its name says another type", "one", "in a record"],
)
def test_a_list_that_is_not_clearly_of_one_type_gives_nothing(output: Any) -> None:
    assert hints(tool("movie_credits", "movie_id", output=output)) == []


def test_the_tool_with_the_fewest_inputs_comes_first_and_two_are_enough() -> None:
    lists = [
        tool("episode_credits", "movie_id", "episode", output={"cast": many(CAST)}),
        tool("movie_credits", "movie_id", output=record(["budget"], cast=many(CAST))),
        tool("movie_crew", "movie_id", output={"crew": many(CAST)}),
    ]
    assert [target for _, target, _, _ in hints(*lists)] == ["movie_crew", "movie_credits"]


def test_what_finds_the_records_or_needs_the_same_identifier_is_left_to_other_signals() -> None:
    friends = tool("person_friends", "person_id", output={"list": many(PERSON)})
    find = tool("search_person", "query", output={"results": many(PERSON)})
    assert hints(friends, find) == []
