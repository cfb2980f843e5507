"""Operations of a specification are called like every other tool: a real service, limits, faults, secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from langchain_core.messages import AIMessage
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from api_server import ShopApi, called, shop_spec
from callsheet import Settings, ToolRegistry, create_supervisor, load
from scripted_model import ScriptedModel

SECRET = "CANARY-key-93ab71"


def entry(folder: Path, spec: dict[str, Any], url: str | None = None, **more: Any) -> Path:
    """An ``mcp.json`` with one API."""
    (folder / "shop.json").write_text(json.dumps(spec))
    file = folder / "mcp.json"
    file.write_text(
        json.dumps({"mcpServers": {"shop": {"openapi": "shop.json", **({"url": url} if url else {}), **more}}})
    )
    return file


def with_parameters(*parameters: dict[str, Any], path: str = "/x", **operation: Any) -> dict[str, Any]:
    found = {"operationId": "x", "parameters": list(parameters), **operation}
    method = "post" if "requestBody" in operation else "get"
    return shop_spec(paths={path: {method: found}})


async def test_what_a_model_sends_by_its_own_names_reaches_the_parameters(tmp_path: Path, served: ShopApi) -> None:
    names = ("Start", "Start<", "Start>", "\u59cb", "\u7d42", "filter[a]", "filter[b]")
    spec = with_parameters(*({"name": name, "in": "query", "schema": {"type": "string"}} for name in names))
    registry = ToolRegistry.from_catalog(load(entry(tmp_path, spec, served.url)))
    (bound,) = registry.bind(["shop/x"], "run").values()
    args = {name: str(number) for number, name in enumerate(bound.args)}
    await bound.ainvoke({"type": "tool_call", "name": bound.name, "args": args, "id": "1"})
    assert parse_qsl(urlsplit(served.sent[0].target).query) == [(name, str(n)) for n, name in enumerate(names)]


async def test_a_post_sends_the_arguments_that_have_no_place_as_its_body(tmp_path: Path, served: ShopApi) -> None:
    await called(load(entry(tmp_path, shop_spec(served.url))), "shop-orders/placeOrder", item="ship", pieces=2)
    (sent,) = served.sent
    assert (sent.method, sent.target, json.loads(sent.body)) == ("POST", "/orders", {"item": "ship", "pieces": 2})
    assert sent.headers["content-type"] == "application/json"


async def test_headers_are_from_the_environment_and_shown_nowhere(
    tmp_path: Path, served: ShopApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    file = entry(tmp_path, shop_spec(), f"{served.url}/v1?key=${{SHOP_KEY}}", headers={"X-Key": "Bearer ${SHOP_KEY}"})
    served.answers["/v1/orders/7"] = JSONResponse({"state": f"known to {SECRET}"})
    answer = await called(load(file, yes=True))
    (sent,) = served.sent
    assert sent.headers["x-key"] == f"Bearer {SECRET}"
    assert sent.target == f"/v1/orders/7?key={SECRET}"
    assert answer.artifact["structured"] == {"state": "known to ***"}


async def test_a_parameter_that_the_catalog_sets_is_no_argument(tmp_path: Path, served: ShopApi) -> None:
    spec = with_parameters(
        {"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "X-Key", "in": "header", "required": True, "schema": {"type": "string"}},
        {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
        {"name": "q", "in": "query", "schema": {"type": "string"}},
    )
    loaded = load(entry(tmp_path, spec, f"{served.url}?api_key=a", headers={"x-key": "b"}))
    assert [parameter.name for parameter in loaded.catalog.tool("shop/x").parameters] == ["q"]
    await called(loaded, "shop/x", q="c&d=e")
    assert served.sent[0].target == "/x?api_key=a&q=c%26d%3De"


async def test_an_address_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_URL", "shop.example")
    loaded = load(entry(tmp_path, shop_spec(), "${SHOP_URL}"), yes=True)
    found = await called(loaded)
    assert (found.artifact["kind"], found.artifact["effect"]) == ("refused", "none")
    assert "is not an address with http:// or https://" in found.text


async def test_each_place_and_style_of_a_parameter_is_sent(tmp_path: Path, served: ShopApi) -> None:
    texts: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    spec = with_parameters(
        {"name": "ids", "in": "path", "schema": texts},
        {"name": "each", "in": "query", "schema": texts},
        {"name": "one", "in": "query", "schema": texts, "explode": False},
        {"name": "pipe", "in": "query", "schema": texts, "style": "pipeDelimited", "explode": False},
        {"name": "deep", "in": "query", "schema": {"type": "object"}, "style": "deepObject"},
        {"name": "json", "in": "query", "content": {"application/json": {"schema": {"type": "object"}}}},
        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
        {"name": "seen", "in": "cookie", "schema": {"type": "boolean"}},
        {"name": "seen", "in": "query", "schema": {"type": "boolean"}},
        path="/x/{ids}",
    )
    given = {"ids": ["a", "b/c"], "each": ["1", "2"], "one": ["1", "2"], "pipe": ["1", "2"], "deep": {"a": 1}}
    loaded = load(entry(tmp_path, spec, served.url))
    await called(loaded, "shop/x", **given, json={"a": "é"}, **{"X-Trace": "é"}, seen=True, seen_query=False)
    (sent,) = served.sent
    path, _, query = sent.target.partition("?")
    assert path == "/x/a,b%2Fc"
    assert query == "each=1&each=2&one=1%2C2&pipe=1%7C2&deep[a]=1&json=%7B%22a%22%3A%20%22%C3%A9%22%7D&seen=false"
    assert sent.headers["cookie"] == "seen=true"
    assert sent.headers["x-trace"].encode("latin-1").decode() == "é"


@pytest.mark.parametrize(
    ("answer", "text", "structured"),
    [
        (JSONResponse([1, 2]), '{"result": [1, 2]}', {"result": [1, 2]}),
        (Response(status_code=204), "204 No Content", None),
        (Response("plain", media_type="text/plain"), "plain", None),
        (Response("{no", media_type="application/json"), "{no", None),
        (Response("<a/>", media_type="application/atom+xml"), "<a/>", None),
    ],
)
async def test_successful_answers_of_each_kind_are_read(
    tmp_path: Path, served: ShopApi, answer: Response, text: str, structured: Any
) -> None:
    served.answers["/orders/7"] = answer
    found = await called(load(entry(tmp_path, shop_spec(served.url))))
    assert (found.status, found.text, found.artifact["structured"]) == ("success", text, structured)


async def test_an_image_is_kept_as_a_file(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/orders/7"] = Response(b"\x89PNG", media_type="image/png")
    found = await called(load(entry(tmp_path, shop_spec(served.url))))
    (media,) = found.artifact["media"]
    assert Path(media["path"]).read_bytes() == b"\x89PNG"


@pytest.mark.parametrize(
    ("answer", "kind", "effect", "words"),
    [
        (
            JSONResponse({"detail": "no such order"}, 404),
            "tool",
            "reported",
            '404 Not Found\n{"detail": "no such order"}',
        ),
        (Response("broken", 500), "tool", "reported", "500 Internal Server Error\nbroken"),
        (Response("gateway", 504), "tool", "unknown", "504 Gateway Timeout: gateway; whether the call took effect"),
        (Response(b"x" * 20_000), "too_large", "unknown", "a message of more than 10,000 bytes"),
        (
            Response(b"x", headers={"content-encoding": "gzip"}),
            "too_large",
            "unknown",
            "compressed message, which was not requested",
        ),
    ],
)
async def test_failures_are_data(
    tmp_path: Path, served: ShopApi, answer: Response, kind: str, effect: str, words: str
) -> None:
    served.answers["/orders/7"] = answer
    loaded = load(entry(tmp_path, shop_spec(served.url), callsheet={"limits": {"message": 10_000}}))
    found = await called(loaded)
    assert (found.status, found.artifact["kind"], found.artifact["effect"]) == ("error", kind, effect)
    assert words in found.text
    del served.answers["/orders/7"]
    assert (await called(loaded)).status == "success"


async def test_a_server_that_is_down_is_data(tmp_path: Path) -> None:
    found = await called(load(entry(tmp_path, shop_spec("http://127.0.0.1:9"))))
    assert (found.artifact["kind"], found.artifact["effect"]) == ("crash", "none")
    assert "ConnectError" in found.text


async def test_a_redirect_to_the_same_path_is_followed(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/orders/7"] = RedirectResponse("/orders/7/")
    found = await called(load(entry(tmp_path, shop_spec(), served.url, headers={"X-Key": "k"})))
    assert found.artifact["structured"]["target"] == "/orders/7/"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("where", ["/admin/delete", "/orders/7?admin=1", "/orders/7/../8", "/orders%2F7", "/Orders/7"])
async def test_a_call_is_not_sent_on_to_another_path(tmp_path: Path, served: ShopApi, status: int, where: str) -> None:
    served.answers["/orders/7"] = RedirectResponse(where, status_code=status)
    found = await called(load(entry(tmp_path, shop_spec(), served.url, headers={"X-Key": "k"})))
    assert [sent.target for sent in served.sent] == ["/orders/7"]
    assert (found.artifact["kind"], found.artifact["effect"]) == ("refused", "reported")
    assert "sends the call on to http://127.0.0.1" in found.text


async def test_the_body_and_the_key_of_a_post_stay_where_they_were_sent(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/orders"] = RedirectResponse("/admin/delete", status_code=307)
    loaded = load(entry(tmp_path, shop_spec(), served.url, headers={"X-Key": "k"}))
    found = await called(loaded, "shop-orders/placeOrder", item="ship")
    assert [sent.target for sent in served.sent] == ["/orders"]
    assert found.artifact["kind"] == "refused"


async def test_a_redirect_to_another_host_is_not_followed(tmp_path: Path, served: ShopApi) -> None:
    served.answers["/orders/9"] = RedirectResponse("http://localhost:9/orders/9")
    loaded = load(entry(tmp_path, shop_spec(), served.url, headers={"X-Key": "k"}))
    found = await called(loaded, "shop-orders/tellOrder", id="9")
    assert found.artifact["kind"] == "refused"
    assert "redirects to another host, localhost, to which nothing was sent" in found.text


@pytest.mark.parametrize("path", ["/x?admin=true", "/x/{id}?admin=true", "/x?q={q}"])
async def test_a_query_in_the_path_of_a_specification_adds_no_arguments(tmp_path: Path, path: str) -> None:
    spec = with_parameters({"name": "q", "in": "query", "schema": {"type": "string"}}, path=path)
    spec["paths"]["/y"] = {"get": {"operationId": "y"}}
    loaded = load(entry(tmp_path, spec, "http://127.0.0.1:9"))
    assert list(loaded.catalog.tools) == ["shop/y"]
    assert any("the path has a query" in str(problem) for problem in loaded.problems)


@pytest.mark.parametrize("status", [429, 503])
async def test_an_api_that_is_busy_says_when_it_can_be_asked_again(
    tmp_path: Path, served: ShopApi, status: int
) -> None:
    headers = {"retry-after": "3600"}
    served.answers["/orders"] = PlainTextResponse("the window is full", status_code=status, headers=headers)
    found = await called(load(entry(tmp_path, shop_spec(), served.url)), "shop-orders/placeOrder", item="ship")
    assert len(served.sent) == 1
    assert (found.artifact["kind"], found.artifact["effect"]) == ("busy", "reported")
    for said in (str(status), "the window is full", "Retry-After: 3600 s"):
        assert said in found.text


@pytest.mark.parametrize("value", ["..", "../admin", "a/../b", "..\\admin", ".", ""])
async def test_an_argument_cannot_leave_its_path(tmp_path: Path, served: ShopApi, value: str) -> None:
    found = await called(load(entry(tmp_path, shop_spec(served.url))), "shop-orders/tellOrder", id=value)
    assert (found.artifact["kind"], found.artifact["effect"]) == ("refused", "none")
    assert "would lead to another path" in found.text
    assert served.sent == []


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("a/b", "/orders/a%2Fb"),
        ("a%2F..%2Fb", "/orders/a%252F..%252Fb"),
        ("?admin=1#x", "/orders/%3Fadmin%3D1%23x"),
        ("@evil.example", "/orders/%40evil.example"),
        ("{id}", "/orders/%7Bid%7D"),
        ("a\tb c", "/orders/a%09b%20c"),
    ],
)
async def test_everything_in_a_path_is_percent_encoded(
    tmp_path: Path, served: ShopApi, value: str, target: str
) -> None:
    await called(load(entry(tmp_path, shop_spec(served.url))), "shop-orders/tellOrder", id=value)
    assert [sent.target for sent in served.sent] == [target]


async def test_a_header_takes_no_line_break(tmp_path: Path, served: ShopApi) -> None:
    spec = with_parameters({"name": "X-Trace", "in": "header", "schema": {"type": "string"}})
    found = await called(load(entry(tmp_path, spec, served.url)), "shop/x", **{"X-Trace": "a\r\nX-Evil: 1"})
    assert "a control character, which no header may have" in found.text
    assert served.sent == []


def _shop_and_stock(folder: Path, served: ShopApi) -> Any:
    """A shop with another tag: the operations of both tags go to the same API."""
    spec = shop_spec(served.url)
    stocked = {"operationId": "addStock", "tags": ["stock"], "summary": "Add to the stock of an item."}
    spec["paths"]["/stock"] = {"post": {**stocked, "requestBody": spec["paths"]["/orders"]["post"]["requestBody"]}}
    return load(entry(folder, spec))


def test_parts_of_one_api_are_one_server_and_calls_of_a_turn_keep_their_order(tmp_path: Path, served: ShopApi) -> None:
    loaded = _shop_and_stock(tmp_path, served)
    calls: list[Any] = []
    for n in range(8):
        name = "shop-orders_placeOrder" if n % 2 else "shop-stock_addStock"
        calls.append({"name": name, "args": {"item": f"ship {n}"}, "id": f"c{n}", "type": "tool_call"})
    model = ScriptedModel(replies=[AIMessage("", tool_calls=calls), AIMessage("Ordered.")])
    settings = Settings(planning="none", tool_floor=0, approval="never")
    app: Any = create_supervisor(loaded, worker_model=model, settings=settings).compile()
    state = app.invoke({"messages": "place an order of the shop, and add to the stock of an item"})
    assert [one["error"] for one in state["results"]["1"]["calls"]] == [""] * 8
    assert [json.loads(sent.body)["item"] for sent in served.sent] == [f"ship {n}" for n in range(8)]
