"""The page's files and headers, and texts that try to be more than text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from callsheet.graphs import Agent, Catalog, Tool, dump
from callsheet.orchestrator.server import create_explorer
from callsheet.orchestrator.server.explorer import routes
from callsheet.orchestrator.server.visible_catalog import Site
from explored import KEY, client_of, explorer, served
from hostile import BREAKOUT, hostile_catalog

Asked = Callable[..., Any]
FILES = Path(routes.__file__).parent / "page"


def test_every_answer_carries_the_headers(client: TestClient) -> None:
    for name in ("", "explorer.js", "api/overview", "api/node?id=nothing", "health", "metrics"):
        headers = client.get(f"/callsheet/{name}").headers
        assert headers["x-content-type-options"] == "nosniff"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy


def test_nothing_inline_and_nothing_from_elsewhere(client: TestClient) -> None:
    html = client.get("/callsheet/").text
    assert not re.search(r"<style|style=|\son\w+=|javascript:|<script>", html)
    assert set(re.findall(r'(?:src|href)="([^"#][^"]*)"', html)) <= {"icon.svg", "explorer.js", *routes.page_files()}
    for file in (file for file in FILES.rglob("*.*") if file.parent.name != "library"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", file.read_text()), file
        assert "http://" not in file.read_text().replace("http://www.w3.org/2000/svg", ""), file
        assert "https://" not in file.read_text()


def test_every_file_of_the_page_is_served(client: TestClient) -> None:
    assert {*routes.page_files(), "explorer.html"} == {
        *(str(file.relative_to(FILES)) for file in FILES.rglob("*.*")),
    }
    for name in routes.page_files():
        assert client.get(f"/callsheet/{name}").status_code == 200
    assert client.get("/callsheet", follow_redirects=False).headers["location"] == "callsheet/"


def test_hostile_texts_are_only_ever_json(asked: Asked) -> None:
    client = client_of(explorer(hostile_catalog()))
    for name, given in (
        ("node", {"id": BREAKOUT}),
        ("node", {"id": f"{BREAKOUT}/{BREAKOUT}"}),
        ("search", {"q": BREAKOUT}),
        ("agents", {}),
        ("findings", {"id": f"{BREAKOUT}/{BREAKOUT}"}),
    ):
        answer = client.get(f"/callsheet/api/{name}", params=given)
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert not re.search("[^\x20-\x7e]", answer.text)
        assert "\\u202e" not in answer.text.replace("\\\\u202e", "")


def test_a_schema_that_is_no_json_does_not_break_the_answer(asked: Asked) -> None:
    odd = Tool(agent="a", name="b", input_schema={"default": float("nan"), "title": "\ud800", "x": {"y": float("inf")}})
    long = Tool(agent="a", name="long", description="x" * 200_000)
    app = explorer(Catalog(agents=(Agent(id="a", tools=(odd, long)),)))
    assert "NaN" in asked(app, "node", id="a/b")["schemas"][0]["text"]
    assert len(json.dumps(asked(app, "node", id="a/long"))) < 20_000
    assert "195,904 more characters" in asked(app, "node", id="a/long")["about"]


def test_only_named_hosts_are_answered(catalog: Catalog) -> None:
    """A page of elsewhere may have its name resolved to this machine."""
    found = served(catalog)
    app = create_explorer(Site(lambda: found), key=KEY, hosts=("callsheet.example",))
    assert TestClient(app, base_url="http://127.0.0.1:8765").get("/callsheet/health").status_code == 200
    assert TestClient(app, base_url="https://callsheet.example").get("/callsheet/health").status_code == 200
    assert TestClient(app, base_url="http://evil.example").get("/callsheet/api/overview").status_code == 400


def test_the_code_of_the_documentation_runs(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parents[3] / "docs/how-to/explorer.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "mcp.json").write_text(dump(catalog), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    made: dict[str, Any] = {}
    exec(code, made)
    client = TestClient(made["app"], base_url="http://localhost", headers={"x-callsheet-key": made["key"]})
    assert client.get("/callsheet/api/overview").json()["tools"] == 6


@pytest.mark.parametrize(
    "path",
    ["/callsheet/../etc/passwd", "/callsheet/page/explorer.js", "/callsheet/runs/../explorer.py"],
)
def test_no_file_beside_those_of_the_page_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_a_catalog_that_cannot_be_read_is_said(asked: Asked) -> None:
    from callsheet.graphs import SettingsError

    def broken() -> Any:
        raise SettingsError("no catalog: set CALLSHEET_CATALOG")

    client = client_of(create_explorer(Site(broken), key=KEY, hosts=("testserver",)))
    assert asked(client, "overview", status=500) == {"error": "no catalog: set CALLSHEET_CATALOG"}
    assert client.get("/callsheet/health").json() == {"status": "failing"}
