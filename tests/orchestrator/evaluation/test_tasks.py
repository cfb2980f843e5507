"""Tasks with end states: over a real server and fresh copies of its data, with a scripted model."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import callsheet.agents
from callsheet.agents import Call
from callsheet.graphs import SettingsError
from callsheet.orchestrator.apps.model_evaluation.attempts import Attempt
from callsheet.orchestrator.apps.model_evaluation.grading import graded_task
from callsheet.orchestrator.apps.model_evaluation.model_evaluator import task_case
from callsheet.orchestrator.apps.model_evaluation.tasks import EndState, Task, read_tasks
from choosing_model import ChoosingModel
from commands import run

SERVER = Path(__file__).with_name("task_server.py")
HELLO = {
    "id": "hello",
    "request": "Write hello to ${CALLSHEET_DATA}/log.txt",
    "setup": [[sys.executable, "-c", "open('begun.txt', 'w').write('{\"at\": [1, 2]}')"]],
    "checks": [
        {"kind": "file", "path": "log.txt", "matches": "^wrote hello$"},
        {"kind": "json", "path": "begun.txt", "value": "at[1]", "equals": 2},
        {"kind": "command", "argv": [sys.executable, "-c", "print(open('old.txt').read())"], "matches": "kept"},
    ],
}


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with one task, the data of its server, and a catalog that is over their copy."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CALLSHEET_DATA", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old.txt").write_text("kept", encoding="utf-8")
    server = {"command": sys.executable, "args": [str(SERVER), "${CALLSHEET_DATA}/log.txt"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"works": server}}), encoding="utf-8")
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps({"data": "data", "tasks": [HELLO]}), encoding="utf-8")
    return file


def evaluated(file: Path, model: ChoosingModel, capsys: Any, monkeypatch: pytest.MonkeyPatch, *words: str) -> Any:
    monkeypatch.setattr(callsheet.agents, "chat_model", lambda name, **_: model)
    catalog = ("--catalog", str(file.parent / "mcp.json"), "--yes")
    return run(capsys, "eval", str(file), "--model", "m", *catalog, *words)


def test_every_arm_works_on_a_fresh_copy(tasks: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ChoosingModel(choices={"hello": ("write", {"text": "hello"})})
    words = ("--arms", "k3,once", "--run-tools", "--json")
    status, out, err = evaluated(tasks, model, capsys, monkeypatch, *words)
    assert (status, err) == (0, "")
    arms = json.loads(out)["arms"]
    assert [(arm["arm"], arm["success"], arm["tool_calls"]) for arm in arms] == [("k3", 1.0, 1.0), ("once", 1.0, 1.0)]
    written = (tasks.parent / "home" / "model-evaluations" / "data" / "log.txt").read_text(encoding="utf-8")
    assert written == "wrote hello\n"  # of the last arm alone
    assert not (tasks.parent / "data" / "log.txt").exists()
    assert str(tasks.parent / "home") in model.asked[0]
    asked = len(model.asked)
    assert evaluated(tasks, model, capsys, monkeypatch, *words)[0] == 0
    assert len(model.asked) == asked  # everything was kept
    (tasks.parent / "data" / "old.txt").write_text("kept, changed", encoding="utf-8")
    assert evaluated(tasks, model, capsys, monkeypatch, *words)[0] == 0
    assert len(model.asked) == 2 * asked  # over other data it is another attempt


def test_the_rules_are_an_arm_without_the_model(tasks: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = {"id": "count", "request": "Count up to 3", "checks": [{"kind": "answer", "matches": r"\b3\b"}]}
    tasks.write_text(json.dumps({"tasks": [counting]}), encoding="utf-8")
    model = ChoosingModel(choices={})
    status, out, err = evaluated(tasks, model, capsys, monkeypatch, "--arms", "rules", "--run-tools", "--json")
    (arm,) = json.loads(out)["arms"]
    assert (status, err, arm["success"], arm["tool_calls"], model.asked) == (0, "", 1.0, 1.0, [])


def test_an_end_state_that_is_missing_is_named(tasks: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("--arms", "k3", "--run-tools", "--fail-under", "k3.success=1")
    status, out, err = evaluated(tasks, ChoosingModel(choices={}), capsys, monkeypatch, *words)
    assert (status, err) == (1, "failed: k3.success is 0.0000, under 1\n")
    assert "end state: file: matches ^wrote hello$, path log.txt" in out


@pytest.mark.parametrize("words", [(), ("--run-tools", "--concurrency", "2")])
def test_tools_are_called_only_where_somebody_agreed(
    tasks: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    model = ChoosingModel(choices={"hello": ("write", {"text": "hello"})})
    status, out, err = evaluated(tasks, model, capsys, monkeypatch, *words)
    assert (status, out, model.asked) == (2, "", [])
    assert "agree with --run-tools" in err


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"checks": [{"kind": "file", "path": "old.txt", "matches": "kept"}]}, "its checks hold before anything is"),
        ({"setup": [["false"]]}, "the setup 'false' failed"),
        ({"setup": [["no-such-program"]]}, "the setup 'no-such-program' failed"),
        ({"checks": []}, "checks"),
        ({"checks": [{"kind": "file", "path": "a"}]}, 'give "matches" (a regular expression) or "equals"'),
        ({"checks": [{"kind": "file", "path": "a", "matches": "("}]}, "is not a regular expression"),
        ({"checks": [{"kind": "mail", "matches": "a"}]}, "kind"),
        ({"todo": 1}, "todo"),
    ],
)
async def test_a_task_that_cannot_be_judged_is_refused(tmp_path: Path, task: Any, said: str) -> None:
    file = tmp_path / "tasks.json"
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old.txt").write_text("kept", encoding="utf-8")
    file.write_text(json.dumps({"data": "data", "tasks": [{**HELLO, **task}]}), encoding="utf-8")
    never: Any = None  # an arm that is not reached

    async def attempted() -> None:
        (found,), data = read_tasks(file, tmp_path / "copy")
        await task_case(found, data).attempt(never)

    with pytest.raises(SettingsError, match=re.escape(said)):
        await attempted()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no tasks"),
        ("{", "holds no tasks"),
        ('{"tasks": []}', "tasks"),
        (json.dumps({"tasks": [HELLO, HELLO]}), "tasks repeat the id hello"),
        (json.dumps({"data": "other", "tasks": [HELLO]}), "there is no folder"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "tasks.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=said):
        read_tasks(file, tmp_path / "copy")


def test_rows_of_a_database_are_read_only(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as connection:
        connection.executescript("create table item (name, price); insert into item values ('tea', 3)")
    rows = {"kind": "sql", "database": "shop.sqlite", "query": "select name, price from item", "equals": [["tea", 3]]}
    wrong = {**rows, "query": "delete from item", "equals": []}
    missing = {**rows, "database": "none.sqlite"}
    task = Task(id="1", request="q", checks=[rows, wrong, missing])  # type: ignore[arg-type]
    assert len(task.unmet(EndState(tmp_path))) == 2
    assert not (tmp_path / "none.sqlite").exists()


def test_the_body_of_an_answer(httpserver_url: str, tmp_path: Path) -> None:
    there = {"kind": "http", "url": f"{httpserver_url}/", "matches": "hello"}
    gone = {"kind": "http", "url": "http://127.0.0.1:9/", "matches": ""}
    task = Task(id="1", request="q", checks=[there, gone])  # type: ignore[arg-type]
    assert task.unmet(EndState(tmp_path)) == ("http: matches , url http://127.0.0.1:9/",)


def test_the_text_of_the_answer(tmp_path: Path) -> None:
    task = Task(id="1", request="q", checks=[{"kind": "answer", "matches": r"\b42\b"}])  # type: ignore[arg-type]
    assert task.unmet(EndState(tmp_path)) == task.unmet(EndState(tmp_path, "142")) == (r"answer: matches \b42\b",)
    assert task.unmet(EndState(tmp_path, "It is 42.")) == ()


@pytest.fixture
def httpserver_url() -> Any:
    import threading
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 as it is named there
            """Silent."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({}, "end state"),
        ({"offered": ()}, "plan"),
        ({"stopped": "the limit of 8 model calls"}, "gave up"),
        ({"calls": (Call(agent="a", tool="a/x", error="broken"),)}, "tool error"),
        ({"failure": "overloaded"}, "model error"),
        ({"unmet": ()}, ""),
    ],
)
def test_causes_of_tasks(fields: Any, cause: str) -> None:
    assert graded_task(Attempt(**{"offered": ("a/x",), "unmet": ("a check",), **fields})).cause == cause
