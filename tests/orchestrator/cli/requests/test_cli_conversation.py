"""Conversations, planning modes and questions of a planner on the command line."""

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

from callsheet.agents.models.chat_models import chat_model
from callsheet.orchestrator.cli import ask as ask_command
from callsheet.orchestrator.cli.ask import RunResult
from callsheet.orchestrator.run.threads import Threads
from commands import run
from deciding_model import DecidingModel

CLOCK = '''
"""Tools for the tests."""
from langchain_core.tools import tool

@tool
def tell_time(city: str) -> str:
    """Tells what time it is in a city."""
    return f"noon in {city}"

tell_time.metadata = {"callsheet/approval": "never"}
clock = {"clock": [tell_time]}
'''
Ask = Callable[..., tuple[int, str, str]]


def plan(text: str) -> dict[str, Any]:
    if found := re.search(r"The user answered: (\w+)", text):
        return {"steps": [{"id": "1", "text": f"time in {found[1]}"}]}
    return {"ask": {"question": "Which city?", "choices": ["Oslo", "Rome"]}}


def work(text: str) -> Any:
    return "tell_time", {"city": text.partition("\n")[0].rstrip("?").split()[-1]}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[DecidingModel]:
    model = DecidingModel(plan=plan, work=work, condense=lambda _: "What time is it in Rome?", answer=lambda _: "noon")
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: model)
    chat_model.cache_clear()
    yield model
    chat_model.cache_clear()


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Ask:
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


ASKING = ("What time is it there?", "--model", "fake:model", "--planning", "once")


@pytest.mark.usefixtures("model")
def test_a_completed_request_is_printed(ask: Ask) -> None:
    assert "Request" not in ask("What time is it in Oslo?", "--model", "fake:model")[1]
    status, out, _ = ask("And in Rome?", "--model", "fake:model")
    assert (status, "Request\n  What time is it in Rome?" in out) == (0, True)


def test_usage_and_revisions_are_reported(ask: Ask, model: DecidingModel) -> None:
    status, out, _ = ask("What time is it in Oslo?", "--model", "fake:model", "--json")
    said = json.loads(out)
    assert (status, said["answer"], said["revisions"]) == (0, "noon in Oslo", [])
    assert (said["usage"]["calls"], said["usage"]["input_tokens"]) == (2, 200)
    assert said["usage"]["by_role"]["worker"]["calls"] == 2
    _, out, _ = ask("And in Rome?", "--model", "fake:model")
    assert "Usage: 3 model calls, 300 input tokens" in out


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


def test_ctrl_c_at_a_question_keeps_it_for_later(ask: Ask, model: DecidingModel, terminal: Callable[..., None]) -> None:
    terminal(None)
    status, _, err = ask(*ASKING)
    assert status == 130
    assert "--resume --thread t" in err
    assert "--planning once" in err
    terminal("1")
    status, out, _ = ask("--resume", "--model", "fake:model", "--planning", "once")
    assert (status, "noon in Oslo" in out) == (0, True)


@pytest.mark.parametrize(
    ("planning", "roles"), [("auto", ["worker"] * 2), ("none", ["worker"] * 2), ("adaptive", ["planner"])]
)
def test_the_planning_mode_is_an_option(ask: Ask, model: DecidingModel, planning: str, roles: list[str]) -> None:
    ask("What time is it in Oslo?", "--model", "fake:model", "--planning", planning)
    assert model.roles() == roles
    assert ask("What time is it in Oslo?", "--planning", "often")[0] == 2


def test_all_rounds_of_a_request_share_one_loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The connections of a chat model belong to the loop of its first call."""
    loops: list[Any] = []

    async def run(*given: Any) -> RunResult:
        loops.append(asyncio.get_running_loop())
        waiting = (Interrupt({"type": "question", "question": "Which one?", "choices": []}, id="1"),)
        return RunResult({}, waiting if len(loops) == 1 else (), {}, {})

    monkeypatch.setattr(ask_command, "run", run)
    monkeypatch.setattr(ask_command, "leave_inputs", lambda waiting: {found.id: "" for found in waiting})
    ask_command._answered(None, Threads(tmp_path), "1", {}, None, "never")
    assert len(loops) == 2
    assert loops[0] is loops[1]
