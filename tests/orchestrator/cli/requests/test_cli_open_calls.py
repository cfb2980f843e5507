"""A command is stopped when its payment has taken effect, and asked again: nothing is paid twice unseen."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from commands import Cli
from fleet import Fleet
from forked import Forked

PAY = "invoices/pay_invoice"
ORDER = ("Pay invoice 1001", "--allow", PAY)
CALL = ("call", PAY, "invoice=1001", "--approval", "never")
TOOL = {
    "name": "pay_invoice",
    "description": "Pay an invoice.",
    "inputSchema": {"type": "object", "properties": {"invoice": {"type": "integer"}}, "required": ["invoice"]},
}


class Invoices:
    """A server over stdio that pays invoices, asked from the command line."""

    def __init__(self, folder: Path, cli: Any) -> None:
        self._fleet, self._cli = Fleet(folder), cli
        self._environment = {**os.environ}
        self.answers(hangs=True)
        cli("index", "--catalog", self._fleet.config, "--yes")

    def answers(self, *, hangs: bool = False) -> None:
        """Whether calls get an answer from now on; their effect is there in any case."""
        self._fleet.serve("invoices", TOOL, says="paid", hangs=hangs)

    @property
    def paid(self) -> int:
        return len(self._fleet.calls("invoices"))

    def ask(self, *more: str) -> tuple[int, Any]:
        """In this process, without a terminal: exit status, and the JSON."""
        return self._answer("ask", *ORDER, *more)

    def _answer(self, *words: str) -> tuple[int, Any]:
        status, out, err = self._cli(*words, "--catalog", self._fleet.config, "--json", "--yes")
        return status, json.loads(out) if out else err

    def trust(self, *words: str) -> tuple[int, Any]:
        return self._answer("trust", *words)

    def call(self, *words: str) -> tuple[int, Any]:
        return self._answer("call", PAY, *words)

    def stopped(self, number: signal.Signals, *words: str) -> tuple[int, str]:
        """A command in another process that gets a signal once it has paid: exit status, and standard error."""
        command = ["-m", "callsheet", *words, "--catalog", str(self._fleet.config), "--json", "--yes"]
        process = Forked(command, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 120
        while not self.paid and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(number)
        err = process.communicate()[1]
        self.answers()
        return process.wait(), err


@pytest.fixture
def invoices(tmp_path: Path, cli: Cli) -> Invoices:
    return Invoices(tmp_path, cli)


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda one: one.name)
def test_what_was_paid_in_a_stopped_run_is_not_paid_again_unseen(invoices: Invoices, number: signal.Signals) -> None:
    ended, err = invoices.stopped(number, "ask", *ORDER)
    _, listed = invoices.trust()
    (entry,) = listed["open_calls"]
    assert (entry["agent"], entry["tool"], entry["run"][:4]) == ("invoices", "pay_invoice", "run-")
    settle = f"callsheet trust settle {entry['id']} done"
    assert (ended, settle in err) == ((-9, False) if number == signal.SIGKILL else (130, True)), err
    for more in ((), ("--approval", "never")):
        status, said = invoices.ask(*more)
        (step,) = said["steps"]
        assert (status, step["status"], invoices.paid) == (1, "outcome_unknown", 1)
        assert f"a call like this was running when {entry['run']} stopped" in step["error"]
        assert settle in step["error"]
    if number == signal.SIGINT:
        status, told = invoices.trust("settle", "ffffffff", "done")
        assert (status, entry["id"] in told) == (2, True)
    verdict = "done" if number == signal.SIGTERM else "not-done"
    status, listed = invoices.trust("settle", entry["id"], verdict)
    assert (status, listed["open_calls"]) == (0, [])
    status, said = invoices.ask()
    assert (status, invoices.paid) == (0, 1 if verdict == "done" else 2)
    assert ("A person says that this call took effect" in said["answer"]) == (verdict == "done")


@pytest.mark.server
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
def test_a_single_call_that_is_stopped_is_named_and_not_made_again(invoices: Invoices, number: signal.Signals) -> None:
    ended, err = invoices.stopped(number, *CALL)
    (entry,) = invoices.trust()[1]["open_calls"]
    assert (ended, f"callsheet trust settle {entry['id']} done" in err) == (130, True), err
    for amount in ("1001", "1001.0"):
        status, said = invoices.call(f"invoice={amount}", "--approval", "never")
        assert (status, said["status"], invoices.paid) == (1, "outcome_unknown", 1)


@pytest.mark.server
def test_one_more_catalog_does_not_hide_an_open_call(invoices: Invoices, tmp_path: Path) -> None:
    skill = tmp_path / "skills" / "greet" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: greet\ndescription: Greets.\n---\nSay hello.\n", encoding="utf-8")
    invoices.stopped(signal.SIGKILL, *CALL)
    status, said = invoices.ask("--catalog", str(skill.parent.parent))
    assert (status, said["steps"][0]["status"], invoices.paid) == (1, "outcome_unknown", 1)
