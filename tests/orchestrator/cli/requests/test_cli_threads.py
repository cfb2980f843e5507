"""Runs on the command line that wait for a person, or are killed, and go on."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest

from callsheet.agents.approval.questions import input_question
from callsheet.agents.calls.review import decision_on
from callsheet.graphs import Catalog, Loaded, dump, load
from callsheet.graphs.dependencies import write_dependencies
from callsheet.orchestrator.cli.approval_prompt import ask_person, leave_inputs
from callsheet.orchestrator.cli.main import main
from callsheet.orchestrator.run.threads import Threads, sweep_threads
from forked import Forked
from small import small_catalog

POST = '''
"""Tools that write down what they do."""
import os
import time
from pathlib import Path

from langchain_core.tools import tool

FOLDER = Path(__file__).parent


def did(what):
    with (FOLDER / "effects").open("a") as log:
        log.write(f"{what}\\n")


@tool
def order_status(order_id: str) -> str:
    """Looks up the status of an order by its order id."""
    did(f"looked up {order_id}")
    return f"{order_id} was shipped on Monday"


@tool
def send_mail(email: str, body: str) -> str:
    """Sends a text by mail to an e-mail address."""
    did(f"sent to {email}")
    if (FOLDER / "hang").exists():
        time.sleep(60)
    return f"sent to {email}"


order_status.metadata = {"annotations": {"readOnlyHint": True}, "callsheet/approval": "always"}
agents = {"orders": [order_status], "mail": [send_mail]}
'''
QUESTION = "Look up the status of order ORD-551 and send the result by mail to ann@example.org"
UNASKED = ("--approval", "never", "--allow", "mail/send_mail", "--allow", "orders/order_status")
SECONDS = 120  # only what hangs takes so long


class Post:
    """A shop with an order book and a post room, asked from the command line."""

    def __init__(self, folder: Path, capsys: Any) -> None:
        self.folder, self._capsys = folder, capsys
        self.environment = {**os.environ, "CALLSHEET_HOME": str(folder / "home")}
        self.threads = Threads.of(Loaded(Catalog(), label="post_of_the_tests:agents"))

    @property
    def effects(self) -> list[str]:
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    def ask(self, *arguments: str) -> tuple[int, Any, str]:
        """In this process, without a terminal: exit status, the JSON, standard error."""
        with pytest.raises(SystemExit) as ended:
            main(["ask", *arguments, "--catalog", "post_of_the_tests:agents", "--json"])
        out, err = self._capsys.readouterr()
        return int(ended.value.code or 0), json.loads(out) if out else None, err

    def start(self, *arguments: str, as_json: bool = True, **streams: int) -> Forked:
        """In a process of its own."""
        command = ["-m", "callsheet", "ask", *arguments, "--catalog", "post_of_the_tests:agents"]
        command += ["--json"] if as_json else []
        return Forked(command, cwd=self.folder, env=self.environment, **streams)

    def talk(self, *arguments: str, says: list[tuple[str, str]], as_json: bool = True) -> tuple[int, Any, str]:
        """At a terminal, where each of these texts is answered with that line."""
        ours, theirs = pty.openpty()
        process = self.start(*arguments, as_json=as_json, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE)
        os.close(theirs)
        seen, waits, deadline = "", list(says), time.monotonic() + SECONDS
        readable = select.poll()  # unlike select(), it takes descriptors above 1,023
        readable.register(ours, select.POLLIN)
        while process.poll() is None and time.monotonic() < deadline:
            if readable.poll(100):
                seen += _read(ours)
            if waits and waits[0][0] in seen:
                text, line = waits.pop(0)
                seen = seen.split(text, 1)[1]
                os.write(ours, line.encode() + b"\n")
        process.kill()
        out = process.communicate()[0]
        os.close(ours)
        assert not waits, f"never said: {waits[0][0]}; the last words: {seen}"
        return process.returncode, json.loads(out) if out and as_json else out, seen


def _read(terminal: int) -> str:
    try:
        return os.read(terminal, 65_536).decode("utf-8", "replace")
    except OSError:
        return ""


@pytest.fixture
def post(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Post:
    (tmp_path / "post_of_the_tests.py").write_text(POST)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "post_of_the_tests", raising=False)
    return Post(tmp_path, capsys)


def test_where_nobody_can_be_asked_the_run_stops_and_says_how_to_go_on(post: Post) -> None:
    status, said, _ = post.ask(QUESTION, "-k", "3", "--approval", "always")
    assert (status, post.effects) == (1, [])
    assert [step["status"] for step in said["steps"]] == ["needs_approval", "waiting"]
    fields = {"id", "text", "depends_on", "agents", "tools", "status", "calls", "result", "error"}
    assert all(fields <= set(step) for step in said["steps"])
    assert said["steps"][0]["tools"][0] == "orders/order_status"
    assert "wants to call orders/order_status" in said["steps"][0]["error"]
    assert said["waiting"][0]["action_requests"][0]["args"] == {"order_id": "ORD-551"}
    again = f"callsheet ask --resume --thread {said['thread']} --approval always -k 3"
    assert said["answer"].endswith(f"Continue with: {again} --catalog post_of_the_tests:agents")


def test_a_run_that_waits_goes_on_and_does_nothing_again_when_it_is_done(post: Post) -> None:
    post.ask(QUESTION)
    for _ in range(2):
        status, said, _ = post.ask("--resume", *UNASKED)
        assert (status, [step["status"] for step in said["steps"]]) == (0, ["done", "done"])
        assert post.effects == ["looked up ORD-551", "sent to ann@example.org"]


def test_a_named_thread_is_kept_as_a_conversation(post: Post) -> None:
    for _ in range(2):
        status, said, _ = post.ask(QUESTION, "--thread", "shop", *UNASKED)
        assert (status, said["thread"]) == (0, "shop")
    assert post.effects == ["looked up ORD-551", "sent to ann@example.org"] * 2
    status, said, _ = post.ask("--resume", "--thread", "shop")
    assert (status, len(post.effects)) == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--resume"], "no thread of this catalog to resume"),
        (["--resume", "--thread", "nobody"], "no thread 'nobody'"),
        (["--resume", "--thread", "../../etc/passwd"], "cannot be the name of a thread"),
        (["--resume", "What time is it?"], "leave the question out"),
        (["x", "--thread", ""], "cannot be the name of a thread"),
        (["x", "--approval", "sometimes"], "sometimes"),
        ([], "the request is empty"),
    ],
)
def test_a_callers_mistake_ends_with_2(post: Post, arguments: list[str], said: str) -> None:
    status, _, err = post.ask(*arguments)
    assert status == 2
    assert said in err


def test_a_run_belongs_to_its_catalog(post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    thread = post.ask(QUESTION, "--approval", "always")[1]["thread"]
    (tmp_path / "other.json").write_text(dump(small_catalog()))
    for resumed in (("--resume",), ("--resume", "--thread", thread)):
        status, _, err = post.ask(*resumed, "--catalog", "other.json")
        assert (status, "no thread" in err) == (2, True)
    write_dependencies((), tmp_path / "dependencies.json")
    other = Threads.of(load("other.json"))
    with other.locked("shop"):
        pass
    (tmp_path / "link.json").symlink_to("other.json")
    for same in (["link.json"], [tmp_path / "other.json"], ["other.json", "dependencies.json"]):
        assert Threads.of(load(*same)).names() == ["shop"]
    assert post.threads.names() == [thread]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Threads.of(Loaded(Catalog(), label="post_of_the_tests:agents")).names() == []  # another module of that name


def test_threads_of_all_catalogs_are_swept(post: Post) -> None:
    thread = post.ask(QUESTION, "--approval", "always")[1]["thread"]
    (file,) = (post.folder / "home" / "threads").rglob(f"{thread}.sqlite")
    os.utime(file, (0, 0))
    sweep_threads()
    assert [*(post.folder / "home" / "threads").rglob("*.*")] == []


def test_a_new_question_does_not_take_the_place_of_an_unfinished_one(post: Post) -> None:
    post.ask(QUESTION, "--thread", "shop")
    status, _, err = post.ask(QUESTION, "--thread", "shop")
    assert (status, "continue with --resume" in err) == (2, True)


def test_a_thread_is_worked_on_by_one_process_at_a_time(post: Post) -> None:
    with post.threads.locked("shop"):
        post.threads.saver("shop")
        status, _, err = post.ask(QUESTION, "--thread", "shop")
    assert (status, "another process" in err) == (2, True)


@pytest.mark.server
def test_a_person_at_a_terminal_edits_approves_and_refuses(post: Post) -> None:
    editor = post.folder / "editor"
    editor.write_text(f"#!{sys.executable}\nimport sys\nopen(sys.argv[1], 'w').write('{{\"order_id\": \"ORD-7\"}}')\n")
    editor.chmod(0o700)
    post.environment["VISUAL"] = str(editor)
    says = [
        ("wants to call orders/order_status", ""),
        ("q=later", "e"),
        ('"ORD-7"', ""),
        ("q=later", "y"),
        ("wants to call mail/send_mail", ""),
        ("q=later", "n"),
        ("Why", "not her"),
    ]
    talk = [(text, line) for text, line in says if line]
    status, out, _ = post.talk(QUESTION, says=talk, as_json=False)
    assert (status, post.effects) == (3, ["looked up ORD-7"])
    assert "a person refused this call: not her" in out


LACKING = "Look up the status of an order"


@pytest.mark.server
def test_a_person_at_a_terminal_gives_the_value_that_a_step_lacks(post: Post) -> None:
    says = [("order_id", "ORD-9"), ("q=later", "y")]
    status, out, _ = post.talk(LACKING, says=says, as_json=False)
    assert (status, post.effects) == (0, ["looked up ORD-9"])
    assert "ORD-9 was shipped on Monday" in out


def test_nobody_is_asked_for_values_where_there_is_no_terminal(post: Post) -> None:
    status, said, _ = post.ask(LACKING)
    (step,) = said["steps"]
    assert (status, step["status"], said["waiting"]) == (1, "needs_input", [])
    assert "orders/order_status, was not called: it needs order_id" in step["error"]
    assert post.effects == []


def test_what_is_typed_is_read_by_its_schema_and_asked_for_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = {"n": {"type": "integer"}, "unit": {"enum": ["mile", "km"]}, "code": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    value = input_question("1", "a/b", schema, "x")
    lines = iter(["many", "5.5", "5", "league", "km", "007"])
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(lines))
    given = decision_on("edit", value, args={"n": 5, "unit": "km", "code": "007"})
    assert ask_person([SimpleNamespace(id="q", value=value)]) == {"q": given}
    err = capsys.readouterr().err
    assert "'many' is not of type 'integer'" in err
    assert "'league' is not one of ['mile', 'km']" in err


def test_a_value_is_asked_for_with_what_it_is_about_and_its_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"enum": ["S", "M"], "description": "The size\n of the shirt."}
    schema = {"type": "object", "properties": {"size": size, "text": {"type": "string"}}, "required": ["size"]}
    lines = iter(["M", ""])
    asked: list[str] = []

    def prompt(text: str, **_: object) -> str:
        asked.append(text)
        return next(lines)

    monkeypatch.setattr(click, "prompt", prompt)
    ask_person([SimpleNamespace(id="q", value=input_question("1", "a/b", schema, "x"))])
    about = "size (The size of the shirt; one of S, M; empty gives no answer)"
    assert asked == [about, "text (empty leaves it out)"]


def test_where_nobody_is_there_a_question_of_a_server_waits_and_a_missing_value_stays_missing() -> None:
    schema = {"type": "object", "properties": {"size": {"type": "string"}}}
    missing = input_question("1", "a/b", schema, "size is missing")
    asked = input_question("1", "a/b", schema, "the server of 'a' asks: Which size?", server="a")
    waiting = [SimpleNamespace(id=name, value=value) for name, value in (("m", missing), ("s", asked))]
    assert leave_inputs(waiting) == {"m": decision_on("reject", missing)}


def test_a_secret_that_does_not_fit_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string", "minLength": 9}}}
    value = input_question("1", "a/b", schema, "x")
    lines = iter(["hunter2", ""])
    monkeypatch.setattr(click, "prompt", lambda *_, **__: next(lines))
    assert ask_person([SimpleNamespace(id="q", value=value)]) == {"q": decision_on("reject", value)}
    assert capsys.readouterr().err == "\nStep 1: x.\nthe value does not fit\n"
