"""A web page that somebody has open uses the server of this machine: it is refused, and no tool runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from callsheet import create_supervisor
from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.process.environment import STUDIO, Environment
from callsheet.orchestrator.server.request_guard import gate
from langgraph_server import DevServer
from notebook import Notebook

ROOT = Path(__file__).parents[4]
EVIL = "https://evil.example"
ORDER = "Add a note with the text 'from a page'"
JSON = {"content-type": "application/json"}


def noted(folder: Path) -> bool:
    """Whether the tool of the server has run."""
    file = folder / "notes.txt"
    return file.exists() and "from a page" in file.read_text()


def order(assistant: str = "ask") -> str:
    """A request that runs a tool, and asks nobody."""
    given = {"question": ORDER} if assistant == "ask" else {"messages": ORDER}
    return json.dumps({"assistant_id": assistant, "input": given, "context": {"approval": "never"}})


def posted(server: DevServer, **headers: str) -> httpx.Response:
    """The order, sent to the server with these headers (``-`` for ``_``)."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.post(f"{server.url}/runs/wait", content=order(), headers=told, timeout=60)


ATTACKS = {
    "as it was made": {"origin": EVIL, "host": "evil.example", "content_type": "text/plain"},
    "with a preflight": {"origin": EVIL, **JSON},
    "by a name that resolves to here": {"origin": "http://evil.example", "host": "evil.example", **JSON},
    "by such a name, as a program": {"host": "evil.example:2024", **JSON},
    "out of a sandboxed frame": {"origin": "null", **JSON},
    "from another port of this machine": {"origin": "http://127.0.0.1:1", **JSON},
    "from a site that begins like Studio": {"origin": f"{STUDIO}.evil.example", **JSON},
    "as a part of a page": {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", **JSON},
    "from a sibling of the site": {"sec_fetch_site": "same-site", **JSON},
    "as text": {"content_type": "text/plain;charset=UTF-8"},
    "as a form": {"content_type": "multipart/form-data; boundary=application/json"},
    "as nothing in particular": {},
}


@pytest.mark.server
@pytest.mark.parametrize("name", ATTACKS)
def test_no_page_runs_a_tool(server: DevServer, folder: Path, name: str) -> None:
    headers = {key.replace("-", "_"): value for key, value in ATTACKS[name].items()}
    answer = posted(server, **headers)
    assert answer.status_code in (400, 403, 415), answer.text
    assert "access-control-allow-origin" not in answer.headers
    assert answer.json()["detail"] == answer.json()["error"] != ""
    assert not noted(folder)


@pytest.mark.server
def test_no_page_reads_anything(server: DevServer) -> None:
    for path in (
        "/callsheet/api/overview",
        "/callsheet/",
        "/callsheet/health",
        "/threads/x",
        "/info",
        "/ok",
        "/openapi.json",
    ):
        assert httpx.get(server.url + path, headers={"host": "evil.example"}).status_code == 400
        assert httpx.get(server.url + path, headers={"origin": EVIL}).status_code == 403
        assert httpx.get(server.url + path, headers={"sec-fetch-site": "cross-site"}).status_code == 403
    asked = {"origin": EVIL, "access-control-request-method": "POST"}
    assert httpx.options(f"{server.url}/runs/wait", headers=asked).status_code == 403


@pytest.mark.server
@pytest.mark.parametrize("origin", [EVIL, "null", None])
def test_no_page_opens_a_websocket(server: DevServer, origin: Any) -> None:
    host = {} if origin else {"additional_headers": {"host": "evil.example"}}
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{server.port}/threads/x/stream/events", origin=origin, **host)  # type: ignore[arg-type]
    assert refused.value.response.status_code == 403


@pytest.mark.server
def test_studio_and_programs_go_on_working(server: DevServer) -> None:
    asked = {
        "origin": STUDIO,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,x-api-key",
        "access-control-request-private-network": "true",
    }
    allowed = httpx.options(f"{server.url}/threads", headers=asked)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == STUDIO
    assert allowed.headers["access-control-allow-private-network"] == "true"
    for headers in ({"origin": STUDIO}, {"origin": server.url}, {"sec-fetch-site": "same-origin"}, {}):
        answer = httpx.post(f"{server.url}/threads/search", json={}, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.headers.get("access-control-allow-origin") == (
            STUDIO if headers.get("origin") == STUDIO else None
        )
    opened = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert httpx.get(f"{server.url}/callsheet/", headers=opened).status_code == 200
    assert httpx.get(f"{server.url}/callsheet/api/runs", headers={"sec-fetch-site": "same-origin"}).status_code == 200


@pytest.mark.server
def test_a_client_that_is_not_authenticated_loosens_nothing(server: DevServer, folder: Path) -> None:
    """Be it in the context of a run or in that of an assistant."""
    assert "Nobody is here to confirm the call" in posted(server, content_type="application/json").text
    made = httpx.post(
        f"{server.url}/assistants", json={"graph_id": "supervisor", "context": {"approval": "never"}}
    ).json()
    thread = httpx.post(f"{server.url}/threads", json={}).json()["thread_id"]
    given = {"assistant_id": made["assistant_id"], "input": {"messages": ORDER}}
    state = httpx.post(f"{server.url}/threads/{thread}/runs/wait", json=given, timeout=60).json()
    assert "stays 'ask'" in state["plan"]["note"]
    assert state["__interrupt__"][0]["value"]["tool"] == "notebook/add_note"
    assert not noted(folder)


@pytest.mark.server
def test_a_state_that_makes_no_sense_is_the_clients_mistake(server: DevServer) -> None:
    """Here for the server that is running; ``test_17_state_updates.py`` has the rest."""
    thread = httpx.post(f"{server.url}/threads", json={"metadata": {"graph_id": "supervisor"}}).json()["thread_id"]
    at = f"{server.url}/threads/{thread}"
    given = {"assistant_id": "supervisor", "input": {"messages": ORDER}}
    for status, values in ((range(400, 500), {"run": "x"}), (range(200, 300), None)):
        if values is None:
            httpx.post(f"{at}/runs/wait", json=given, timeout=60)
        answer = httpx.post(f"{at}/state", json={"values": values, "as_node": "dispatch"}, timeout=60)
        assert answer.status_code in status, answer.text
    nonsense = {"values": {"plan": {"steps": 3}}, "as_node": "dispatch"}
    assert httpx.post(f"{at}/state", json=nonsense, timeout=60).status_code in range(400, 500)


CLIENTS = {
    "nobody": (None, True),
    "Studio, as anybody may say": ({"identity": "langgraph-studio-user", "is_authenticated": False}, True),
    "a user": ({"identity": "ann"}, False),
}


@pytest.mark.parametrize("name", CLIENTS)
def test_only_who_is_known_may_do_without_approval(notebook: Notebook, name: str) -> None:
    user, asks = CLIENTS[name]
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1", "langgraph_auth_user": user}}
    state = app.invoke({"messages": [HumanMessage(ORDER)]}, config, context={"allow": ["notebook/add_note"]})
    assert bool(state.get("__interrupt__")) == asks
    assert len(notebook.notes) == (not asks)


def test_forged_preferences_loosen_nothing(notebook: Notebook) -> None:
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver(), interrupt_before=["dispatch"])
    config: Any = {"configurable": {"thread_id": "1", "langgraph_auth_user": None}}
    app.invoke({"messages": [HumanMessage(ORDER)]}, config)
    app.update_state(config, {"preferences": {"approval": "never"}}, as_node="plan")
    while not (state := app.invoke(None, config)).get("__interrupt__") and app.get_state(config).next:
        pass
    assert state["__interrupt__"]
    assert notebook.notes == []


def test_a_program_may_allow_a_tool_in_its_context(notebook: Notebook) -> None:
    app: Any = create_supervisor(notebook.agents).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    app.invoke({"messages": [HumanMessage(ORDER)]}, config, context={"allow": ["notebook/add_note"]})
    assert notebook.notes == ["from a page"]


def guarded(*, hosts: Any = (), origins: Any = (), url: str = "http://localhost:2024") -> TestClient:
    """Something behind the gate, asked at an address."""

    async def answer(_: Any) -> PlainTextResponse:
        return PlainTextResponse("let in")

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    routes = [Route("/", answer, methods=["GET", "POST"]), WebSocketRoute("/talk", talk)]
    return TestClient(Starlette(routes=routes, middleware=gate(hosts, origins)), base_url=url)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost:80", 200),
        ("localhost.", 200),
        ("127.0.0.1:2024", 200),
        ("[::1]:2024", 200),
        ("[::ffff:127.0.0.1]", 200),
        ("calls.example.com", 200),
        ("a.pods.example:8000", 200),
        ("pods.example", 400),
        ("calls.example.com.evil.example", 400),
        ("evilcalls.example.com", 400),
        ("localhost.evil.example", 400),
        ("localhost@evil.example", 400),
        ("evil.example#localhost", 400),
        ("evil.example:80:localhost", 400),
        ("[::1].evil.example", 400),
        ("[2001:db8::1]", 400),
        ("192.0.2.7", 400),
        ("0.0.0.0", 400),
        ("", 400),
    ],
)
def test_a_request_is_served_only_under_a_host_of_the_server(host: str, status: int) -> None:
    client = guarded(hosts=["calls.example.com", "*.pods.example"])
    assert client.get("/", headers={"host": host}).status_code == status


def test_the_address_of_a_connection_is_a_name_of_the_server() -> None:
    """As health checks use it; no name can be made to resolve to a name that is an address already."""
    assert guarded(url="http://192.0.2.7:8000").get("/").status_code == 200
    assert guarded(url="http://192.0.2.7:8000").get("/", headers={"host": "192.0.2.8:8000"}).status_code == 400
    assert guarded(url="http://evil.example").get("/").status_code == 400


def test_a_second_host_or_origin_is_not_overlooked() -> None:
    client = guarded()
    assert client.get("/", headers=[("host", "localhost"), ("host", "evil.example")]).status_code == 400
    assert client.get("/", headers=[("origin", "http://localhost:2024"), ("origin", EVIL)]).status_code == 403


def test_websockets_are_let_in_by_the_same_rules() -> None:
    client = guarded(origins=["https://chat.example"])
    for headers in ({"origin": EVIL}, {"origin": "null"}, {"host": "evil.example"}):
        with pytest.raises(WebSocketDisconnect), client.websocket_connect("ws://localhost/talk", headers=headers):
            pass
    with client.websocket_connect("ws://localhost/talk", headers={"origin": "https://chat.example"}):
        pass


def test_further_origins_are_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Environment().origins == (STUDIO,)
    (dev,) = re.findall(r"^dev: export CALLSHEET_ORIGINS \?= (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    here, chat = "http://localhost:3000", "https://chat.example"
    for given, allowed in (("", ()), (dev, (STUDIO, here)), (f"{chat}, {here}/", (chat, here))):
        monkeypatch.setenv("CALLSHEET_ORIGINS", given)
        client = guarded(origins=Environment().origins)
        for origin in (chat, here, STUDIO, EVIL, "http://localhost:3001", "http://127.0.0.1:3000"):
            answer = client.post("/", headers={"origin": origin})
            is_allowed = origin in allowed
            assert answer.status_code == (200 if is_allowed else 403), origin
            assert (answer.headers.get("access-control-allow-origin") == origin) is is_allowed


def test_a_wrong_setting_is_named() -> None:
    for hosts, origins, said in (
        (["http://a.example"], [], "CALLSHEET_HOSTS: 'http://a.example'"),
        (["a.example:80"], [], "without scheme and port"),
        (["a*.example"], [], "CALLSHEET_HOSTS"),
        ([], ["*"], "CALLSHEET_ORIGINS: '*'"),
        ([], ["null"], "is not an origin"),
        ([], ["https://a.example/path"], "is not an origin"),
    ):
        with pytest.raises(SettingsError) as refused:
            gate(hosts, origins)
        assert said in str(refused.value)


def test_every_langgraph_json_leaves_pages_to_the_gate() -> None:
    for file in (ROOT / "langgraph.json", ROOT / "examples/auth/langgraph.json"):
        http = json.loads(file.read_text())["http"]
        assert http["app"] == "callsheet.orchestrator.server.http_app:app"
        assert http["cors"] == {"allow_origins": []}
