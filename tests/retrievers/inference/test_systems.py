"""An API that is split into agents by its tags is one system: their tools share identifiers."""

from __future__ import annotations

from typing import Any

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies
from callsheet.retrievers.inference.word_roles import head_of, name_of

ID = {"type": "string", "description": "The Music ID."}


def tool(agent: str, name: str, *needs: str, output: Any = None) -> Tool:
    properties = {need: {**ID, "description": f"The Music ID of the {need.partition('_')[0]}."} for need in needs}
    return Tool(
        agent=agent,
        name=name,
        input_schema={"type": "object", "properties": properties, "required": list(needs)},
        output_schema={"type": "object", "properties": output} if output else None,
    )


def listed(**holders: dict[str, Any]) -> dict[str, Any]:
    items = {"type": "object", "properties": {"id": ID, "name": {"type": "string"}}}
    return {name: {"type": "array", "items": items | more} for name, more in holders.items()}


ARTIST = tool("music-artists", "get_artist", "artist_id")
TRACK = tool("music-tracks", "get_track", "track_id")
PLAYLIST = tool("music-playlists", "get_playlist", "playlist_id")
SEARCH = tool("music-search", "search", "q", output=listed(artists={}, tracks={}))
OTHERS = (tool("music-users", "get_profile", output={"id": ID}), tool("music-users", "stop"))


def inferred(*tools: Tool, system: str = "music") -> dict[tuple[str, str], float]:
    names = dict.fromkeys(one.agent for one in tools)
    agents = tuple(Agent(id=n, system=system, tools=tuple(t for t in tools if t.agent == n)) for n in names)
    found = infer_dependencies(Catalog(agents=agents))
    return {(edge.source.partition("/")[2], edge.target.partition("/")[2]): edge.confidence for edge in found}


def test_a_search_for_everything_finds_what_other_agents_of_its_api_need() -> None:
    tools = (ARTIST, tool("music-artists", "stop"), TRACK, PLAYLIST, SEARCH, *OTHERS)
    found = inferred(*tools)
    assert found.keys() == {("get_artist", "search"), ("get_track", "search")}
    apart = inferred(*tools, system="")
    assert apart.get(("get_artist", "search"), 0) < 0.7 * found["get_artist", "search"]


def test_lists_of_the_caller_and_makers_are_sources_beside_a_search() -> None:
    search = tool("music-search", "search", "q", output=listed(playlists={}))
    own = tool("music-playlists", "get_a_list_of_current_users_playlists", output=listed(items={}))
    popular = tool("music-playlists", "get_popular_playlists", output=listed(items={}))
    make = tool("music-playlists", "create_playlist", "title", output={"id": ID})
    found = inferred(PLAYLIST, search, own, popular, make, *OTHERS)
    assert found.keys() == {("get_playlist", name) for name in ("search", own.name, make.name)}


def test_a_tool_returns_what_the_last_noun_of_its_name_says() -> None:
    make = tool("music-playlists", "create_playlist", "user_id")
    told = {"description": "The Music ID of the user."}
    user = tool("music-users", "get_the_user").model_copy(update=told)
    saved = tool("music-tracks", "get_user_tracks").model_copy(update=told)
    assert inferred(make, user).keys() == {("create_playlist", "get_the_user")}
    assert inferred(make, saved) == {}
    assert head_of("get_user_tracks") == head_of("list_tracks") != head_of("get_user_id")


def test_the_object_of_a_list_of_records_is_the_records() -> None:
    assert name_of("get_a_list_of_users_playlists").object == name_of("get_users_playlists").object
    assert name_of("get_list_of_items_by_name").phrase == "items"
