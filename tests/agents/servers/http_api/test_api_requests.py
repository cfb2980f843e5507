"""Requests of operations: each name has its own argument, and each value is written as the specification says."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given, strategies as st

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.api_requests import ApiRequest, api_request
from callsheet.graphs.catalog.formats.manifests import agent_from_listing
from callsheet.graphs.catalog.formats.openapi_operations import META, HttpCall, api_of

FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"


def entry(**operation: Any) -> dict[str, Any]:
    """The tool of one operation, as the catalog has it."""
    path = operation.pop("path", "/x")
    found = api_of({"openapi": "3.1.0", "info": {"title": "T"}, "paths": {path: {"post": operation}}})
    assert found.problems == ()
    (tool,) = found.agents[""].entries
    ((of_catalog,), problems) = agent_from_listing("t", [tool])[0].tools, agent_from_listing("t", [tool])[1]
    assert problems == ()
    return {**tool, "inputSchema": of_catalog.input_schema}


def sent(tool: dict[str, Any], /, **arguments: Any) -> ApiRequest:
    return api_request(HttpCall(**tool["_meta"][META]), "http://api.test/v1?key=1", arguments)


def parameter(name: str, where: str = "query", **more: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "required": where == "path", "schema": {}, **more}


def form(schema: Any, media: str = FORM, **encoding: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, "encoding": encoding}}}}


def fields(request: ApiRequest) -> list[tuple[str, str]]:
    return parse_qsl((request.content or b"").decode(), keep_blank_values=True)


def query(request: ApiRequest) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(request.url).query, keep_blank_values=True)[1:]


ALIKE = "Start Start< Start> Start_query Start_cookie Start_2 start 时间 时 body a[b] a.b".split()
names = st.sampled_from(ALIKE) | st.text(min_size=1, max_size=4).filter(lambda name: name.strip() and "\0" not in name)
places = st.lists(st.tuples(st.sampled_from(["query", "cookie"]), names), unique=True, max_size=8)


@given(given_places=places, given_fields=st.lists(names, unique=True, max_size=6), whole=st.booleans())
def test_each_name_has_its_own_argument(
    given_places: list[tuple[str, str]], given_fields: list[str], whole: bool
) -> None:
    schema = {"type": "string"} if whole else {"properties": {name: {} for name in given_fields}}
    content = {"application/json": {"schema": schema}}
    parameters = [parameter(name, where, description=f"{where} {name}") for where, name in given_places]
    tool = entry(parameters=parameters, requestBody={"content": content, "required": True})
    properties = tool["inputSchema"]["properties"]
    meant = {spec["description"]: argument for argument, spec in properties.items() if "description" in spec}
    assert set(meant) == {f"{where} {name}" for where, name in given_places}
    values = {meant[f"{where} {name}"]: str(number) for number, (where, name) in enumerate(given_places)}
    body = {argument: f"of {argument}" for argument in properties if argument not in values}
    request = sent(tool, **values, **body)
    cookies = request.headers.get(b"cookie", b"").decode().split("; ")
    found = [("query", name, value) for name, value in query(request)]
    found += [("cookie", *map(unquote, cookie.split("="))) for cookie in cookies if cookie]
    expected = [(where, name, str(number)) for number, (where, name) in enumerate(given_places)]
    assert sorted(found) == sorted(expected)
    of_body = json.loads(request.content or b"")
    fits = bool(given_fields) and not whole and set(given_fields).isdisjoint(values)
    assert of_body == (body if fits else next(iter(body.values())))
    assert len(body) == (len(given_fields) if fits else 1)


@given(ids=st.lists(names | st.sampled_from(["", "x" * 64, "x" * 65, "operation", "get_p1"]), max_size=12))
def test_each_operation_has_its_own_tool(ids: list[str]) -> None:
    paths = {f"/p{number}": {"get": {"operationId": name}} for number, name in enumerate(ids)}
    found = api_of({"openapi": "3.0.0", "paths": paths})
    tools = {tool["name"]: tool["_meta"][META]["path"] for agent in found.agents.values() for tool in agent.entries}
    assert sorted(tools.values()) == sorted(paths)


def test_names_that_differ_in_signs_only_are_sent_as_they_are() -> None:
    about = {"Start": "On.", "Start<": "At or before.", "Start>": "At or after."}
    tool = entry(parameters=[parameter(name, description=text) for name, text in about.items()])
    assert {name: spec["description"] for name, spec in tool["inputSchema"]["properties"].items()} == about
    request = sent(tool, **{"Start>": "2026-01-01", "Start<": "2026-02-01"})
    assert request.url.endswith("?key=1&Start%3C=2026-02-01&Start%3E=2026-01-01")


ADDRESS = {"name": "Depot", "city": "Ghent", "lines": ["a", "b"], "at": {"x": 1}, "none": None}


@pytest.mark.parametrize(
    ("encoding", "value", "expected"),
    [
        (None, ADDRESS, [("v", json.dumps(ADDRESS))]),
        (None, [1, {"a": "b"}], [("v", "1"), ("v", '{"a": "b"}')]),
        (None, "a&b", [("v", "a&b")]),
        (None, None, []),
        ({"style": "deepObject", "explode": True}, ADDRESS,
         [("v[name]", "Depot"), ("v[city]", "Ghent"), ("v[lines][0]", "a"), ("v[lines][1]", "b"), ("v[at][x]", "1")]),
        ({"style": "deepObject", "explode": True}, [{"price": "p"}, {"price": "q"}],
         [("v[0][price]", "p"), ("v[1][price]", "q")]),
        ({"style": "deepObject"}, "plain", [("v", "plain")]),
        ({"style": "form"}, {"a": 1, "b": True}, [("a", "1"), ("b", "true")]),
        ({"explode": False}, {"a": 1, "b": None}, [("v", "a,1")]),
        ({"explode": False}, ["a", "b"], [("v", "a,b")]),
        ({"allowReserved": True}, ["a", "b"], [("v", "a"), ("v", "b")]),
        ({"style": "spaceDelimited"}, ["a", "b"], [("v", "a b")]),
        ({"style": "pipeDelimited", "contentType": "application/json"}, ["a", "b"], [("v", "a|b")]),
        ({"contentType": "application/json"}, "text", [("v", '"text"')]),
        ({"contentType": "text/csv"}, "a,b", [("v", "a,b")]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("media", [FORM, PARTS])
@pytest.mark.parametrize("whole", [False, True])
def test_each_field_of_a_form_is_written_by_its_encoding(
    media: str, whole: bool, encoding: Any, value: Any, expected: list[tuple[str, str]]
) -> None:
    schema = {"properties": {"v": {}, "other": {}}, **({"anyOf": [{}]} if whole else {})}
    tool = entry(**form(schema, media, **({"v": encoding} if encoding else {})))
    arguments = {"v": value, "other": "x"}
    request = sent(tool, **({"body": arguments} if whole else arguments))
    found = fields(request) if media == FORM else [(name, text) for name, (_, text, _) in request.parts]
    assert found == [*expected, ("other", "x")]


@pytest.mark.parametrize(
    ("encoding", "value", "media"),
    [(None, {"a": 1}, "application/json"), (None, "text", None), ({"contentType": "text/csv"}, "a,b", "text/csv"),
     ({"contentType": "image/png, image/jpeg"}, "x", None), ({"style": "form"}, "x", None)],
)  # fmt: skip
def test_each_part_of_a_form_has_its_media_type(encoding: Any, value: Any, media: str | None) -> None:
    tool = entry(**form({"properties": {"v": {}}}, PARTS, **({"v": encoding} if encoding else {})))
    assert [media for _, (_, _, media) in sent(tool, v=value).parts] == [media]


@pytest.mark.parametrize(
    "style",
    [{"style": "form"}, {"style": "form", "explode": False}, {"style": "spaceDelimited"}, {"contentType": "text/xml"}],
)
@pytest.mark.parametrize("value", [[{"a": 1}], {"a": {"b": 1}}, {"a": [1]}, [[1]]])
def test_what_a_style_has_no_form_for_is_refused(style: dict[str, Any], value: Any) -> None:
    with pytest.raises(Fault, match="'v' has a list or an object where its specification does not say how"):
        sent(entry(**form({"properties": {"v": {}}}, v=style)), v=value)
    of_query = {"content": {"text/xml": {}}} if "contentType" in style else style
    with pytest.raises(Fault, match="'v' has a list or an object where its specification does not say how"):
        sent(entry(parameters=[parameter("v", **of_query)]), v=value)


def test_two_values_are_never_sent_under_one_name() -> None:
    address = form({"properties": {"name": {}, "address": {}}}, address={"style": "form"})
    with pytest.raises(Fault, match="'name' and the argument 'address' would both be sent as 'name'"):
        sent(entry(**address), name="Kim", address={"name": "Depot", "city": "Ghent"})
    free = entry(parameters=[parameter("a"), parameter("free")])
    with pytest.raises(Fault, match="the address of the API and the argument 'free' would both be sent as 'key'"):
        sent(free, free={"key": "2"})
    assert query(sent(free, a="1", free={"b": "2"})) == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("style", "explode", "of_list", "of_object"),
    [
        ("simple", False, "a,b", "k,v,l,w"),
        ("simple", True, "a,b", "k=v,l=w"),
        ("label", False, ".a,b", ".k,v,l,w"),
        ("label", True, ".a.b", ".k=v.l=w"),
        ("matrix", False, ";p=a,b", ";p=k,v,l,w"),
        ("matrix", True, ";p=a;p=b", ";k=v;l=w"),
    ],
)
def test_each_style_of_a_path_parameter_is_sent(style: str, explode: bool, of_list: str, of_object: str) -> None:
    tool = entry(path="/x/{p}/y", parameters=[parameter("p", "path", style=style, explode=explode)])
    for value, expected in ((["a", "b"], of_list), ({"k": "v", "l": "w"}, of_object)):
        assert urlsplit(sent(tool, p=value).url).path == f"/v1/x/{expected}/y"


@pytest.mark.parametrize(
    ("media", "head", "content"),
    [
        ("application/json", b"application/json", b"{}"),
        ("application/vnd.api+json", b"application/vnd.api+json", b"{}"),
        (FORM, FORM.encode(), b""),
        (PARTS, b"multipart/form-data; boundary=end", b"--end--\r\n"),
    ],
)
@pytest.mark.parametrize("required", [True, False])
def test_a_required_body_is_sent_without_fields_too(media: str, head: bytes, content: bytes, required: bool) -> None:
    body = {"required": required, "content": {media: {"schema": {"properties": {"a": {}}}}}}
    request = sent(entry(requestBody=body))
    assert request.content == (content if required else None)
    assert request.headers == ({b"content-type": head} if required else {})


@pytest.mark.parametrize(
    ("media", "schema", "arguments", "body"),
    [
        (FORM, {"properties": {"a": {}, "b": {}}}, {"a": "1 2", "b": [1]}, b"a=1%202&b=1"),
        ("application/json", {"type": "array"}, {"body": [1]}, b"[1]"),
        ("application/vnd.api+json", {"properties": {"a": {}}}, {"q": None, "a": 1}, b'{"a": 1}'),
        ("*/*", {"properties": {"a": {}}}, {"a": 1}, b'{"a": 1}'),
        ("text/csv", {}, {"body": "a,b"}, b"a,b"),
        ("application/vnd.unknown", {"type": "object"}, {"body": "as it is"}, b"as it is"),
        ("application/json", {"properties": {"q": {}}}, {"q": "1", "body": {"q": "2"}}, b'{"q": "2"}'),
    ],
)
def test_bodies_of_each_media_type(media: str, schema: Any, arguments: Any, body: bytes) -> None:
    content = {media: {"schema": schema}}
    request = sent(entry(parameters=[parameter("q")], requestBody={"content": content}), **arguments)
    head = "application/json" if media == "*/*" else media
    assert (request.content, request.headers) == (body, {b"content-type": head.encode()})
    assert query(request) == ([("q", "1")] if arguments.get("q") else [])
