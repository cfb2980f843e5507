"""``callsheet documents``, and a specification from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from api_server import ShopApi, shop, shop_spec
from callsheet.orchestrator.cli.main import main
from commands import Cli


@pytest.fixture
def docs(tmp_path: Path, own_home: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nEvery employee has 25 days of paid leave a year.\n")
    (folder / "broken.pdf").write_bytes(b"no PDF")
    return folder


def test_index_reports_what_it_did(docs: Path, cli: Cli) -> None:
    status, out, err = cli("documents", "index", docs)
    assert status == 0
    assert out.startswith("1 document, 1 chunk, 2 different sentences: 1 added, 0 updated, 0 removed in ")
    assert err.startswith("left out: broken.pdf: not a readable PDF file: ")
    status, out, _ = cli("documents", "index", docs, "--json")
    report = json.loads(out)
    assert status == 0
    assert {"documents", "chunks", "sentences", "exact", "added", "updated", "removed", "seconds", "path"} <= set(
        report
    )
    assert [(problem["document"], problem["kind"]) for problem in report["problems"]] == [("broken.pdf", "broken")]


def test_documents_ask_answers_with_citations(docs: Path, cli: Cli) -> None:
    status, out, _ = cli("documents", "ask", docs, "How many days of paid leave are there a year?")
    assert (status, out.splitlines()[0]) == (0, "Leave: Every employee has 25 days of paid leave a year. [leave.md#1]")
    status, out, _ = cli("documents", "ask", docs, "How many days of paid leave are there?", "--json")
    assert json.loads(out)["citations"] == ["leave.md#1"]


def test_an_answer_that_the_documents_do_not_hold_is_negative(docs: Path, cli: Cli) -> None:
    status, out, _ = cli("documents", "ask", docs, "Who won the zeppelin race?")
    assert status == 1
    assert out.startswith("The documents do not answer this.")
    assert "[" not in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("index", "nowhere"), "no documents at nowhere: there is no such folder"),
        (("ask", "DOCS", "  "), "the question is empty"),
        (("ask", "DOCS", "x", "--model", "nonsense"), "the model 'nonsense' cannot be used"),
        (("index", "DOCS", "--embeddings", "nonsense"), "unknown embedder 'nonsense'"),
    ],
)
def test_the_callers_mistakes_are_one_line(docs: Path, cli: Cli, arguments: tuple[str, ...], said: str) -> None:
    status, out, err = cli("documents", *(str(docs) if word == "DOCS" else word for word in arguments))
    assert (status, out) == (2, "")
    assert said in err
    assert "--model" not in arguments or not list((docs.parent / "home").rglob("*.sqlite*"))


def test_a_folder_without_documents_is_negative(tmp_path: Path, docs: Path, cli: Cli) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = cli("documents", "index", tmp_path / "empty")
    assert status == 1
    assert "there is no document in" in err


@pytest.fixture
def served() -> Iterator[ShopApi]:
    with shop() as running:
        yield running


@pytest.fixture
def printed_by(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., tuple[int, dict[str, Any]]]:
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


def test_sync_names_the_operations_that_a_specification_changed(
    printed_by: Callable[..., tuple[int, dict[str, Any]]], tmp_path: Path, served: ShopApi
) -> None:
    written(tmp_path, served.url)
    file = tmp_path / "spec.json"
    code, first = printed_by("sync", "--catalog", str(file))
    assert (code, first["agents"], first["tools"]) == (0, 2, 4)
    assert [(row["agent"], len(row["added"])) for row in first["servers"]] == [("shop", 1), ("shop-orders", 3)]
    spec = json.loads(file.read_text())
    of_one = spec["paths"]["/orders/{id}"]
    del of_one["delete"]
    of_one["get"]["summary"] = "Tell where an order is."
    spec["paths"]["/orders"]["get"] = {"operationId": "listOrders", "tags": ["orders"], "summary": "List orders."}
    file.write_text(json.dumps(spec))
    printed_by("index", "--catalog", str(file))
    shop_row, orders = printed_by("sync", "--catalog", str(file))[1]["servers"]
    assert (shop_row["added"], shop_row["changed"], shop_row["removed"]) == ([], [], [])
    assert (orders["added"], orders["changed"], orders["removed"]) == (["listOrders"], ["tellOrder"], ["deleteOrder"])
    again = printed_by("sync", "--catalog", str(file))[1]["servers"][1]
    assert (again["status"], again["added"], again["changed"], again["removed"]) == ("ok", [], [], [])
