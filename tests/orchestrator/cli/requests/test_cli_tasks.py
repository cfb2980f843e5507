"""``callsheet ask`` is stopped while a server works on its call as a task: the task is picked up, not paid again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commands import Cli
from forked import Forked
from servers import until
from task_server import TaskServer

pytestmark = pytest.mark.server
ORDERS = {"pay": ("Pay name: Ann", "--allow", "bank/pay"), "report": ("Report name: Ann",)}


class Bank:
    """The server ``bank``, asked from the command line.

    Args:
        folder: Where it stores its tasks.
        cli: The command line.
    """

    def __init__(self, folder: Path, cli: Cli) -> None:
        self.tasks = TaskServer(folder)
        self.tasks.start()
        self._cli = cli
        self._config = folder / "mcp.json"
        server = {"type": "http", "url": self.tasks.url, "callsheet": {"trusted": True}}
        self._config.write_text(json.dumps({"mcpServers": {"bank": server}}))
        cli("index", "--catalog", self._config, "--yes")

    def ask(self, *more: str) -> tuple[int, Any]:
        """In this process, without a terminal: exit status, and the JSON."""
        status, out, err = self._cli("ask", *more, "--catalog", self._config, "--json", "--yes")
        return status, json.loads(out) if out else err

    def open_calls(self) -> list[Any]:
        _, out, _ = self._cli("trust", "--catalog", self._config, "--json", "--yes")
        found: list[Any] = json.loads(out)["open_calls"]
        return found

    def stopped(self, tool: str, number: signal.Signals) -> tuple[int, str]:
        """A run in another process that gets a signal while its task is working: exit status, and standard error."""
        command = ["-m", "callsheet", "ask", *ORDERS[tool], "--catalog", str(self._config), "--json", "--yes"]
        process = Forked(command, env={**os.environ}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert until(lambda: self.tasks.count(f"tasks/get {tool} Ann") > 1 or process.poll() is not None)
        process.send_signal(number)
        err = process.communicate()[1]
        return process.wait(), err


@pytest.fixture
def bank(tmp_path: Path, cli: Cli) -> Iterator[Bank]:
    made = Bank(tmp_path, cli)
    yield made
    made.tasks.kill()


@pytest.mark.parametrize("tool", ORDERS)
def test_a_killed_run_that_is_resumed_picks_its_task_up_and_calls_nothing_twice(bank: Bank, tool: str) -> None:
    assert bank.stopped(tool, signal.SIGKILL)[0] == -9
    assert [one["tool"] for one in bank.open_calls()] == (["pay"] if tool == "pay" else [])
    bank.tasks.release()
    status, said = bank.ask("--resume")
    (step,) = said["steps"]
    assert (status, step["status"], bank.tasks.count(f"call {tool} Ann")) == (0, "done", 1), step["error"]
    assert f"{tool} Ann" in said["answer"]
    assert bank.open_calls() == []


def test_another_run_with_the_same_call_gets_the_result_of_the_open_task_once(bank: Bank) -> None:
    bank.stopped("pay", signal.SIGKILL)
    bank.tasks.release()
    status, said = bank.ask(*ORDERS["pay"])
    assert (status, bank.tasks.count("effect pay Ann")) == (0, 1)
    assert "the result of an earlier call like this one" in said["answer"]
    assert bank.open_calls() == []
    bank.ask(*ORDERS["pay"])  # now it is a new call
    assert bank.tasks.count("effect pay Ann") == 2


def test_a_task_of_a_killed_run_that_its_server_has_forgotten_is_asked_about(bank: Bank) -> None:
    bank.stopped("pay", signal.SIGKILL)
    for file in bank.tasks.folder.glob("task-*.json"):
        file.unlink()
    status, said = bank.ask("--resume")
    (step,) = said["steps"]
    assert (status, step["status"], bank.tasks.count("effect pay Ann")) == (1, "outcome_unknown", 1)
    assert "Task not found" in step["error"]


def test_ctrl_c_cancels_the_task_and_the_resumed_run_is_told_so(bank: Bank) -> None:
    status, err = bank.stopped("pay", signal.SIGINT)
    assert (status, bank.tasks.count("tasks/cancel pay Ann")) == (130, 1)
    assert "The server is asked about its task" in err
    _, said = bank.ask("--resume")
    (step,) = said["steps"]
    assert (step["status"], bank.tasks.count("effect pay Ann")) == ("failed", 1)
    assert "its task was cancelled" in step["error"]
    assert bank.open_calls() == []
