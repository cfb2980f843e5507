"""What the page asks for: overview, agents, search, nodes, capabilities, findings."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from callsheet.graphs import (
    Agent,
    Catalog,
    Dependency,
    DependencyKind,
    Loaded,
    Policy,
    Problem,
    Provenance,
    Skill,
    Tool,
)
from callsheet.graphs.sources.loading import load
from callsheet.graphs.trust.pins import Change
from callsheet.orchestrator.server import Site, create_explorer, visible_catalog
from callsheet.orchestrator.server.explorer import node_details
from explored import KEY, contacts, explorer, served
from hostile import BREAKOUT, hostile_catalog
from kept_runs import Kept
from small import small_catalog

Asked = Callable[..., Any]


@pytest.fixture
def catalog() -> Catalog:
    """Two agents; a tool needs one of the other's, and another may."""
    needs = Dependency(tool="maps/find_place", kind=DependencyKind.TOOL_DIRECTLY, parameter="place", reason="by name")
    may = Dependency(
        tool="maps/find_place", kind=DependencyKind.PARAMETER_INDIRECTLY, provenance=Provenance.PROPOSED, confidence=0.6
    )
    schema = {"type": "object", "properties": {"place": {"type": "string", "enum": ["Oslo"]}}, "required": ["place"]}
    return Catalog(
        agents=(
            Agent(
                id="weather",
                description="Weather reports.",
                instructions="Ask for one place.",
                tools=(
                    Tool(
                        agent="weather",
                        name="forecast",
                        title="Forecast",
                        description="Weather forecast for a place.",
                        input_schema=schema,
                        annotations={"readOnlyHint": True},
                        depends_on=(needs,),
                        capabilities=("external-api-access",),
                    ),
                    Tool(agent="weather", name="history", depends_on=(may,)),
                ),
            ),
            Agent(
                id="maps",
                description="Places and routes.",
                tools=(Tool(agent="maps", name="find_place", description="Finds the coordinates of a place."),),
            ),
        )
    )


def beside(node: Any, side: str) -> list[tuple[str, str, str]]:
    return [(o["id"], o["relation"], o["words"]) for g in node["groups"] if g["side"] == side for o in g["items"]]


def test_the_map_has_all_agents_tools_skills_and_dependencies(asked: Asked) -> None:
    skill = Skill(name="trip", description="Plans trips.", tools=("travel/plan_trip",))
    catalog = Catalog(agents=small_catalog().agents, skills=(skill,))
    found = asked(explorer(catalog), "map")
    names = [f"{found['agents'][agent]}/{name}" for name, agent, _ in found["tools"]]
    assert names == list(catalog.tools)
    edges = {(names[a], names[b], origin) for a, b, origin in found["edges"]}
    assert edges == {
        ("weather/forecast", "maps/find_place", 0),
        ("travel/plan_trip", "weather/forecast", 0),
        ("travel/plan_trip", "units/convert_length", 0),
    }
    ((name, (tool,), owner),) = found["skills"]
    assert (name, names[tool], owner) == ("skills/trip", "travel/plan_trip", None)
    served_skill = Catalog(agents=catalog.agents, skills=(Skill(name="pack", description="Packs.", agent="travel"),))
    found = asked(explorer(served_skill), "map")
    assert found["skills"] == [["travel/skill:pack", [], found["agents"].index("travel")]]
    inferred = asked(explorer(contacts()), "map")
    assert inferred["edges"] == [[1, 0, 1]]
    (part,) = asked(explorer(catalog, Policy(default="deny", allow=("units",))), "map")["agents"]
    assert part == "units"
    hostile = asked(explorer(hostile_catalog()), "map")
    assert (hostile["agents"], hostile["labels"]) == ([BREAKOUT], {})


def test_an_inferred_dependency_is_counted_apart_and_shown_with_its_evidence(asked: Asked) -> None:
    client = explorer(contacts())
    assert [asked(client, "overview")[name] for name in ("dependencies", "inferred")] == [0, 1]
    (agent,) = asked(client, "search", q="delete_contact")["agents"]
    # The search has found both itself, so no proposal has brought one.
    assert [tool["inferred"] for tool in agent["tools"]] == ["", ""]
    ((_, _, words),) = beside(asked(client, "node", id="crm/delete_contact"), "after")
    assert words.startswith("needs it for a parameter: contact_id; proposed, 98% sure; its result holds contact_id")


def test_the_head_of_the_page_counts_dependencies_as_the_map_does(asked: Asked) -> None:
    edges = [
        Dependency(tool="crm/find", kind=kind, provenance=origin)
        for kind, origin in (
            (DependencyKind.TOOL_DIRECTLY, Provenance.DECLARED),
            (DependencyKind.TOOL_INDIRECTLY, Provenance.REVIEWED),
            (DependencyKind.TOOL_INDIRECTLY, Provenance.OBSERVED),
            (DependencyKind.TOOL_INDIRECTLY, Provenance.PROPOSED),
        )
    ]
    tools = [Tool(agent="crm", name=f"use_{n}", depends_on=(edge,)) for n, edge in enumerate(edges)]
    catalog = Catalog(agents=(Agent(id="crm", tools=(Tool(agent="crm", name="find"), *tools)),))
    client = explorer(catalog)
    head = asked(client, "overview")
    on_map = Counter(origin for _, _, origin in asked(client, "map")["edges"])
    assert [head[name] for name in ("dependencies", "inferred", "observed")] == [2, 1, 1]
    assert on_map == {0: head["dependencies"], 1: head["inferred"], 2: head["observed"]}


def test_the_overview_counts_and_names_what_was_left_out(catalog: Catalog, asked: Asked) -> None:
    loaded = Loaded(catalog, problems=(Problem("broken", "start", "does not start: \x1b[31mno such program"),))
    found = asked(explorer(loaded), "overview")
    assert (found["agents"], found["tools"], found["dependencies"], found["inferred"]) == (2, 3, 1, 1)
    assert found["left_out"] == ["broken: does not start: \\x1b[31mno such program"]
    assert (found["user"], found["policy"], found["runs"]) == ("", "", False)


def test_a_search_gives_ranked_agents_and_tools_with_the_reasons(client: TestClient, asked: Asked) -> None:
    found = asked(client, "search", q="weather forecast for a place", agents=2, tools=3)
    best = found["agents"][0]
    assert found["verdict"] == "found"
    assert best["link"]["id"] == "weather"
    forecast, place = best["tools"][:2]
    assert forecast["link"] == {
        "id": "weather/forecast",
        "label": "weather/forecast",
        "kind": "tool",
        "about": "Weather forecast for a place.",
    }
    assert "meaning" in forecast["why"]
    assert "words" in forecast["why"]
    assert (place["link"]["id"], place["required"]) == ("maps/find_place", True)
    assert [link["id"] for link in place["via"]] == ["weather/forecast"]
    assert found["considered"][0]["cosine_rank"] == 1
    assert found["probability"] > 0.5
    assert found["reason"].startswith("by the best score, ")
    nothing = asked(client, "search", q="  ")
    assert (nothing["verdict"], nothing["agents"]) == ("nothing_fits", [])


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, "q"),
        ({"q": "x", "agents": 0}, "agents"),
        ({"q": "x", "tools": "many"}, "tools"),
        ({"q": "x" * 10_001}, "q"),
    ],
)
def test_a_wrong_parameter_is_named(client: TestClient, asked: Asked, given: Any, names: str) -> None:
    assert asked(client, "search", status=400, **given)["error"].startswith(f"{names}: ")


def test_a_tool_stands_between_its_owner_what_it_needs_and_what_needs_it(client: TestClient, asked: Asked) -> None:
    node = asked(client, "node", id="weather/forecast")
    assert beside(node, "above") == [("weather", "owner", "owns it")]
    assert beside(node, "after") == [("maps/find_place", "td", "needs the tool: place; by name")]
    assert beside(node, "below") == [("external-api-access", "capability", "according to its author")]
    assert node["parameters"] == [{"name": "place", "type": "string", "required": True, "about": "one of: Oslo"}]
    assert json.loads(node["schemas"][0]["text"])["required"] == ["place"]
    facts = {fact["term"]: fact["text"] for fact in node["facts"]}
    assert facts["Hints of its author"] == "readOnlyHint: True"
    assert facts["Calls"] == "none: it is known from a manifest only"
    place = asked(client, "node", id="maps/find_place")
    assert [(name, kind) for name, kind, _ in beside(place, "before")] == [
        ("weather/forecast", "td"),
        ("weather/history", "pi"),
    ]
    unreviewed = [one["unreviewed"] for g in place["groups"] if g["side"] == "before" for one in g["items"]]
    assert unreviewed == [False, True]


def test_an_agent_stands_above_its_tools_and_beside_other_agents(client: TestClient, asked: Asked) -> None:
    node = asked(client, "node", id="weather")
    assert [name for name, _, _ in beside(node, "below")] == ["weather/forecast", "weather/history"]
    assert beside(node, "after") == [("maps", "agents", "2 dependencies")]
    assert beside(asked(client, "node", id="maps"), "before") == [("weather", "agents", "2 dependencies")]
    assert node["facts"] == [{"term": "Instructions", "text": "Ask for one place."}]


def test_a_capability_leads_to_wider_ones_and_to_its_tools(client: TestClient, asked: Asked) -> None:
    node = asked(client, "capability", id="external-api-access")
    assert ("weather/forecast", "capability", "according to its author") in beside(node, "after")
    (wider, relation, _) = beside(node, "above")[0]
    assert relation == "broader"
    narrower = beside(asked(client, "capability", id=wider), "below")
    assert ("external-api-access", "broader") in [one[:2] for one in narrower]
    assert "no capability 'nonsense'" in asked(client, "capability", status=404, id="nonsense")["error"]


def test_an_unknown_node_is_answered_with_the_nearest_names(client: TestClient, asked: Asked) -> None:
    assert "did you mean 'weather'" in asked(client, "node", status=404, id="wether")["error"]
    runs = explorer(small_catalog(), runs=Kept([]))
    assert asked(runs, "run", status=404, id="x")["error"] == "there is no thread 'x' that you may see"


def test_findings_are_those_of_check(client: TestClient, asked: Asked) -> None:
    (finding,) = asked(client, "findings", id="weather/history")
    assert (finding["rule"], finding["severity"]) == ("empty-description", "warning")
    assert asked(client, "findings", id="maps") == []


def test_pins_and_what_differs_from_them_are_shown(catalog: Catalog, asked: Asked) -> None:
    changed = Change("maps", "changed", "route", {"name": "route", "description": "a"}, {"name": "route"}, "ff", "book")
    loaded = Loaded(load(catalog).catalog, digests={"maps": {"find_place": "ab12"}}, changes=(changed,))
    app = explorer(loaded)
    assert asked(app, "node", id="maps/find_place")["facts"][-1] == {"term": "Accepted", "text": "SHA-256 ab12"}
    assert asked(app, "node", id="weather/forecast")["facts"][-1]["text"].startswith("no pin")
    (pin,) = asked(app, "node", id="maps")["facts"]
    assert pin["term"] == "In quarantine"
    assert pin["text"] == "maps/route is not what was accepted"
    assert "-description: a" in pin["detail"]


def test_what_servers_say_later_is_shown(catalog: Catalog, asked: Asked) -> None:
    found = served(catalog)
    app = create_explorer(Site(lambda: found), key=KEY, hosts=("testserver",))
    assert asked(app, "overview")["tools"] == 3
    route = Tool(agent="maps", name="route", description="Plans a route between two places.")
    agents = (catalog.agents[0], catalog.agents[1].model_copy(update={"tools": (*catalog.agents[1].tools, route)}))
    later = Loaded(Catalog(agents=agents), digests={"maps": {"route": "cd34"}}, down={"maps": "yesterday"})
    found.registry.follow(later)
    found.retriever.follow(later)
    assert asked(app, "overview")["tools"] == 4
    assert asked(app, "node", id="maps/route")["facts"][-1]["text"] == "SHA-256 cd34"
    assert "yesterday" in str(asked(app, "node", id="maps")["facts"])
    assert TestClient(app).get("/callsheet/health").json() == {"status": "degraded"}


def test_agents_are_listed_in_parts_and_by_words(asked: Asked) -> None:
    agents = tuple(Agent(id=f"agent-{i}", description="even" if i % 2 == 0 else "odd") for i in range(130))
    app = explorer(Catalog(agents=agents))
    parts = [asked(app, "agents", start=start) for start in (0, 60, 120)]
    assert [len(part["items"]) for part in parts] == [60, 60, 10]
    assert asked(app, "agents", words="EVEN agent-12")["total"] == 6


def test_long_work_is_not_done_on_the_event_loop(
    catalog: Catalog, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's other routes, ``/ok`` among them, are answered by the same loop."""
    threads: dict[str, str] = {}

    def noted(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any, **more: Any) -> Any:
            threads[name] = threading.current_thread().name
            return work(*given, **more)

        return do

    for owner, name in (
        (node_details, "search"),
        (node_details, "overview"),
        (node_details, "list_agents"),
        (node_details, "node"),
        (Site, "visible_to"),
    ):
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    monkeypatch.setattr(visible_catalog, "lint", noted("findings", visible_catalog.lint))
    app = explorer(catalog)
    for name in ("overview", "agents", "search", "node", "findings"):
        asked(app, name, q="x", id="maps")
    assert set(threads) == {"search", "overview", "list_agents", "node", "findings", "visible_to"}
    assert all(name.startswith("AnyIO worker") for name in threads.values()), threads
