"""A domain is a catalog: its Server Cards, in an AI Catalog or alone; and cards of publishers who mean no good."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import RedirectResponse, Response

from callsheet import ToolRegistry
from callsheet.graphs import CatalogError, Loaded, TrustError, load
from callsheet.graphs.sources.cards import read_cards
from callsheet.graphs.sources.loading import servers_in, starts_in
from callsheet.graphs.trust.consent import Agreements
from card_server import AI_CATALOG, CARD_TYPE, OLD_CARD, Domain, domain


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Domain]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    with domain() as served:
        yield served


def agreed(address: str) -> Loaded:
    """The catalog at an address, to which a person has consented, but not to servers on other hosts."""
    Agreements().add(starts_in(address)[:1])
    return load(address)


def problems(loaded: Loaded) -> dict[str, str]:
    return {problem.agent: problem.message for problem in loaded.problems}


def listed(**more: Any) -> dict[str, Any]:
    """An AI Catalog with one entry."""
    return {"specVersion": "1.0", "entries": [{"type": CARD_TYPE, "identifier": "x", **more}]}


async def test_the_servers_of_a_domain_are_found_and_called(host: Domain) -> None:
    host.publish(host.card())
    loaded = agreed(host.origin)
    assert list(loaded.catalog.tools) == ["weather/forecast"]
    assert not loaded.problems
    registry = ToolRegistry.from_catalog(loaded)
    (bound,) = registry.bind(["weather/forecast"], "run").values()
    call = {"type": "tool_call", "id": "1", "name": bound.name, "args": {"city": "Oslo"}}
    assert (await bound.ainvoke(call)).text == "sunny in Oslo"
    await registry.close_run("run")
    assert list(servers_in(host.origin)) == [host.origin, "weather"]


@pytest.mark.parametrize(
    ("place", "address"),
    [(OLD_CARD, ""), ("/mcp/server-card", "/mcp/server-card"), ("/mcp/server-card", "/mcp"), ("/weather", "/weather")],
    ids=["domain", "card", "server", "elsewhere"],
)
def test_one_card_is_a_catalog_wherever_it_is(host: Domain, place: str, address: str) -> None:
    host.pages[place] = host.card()
    loaded = agreed(f"{host.origin}{address}")
    assert list(loaded.catalog.tools) == ["weather/forecast"]
    assert CARD_TYPE in host.accepted[place]


def test_an_entry_of_a_registry_is_a_catalog(host: Domain) -> None:
    host.servers["com.example/weather"] = {**host.card(), "packages": []}
    loaded = agreed(f"{host.origin}/v0.1/servers/com.example%2Fweather/versions/latest")
    assert list(loaded.catalog.tools) == ["weather/forecast"]


def test_cards_are_fetched_from_where_the_catalog_says_and_two_of_one_name_are_told_apart(host: Domain) -> None:
    host.publish(host.card(), f"{host.origin}/other/server-card", host.card("org.example/weather"))
    host.pages["/other/server-card"] = host.card("com.example/other")
    loaded = agreed(host.origin)
    assert set(loaded.catalog.by_id) == {"weather", "other", "org.example-weather"}


def test_entries_of_other_kinds_are_passed_over(host: Domain) -> None:
    host.publish(host.card())
    host.pages[AI_CATALOG]["entries"] += [{"identifier": "urn:x", "type": "application/a2a-agent-card+json"}, 7, None]
    loaded = agreed(host.origin)
    assert (list(loaded.catalog.by_id), loaded.problems) == (["weather"], ())


def test_a_domain_is_read_only_after_consent(host: Domain) -> None:
    host.publish(host.card())
    with pytest.raises(TrustError, match="would read these specifications"):
        load(host.origin)
    assert host.asked == []


def test_a_specification_at_the_root_of_a_host_is_still_one(host: Domain) -> None:
    operation = {"operationId": "list_books", "responses": {"200": {"description": "books"}}}
    api: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "Books", "version": "1"}}
    host.pages["/"] = {**api, "paths": {"/books": {"get": operation}}}
    assert list(agreed(host.origin).catalog.tools) == ["books/list_books"]
    host.pages[AI_CATALOG] = b"<html>every page is here</html>"
    assert list(load(host.origin, anew=True).catalog.tools) == ["books/list_books"]


def test_a_fetched_card_is_used_until_it_is_old(host: Domain) -> None:
    host.publish(host.card())
    agreed(host.origin)
    del host.pages[AI_CATALOG]
    before = len(host.asked)
    assert list(agreed(host.origin).catalog.tools) == ["weather/forecast"]
    assert len(host.asked) == before
    again = load(host.origin, anew=True)
    assert list(again.catalog.tools) == ["weather/forecast"]
    assert "The copy of" in problems(again)[host.origin]


def test_a_server_on_another_host_needs_consent_of_its_own(host: Domain) -> None:
    remotes = [{"type": "streamable-http", "url": host.url.replace("127.0.0.1", "localhost")}]
    host.publish(host.card(), host.card("com.example/elsewhere", remotes=remotes))
    loaded = agreed(host.origin)
    assert list(loaded.catalog.by_id) == ["weather"]
    assert "on another host, http://localhost:" in problems(loaded)["elsewhere"]
    assert f"callsheet index --catalog {host.origin}" in problems(loaded)["elsewhere"]
    (start,) = starts_in(host.origin)[1:]
    assert str(start) == f"elsewhere: {remotes[0]['url']}"
    Agreements().add([start])
    assert set(load(host.origin).catalog.by_id) == {"weather", "elsewhere"}


def test_a_card_that_names_another_address_later_is_held_back(host: Domain) -> None:
    host.publish(host.card())
    assert list(load(host.origin, yes=True).catalog.tools) == ["weather/forecast"]
    remotes = [{"type": "streamable-http", "url": host.url.replace("127.0.0.1", "localhost")}]
    host.publish(host.card(remotes=remotes))
    moved = load(host.origin, yes=True, anew=True)
    assert (list(moved.catalog.tools), [change.kind for change in moved.changes]) == ([], ["command"])


def test_a_card_of_another_machine_leads_to_none_of_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    from callsheet.graphs.sources.cards import copy_of

    def said(url: str) -> str:
        card = {"name": "com.example/x", "version": "1", "remotes": [{"type": "streamable-http", "url": url}]}
        file = copy_of("https://example.com")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(card), encoding="utf-8")
        found = read_cards("https://example.com")
        assert found is not None
        return found.problems[0].message if found.problems else str([*found.starts.values()])

    for host_name in ("127.0.0.1:8000", "localhost", "169.254.169.254", "[::1]", "2130706433", "0x7f.1", "0.0.0.0"):
        assert "is of this machine, although its card is not" in said(f"https://{host_name}/mcp")
    assert "is not https, although its card is" in said("http://mcp.example.com/mcp")
    for url in ("https://me:pw@example.com/mcp", "https://example.com\\@evil.com/", "https://exämple.com/mcp"):
        assert "is not plain" in said(url)
    assert "https://mcp.example.com/mcp" in said("https://mcp.example.com/mcp")


@pytest.mark.parametrize("what", ["header", "environment", "package", "hidden", "template"])
def test_what_needs_the_user_is_for_the_own_file_and_what_misleads_is_refused(host: Domain, what: str) -> None:
    remote: dict[str, Any] = {"type": "streamable-http", "url": host.url}
    npm = {"registryType": "npm", "identifier": "x", "version": "1", "transport": {"type": "stdio"}}
    card = host.card(remotes=[remote])
    match what:
        case "header":
            remote["headers"] = [{"name": "X-Key", "isRequired": True, "isSecret": True}]
            add = f"to add it to your own mcp.json, run `callsheet add {host.origin}`"
            expected = f"values that are not sent to whoever writes a card (X-Key): {add}"
        case "environment":
            remote["headers"] = [{"name": "X-Key", "value": "${HOME}"}]
            expected = "refers to your environment, which a publisher may not do"
        case "package":
            card = host.card(remotes=[], packages=[npm])
            expected = "it is a program of this machine (npm), which no card starts"
        case "hidden":
            remote["url"] = f"{host.url}\u200b"
            expected = "has characters that are not shown"
        case _:
            remote["url"] = f"{host.url}/{{nobody}}"
            expected = "has a variable that the card does not define"
    host.publish(card)
    loaded = load(host.origin, yes=True)
    assert not loaded.catalog.agents
    assert expected in problems(loaded)["weather"]


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ({"specVersion": "1.0", "entries": [{"type": CARD_TYPE, "identifier": "x", "data": 7}]}, "is not an object"),
        (
            {"specVersion": "1.0", "entries": [{"type": CARD_TYPE, "identifier": "x", "data": {}}]},
            "the card is malformed",
        ),
        ({"specVersion": "1.0", "entries": [{"type": CARD_TYPE, "identifier": "x"}]}, "holds no card"),
        ({"name": "com.example/x\u202e", "version": "1", "remotes": []}, "the card is malformed"),
        ({"name": "com.example/x", "version": "1", "remotes": [{"type": "ftp", "url": "ftp://x"}]}, "'ftp' is unknown"),
        ({"name": "com.example/x", "version": "1", "remotes": {"a": 1}}, "the card is malformed"),
        ({"name": "com.example/x", "version": "1", "remotes": []}, "names no address"),
    ],
)
def test_malformed_cards_are_problems_with_their_reason(host: Domain, page: Any, expected: str) -> None:
    host.pages[AI_CATALOG] = page
    loaded = load(host.origin, yes=True)
    (problem,) = loaded.problems
    assert expected in problem.message
    assert "\u202e" not in str(problem)


@pytest.mark.parametrize("page", [b"[" * 100_000, b'{"specVersion": "1.0", "entries": [', b"\xff\xfe", b"[]", b"7"])
def test_a_page_that_is_no_document_is_no_card(host: Domain, page: bytes) -> None:
    host.pages[AI_CATALOG] = page
    loaded = load(host.origin, yes=True)
    (problem,) = loaded.problems
    assert "answers with status 404" in problem.message


def test_a_card_is_not_read_to_its_end_if_it_is_too_large(host: Domain) -> None:
    host.pages[AI_CATALOG] = b" " * 2_000_000
    host.pages[OLD_CARD] = host.card()
    assert list(load(host.origin, yes=True).catalog.tools) == ["weather/forecast"]


def test_of_too_many_cards_the_first_are_used_and_the_rest_is_told(host: Domain) -> None:
    host.publish(host.card(), *(f"{host.origin}/{number}" for number in range(104)))
    loaded = load(host.origin, yes=True)
    assert list(loaded.catalog.by_id) == ["weather"]
    assert len(host.asked) == 100
    assert "5 more cards are left out" in loaded.problems[-1].message


def test_many_large_cards_are_used(host: Domain) -> None:
    wide = {"com.example/x": "é" * 40_000}
    host.publish(*(f"{host.origin}/{number}" for number in range(30)))
    for number in range(30):
        card = host.card(f"com.example/x{number}", _meta=wide)
        host.pages[f"/{number}"] = json.dumps(card, ensure_ascii=False).encode()
    assert len(load(host.origin, yes=True).catalog.agents) == 30


def test_redirects_lead_to_no_other_host(host: Domain) -> None:
    elsewhere = f"{host.origin.replace('127.0.0.1', 'localhost')}/secret"
    host.pages["/card"] = RedirectResponse(elsewhere)
    host.pages["/secret"] = host.card()
    host.publish(f"{host.origin}/card", elsewhere)
    loaded = load(host.origin, yes=True)
    assert not loaded.catalog.agents
    assert "redirects to another host, localhost" in loaded.problems[0].message
    assert "is on another host, to which nothing was sent" in loaded.problems[1].message
    assert "/secret" not in host.asked


def test_a_card_that_never_comes_does_not_hold_up_the_others(host: Domain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callsheet.agents.servers.catalogs.fetching.PATIENCE", 1.0)
    host.hanging = {"/slow"}
    host.publish(f"{host.origin}/slow", host.card())
    loaded = load(host.origin, yes=True)
    assert list(loaded.catalog.tools) == ["weather/forecast"]
    assert "not fetched in time" in loaded.problems[0].message


def test_a_domain_without_cards_says_so(host: Domain) -> None:
    host.pages["/"] = Response("<html>welcome</html>", media_type="text/html")
    with pytest.raises(CatalogError, match="There is no Server Card and no AI Catalog either"):
        load(host.origin, yes=True)
