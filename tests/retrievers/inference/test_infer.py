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


def test_only_the_best_of_several_sources_is_a_direct_dependency() -> None:
    other = tool("tmdb/find_movie", "Find movies.", output=MOVIES, query="Words to search for.")
    found = inferred(SEARCH, other, CREDITS)
    assert sorted(edge.kind.direct for edge in found.values()) == [False, True], "one source is enough"


def test_a_record_that_is_only_echoed_is_no_source() -> None:
    show = tool("crm/show_contact", "Shows one contact.", output={"contact_id": {"type": "string"}}, contact_id="")
    find = tool("crm/find_contacts", "Finds contacts.", output={"contact_id": {"type": "string"}}, words="")
    found = inferred(show, find, tool("crm/delete_contact", "Deletes a contact.", contact_id=""))
    assert [target for _, target, parameter in found if parameter] == ["crm/find_contacts"] * 2


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
            [
                tool("g/set_working_dir", "Sets the folder.", folder=""),
                tool("g/git_log", "Shows the log. You must call set_working_dir first."),
            ],
            ("g/git_log", "g/set_working_dir", None),
            "tool_indirectly",
        ),
    ],
    ids=["lookup", "record", "named"],
)
def test_dependencies_are_also_inferred_from_names_texts_and_types(
    tools: Sequence[Tool], edge: tuple[str, str, str | None], kind: str
) -> None:
    found = inferred(*tools)
    assert found[edge].kind == kind
    assert found[edge].evidence


@pytest.mark.parametrize(
    "tools",
    [
        [tool("ai/authenticate", "Recognises a face.", image=""), tool("ai/play_music", song="")],
        [tool("m/verify_user", user=""), tool("m/make_page", user_preferences="")],
    ],
    ids=["recognises", "another thing"],
)
def test_fields_that_only_look_alike_are_not_proposed(tools: Sequence[Tool]) -> None:
    assert inferred(*tools) == {}


def test_declared_and_accepted_dependencies_are_not_proposed_again() -> None:
    for provenance in Provenance:
        edge = Dependency(tool=SEARCH.id, kind=DependencyKind.TOOL_DIRECTLY, provenance=provenance)
        found = inferred(SEARCH, CREDITS.model_copy(update={"depends_on": (edge,)}))
        assert bool(found) is not edge.holds


def test_other_sources_of_an_argument_with_an_accepted_dependency_are_not_proposed() -> None:
    other = tool("tmdb/find_movie", "Find movies.", output=MOVIES, query="Words to search for.")
    edge = Dependency(tool=SEARCH.id, kind=DependencyKind.PARAMETER_DIRECTLY, parameter="movie_id")
    assert inferred(SEARCH, other, CREDITS.model_copy(update={"depends_on": (edge,)})) == {}


def test_observed_and_inferred_dependencies_are_merged() -> None:
    seen = {(CREDITS.id, SEARCH.id, "movie_id"): 3, (SEARCH.id, CREDITS.id, "query"): 1}
    found = inferred(SEARCH, CREDITS, seen=seen)
    both = found[CREDITS.id, SEARCH.id, "movie_id"]
    assert both.count == 3
    assert "results.id" in both.evidence
    assert "seen 3 times" in both.evidence
    assert found[SEARCH.id, CREDITS.id, "query"].kind is DependencyKind.PARAMETER_INDIRECTLY, (
        "no circle of requirements"
    )


def test_the_most_confident_proposals_come_first_up_to_the_limit() -> None:
    edges = infer_dependencies(catalog(SEARCH, CREDITS, SIMILAR, tool("tmdb/get_latest_movie", "The latest.")))
    assert [edge.confidence for edge in edges] == sorted((edge.confidence for edge in edges), reverse=True)
    fewer = infer_dependencies(catalog(SEARCH, CREDITS, SIMILAR), least=0.95)
    assert fewer
    assert all(edge.confidence >= 0.95 for edge in fewer)
    for least in (0, 1):
        with pytest.raises(SettingsError, match="least"):
            infer_dependencies(catalog(SEARCH), least=least)


def test_fields_named_in_other_languages_match_by_exact_name() -> None:
    output = {"kundennummer": {"type": "string"}}
    found = inferred(
        tool("laden/suche_kunden", "Sucht Kunden.", output=output, name="Wie er heißt"),
        tool("laden/loesche_kunden", "Löscht einen Kunden.", kundennummer="Die Nummer."),
    )
    assert ("laden/loesche_kunden", "laden/suche_kunden", "kundennummer") in found
