"""Who sees what: a policy decides, and nothing is shown where nobody was asked who it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from callsheet.agents import Call, StepResult
from callsheet.graphs import Catalog, Loaded, Policy, Problem, SettingsError
from callsheet.graphs.trust.pins import Change
from callsheet.orchestrator.run.run_metrics import count_result
from callsheet.orchestrator.server import Site, create_explorer
from callsheet.orchestrator.server.explorer.routes import page_files
from explored import KEY, Authenticated, client_of, explorer, served
from kept_runs import ENDED, Kept

POLICY = Policy(
    default="deny",
    allow=("units",),
    groups={"staff": {"allow": ["maps", "weather", "travel/book_hotel"]}},  # type: ignore[dict-item]
    users={"bob": {"deny": ["units/convert_mass"]}},  # type: ignore[dict-item]
)
ALL = Policy(default="allow", users={"bob": {"deny": ["maps/secret*"]}})  # type: ignore[dict-item]
Ask = Callable[..., Any]


def asking(source: Catalog | Loaded, policy: Policy | None = None, **more: Any) -> Ask:
    app = Authenticated(explorer(source, policy, authenticated=True, **more))
    client = TestClient(app)  # type: ignore[arg-type]

    def ask(user: str, name: str, status: int = 200, **given: Any) -> Any:
        headers = {"Authorization": f"Bearer {user}"} if user else {}
        answer = client.get(f"/callsheet/{name}", params=given, headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.headers["content-type"] == "application/json" else answer.text

    return ask


@pytest.fixture
def ask(catalog: Catalog) -> Ask:
    return asking(catalog, POLICY, runs=Kept([]))


def ids(found: Any) -> set[str]:
    return {tool["link"]["id"] for agent in found["agents"] for tool in agent["tools"]}


def test_without_authentication_nothing_but_the_page_and_its_health_is_given(ask: Ask) -> None:
    for name in ("api/overview", "api/search", "api/node", "api/runs", "metrics"):
        assert "enable_custom_route_auth" in ask("", name, status=403)["error"]
    assert "<title>Callsheet</title>" in ask("", "")
    assert ask("", "health") == {"status": "ok"}


def test_without_the_key_nothing_but_the_page_and_its_health_is_given(catalog: Catalog) -> None:
    app = explorer(catalog, runs=Kept([ENDED]))
    public = {"/callsheet", "/callsheet/", "/callsheet/health", *(f"/callsheet/{name}" for name in page_files())}
    routes = {route.path: route.methods for route in app.routes if isinstance(route, Route)}
    assert routes.keys() >= public | {"/callsheet/metrics", "/callsheet/api/run", "/callsheet/api/node"}
    wrong = ({"x-callsheet-key": "page"}, {"x-callsheet-key": f"{KEY}x"}, {"cookie": f"x-callsheet-key={KEY}"})
    for headers in ({}, *wrong):
        client = TestClient(app, headers=headers)
        for path, methods in routes.items():
            for method in methods or ():
                answer = client.request(method, path, params={"id": "t", "q": "weather", "key": KEY})
                assert answer.status_code == (200 if path in public else 403), (method, path)
                assert not any(agent.id in answer.text for agent in catalog.agents) or path in public, path
    told = client_of(app).get("/callsheet/api/run", params={"id": "t"})
    assert "4.8 km" in told.text
    with pytest.raises(SettingsError, match="every user of this machine"):
        create_explorer(Site(lambda: served(catalog)))


def test_two_users_see_different_tools(ask: Ask) -> None:
    ann, bob = ask("ann", "api/overview"), ask("bob", "api/overview")
    assert (ann["user"], ann["tools"], ann["policy"]) == ("ann", 5, "the policy shows 5 of 6 tools")
    assert (bob["user"], bob["tools"]) == ("bob", 1)
    question = {"q": "weather forecast, a hotel, and pounds in kilograms", "agents": 5, "tools": 10}
    assert "weather/forecast" in ids(ask("ann", "api/search", **question))
    assert ids(ask("bob", "api/search", **question)) <= {"units/convert_length"}


def test_a_hidden_tool_is_neither_shown_nor_counted(ask: Ask) -> None:
    hidden = ask("bob", "api/node", status=404, id="weather/forecast")["error"]
    assert hidden == ask("bob", "api/node", status=404, id="weather/forecasx")["error"].replace("forecasx", "forecast")
    assert [one["id"] for one in ask("bob", "api/agents")["items"]] == ["units"]
    assert "travel/plan_trip" not in str(ask("ann", "api/node", id="weather/forecast"))
    assert ask("bob", "api/findings", id="weather/forecast") == []


def test_capabilities_lead_only_to_tools_that_may_be_seen(ask: Ask) -> None:
    for capability in {
        item["id"]
        for tool in ("units/convert_length", "units")
        for group in ask("ann", "api/node", id=tool)["groups"]
        for item in group["items"]
        if item["kind"] == "capability"
    }:
        tools = {i["id"] for g in ask("bob", "api/capability", id=capability)["groups"] for i in g["items"]}
        assert not {name for name in tools if "/" in name} - {"units/convert_length"}


def test_problems_name_nothing_to_those_who_see_a_part(catalog: Catalog) -> None:
    loaded = Loaded(catalog, problems=(Problem("maps", "malformed", "tool 'secret' is left out"),), policy=POLICY)
    part = asking(loaded)
    assert part("ann", "api/overview")["left_out"] == []
    whole = asking(Loaded(catalog, problems=loaded.problems, policy=ALL))
    assert whole("ann", "api/overview")["left_out"] == ["maps: tool 'secret' is left out"]


def test_a_tool_in_quarantine_is_shown_to_those_who_might_use_it(catalog: Catalog) -> None:
    changes = tuple(Change("maps", "new", name, None, {"name": name}, "ff", "") for name in ("secret_route", "route"))
    broken = Change("maps", "new", "odd", None, {"name": "odd", "inputSchema": 3}, "ff", "")
    ask = asking(Loaded(catalog, changes=(*changes, broken), policy=ALL))
    seen = {
        user: [pin["text"].split()[0] for pin in ask(user, "api/node", id="maps")["facts"]] for user in ("ann", "bob")
    }
    assert seen == {"ann": ["maps/secret_route", "maps/route"], "bob": ["maps/route"]}


def test_metrics_name_agents_only_to_those_who_see_them(ask: Ask) -> None:
    calls = tuple(Call(agent=agent, tool="forecast") for agent in ("weather", "units"))
    count_result(StepResult(id="1", text="x", calls=calls))
    ann, bob = ask("ann", "metrics"), ask("bob", "metrics")
    assert 'callsheet_calls_total{agent="weather"}' in ann
    assert 'callsheet_calls_total{agent="weather"}' not in bob
    assert 'callsheet_calls_total{agent="units"}' in bob
