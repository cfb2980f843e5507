"""An API that is split into agents by its tags is one system: their tools share identifiers."""

from __future__ import annotations

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies

ID = {"type": "string", "description": "The ID of the artist."}
ITEMS = {"type": "array", "items": {"type": "object", "properties": {"id": ID, "name": {"type": "string"}}}}
NEEDS = {"type": "object", "properties": {"artist_id": ID}, "required": ["artist_id"]}
ARTIST = Tool(agent="music-artists", name="get_artist", description="Gets an artist.", input_schema=NEEDS)
SEARCH = Tool(
    agent="music-search",
    name="search_artists",
    description="Searches.",
    output_schema={"properties": {"artists": ITEMS}},
)


def sure(system: str, **terms: object) -> float:
    agents = (Agent(id=one.agent, system=system, tools=(one,)) for one in (ARTIST, SEARCH))
    found = infer_dependencies(Catalog(agents=tuple(agents)), **terms)  # type: ignore[arg-type]
    return max((edge.confidence for edge in found if edge.key == (ARTIST.id, SEARCH.id, "artist_id")), default=0.0)


def test_agents_of_one_api_need_no_trust_and_others_do() -> None:
    assert sure("music") > 0.5
    assert sure("music", trusted=()) == sure("music")
    assert sure("", trusted=()) == 0
    assert sure("", trusted=[SEARCH.agent]) == sure("")
