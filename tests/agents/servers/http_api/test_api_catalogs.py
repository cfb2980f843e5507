"""A specification is a catalog: from a file, from an address after consent, as an entry; pinned like a server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.responses import RedirectResponse, Response

from api_server import ShopApi, called, shop, shop_spec
from callsheet import CatalogError, ToolRegistry, TrustError, load
from callsheet.agents import SessionPool
from callsheet.agents.calls.outcome import Outcome, failed_outcome
from callsheet.graphs import Policy
from callsheet.graphs.sources.loading import starts_in
from callsheet.graphs.trust.consent import Agreements, belief_digest, believable

SECRET = "CANARY-key-57c0de"


def written(folder: Path, spec: dict[str, Any], name: str = "spec.json") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump(spec) if file.suffix == ".yaml" else json.dumps(spec))
    return file


def entry(folder: Path, openapi: object = "spec.json", **more: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": {"openapi": openapi, **more}}}))
    return file


@pytest.mark.parametrize("name", ["spec.json", "spec.yaml"])
async def test_a_file_is_agents_by_tag_and_tools_by_operation(tmp_path: Path, served: ShopApi, name: str) -> None:
    loaded = load(written(tmp_path, shop_spec(f"{served.url}/v1"), name))
    assert {agent.id: (agent.name, agent.description) for agent in loaded.catalog.agents} == {
        "shop-orders": ("orders", "Orders of customers. Part of Shop."),
        "shop": ("Shop", "Sells things."),
    }
    assert [tool.id for tool in loaded.catalog.agent("shop").tools] == ["shop/get_health"]
    answer = await called(loaded)
    assert answer.artifact["structured"] == {"id": "7", "state": "shipped", "target": "/v1/orders/7"}
    assert [(sent.method, sent.target) for sent in served.sent] == [("GET", "/v1/orders/7")]
    assert loaded.problems == ()


GOT = ["sendMessage", "createInvoice", "cancelOrder", "banChatMember", "reboot", "getTime", "deleteAll"]
"""Names of operations by GET."""


def got_spec() -> dict[str, Any]:
    """A specification whose operations by GET have all kinds of names, and a search by POST."""
    spec = shop_spec("https://shop.example")
    tell = spec["paths"]["/orders/{id}"]["get"]
    spec["paths"] |= {f"/{name}/{{id}}": {"get": {**tell, "operationId": name}} for name in GOT}
    spec["paths"]["/search"] = {"post": {**spec["paths"]["/orders"]["post"], "operationId": "searchOrders"}}
    return spec


def harms(catalog: Path, **more: Any) -> dict[str, str]:
    """Tool name -> harm; all but what is harmless is asked about."""
    registry = ToolRegistry.from_catalog(load(catalog, yes=True, **more))
    known = {tool.name: registry.assurance(tool.id) for tool in registry.catalog.agent("shop-orders").tools}
    assert all((one.harm == "none") is (one.refusal("ask") is None) for one in known.values())
    return {name: one.harm for name, one in known.items()}


def test_an_operation_by_get_is_not_harmless_by_its_method(tmp_path: Path) -> None:
    for catalog in (written(tmp_path, got_spec()), entry(tmp_path)):
        found = harms(catalog)
        assert {name: found[name] for name in GOT} == {**dict.fromkeys(GOT, "change"), "deleteAll": "destroy"}
        assert (found["searchOrders"], found["deleteOrder"]) == ("change", "destroy")


def test_of_a_trusted_specification_get_reads_unless_its_name_destroys(tmp_path: Path) -> None:
    file = written(tmp_path, got_spec())
    trusted = {**dict.fromkeys([*GOT, "tellOrder"], "none"), "deleteAll": "destroy"}
    sends = {"searchOrders": "change", "placeOrder": "change", "deleteOrder": "destroy"}
    policy = Policy(default="allow", trust=("shop-*",))
    assert harms(file, policy=policy) == {**trusted, **sends}
    assert harms(entry(tmp_path, callsheet={"trusted": True})) == {**trusted, **sends}
    reads = entry(tmp_path, callsheet={"trusted": True, "reads": ["searchOrders", "deleteAll"]})
    assert harms(reads) == {**trusted, **sends, "searchOrders": "none", "deleteAll": "none"}


async def test_only_a_call_of_a_harmless_tool_may_be_sent_again(tmp_path: Path) -> None:
    class Recorded(SessionPool):
        async def call(self, run_id: str, agent_id: str, server: Any, tool: str, args: Any, **how: Any) -> Outcome:
            again[tool] = how["repeatable"] or how["harmless"]
            return failed_outcome(agent_id, tool, "busy", "later")

    again: dict[str, bool] = {}
    written(tmp_path, got_spec())
    for terms in ({}, {"allow": ["tellOrder"]}, {"trusted": True}):
        loaded = load(entry(tmp_path, callsheet=terms), yes=True)
        registry = ToolRegistry.from_catalog(loaded, pool=Recorded())
        for bound in registry.bind(["shop-orders/tellOrder", "shop-orders/deleteAll"], "run").values():
            await bound.ainvoke({"id": "7"})
        assert again == {"tellOrder": "trusted" in terms, "deleteAll": False}


@pytest.mark.parametrize("by_entry", [False, True])
def test_a_person_believes_a_specification_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, by_entry: bool
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    catalog = written(tmp_path, got_spec())
    catalog = entry(tmp_path) if by_entry else catalog
    opened = load(catalog, yes=True)
    marked = believable(opened.catalog, opened.connections)
    assert {agent: set(one.tools) for agent, one in marked.items()} == {
        "shop-orders": {*GOT, "tellOrder"} - {"deleteAll"},
        "shop": {"get_health"},
    }
    Agreements().add([belief_digest(marked["shop-orders"].server)])
    assert harms(catalog)["sendMessage"] == "none"
    assert ToolRegistry.from_catalog(load(catalog, yes=True)).assurance("shop/get_health").harm == "change"


def test_an_entry_names_what_always_comes_of_all_tags_together(tmp_path: Path) -> None:
    written(tmp_path, got_spec())
    loaded = load(entry(tmp_path, callsheet={"always": ["tellOrder", "get_health", "tellOrdr"]}), yes=True)
    always = [tool.id for tool in loaded.catalog.tools.values() if tool.always]
    assert always == ["shop-orders/tellOrder", "shop/get_health"]
    (problem,) = [one for one in loaded.problems if "always" in one.message]
    assert (problem.agent, "(did you mean 'tellOrder'" in problem.message) == ("shop", True)


async def test_a_changed_operation_is_quarantined(tmp_path: Path, served: ShopApi) -> None:
    spec = shop_spec(served.url)
    file = written(tmp_path, spec)
    loaded = load(file)
    spec["paths"]["/orders/{id}"]["get"]["summary"] = "Tell the state of an order, and pay it."
    spec["paths"]["/orders/{id}/pay"] = {"post": {"operationId": "payOrder", "tags": ["orders"]}}
    spec["paths"]["/accounts"] = {"delete": {"operationId": "deleteAccounts", "tags": ["accounts"]}}
    written(tmp_path, spec)
    answer = await called(loaded)
    assert (answer.artifact["kind"], served.sent) == ("refused", [])
    assert "its definition has changed since it was accepted" in answer.text
    again = load(file)
    assert {(change.kind, change.id) for change in again.changes if change.quarantines} == {
        ("changed", "shop-orders/tellOrder"),
        ("new", "shop-orders/payOrder"),
        ("new", "shop-accounts/deleteAccounts"),
    }
    assert set(again.catalog.tools) == {"shop-orders/deleteOrder", "shop-orders/placeOrder", "shop/get_health"}


@pytest.mark.parametrize("change", ["method", "path", "place"])
def test_where_a_tool_sends_to_is_a_part_of_its_definition(tmp_path: Path, change: str) -> None:
    spec = shop_spec("https://shop.example")
    file = written(tmp_path, spec)
    load(file)
    paths = spec["paths"]
    match change:
        case "method":
            paths["/orders/{id}"]["patch"] = paths["/orders/{id}"].pop("get")
        case "path":
            paths["/payments/{id}"] = paths.pop("/orders/{id}")
        case "place":
            paths["/orders/{id}"]["parameters"].append({"name": "a", "in": "query", "schema": {}})
    written(tmp_path, spec)
    assert "shop-orders/tellOrder" in {item.id for item in load(file).changes if item.kind == "changed"}


def test_another_address_in_the_file_quarantines_everything(tmp_path: Path) -> None:
    file = written(tmp_path, shop_spec("https://shop.example"))
    load(file)
    written(tmp_path, shop_spec("https://evil.example"))
    again = load(file)
    assert again.catalog.tools == {}
    assert {change.kind for change in again.changes} == {"command"}


async def test_an_address_is_fetched_after_consent_only_and_kept_for_a_day(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/spec.json"] = Response(json.dumps(shop_spec("/v1")), media_type="application/json")
    address = f"{served.url}/spec.json"
    with pytest.raises(TrustError) as refused:
        load(address)
    assert "read these specifications" in str(refused.value)
    assert address in str(refused.value)
    assert served.sent == []
    Agreements().add(starts_in(address))
    loaded = load(address)
    assert (await called(loaded)).artifact["structured"]["target"] == "/v1/orders/7"
    assert loaded.remembered == {}
    assert set(load(address).remembered) == {"shop", "shop-orders"}
    assert [sent.target for sent in served.sent] == ["/spec.json", "/v1/orders/7"]
    load(address, anew=True)
    assert len(served.sent) == 3


def test_the_last_copy_is_used_while_the_address_does_not_answer(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/spec.json"] = Response(json.dumps(shop_spec("/v1")))
    address = f"{served.url}/spec.json"
    load(address, yes=True)
    served.answers["/spec.json"] = Response("gone", 404)
    again = load(address, yes=True, anew=True)
    assert "shop-orders/tellOrder" in again.catalog.tools
    assert set(again.down) == {"shop", "shop-orders"}
    assert "answers with status 404" in again.problems[0].message
    os.environ["CALLSHEET_HOME"] = str(tmp_path / "elsewhere")
    lost = load(address, yes=True)
    assert lost.catalog.agents == ()
    assert lost.problems[0].kind == "start"


async def test_a_specification_from_elsewhere_does_not_say_where_calls_go(tmp_path: Path, served: ShopApi) -> None:
    with shop() as other:
        served.answers["/spec.json"] = Response(json.dumps(shop_spec(other.url)))
        address = f"{served.url}/spec.json"
        loaded = load(address, yes=True)
        assert f"from another host than the server that it names, {other.url}" in loaded.problems[0].message
        assert "can be found but not called" in loaded.problems[0].message
        assert (await called(loaded)).artifact["kind"] == "refused"
        assert other.sent == []
        named = load(entry(tmp_path, address, url=other.url), yes=True)
        assert (await called(named)).artifact["structured"]["target"] == "/orders/7"


async def test_headers_go_to_the_address_of_the_entry_and_to_no_other_host(
    tmp_path: Path, served: ShopApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    with shop() as other:
        other.answers["/spec.json"] = served.answers["/spec.json"] = Response(json.dumps(shop_spec()))
        for number, host in enumerate((other, served)):
            (folder := tmp_path / str(number)).mkdir()
            file = entry(folder, f"{host.url}/spec.json", url=f"{served.url}/v1", headers={"X-Key": "${SHOP_KEY}"})
            with pytest.raises(TrustError, match="with X-Key"):
                load(file)
            await called(load(file, yes=True))
        assert [sent.headers.get("x-key") for sent in other.sent] == [None]
        assert [sent.headers.get("x-key") for sent in served.sent] == [SECRET] * 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (RedirectResponse("http://localhost:9/spec.json"), "redirects to another host, localhost"),
        (RedirectResponse("/spec.json"), "more than 5 redirects"),
        (Response(b"x", headers={"content-encoding": "gzip"}), "sent a compressed message"),
        (Response("no", 500), "answers with status 500"),
    ],
)
def test_a_specification_that_cannot_be_fetched_is_a_problem(served: ShopApi, answer: Response, words: str) -> None:
    served.answers["/spec.json"] = answer
    loaded = load(f"{served.url}/spec.json", yes=True)
    assert loaded.catalog.agents == ()
    assert words in loaded.problems[0].message


def test_without_an_address_tools_are_found_but_not_called(tmp_path: Path) -> None:
    loaded = load(written(tmp_path, shop_spec()))
    assert "shop-orders/tellOrder" in loaded.catalog.tools
    assert "names no address of its server" in loaded.problems[0].message
    assert ToolRegistry.from_catalog(loaded).assurance("shop-orders/tellOrder").callable is False


def test_more_operations_than_the_limit_are_refused(tmp_path: Path) -> None:
    written(tmp_path, shop_spec("https://shop.example"))
    (problem,) = load(entry(tmp_path, callsheet={"limits": {"tools": 2}})).problems
    assert "it has 4 operations, and no more than 2 are taken: raise its limit 'tools'" in str(problem)


@pytest.mark.parametrize("text", ['{"openapi": "2.9", "paths": {}}', '{"openapi": "3.0.0", "paths": []}', "[", ""])
def test_a_specification_that_cannot_be_read_leaves_out_its_entry_alone(tmp_path: Path, text: str) -> None:
    written(tmp_path, shop_spec("https://shop.example"))
    (tmp_path / "bad.json").write_text(text)
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"bad": {"openapi": "bad.json"}, "shop": {"openapi": "spec.json"}}}))
    loaded = load(file)
    assert "shop-orders" in loaded.catalog.by_id
    assert [problem.agent for problem in loaded.problems] == ["bad"]
    with pytest.raises(CatalogError):
        load(tmp_path / "bad.json")


def test_operations_by_methods_that_are_not_sent_are_reported(tmp_path: Path) -> None:
    operations = {method: {"operationId": method} for method in ("trace", "query", "get")}
    spec = {"openapi": "3.1.0", "info": {"title": "Shop"}, "servers": [{"url": "http://127.0.0.1:9"}], "paths": {}}
    found = load(written(tmp_path, {**spec, "paths": {"/x": operations}}), yes=True)
    assert list(found.catalog.tools) == ["shop/get"]
    (problem,) = found.problems
    assert problem.message.startswith("TRACE /x, QUERY /x: calls by this method are not supported")
