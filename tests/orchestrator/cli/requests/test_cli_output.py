"""What a person reads at the terminal; conversations, planning modes and questions of a planner."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from langgraph.types import Interrupt

from callsheet.agents.approval.questions import input_question
from callsheet.agents.models.chat_models import chat_model
from callsheet.orchestrator.cli import ask as ask_command, main as command_line, output
from callsheet.orchestrator.cli.ask import RunResult
from callsheet.orchestrator.run.threads import Threads
from commands import Cli, run
from deciding_model import DecidingModel

HIDDEN = "\x1b[2J"
CATALOG = Path(__file__).parents[4] / "examples" / "eval" / "catalog"


def test_every_row_of_retrieve_has_a_tool_and_the_other_agents_are_named_once(cli: Cli) -> None:
    given = ("retrieve", "will it rain tomorrow", "--catalog", str(CATALOG), "--tools", "2")
    header, *rows, doubt = cli(*given)[1].splitlines()
    assert header.split() == ["agent", "score", "tool"]
    assert [row.split()[-1] for row in rows] == ["weather/forecast", "weather/current_weather"]
    assert doubt.startswith("It is not sure that one of these fits: 0.")
    last = cli(*given, "-k", "5")[1].splitlines()[-1]
    assert last.startswith("without a tool among these: calendar (")
    assert [name in last for name in ("mail (", "files (", "weather")] == [True, True, False]


def test_retrieve_says_what_orders_agents_whose_scores_have_another_order(cli: Cli) -> None:
    told = cli("retrieve", "read the file notes.txt and send it by mail to Ann", "--catalog", str(CATALOG))[1]
    assert re.findall(r"(?m)^(files|mail|weather) ", told) == ["files", "mail", "weather"]
    assert "Order: how likely a part of the request needs the agent; the score compares with the whole" in told
    assert "Order: " not in cli("retrieve", "will it rain tomorrow", "--catalog", str(CATALOG))[1]


@pytest.mark.parametrize("explain", [False, True])
def test_the_picks_in_use_are_printed_and_with_explain_all(capsys: pytest.CaptureFixture[str], explain: bool) -> None:
    why = {f"a/t{n}": f"score {n}" for n in range(3)}
    shown = output.Show(explain=explain)
    tools = [{"id": tool, "score": 0.5, "via": [tool]} for tool in why]
    agents = [{"id": "a", "score": 0.5, "tools": tools}]
    selection = {"query": "q", "verdict": "found", "agents": agents, "why": dict(why)}
    shown.event({"event": "picked", "step_id": "1", "why": why, "selection": selection})
    for number in (1, 2):
        shown.event({"event": "tool_started", "step_id": "1", "call_id": str(number), "tool": "a/t1"})
    used, everything = ["Step 1: picked a/t1  score 1"], [f"  {tool}  {reason}" for tool, reason in why.items()]
    assert capsys.readouterr().out.splitlines() == (["Step 1: picked", *everything] if explain else used)


def test_the_picks_of_all_steps_of_a_worker_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = output.Show()
    for step, tool in (("1", "a/read"), ("2", "a/write")):
        selection = {"query": "q", "verdict": "found", "agents": [], "why": {tool: f"for step {step}"}}
        shown.event({"event": "picked", "step_id": step, "why": selection["why"], "selection": selection})
    for tool in ("a/read", "a/write", "a/write"):
        shown.event({"event": "tool_started", "step_id": "1", "call_id": tool, "tool": tool})
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["Step 1: picked a/read  for step 1", "Step 2: picked a/write  for step 2"]


@pytest.mark.parametrize("note", ["", "no tool was called"])
def test_a_step_that_is_done_without_a_call_says_so(capsys: pytest.CaptureFixture[str], note: str) -> None:
    result = {"id": "1", "text": "", "status": "done", "calls": [], "error": "", "note": note}
    output.Show().event({"event": "step", "step_id": "1", "result": result})
    assert capsys.readouterr().out == f"Step 1: done{note and f', {note}'}\n"


def test_a_step_that_is_partly_done_says_what_was_not(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"id": "1", "text": "", "status": "partly", "calls": [], "error": "nothing is known of Rome", "note": ""}
    show = output.Show()
    show.event({"event": "step", "step_id": "1", "result": result})
    show.answer("Paris has 2 million people.", 1)
    assert capsys.readouterr().out.splitlines()[:2] == ["Step 1: partly", "  Step 1: nothing is known of Rome"]


def test_a_reason_is_printed_once_with_the_answer_that_gives_it_or_before_what_follows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ended(show: output.Show, step: str) -> None:
        result = {
            "id": step,
            "text": "",
            "status": "failed",
            "calls": [],
            "error": f"the  shop {step} is shut",
            "note": "",
        }
        show.event({"event": "step", "step_id": step, "result": result})

    show = output.Show()
    for step in ("1", "2"):
        ended(show, step)
    show.event({"event": "usage", "calls": 0})
    show.answer("Failed: buy milk: the shop 1 is shut", 1)
    assert capsys.readouterr().out.splitlines() == [
        "Step 1: failed",
        "Step 2: failed",
        "  Step 2: the shop 2 is shut",
        "Answer (1.0 s)",
        "Failed: buy milk: the shop 1 is shut",
    ]
    ended(show, "3")
    revision = {"event": "revision", "refused": False, "reason": "", "added": [], "changed": [], "dropped": []}
    show.event({**revision, "texts": {}})
    assert capsys.readouterr().out.splitlines() == ["Step 3: failed", "  Step 3: the shop 3 is shut", "Plan revised"]


def test_a_question_that_waits_names_its_values_and_the_command_is_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    form = {"type": "object", "properties": {"size": {"type": "string"}, "text": {"type": "string"}}}
    asked = input_question("1", "shop/order", form, "the server of 'shop' asks: Which size?", server="shop")
    again = f"callsheet ask --resume --catalog {'folder/' * 20}mcp.json"
    output.Show().waiting([Interrupt(asked, id="1")], again)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Waiting for you",
        "  Step 1: the server of 'shop' asks: Which size?",
        "    values: size, text",
        f"Continue in a terminal with: {again}",
    ]


def test_a_refusal_without_a_model_is_printed_once(cli: Cli) -> None:
    status, told, _ = cli("ask", "forecast for nowhere at all", "--catalog", str(CATALOG), "--approval", "never")
    assert status == 1
    assert told.count("was not called") == 1


def test_a_refused_request_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    output.Show().event({"event": "plan", "steps": [], "note": "no tool fits"})
    assert capsys.readouterr().out == ""


def test_an_internal_error_does_not_end_with_the_status_of_a_negative_answer(
    monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    @click.command()
    def breaks() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(command_line, "callsheet", breaks)
    status, _, err = cli()
    assert (status, err.splitlines()[-1]) == (70, "ZeroDivisionError")


@pytest.mark.parametrize("servers", [{}, {"time": {"command": "uvx", "disabled": True}}])
def test_a_catalog_without_anything_says_so(servers: object, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    status, _, err = cli("retrieve", "time", "--catalog", tmp_path / "mcp.json")
    assert status == 1
    assert "mcp.json: it is empty, or everything in it is disabled" in err


def test_texts_of_documents_send_no_orders_to_the_terminal(tmp_path: Path, cli: Cli) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text(f"Every employee has 25 days{HIDDEN} of paid leave a year.\n")
    (folder / f"broken{HIDDEN}.pdf").write_bytes(b"no PDF")
    status, out, err = cli("documents", "ask", folder, "How many days of paid leave are there a year?")
    assert status == 0
    assert "25 days" in out
    assert "left out: broken" in err
    assert "\x1b" not in out + err


def test_calls_and_errors_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    calls = [{"agent": "a", "tool": "a/x", "args": {}, "seconds": 0.1, "error": "disk is full", "output": ""}]
    first = {"id": "1", "text": "", "status": "failed", "error": "a/x failed: disk is full", "calls": calls}
    again = {"agent": "b", "tool": "b/y", "args": {}, "seconds": 0.1, "error": "", "output": "saved elsewhere"}
    shown = output.Show()
    for result in (first, {**first, "status": "done", "error": "", "calls": [*calls, again]}):
        shown.event({"event": "step", "step_id": "1", "result": result})
    out = capsys.readouterr().out
    assert out.count("disk is full") == 1
    assert out.count("saved elsewhere") == 1


CLOCK = '''
"""Tools for the tests."""
from langchain_core.tools import tool

@tool
def tell_time(city: str) -> str:
    """Tells what time it is in a city."""
    return f"noon in {city}"

tell_time.metadata = {"callsheet/approval": "never"}
clock = {"clock": [tell_time]}

@tool
def send_mail(text: str) -> str:
    """Sends a text by mail."""
    return "sent"

mail = {"mail": [send_mail]}
'''
Ask = Callable[..., tuple[int, str, str]]


def plan(text: str) -> dict[str, Any]:
    if found := re.search(r"The user answered: (\w+)", text):
        return {"steps": [{"id": "1", "text": f"time in {found[1]}"}]}
    return {"ask": {"question": "Which city?", "choices": ["Oslo", "Rome"]}}


def work(text: str) -> Any:
    answered = re.search(r"The user answered: (\w+)", text)
    city = answered[1] if answered else text.partition("\n")[0].rstrip("?").split()[-1]
    return "tell_time", {"city": city}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[DecidingModel]:
    model = DecidingModel(plan=plan, work=work, answer=lambda _: "noon")
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: model)
    chat_model.cache_clear()
    yield model
    chat_model.cache_clear()


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    (tmp_path / "clock_of_the_tests.py").write_text(CLOCK)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "clock_of_the_tests", raising=False)
    return lambda *words: run(capsys, "ask", *words, "--catalog", "clock_of_the_tests:clock", "--thread", "t")


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A person who types these lines; None is Ctrl-C."""

    def typing(*lines: str | None) -> None:
        typed = iter(lines)

        def prompt(*_: Any, **__: Any) -> str:
            if (line := next(typed)) is None:
                raise click.Abort
            return line

        monkeypatch.setattr(click, "prompt", prompt)
        monkeypatch.setattr(ask_command, "has_terminal", lambda: True)

    return typing


MAIL = ("--catalog", "clock_of_the_tests:mail")
"""Another agent: a request over a single small one is not planned."""
ASKING = ("What time is it there?", "--model", "fake:model", *MAIL)


def test_usage_and_revisions_are_reported(ask: Ask, model: DecidingModel) -> None:
    status, out, _ = ask("What time is it in Oslo?", "--model", "fake:model", "--json")
    said = json.loads(out)
    assert (status, said["answer"], said["revisions"]) == (0, "noon in Oslo", [])
    assert (said["usage"]["calls"], said["usage"]["input_tokens"]) == (2, 200)
    assert said["usage"]["by_role"]["worker"]["calls"] == 2
    _, out, _ = ask("And in Rome?", "--model", "fake:model")
    assert "Usage: 2 model calls, 200 input tokens" in out


@pytest.mark.parametrize(("typed", "city"), [("2", "Rome"), ("Oslo", "Oslo"), ("Lima", "Lima")])
def test_a_question_of_the_planner_is_answered_at_a_terminal(
    ask: Ask, model: DecidingModel, terminal: Callable[..., None], typed: str, city: str
) -> None:
    terminal(typed)
    status, out, err = ask(*ASKING)
    assert (status, f"noon in {city}" in out) == (0, True)
    assert "Which city?\n  1  Oslo\n  2  Rome" in err


@pytest.mark.parametrize(("typed", "options"), [([""], []), ([], []), ([], ["--json"]), (["1"], ["--json"])])
def test_a_question_that_is_not_answered_leaves_the_request_undone(
    ask: Ask, model: DecidingModel, terminal: Callable[..., None], typed: list[str], options: list[str]
) -> None:
    if typed:
        terminal(*typed)
    status, out, _ = ask(*ASKING, *options)
    said = json.loads(out)["answer"] if options else out
    assert (status, model.told("worker")) == (1, [])
    assert "a question was not answered: Which city? (Oslo, Rome)" in " ".join(said.split())


def test_ctrl_c_at_a_question_prints_the_command_that_goes_on(
    ask: Ask, model: DecidingModel, terminal: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(None)
    status, _, err = ask(*ASKING)
    assert status == 130
    again = err.partition("continue with: ")[2].partition("\n")[0]
    assert again.startswith("callsheet ask --resume --thread t --model fake:model --catalog ")
    terminal("1")
    status, out, _ = run(capsys, *again.split()[1:])
    assert (status, "noon in Oslo" in out) == (0, True)


@pytest.mark.parametrize(
    ("planning", "more", "roles"),
    [("auto", (), ["worker"] * 2), ("auto", MAIL, ["planner"]), ("none", MAIL, ["worker"] * 2)],
)
def test_the_planning_mode_is_an_option(
    ask: Ask, model: DecidingModel, planning: str, more: tuple[str, ...], roles: list[str]
) -> None:
    ask("What time is it in Oslo?", "--model", "fake:model", "--planning", planning, *more)
    assert model.roles() == roles
    assert ask("What time is it in Oslo?", "--planning", "often")[0] == 2


def test_all_rounds_of_a_request_share_one_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The connections of a chat model belong to the loop of its first call."""
    loops: list[Any] = []

    async def run(*given: Any) -> RunResult:
        loops.append(asyncio.get_running_loop())
        waiting = (Interrupt({"type": "question", "question": "Which one?", "choices": []}, id="1"),)
        return RunResult({}, waiting if len(loops) == 1 else ())

    monkeypatch.setattr(ask_command, "run_workflow", run)
    monkeypatch.setattr(ask_command, "leave_inputs", lambda waiting: {found.id: "" for found in waiting})
    ask_command._answered(None, Threads(tmp_path), "1", {}, None, "never")
    assert len(loops) == 2
    assert loops[0] is loops[1]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        ({"tool": "studio/render", "progress": 3.0, "total": 10.0, "text": "part 3"}, "studio/render: 3 of 10: part 3"),
        ({"tool": "studio/render", "progress": 0.5, "total": None, "text": ""}, "studio/render: 0.5"),
        ({"agent": "remote", "state": "working", "text": "looking it up"}, "remote: looking it up"),
    ],
)
def test_the_progress_of_a_call_is_one_line(event: Any, line: str) -> None:
    assert output.progress_line(event) == f"Working: {line}"
