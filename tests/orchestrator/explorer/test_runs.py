"""Runs in the page: those of a thread, step by step, what may be seen of them, and what the command line prints."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage

from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.graphs import Catalog, Policy, User
from callsheet.orchestrator.cli import output
from callsheet.orchestrator.cli.ask import run_workflow
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.threads import Threads, stream_in_thread
from callsheet.orchestrator.run_events import MODES, RunEvent, event_of
from callsheet.orchestrator.server import Site
from callsheet.orchestrator.server.runs.local_backend import LocalBackend
from callsheet.orchestrator.server.runs.question_views import WITHHELD
from callsheet.orchestrator.server.runs.runs import Runs, config_of
from callsheet.orchestrator.server.runs.visible_events import VisibleEvents
from callsheet.orchestrator.supervisor import create_supervisor
from explored import client_of, explorer, served
from explored_page import shown, watched
from fake_agents import FakeAgents
from kept_runs import ASKING, ENDED, PICKED, RESULT, REVISED, USAGE, USED, WORKED, Kept, moment, with_values
from page_runs import drawn_runs
from scripted_model import ScriptedModel, planned

Asked = Callable[..., Any]


def test_a_run_is_shown_step_by_step_with_calls_and_durations(catalog: Catalog, asked: Asked) -> None:
    nothing = ENDED._replace(values={})
    app = explorer(catalog, runs=Kept([ENDED, moment("b", 5), moment("a", 2, waiting=1), moment("a", 1), nothing]))
    assert asked(app, "overview")["runs"]
    assert [thread["id"] for thread in asked(app, "runs")] == ["t"]
    last, first = shown(client_of(app), "t")
    assert (last["request"], last["seconds"], last["note"], last["answer"]) == ("request b", 9.0, "by rules", "4.8 km")
    assert (first["request"], first["answer"], first["status"]) == ("request a", "", "waiting")
    step, waiting = last["steps"]
    assert (step["status"], step["result"]) == ("done", "4.8 km")
    (call,) = step["calls"]
    assert (call["tool"]["id"], call["seconds"]) == ("units/convert_length", 0.25)
    assert (call["args"], call["files"]) == ('{\n  "value": 3\n}', 1)
    assert step["picked"][0]["why"] == "used by a"
    assert (waiting["status"], waiting["depends_on"]) == ("waiting", ["1"])


def test_what_a_step_did_with_tools_that_may_not_be_seen_is_withheld(catalog: Catalog) -> None:
    policy = Policy(default="allow", deny=("units/convert_length",))
    ended = with_values(ENDED, revisions=REVISED.values["revisions"])
    app = explorer(catalog, policy, runs=Kept([ended]))
    told = client_of(app).get("/callsheet/api/run", params={"id": "t"}).text
    assert "units" not in told
    (run,) = shown(client_of(app), "t")
    step = run["steps"][0]
    assert run["revisions"] == []
    assert (step["status"], step["error"], step["calls"], step["picked"]) == ("done", WITHHELD, [], [])
    assert run["answer"] == WITHHELD


@pytest.mark.parametrize(
    "changed", [{"status": "splendid"}, {"calls": [{"tool": "units/convert_length"}]}, {"agents": 5}, {"calls": 5}]
)
def test_a_step_whose_result_cannot_be_read_is_withheld(catalog: Catalog, changed: dict[str, Any]) -> None:
    ended = with_values(ENDED, results={"1": {**RESULT, **changed}})
    (run,) = shown(client_of(explorer(catalog, runs=Kept([ended]))), "t")
    step = run["steps"][0]
    assert (step["status"], step["calls"], step["result"]) == ("failed", [], "")
    assert "cannot be read" in step["error"]
    assert run["answer"] == WITHHELD


def hidden_calls(catalog: Catalog) -> VisibleEvents:
    """The events for somebody who may not see one tool."""
    found = served(catalog, Policy(default="allow", deny=("units/convert_length",)))
    return VisibleEvents(Site(lambda: found).visible_to(User("ann")))


def test_a_call_that_may_not_be_seen_withholds_its_step_and_the_answer_while_it_runs(catalog: Catalog) -> None:
    events = hidden_calls(catalog)
    call = {"step_id": "1", "call_id": "c", "agent": "units", "tool": "units/convert_length", "args": {"value": 3}}
    told = [
        *events.of({"event": "tool_started", **call}),
        *events.of({"event": "progress", **call, "progress": 1, "total": None, "text": "secret"}),
        *events.of({"event": "tool_finished", **call, "status": "success", "output": "secret"}),
        *events.of({"event": "draft", "text": "secret"}),
        *events.of({"event": "revision", "reason": "secret"}),
        *events.of({"event": "trouble", "text": "secret"}),
        *events.of({"event": "usage", **USAGE, "by_step": {"1": WORKED}}),
    ]
    assert [one["event"] for one in told] == ["withheld"] * 3 + ["trouble", "usage"]
    assert told[-1]["steps"] == {}
    assert "secret" not in str(told)
    assert "units" not in str(told)


def test_calls_of_the_workers_own_tools_withhold_nothing(catalog: Catalog) -> None:
    events = hidden_calls(catalog)
    assert events.of({"event": "tool_started", "step_id": "1", "call_id": "c", "tool": "finish", "args": {}}) == []
    result = {**RESULT, "calls": [], "agents": [], "tools": []}
    (told,) = events.of({"event": "step", "step_id": "1", "result": result})
    assert told["event"] == "step"


def test_the_notes_of_a_selection_are_those_of_the_command_line(
    catalog: Catalog, capsys: pytest.CaptureFixture[str]
) -> None:
    selection = {
        **PICKED,
        "verdict": "nothing_fits",
        "left_out": {"maps": "it failed"},
        "down": {"units": "Monday"},
        "skills": [{"id": "maps", "score": 0.5}],
    }
    event = {"event": "picked", "step_id": "1", "selection": selection, "why": PICKED["why"]}
    output.Show().event(event)
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()[1:]]
    found = served(catalog)
    (told,) = VisibleEvents(Site(lambda: found).visible_to(User())).of(event)
    assert [note["text"] for note in told["notes"]] == printed
    assert len(printed) == 4
    hidden = served(catalog, Policy(default="allow", deny=("maps",)))
    (told,) = VisibleEvents(Site(lambda: hidden).visible_to(User())).of(
        {**event, "selection": {**selection, "agents": []}}
    )
    assert "maps" not in str(told)


PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def with_picture(path: str, catalog: Catalog, policy: Policy | None = None) -> Any:
    """An explorer over a run whose call has returned this file."""
    call = {**RESULT["calls"][0], "files": [path]}  # type: ignore[index]
    ended = with_values(ENDED, results={"1": {**RESULT, "calls": [call]}})
    return explorer(catalog, policy, runs=Kept([ended]))


def kept_picture(content: bytes = PNG, media: str = "image/png") -> str:
    """The path of a file in the store of results."""
    stored = KeptResults().of("run", "units", "draw")(content, media)
    assert stored is not None
    return stored.path


def test_a_picture_that_a_call_returned_is_shown(catalog: Catalog, asked: Asked) -> None:
    path = kept_picture()
    app = with_picture(path, catalog)
    (run,) = shown(client_of(app), "t")
    assert run["steps"][0]["calls"][0]["pictures"] == [Path(path).name]
    picture = asked(app, "picture", id="t", file=Path(path).name)
    assert (picture["media"], base64.b64decode(picture["data"])) == ("image/png", PNG)


def test_only_a_picture_of_the_store_is_read(catalog: Catalog, asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    elsewhere = tmp_path / "run" / "secret.png"
    elsewhere.write_bytes(PNG)
    linked = Path(kept_picture()).with_name("linked.png")
    linked.symlink_to(elsewhere)
    gone = Path(kept_picture())
    gone.unlink()
    for path in (elsewhere, linked, gone, Path(kept_picture(b"no picture"))):
        asked(with_picture(str(path), catalog), "picture", 404, id="t", file=path.name)
    asked(with_picture(kept_picture(), catalog), "picture", 404, id="t", file="other.png")
    asked(with_picture(kept_picture(), catalog), "picture", 404, id="another", file="other.png")


def test_a_picture_of_a_tool_that_may_not_be_seen_is_withheld(catalog: Catalog, asked: Asked) -> None:
    path = kept_picture()
    app = with_picture(path, catalog, Policy(default="allow", deny=("units/convert_length",)))
    asked(app, "picture", 404, id="t", file=Path(path).name)


def test_questions_revisions_and_usage_are_shown_also_of_a_run_that_has_not_ended(catalog: Catalog) -> None:
    history = [USED, ASKING, REVISED, moment("a", 1)]
    used, asking, revised, plain = shown(client_of(explorer(catalog, runs=Kept(history))), "t")
    (question,) = asking["questions"]
    assert (question["text"], question["choices"]) == ("Which file?", ["a.txt", "b.txt"])
    (revision,) = revised["revisions"]
    assert [one["id"] for one in (*revision["added"], *revision["dropped"])] == ["3", "2"]
    assert (revision["reason"], revision["refused"]) == ("the file is <b>missing</b>", False)
    assert revised["usage"] == {"calls": 3, "input_tokens": 300, "output_tokens": 30, "cached_tokens": 0}
    assert (plain["questions"], plain["revisions"], plain["usage"]) == ([], [], None)
    assert used["usage"] == {"calls": 3, "input_tokens": 6_000, "output_tokens": 430, "cached_tokens": 4_000}
    assert [(one["role"], one["calls"]) for one in used["roles"]] == [("planner", 1), ("worker", 2)]
    first, second = used["steps"]
    assert (first["usage"]["input_tokens"], second["usage"]) == (5_200, None)


def test_a_discarded_message_is_counted() -> None:
    usage: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    one, other = AIMessage("", usage_metadata=usage), AIMessage("", usage_metadata=usage)
    total = usage_of([with_usage_of(one, other)], 1.5)
    assert (total.calls, total.input_tokens, total.cached_tokens, total.seconds) == (2, 20, 8, 1.5)


class ShopPage:
    """The supervisor over the shop of the tests, with its threads; the page shows their runs."""

    def __init__(self, shop: Any, monkeypatch: Any, folder: Path, **more: Any) -> None:
        loaded = shop.loaded(monkeypatch)
        found = served(loaded)
        self.threads = Threads(folder / "threads")
        self.workflow = create_supervisor(loaded, retriever=found.retriever, registry=found.registry, **more)
        self.backend = LocalBackend(self.workflow, self.threads, found.registry)
        self.client = client_of(explorer(loaded, runs=Runs(self.backend)))
        self.visible = Site(lambda: found).visible_to(User())

    async def events(self, request: str) -> list[RunEvent]:
        """The events of a request in the thread ``t``, as this process streams them."""
        events: list[RunEvent] = []

        def take(*part: Any) -> None:
            if event := event_of(*part):
                events.append(event)

        given = {"messages": [{"role": "user", "content": request}]}
        with self.threads.locked("t"):
            await stream_in_thread(self.workflow, self.threads, "t", given, modes=MODES, take=take)
        return events

    def drawn(self, events: Sequence[RunEvent]) -> list[dict[str, Any]]:
        """The run in the page after each of these events."""
        shown = VisibleEvents(self.visible)
        return drawn_runs([[drawn for event in events for drawn in shown.of(event)]])[0]


RATE = "Look up the exchange rate of the currency 'USD' in euro."


async def test_the_threads_of_the_command_line_are_shown(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = ShopPage(shop, monkeypatch, tmp_path, settings=Settings(approval="never"))
    with page.threads.locked("rates"):
        given = {"messages": [{"role": "user", "content": RATE}]}
        await run_workflow(page.workflow, page.threads, "rates", given, lambda _: None)
    (tmp_path / "threads" / "broken.sqlite").write_text("this is no database, whatever its name says" * 20)
    known = {thread["id"]: thread for thread in page.client.get("/callsheet/api/runs").json()}
    assert (known["rates"]["request"][:7], known["rates"]["status"]) == ("Look up", "done")
    assert known["broken"]["status"] == "error"
    assert page.client.get("/callsheet/api/run", params={"id": "../rates"}).status_code == 404
    (told,) = shown(page.client, "rates")
    (step,) = told["steps"]
    assert (step["status"], step["calls"][0]["tool"]["id"]) == ("done", "bank/exchange_rate")
    assert told["seconds"] > 0
    assert step["result"] in told["answer"]
    assert "broken.sqlite" in page.client.get("/callsheet/api/run", params={"id": "broken"}).json()["error"]


async def test_a_question_of_the_command_line_waits_in_the_page(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = ShopPage(shop, monkeypatch, tmp_path, settings=Settings(approval="always"))
    await page.events(RATE)
    assert [thread["status"] for thread in page.client.get("/callsheet/api/runs").json()] == ["waiting"]
    (told,) = shown(page.client, "t")
    (question,) = told["questions"]
    assert (told["status"], told["answer"], told["steps"][0]["status"]) == ("waiting", "", "needs_approval")
    assert (question["tool"]["id"], question["args"]) == ("bank/exchange_rate", '{\n  "currency": "USD"\n}')


@pytest.fixture
def weather(shop: FakeAgents, worker: ScriptedModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ShopPage:
    """A supervisor with models, which plans two steps and writes the answer word by word."""
    plan = planned(("a", "tell the weather of Oslo", []), ("b", "look up the rate of USD", ["a"]))
    models: dict[str, Any] = {
        "planner_model": ScriptedModel(replies=[plan]),
        "worker_model": worker,
        "answer_model": GenericFakeChatModel(messages=iter([AIMessage("Sun in Oslo, and 0.9 EUR.")] * 2)),
    }
    return ShopPage(shop, monkeypatch, tmp_path, settings=Settings(), **models)


async def test_a_live_run_tells_at_each_moment_what_its_checkpoints_will_tell(weather: ShopPage) -> None:
    for request in ("the weather, and then the rate", "and once more"):
        told = weather.drawn(await weather.events(request))
        states = [tuple((step["status"], len(step["calls"])) for step in run["steps"]) for run in told]
        wanted = [
            (("waiting", 0), ("waiting", 0)),
            (("running", 0), ("waiting", 0)),
            (("running", 1), ("waiting", 0)),
            (("done", 1), ("waiting", 0)),
            (("done", 1), ("running", 1)),
            (("done", 1), ("done", 1)),
        ]
        assert [state for state in dict.fromkeys(states) if state in wanted] == wanted
        drafts = [run["answer"] for run in told if run["answer"]]
        assert all(draft.startswith("Sun") for draft in drafts)
        assert len(set(drafts)) > 3
        assert {run["request"] for run in told} == {request}
        # The history has the same steps, picks, calls, answer and usage.
        past = shown(weather.client, "t")[0]
        parts = ("id", "request", "began", "note", "answer", "questions", "revisions", "steps", "usage", "roles")
        assert {part: past[part] for part in parts} == {part: told[-1][part] for part in parts}
        assert past["status"] == "done"
    second, first = shown(weather.client, "t")
    assert [run["request"] for run in (first, second)] == ["the weather, and then the rate", "and once more"]


async def test_an_answered_request_is_told_as_it_was_while_the_next_one_is_added(weather: ShopPage) -> None:
    await weather.events("the weather, and then the rate")
    before = watched(weather.client, "t")[-1]
    async with weather.threads.saver("t") as saver:
        app = weather.workflow.compile(checkpointer=saver)
        await app.aupdate_state(config_of("t"), {"messages": [HumanMessage("and once more")]}, as_node="__start__")
        state = await app.aget_state(config_of("t"))
    assert state.values["messages"][-1].content == "and once more"
    assert before["answer"].startswith("Sun")
    parts = ("id", "request", "status", "seconds", "answer", "steps")
    after = watched(weather.client, "t")[-1]
    assert {part: after[part] for part in parts} == {part: before[part] for part in parts}


async def test_the_page_shows_of_a_run_what_the_command_line_prints(
    weather: ShopPage, shop: FakeAgents, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.broken.add("exchange_rate")
    events = await weather.events("the weather, and then the rate")
    show = output.Show(explain=True)
    for event in events:
        show.event(event)
    printed = capsys.readouterr().out
    run = weather.drawn(events)[-1]
    for step in run["steps"]:
        (call,) = step["calls"]
        for part in (
            f"{step['id']}  {step['text']}",
            f"Step {step['id']}: {step['status']}",
            *(f"{tool['tool']['id']}  {tool['why']}" for tool in step["picked"]),
            f"{call['tool']['id']} {json.dumps(json.loads(call['args']))}",
            f"-> {call['error'] or call['answer']}",
        ):
            assert part in printed
    assert [step["status"] for step in run["steps"]] == ["done", "failed"]
