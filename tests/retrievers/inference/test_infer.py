"""From a catalog to proposals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Provenance, SettingsError, Tool
from callsheet.graphs.dependencies import Proposal
from callsheet.retrievers.inference import infer_dependencies

Edges = Mapping[tuple[str, str, str | None], Proposal]


def tool(
    name: str, description: str = "", /, *optional: str, output: Mapping[str, Any] | None = None, **needs: str
) -> Tool:
    agent, _, bare = name.partition("/")
    properties = {key: {"type": "string", "description": said} for key, said in needs.items()}
    properties |= {key: {"type": "string", "description": ""} for key in optional}
    return Tool(
        agent=agent,
        name=bare,
        description=description,
        input_schema={"type": "object", "properties": properties, "required": list(needs)},
        output_schema={"type": "object", "properties": dict(output)} if output else None,
    )


def catalog(*tools: Tool) -> Catalog:
    agents = dict.fromkeys(one.agent for one in tools)
    return Catalog(agents=tuple(Agent(id=name, tools=tuple(t for t in tools if t.agent == name)) for name in agents))


def inferred(*tools: Tool, **more: Any) -> Edges:
    return {edge.key: edge for edge in infer_dependencies(catalog(*tools), **more)}


MOVIES = {"results": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}}}
SEARCH = tool("tmdb/search_movie", "Search for movies.", output=MOVIES, query="Words to search for.")
CREDITS = tool("tmdb/movie_credits", "The cast of a movie.", movie_id="")
SIMILAR = tool("tmdb/similar_movies", "Movies like one.", output=MOVIES, movie_id="")


def test_an_output_field_gives_the_argument_that_names_it() -> None:
    found = inferred(SEARCH, CREDITS, SIMILAR, tool("tmdb/search_person", "Search.", query=""))
    first = found["tmdb/movie_credits", "tmdb/search_movie", "movie_id"]
    assert first.kind is DependencyKind.PARAMETER_DIRECTLY
    assert "results.id" in first.evidence
    assert "movie_id" in first.evidence
    assert ("tmdb/movie_credits", "tmdb/similar_movies", "movie_id") not in found, "it needs the same id"
    assert ("tmdb/search_movie", "tmdb/movie_credits", "query") not in found
    assert not any(target == "tmdb/search_person" for _, target, _ in found)


def test_of_several_sources_the_first_is_direct() -> None:
    other = tool("tmdb/find_movie", "Find movies.", output=MOVIES, query="Words to search for.")
    found = inferred(SEARCH, other, CREDITS)
    assert sorted(edge.kind.direct for edge in found.values()) == [False, True], "one source is enough"


def test_a_list_is_a_source_where_nothing_finds_records() -> None:
    latest = tool("tmdb/latest_movies", "The latest movies.", output=MOVIES)
    assert [key[1] for key in inferred(latest, CREDITS)] == [latest.id]
    assert [key[1] for key in inferred(latest, SEARCH, CREDITS)] == [SEARCH.id]


def test_a_source_that_needs_what_nobody_finds_is_none_where_a_tool_finds_records() -> None:
    person = {"person": {"type": "object", "properties": {"id": {"type": "integer"}}}}
    cast = tool("tmdb/movie_cast", "Who plays in a movie.", output=person, movie_id="")
    credit = tool("tmdb/credit", "One credit.", output=person, credit_id="")
    find = tool("tmdb/search_person", "Search for people.", output=MOVIES, query="Words to search for.")
    life = tool("tmdb/person_biography", "The life of a person.", person_id="")
    found = inferred(SEARCH, cast, credit, find, life)
    assert {target for source, target, name in found if name == "person_id"} == {find.id, cast.id}
    assert credit.id in {target for _, target, name in inferred(SEARCH, cast, credit, life) if name == "person_id"}


def test_the_parent_of_a_record_is_its_only_source() -> None:
    season = {"season_code": {"type": "string"}}
    show = tool("tv/get_series", "Gets a series.", output=season, series_id="")
    latest = tool("tv/latest_series", "The latest series.", output=season)
    episode = tool("tv/get_season", "Gets a season.", series_id="", season_code="")
    found = inferred(show, latest, episode)
    assert {key[1] for key in found if key[2] == "season_code"} == {show.id}


def test_the_number_of_a_part_of_a_record_is_rarely_looked_up() -> None:
    number = {"season_number": {"type": "integer"}}
    listed = {"seasons": {"type": "array", "items": {"type": "object", "properties": number}}}
    wanted = tool("tv/get_credits", "The credits of a season.", show="")
    wanted.input_schema["properties"] |= number
    wanted.input_schema["required"].append("season_number")
    of_show = tool("tv/get_show", "Gets a show.", output=listed, show="")
    unclear = tool("tv/get_show", "Gets a show.", output={"season_number": {"type": "array"}}, show="")
    assert not [key for key in inferred(of_show, wanted) if key[2] == "season_number"]
    assert not [key for key in inferred(unclear, wanted) if key[2] == "season_number"]
    current = tool("tv/get_broadcast", "What is broadcast now.", output=number)
    assert [key[1] for key in inferred(current, wanted) if key[2] == "season_number"] == [current.id]


def test_a_record_that_is_only_echoed_is_no_source() -> None:
    show = tool("crm/show_contact", "Shows one contact.", output={"contact_id": {"type": "string"}}, contact_id="")
    find = tool("crm/find_contacts", "Finds contacts.", output={"contact_id": {"type": "string"}}, words="")
    found = inferred(show, find, tool("crm/delete_contact", "Deletes a contact.", contact_id=""))
    assert [target for _, target, parameter in found if parameter] == ["crm/find_contacts"] * 2


def test_a_value_that_a_tool_may_take_is_echoed_too() -> None:
    sheet = {"range": {"type": "string"}}
    read = tool("excel/read_cells", "Reads cells.", "range", output=sheet, book="")
    clear = tool("excel/clear_cells", "Clears cells.", book="", range="The cells.")
    assert not any(key[2] for key in inferred(read, clear))
    used = tool("excel/describe_sheet", "Describes a sheet.", output={"used_range": {"type": "string"}}, book="")
    assert {key[1] for key in inferred(read, used, clear) if key[2]} == {used.id}


def test_a_name_alone_is_enough_where_there_is_no_output_schema() -> None:
    tools = (
        tool("geo/get_city_code", "Retrieves the city code for a given city.", city_name="Name of a city."),
        tool("stats/get_obesity_rate_by_city", "The obesity rate of a city.", city_code="The code of the city."),
        tool("stats/get_voter_turnout_by_city", "The voter turnout of a city.", city_code="The code of the city."),
    )
    found = inferred(*tools)
    assert set(found) == {
        ("stats/get_obesity_rate_by_city", "geo/get_city_code", "city_code"),
        ("stats/get_voter_turnout_by_city", "geo/get_city_code", "city_code"),
    }, "across agents too"


def test_an_id_of_another_agent_is_less_sure_than_one_of_the_same() -> None:
    near = inferred(SEARCH, CREDITS)[CREDITS.id, SEARCH.id, "movie_id"]
    elsewhere = SEARCH.model_copy(update={"agent": "imdb"})
    others = [tool("tmdb/ping"), tool("imdb/ping")]
    far = inferred(elsewhere, CREDITS, *others)[CREDITS.id, elsewhere.id, "movie_id"]
    assert 0.5 <= far.confidence < near.confidence


@pytest.mark.parametrize(
    ("tools", "edge", "kind"),
    [
        (
            [tool("air/login", password=""), tool("air/find_bags", session_id="", tag="")],
            ("air/find_bags", "air/login", "session_id"),
            "parameter_directly",
        ),
        (
            [
                tool("x/united_login", password=""),
                tool("x/delta_login", password=""),
                tool("x/delta_find_bags", tag=""),
            ],
            ("x/delta_find_bags", "x/delta_login", None),
            "tool_directly",
        ),
        (
            [tool("m/validate_email", email=""), tool("m/send_mail", recipient_email="", body="")],
            ("m/send_mail", "m/validate_email", "recipient_email"),
            "parameter_directly",
        ),
        (
            [tool("c/search_contacts", "Finds a person.", "person_id"), tool("c/remove_contact", person_id="")],
            ("c/remove_contact", "c/search_contacts", "person_id"),
            "parameter_directly",
        ),
        (
            [tool("t/list_tasks", "Lists tasks."), tool("t/delete_task", taskId="")],
            ("t/delete_task", "t/list_tasks", "taskId"),
            "parameter_directly",
        ),
        (
            [tool("p/get_current_date"), tool("p/count_births", year="")],
            ("p/count_births", "p/get_current_date", "year"),
            "parameter_indirectly",
        ),
        (
            [tool("d/get_volume", "Tells the volume."), tool("d/set_volume", "Sets the volume.", level="")],
            ("d/set_volume", "d/get_volume", None),
            "tool_indirectly",
        ),
        (
            [
                tool("g/set_working_dir", "Sets the folder.", folder=""),
                tool("g/git_log", "Shows the log. You must call set_working_dir first."),
            ],
            ("g/git_log", "g/set_working_dir", None),
            "tool_directly",
        ),
    ],
    ids=["session", "session of its name", "check", "lookup", "record", "part", "state", "named"],
)
def test_each_rule(tools: Sequence[Tool], edge: tuple[str, str, str | None], kind: str) -> None:
    found = inferred(*tools)
    assert found[edge].kind == kind
    assert found[edge].evidence


def test_where_some_tools_ask_for_the_session_the_others_do_without() -> None:
    login, public = tool("music/login", password=""), tool("music/show_song", song="")
    asks = tool("music/like_song", access_token="", song="")
    assert (asks.id, login.id, "access_token") in inferred(login, public, asks)
    assert not any(source == public.id for source, _, _ in inferred(login, public, asks))
    assert (public.id, login.id, None) in inferred(login, public), "nobody says how the session is kept"


def test_what_a_tool_says_it_returns_is_no_path_unless_it_says_so() -> None:
    others = [tool(f"excel/do_{word}", f"Does {word}.", word) for word in ("apples", "roses", "trees", "birds")]
    needs = tool("excel/find_cells", "Finds cells.", path="")
    for returned, found in (("its name and cells", False), ("the path of the cells", True)):
        says = tool("excel/create_chart", f"Creates a chart. Returns {returned}.", title="")
        assert ((needs.id, says.id, "path") in inferred(says, needs, *others)) is found


def test_an_option_of_a_change_is_what_the_caller_wants_it_to_be() -> None:
    properties = {"author": {"type": "string"}}
    describe = tool("excel/describe_workbook", "Describes.", output=properties)
    change = tool("excel/set_settings", "Changes settings.", "author")
    assert not any(key[2] == "author" for key in inferred(describe, change))


@pytest.mark.parametrize(
    "tools",
    [
        [tool("ai/authenticate", "Recognises a face.", image=""), tool("ai/play_music", song="")],
        [tool("m/verify_user", user=""), tool("m/make_page", user_preferences="")],
        [tool("f/read_file", "Deprecated: use read_text_file instead.", p=""), tool("f/read_text_file", p="")],
        [tool("a/end_call", "Ends."), tool("b/interval", start="", end=""), tool("b/other")],
    ],
    ids=["recognises", "another thing", "instead", "one common word elsewhere"],
)
def test_what_only_looks_alike_is_not_proposed(tools: Sequence[Tool]) -> None:
    assert inferred(*tools) == {}


def test_what_is_declared_or_accepted_is_not_proposed_again_and_what_is_proposed_is() -> None:
    for provenance in Provenance:
        edge = Dependency(tool=SEARCH.id, kind=DependencyKind.TOOL_DIRECTLY, provenance=provenance)
        found = inferred(SEARCH, CREDITS.model_copy(update={"depends_on": (edge,)}))
        assert bool(found) is not edge.holds


def test_other_sources_of_an_argument_with_an_accepted_dependency_are_not_proposed() -> None:
    other = tool("tmdb/find_movie", "Find movies.", output=MOVIES, query="Words to search for.")
    edge = Dependency(tool=SEARCH.id, kind=DependencyKind.PARAMETER_DIRECTLY, parameter="movie_id")
    assert inferred(SEARCH, other, CREDITS.model_copy(update={"depends_on": (edge,)})) == {}


def test_what_was_seen_joins_what_was_inferred() -> None:
    seen = {(CREDITS.id, SEARCH.id, "movie_id"): 3, (SEARCH.id, CREDITS.id, "query"): 1}
    found = inferred(SEARCH, CREDITS, seen=seen)
    both = found[CREDITS.id, SEARCH.id, "movie_id"]
    assert both.count == 3
    assert "results.id" in both.evidence
    assert "seen 3 times" in both.evidence
    assert found[SEARCH.id, CREDITS.id, "query"].kind is DependencyKind.PARAMETER_INDIRECTLY, (
        "no circle of requirements"
    )


def test_the_surest_come_first_and_the_bound_is_kept() -> None:
    edges = infer_dependencies(catalog(SEARCH, CREDITS, SIMILAR, tool("tmdb/get_latest_movie", "The latest.")))
    assert [edge.confidence for edge in edges] == sorted((edge.confidence for edge in edges), reverse=True)
    fewer = infer_dependencies(catalog(SEARCH, CREDITS, SIMILAR), least=0.95)
    assert fewer
    assert all(edge.confidence >= 0.95 for edge in fewer)


@pytest.mark.parametrize("least", [0, 1, -1, 2])
def test_a_bound_that_cannot_work(least: float) -> None:
    with pytest.raises(SettingsError, match="least"):
        infer_dependencies(catalog(SEARCH), least=least)


def test_other_languages_match_by_exact_names() -> None:
    output = {"kundennummer": {"type": "string"}}
    found = inferred(
        tool("laden/suche_kunden", "Sucht Kunden.", output=output, name="Wie er heißt"),
        tool("laden/loesche_kunden", "Löscht einen Kunden.", kundennummer="Die Nummer."),
    )
    assert ("laden/loesche_kunden", "laden/suche_kunden", "kundennummer") in found
