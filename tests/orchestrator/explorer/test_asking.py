"""A request asked in the page: watched, approved with other arguments, answered, cancelled, resumed; and by whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from starlette.testclient import TestClient

from asking import BOTH, Asking
from callsheet.agents.approval.questions import input_question, wanted_schema
from callsheet.graphs import Catalog, Loaded, Policy, User
from callsheet.orchestrator.run.threads import Threads
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.runs.run_routes import with_values
from chromium import Browser
from deciding_model import own_steps
from explored import KEY
from explored_page import click, saved, sent, shown, watched
from scripted_model import ScriptedModel, calls, ended, planned

Show = Callable[..., Browser]
HEADERS = {"x-callsheet-key": KEY}
INK = """(map) => { const below = map.getContext("2d").getImageData(0, map.height / 2, map.width, map.height / 2);
    return new Set(new Uint32Array(below.data.buffer)).size > 1; }"""
STATES = "Object.fromEntries([...document.querySelectorAll('.dag .step')].map((e) => [e.dataset.step, e.classList[1]]))"


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    made = Asking(tmp_path, monkeypatch)
    yield made
    made.gate.set()


def run_is(page: Browser, status: str) -> None:
    page.wait(f"document.querySelector('.thread > .run')?.dataset.status === {status!r}")


@pytest.mark.server
def test_a_request_is_asked_watched_and_decided_in_the_page(show: Show, asking: Asking) -> None:
    asking.gate.clear()
    page = show(asking.page(), f"#key={KEY}")
    assert page.run("location.hash") == "#/"
    page.wait("document.activeElement.id === 'question'")
    page.write(BOTH)
    page.press("Enter")
    run_is(page, "running")
    page.wait("document.querySelector('.dag .chip-text.running')?.textContent === 'units/convert_length'")
    assert page.run(STATES)["1"] == "running"
    assert page.run("document.querySelectorAll('.timeline .bar-of.running').length") == 1
    assert page.run("document.querySelector('.composer button').disabled")
    page.wait("document.querySelector('.run-map canvas')?.width > 0")
    page.wait(f"({INK})(document.querySelector('.run-map canvas'))")
    assert page.run("document.querySelector('.run-map p').textContent").endswith("1 called, 1 running")
    asking.gate.set()
    run_is(page, "waiting")
    assert page.run(STATES) == {"1": "done", "2": "needs_approval"}
    said = page.run("document.querySelector('.card').innerText")
    assert "notebook/write_note" in said
    assert "hello there" in said
    assert "it is not marked as read-only" in said
    for given, told in (('{"text": ', "This is not JSON"), ('{"words": 1}', "The last answer was not used")):
        click(page, "Edit")
        page.run(f"document.querySelector('.card textarea').value = {given!r}")
        click(page, "Use these arguments")
        if told.startswith("This"):
            assert page.run("document.querySelector('.card textarea').validationMessage").startswith(told)
            click(page, "Back")
        else:
            page.wait(f"document.querySelector('.card .error')?.textContent.includes({told!r})")
    click(page, "Edit")
    page.run("document.querySelector('.card textarea').value = '{\"text\": \"good <i>day</i>\"}'")
    click(page, "Use these arguments")
    page.wait("document.querySelector('.card .args')?.textContent.includes('good <i>day</i>')")
    assert asking.notes == []
    click(page, "Approve")
    run_is(page, "done")
    assert asking.notes == ["good <i>day</i>"]
    page.wait("document.querySelector('.run-answer')?.textContent.includes('noted: good <i>day</i> <b>bold</b>')")
    assert page.run("document.querySelectorAll('.timeline .call').length") == 2
    assert page.run("document.querySelectorAll('main b, main i').length") == 0

    html = saved(page, "HTML page")
    assert all(
        part in html for part in ("good &lt;i&gt;day&lt;/i&gt;", "default-src 'none'", "Why these tools", "</svg>")
    )
    assert not any(part in html for part in ("<script", "<button", "<textarea", "href=", KEY))

    page.run("document.querySelector('.composer textarea').focus()")
    page.write("Send a letter")
    page.press("Enter")
    page.wait("document.querySelector('.card input')")
    assert page.run("document.querySelector('.earlier .answer-text').textContent").startswith("Convert 3 miles")
    page.run("document.querySelector('.card input').focus()")
    page.write("ann@example.org")
    click(page, "Give")
    page.wait("document.querySelector('.card h3')?.textContent === 'Approve this call?'")
    reached = ""
    page.run("document.querySelector('.thread > .run h2').focus()")
    while reached != "Approve":
        page.press("Tab")
        reached = page.run("document.activeElement.textContent")
    page.press("Enter")
    run_is(page, "done")
    assert asking.letters == ["ann@example.org"]
    heard = page.heard()
    assert ("button", "Step 1: Send a letter. done, calls post/send_letter") in heard
    assert [role for role, name in heard if role in ("button", "link", "textbox") and not name] == []
    assert page.complaints == []


@pytest.mark.server
def test_a_run_is_cancelled_and_resumed_and_can_be_left_and_found_again(show: Show, asking: Asking) -> None:
    asking.gate.clear()
    page = show(asking.page(), f"#key={KEY}", 390, dark=True)
    page.wait("document.activeElement.id === 'question'")
    page.write("Convert 3 miles to kilometers")
    page.press("Enter")
    page.wait("document.querySelector('.dag .chip-text.running')")
    assert page.run("document.documentElement.scrollWidth") <= 390
    page.run("window.before = true; location.reload()")
    page.wait("!window.before && document.querySelector('.dag .chip-text.running')")
    click(page, "Cancel")
    run_is(page, "stopped")
    page.wait("document.querySelector('.run-head .error')?.textContent.startsWith('Cancelled')")
    asking.gate.set()
    click(page, "Resume")
    run_is(page, "done")
    assert "4.83 kilometers" in page.run("document.querySelector('.run-answer').textContent")
    page.run("document.querySelector('[data-view=runs]').click()")
    page.wait("document.querySelector('.threads .badge')?.textContent === 'Done'")
    assert page.run("document.documentElement.scrollWidth") <= 390
    assert page.complaints == []


@pytest.mark.server
def test_several_calls_of_one_tool_are_decided_together(show: Show, asking: Asking) -> None:
    def work(messages: Sequence[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return ended(messages[-1])
        return calls("notebook_write_note", text=own_steps(messages[1].text).partition("\n")[0][-1])

    texts = [(text, []) for text in "abc"] + [(text, ["1", "2", "3"]) for text in "def"]
    plan = planned(*((str(n), f"Write note {text}", after) for n, (text, after) in enumerate(texts, 1)))
    revision = calls("PlanRevision", done=True)
    planner, worker = ScriptedModel(replies=[plan, revision]), ScriptedModel(replies=[work])
    page = show(asking.page(worker=worker, planner=planner), f"#key={KEY}", 390)
    page.wait("document.activeElement.id === 'question'")
    page.write("Write a note with the text 'hello there'.")
    page.press("Enter")
    seen = ""
    for rest in ("Approve all", "Reject these calls"):
        page.wait(f"![{seen!r}, undefined].includes(document.querySelector('.together .card')?.dataset.question)")
        seen = page.run("document.querySelector('.together .card').dataset.question")
        assert page.run("document.querySelector('.together h3').textContent") == "3 calls of notebook/write_note"
        assert page.run("document.documentElement.scrollWidth") <= 390
        page.run("document.querySelector('.together .card .row button.main').click()")
        page.wait("document.querySelector('.questions .decided').textContent.startsWith('1 of 3 decided')")
        if rest == "Reject these calls":
            click(page, "Reject all")
            page.run("document.querySelector('.together-head textarea').value = 'enough'")
        click(page, rest)
    run_is(page, "partly")
    assert sorted(asking.notes)[:3] == ["a", "b", "c"]
    assert len(asking.notes) == 4
    assert page.complaints == []


@pytest.mark.server
def test_the_calls_of_a_program_are_decided_one_by_one_and_sent_as_one_answer(show: Show, asking: Asking) -> None:
    code = "for word in ('a', 'b', 'c'):\n    notebook_write_note(text=word)"
    worker = ScriptedModel(replies=[calls("run_program", code=code), lambda told: ended(told[-1])])
    page = show(asking.page(worker=worker), f"#key={KEY}", 390)
    page.wait("document.activeElement.id === 'question'")
    page.write("Write notes a, b and c.")
    page.press("Enter")
    page.wait("document.querySelectorAll('.together .card').length === 3")
    for choice in ("Approve", "Approve", "Reject", "Reject"):  # the second of these below the field for the reason
        page.run(
            "[...document.querySelectorAll('.together .card:not(.settled) .row button')]"
            f".find((one) => one.textContent === {choice!r}).click()"
        )
    page.wait("!['waiting', 'running'].includes(document.querySelector('.thread > .run')?.dataset.status)")
    assert asking.notes == ["a", "b"]
    assert page.complaints == []


@pytest.fixture
def client(asking: Asking) -> Iterator[TestClient]:
    with TestClient(asking.page(), headers=HEADERS) as client:
        yield client


def test_a_body_of_another_form_starts_nothing(asking: Asking, client: TestClient) -> None:
    for wrong in ({"text": " "}, {"text": "x", "more": 1}, {"text": "x" * 1_000_001}, {}, []):
        answer = client.post("/callsheet/api/start", json=wrong)
        assert answer.status_code in (400, 409), wrong
        assert "Traceback" not in answer.json()["error"]
    sent(client, "start", 409, text="x", thread="../x")
    assert client.get("/callsheet/api/start").status_code == 405
    assert asking.threads.names() == []


def test_a_question_is_answered_once_and_by_its_id(asking: Asking, client: TestClient) -> None:
    thread = sent(client, "start", text=BOTH)
    run = watched(client, thread)[-1]
    (question,) = run["questions"]
    assert (run["status"], question["decisions"]) == ("waiting", ["approve", "edit", "reject", "respond"])
    assert json.loads(question["args"]) == {"text": "hello there"}
    strange = {"x" * 32: {"type": "approve"}}
    assert "was answered meanwhile" in sent(client, "resume", 409, thread=thread, answers=strange)
    assert "waits for answers" in sent(client, "resume", 409, thread=thread)
    sent(client, "start", text="Convert 1 miles to kilometers", thread=thread)
    assert "is not finished" in watched(client, thread)[-1]["trouble"]
    sent(client, "resume", thread=thread, answers={question["id"]: {"type": "reject", "message": "not now"}})
    assert watched(client, thread)[-1]["status"] == "partly"
    (run,) = shown(client, thread)
    assert asking.notes == []
    assert "not now" in run["steps"][1]["error"]
    assert run["steps"][0]["calls"][0]["began"] >= run["began"] > 0


def test_the_server_reads_the_values_that_a_person_wrote() -> None:
    spec = {"properties": {"id": {"type": "integer"}, "kind": {"enum": [2**53 + 1, "x"]}, "text": {"type": "string"}}}
    asked = input_question("1", "a/work", wanted_schema(spec, [*spec["properties"]]), "some values are missing")
    written = {"id": str(2**60 + 1), "kind": str(2**53 + 1), "text": "12"}
    (decision,) = with_values(asked, {"values": written})["decisions"]
    assert decision["edited_action"]["args"] == {"id": 2**60 + 1, "kind": 2**53 + 1, "text": "12"}
    with pytest.raises(RefusedError, match=r"^id: "):
        with_values(asked, {"values": {**written, "id": "many"}})
    assert with_values(asked, {"type": "reject"}) == {"type": "reject"}


def test_an_empty_field_that_may_stay_empty_is_left_out() -> None:
    form = {"type": "object", "properties": {"size": {"type": "string"}, "pages": {"type": "integer"}}}
    asked = input_question("1", "a/work", {**form, "required": ["size"]}, "the server of 'a' asks: Which?", server="a")
    (decision,) = with_values(asked, {"values": {"size": "M", "pages": ""}})["decisions"]
    assert decision["edited_action"]["args"] == {"size": "M"}


def test_a_page_shows_and_continues_no_run_of_another_catalog(
    asking: Asking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    one, other = (Threads.of(Loaded(Catalog(), label=str(tmp_path / name))) for name in ("a.json", "b.json"))
    asking.threads = one
    with TestClient(asking.page(), headers=HEADERS) as client:
        thread = sent(client, "start", text=BOTH)
        assert watched(client, thread)[-1]["status"] == "waiting"
    asking.threads = other
    with TestClient(asking.page(), headers=HEADERS) as client:
        assert client.get("/callsheet/api/runs").json() == watched(client, thread) == []
        assert client.get("/callsheet/api/run", params={"id": thread}).status_code == 404
        for name, given in (("start", {"text": "x"}), ("resume", {"answers": {}}), ("cancel", {})):
            sent(client, name, 409, thread=thread, **given)
    asking.threads = one
    with TestClient(asking.page(), headers=HEADERS) as client:
        assert [run["id"] for run in client.get("/callsheet/api/runs").json()] == [thread]


def test_who_may_not_see_a_tool_neither_sees_nor_decides_its_call(asking: Asking, client: TestClient) -> None:
    thread = sent(client, "start", text=BOTH)
    assert watched(client, thread)[-1]["status"] == "waiting"
    with TestClient(asking.page(Policy(default="allow", deny=("notebook",))), headers=HEADERS) as other:
        (run,) = shown(other, thread)
        (question,) = run["questions"]
        assert (question["decisions"], question["args"], question["hash"]) == ([], None, "")
        assert "write_note" not in json.dumps(run), run
        answers = {question["id"]: {"type": "approve"}}
        assert "tools that you may not see" in sent(other, "resume", 409, thread=thread, answers=answers)
    assert asking.notes == []


def test_a_run_has_only_the_tools_of_its_user(asking: Asking) -> None:
    policy = Policy(default="deny", users={"ann": {"allow": ["units"]}})  # type: ignore[dict-item]
    with TestClient(asking.page(policy, User("ann")), headers=HEADERS) as client:
        last = watched(client, sent(client, "start", text=BOTH))[-1]
    assert last["steps"][0]["status"] == "done"
    assert last["steps"][1]["status"] != "done"
    assert {tool["tool"]["id"] for step in last["steps"] for tool in step["picked"]} == {"units/convert_length"}
    assert asking.notes == []


def test_a_thread_takes_one_run_at_a_time(asking: Asking, client: TestClient) -> None:
    asking.gate.clear()
    thread = sent(client, "start", text="Convert 3 miles to kilometers")
    assert "still running" in sent(client, "start", 409, text="Convert 4 miles to kilometers", thread=thread)
    threading.Timer(0.2, asking.gate.set).start()
    assert watched(client, thread)[-1]["status"] == "done"


def test_the_requests_that_the_page_proposes_work(asking: Asking) -> None:
    with TestClient(asking.page(model=False), headers=HEADERS) as client:
        proposed = client.get("/callsheet/api/map").json()["examples"]
        assert proposed == ["Convert length 5 miles to kilometers", "What can you do?"]
        ends = [watched(client, sent(client, "start", text=one))[-1] for one in proposed]
        assert [(one["status"], one["trouble"]) for one in ends] == [("done", ""), ("done", "")]
        assert [run["status"] for run in client.get("/callsheet/api/runs").json()] == ["done", "done"]
