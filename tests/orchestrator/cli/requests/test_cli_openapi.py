"""A specification from the command line: indexed, searched, called without a model and with one, asked about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api_server import Shop, shop, shop_spec
from callsheet.orchestrator.cli.main import main


@pytest.fixture
def served() -> Iterator[Shop]:
    with shop() as running:
        yield running


@pytest.fixture
def run(capsys: Any, monkeypatch: Any, tmp_path: Path) -> Any:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))

    def printed(*words: str) -> tuple[int, dict[str, Any]]:
        with pytest.raises(SystemExit) as end:
            main([*words, "--json"])
        return int(end.value.code or 0), json.loads(capsys.readouterr().out.splitlines()[-1])

    return printed


def written(folder: Path, url: str, **options: Any) -> str:
    (folder / "spec.json").write_text(json.dumps(shop_spec(url)))
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shop": {"openapi": "spec.json", "callsheet": options}}}))
    return str(file)


def test_sync_names_the_operations_that_a_specification_changed(run: Any, tmp_path: Path, served: Shop) -> None:
    written(tmp_path, served.url)
    file = tmp_path / "spec.json"
    code, first = run("sync", "--catalog", str(file))
    assert (code, first["agents"], first["tools"]) == (0, 2, 4)
    assert [(row["agent"], len(row["added"])) for row in first["servers"]] == [("shop", 1), ("shop-orders", 3)]
    spec = json.loads(file.read_text())
    of_one = spec["paths"]["/orders/{id}"]
    del of_one["delete"]
    of_one["get"]["summary"] = "Tell where an order is."
    spec["paths"]["/orders"]["get"] = {"operationId": "listOrders", "tags": ["orders"], "summary": "List orders."}
    file.write_text(json.dumps(spec))
    run("index", "--catalog", str(file))
    shop_row, orders = run("sync", "--catalog", str(file))[1]["servers"]
    assert (shop_row["added"], shop_row["changed"], shop_row["removed"]) == ([], [], [])
    assert (orders["added"], orders["changed"], orders["removed"]) == (["listOrders"], ["tellOrder"], ["deleteOrder"])
    again = run("sync", "--catalog", str(file))[1]["servers"][1]
    assert (again["status"], again["added"], again["changed"], again["removed"]) == ("ok", [], [], [])


def test_it_is_asked_without_a_model(run: Any, tmp_path: Path, served: Shop) -> None:
    trusted = written(tmp_path, served.url, trusted=True)
    _, answer = run("ask", 'Tell the state of the order with the id "A-17"', "--catalog", trusted, "--yes")
    assert [sent.target for sent in served.sent] == ["/orders/A-17"], answer
