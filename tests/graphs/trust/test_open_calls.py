"""The open calls of a user: found by what is called, kept without its arguments, lost by no other process."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import CallLedger, OpenCall, TrustError, UnknownNameError
from callsheet.graphs.trust import open_calls

PAY, DIGEST = "bank/pay", "a" * 64


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def ledger() -> CallLedger:
    return CallLedger("/a/mcp.json")


def left(ledger: CallLedger, state: Any = "stopped", *, digest: str = DIGEST) -> OpenCall:
    """A call of a run that has ended."""
    entry, is_new = ledger.begin(PAY, digest, "first", "run-1")
    assert is_new
    ledger.leave_open(entry.id, state)
    return entry


def found(ledger: CallLedger, digest: str = DIGEST) -> str | None:
    earlier = ledger.earlier(digest, "second")
    return earlier.id if earlier else None


@pytest.mark.parametrize("state", ["stopped", "unanswered"])
def test_an_open_call_is_found_by_the_same_call_and_by_no_other(ledger: CallLedger, state: Any) -> None:
    entry = left(ledger, state)
    assert found(ledger) == entry.id
    assert ledger.begin(PAY, DIGEST, "second", "run-2")[0].id == entry.id
    assert ledger.earlier(DIGEST, "first") is None, "a run that is resumed knows its own call"
    others = (CallLedger("/b/mcp.json"), CallLedger("/a/mcp.json", "anna"), CallLedger("/a/mcp.json", None))
    assert [found(other) for other in others] == [None] * 3
    assert found(ledger, "b" * 64) is None


@pytest.mark.parametrize("before", ["/a/mcp.json", "/a/mcp.json\n/b/skills", "/c/api.yaml\n/a/mcp.json"])
@pytest.mark.parametrize("after", ["/a/mcp.json", "/b/skills\n/a/mcp.json"])
def test_an_open_call_is_found_over_each_catalog_with_a_source_in_common(before: str, after: str) -> None:
    entry = left(CallLedger(before))
    again = CallLedger(after)
    assert found(again) == entry.id
    assert found(CallLedger("/d/mcp.json")) is found(CallLedger("")) is None
    again.settle(entry.id, "not-done")
    assert again.begin(PAY, DIGEST, "second", "run-2")[1]
    assert [one.call for one in CallLedger(before).entries()] == ["second"]


def test_catalogs_in_one_file_lose_no_entries_of_each_other(ledger: CallLedger) -> None:
    entry, other = left(ledger), left(CallLedger("/b/mcp.json"))
    ledger.end(entry.id)
    assert (ledger.entries(), found(CallLedger("/b/mcp.json"))) == ((), other.id)


def test_a_call_under_way_is_open_once_its_process_is_gone(ledger: CallLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, _ = ledger.begin(PAY, DIGEST, "first", "run-1")
    assert (found(ledger), ledger.unsettled()) == (None, [])
    with monkeypatch.context() as elsewhere:  # where nobody can tell whether it runs
        elsewhere.setattr("callsheet.graphs.process_identity.machine", lambda: "another")
        assert found(ledger) == entry.id
        assert "cannot be looked at from here" in entry.told
    monkeypatch.setattr("callsheet.graphs.process_identity.born", lambda process: "later")
    assert found(ledger) == entry.id
    (unsettled,) = ledger.unsettled()
    assert unsettled.told.startswith("was running when run-1 stopped (sent 20")


def test_a_call_with_a_known_outcome_is_no_longer_open(ledger: CallLedger) -> None:
    ledger.end(left(ledger).id)
    assert ledger.entries() == ()


def test_a_call_settled_as_done_is_reported_once(ledger: CallLedger) -> None:
    entry = left(ledger)
    ledger.settle(entry.id, "done")
    assert (found(ledger), ledger.unsettled()) == (entry.id, [])
    assert ledger.verdict(entry.id, "second") == "done"
    assert (found(ledger), ledger.verdict(entry.id, "second")) == (None, None)


def test_a_call_settled_as_not_done_is_sent_again(ledger: CallLedger) -> None:
    entry = left(ledger)
    assert ledger.settle(entry.id, "not-done").tool_id == PAY
    new, is_new = ledger.begin(PAY, DIGEST, "second", "run-2")
    assert (is_new, [one.id for one in ledger.entries()]) == (True, [new.id])


def test_a_verdict_is_kept_for_a_day(ledger: CallLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = left(ledger)
    monkeypatch.setattr(open_calls, "_now", lambda: (datetime.now(UTC) - timedelta(hours=25)).isoformat())
    ledger.settle(entry.id, "done")
    assert ledger.begin(PAY, DIGEST, "second", "run-2")[1]


def test_only_an_open_call_can_be_settled(ledger: CallLedger) -> None:
    entry = left(ledger)
    running, _ = ledger.begin(PAY, "b" * 64, "second", "run-2")
    for name in ("ffffffff", "", running.id):
        with pytest.raises(UnknownNameError, match=rf"the open calls are: {entry.id} \(bank/pay\)$"):
            ledger.settle(name, "done")


def test_the_command_names_the_catalog_for_the_user_of_this_machine_only() -> None:
    assert CallLedger("/a b/x.json").how_to_settle("1").endswith("settle 1 done --catalog '/a b/x.json'` (or not-done)")
    assert CallLedger("/a b/x.json", "anna").how_to_settle("1") == "`callsheet trust settle 1 done` (or not-done)"
    assert 'CallLedger("", None).settle("1"' in CallLedger("", None).how_to_settle("1")


@pytest.mark.parametrize("content", ["{", "[]", '{"callsheet_calls": 2, "calls": []}'])
def test_a_damaged_file_records_nothing_and_is_not_overwritten(ledger: CallLedger, content: str) -> None:
    ledger.file.replace(content.encode())
    for use in (ledger.unsettled, lambda: ledger.begin(PAY, DIGEST, "first", "run-1"), lambda: ledger.end("1")):
        with pytest.raises(TrustError):
            use()
    assert ledger.file.text() == content


def test_the_file_of_open_calls_is_readable_by_its_owner_only(ledger: CallLedger, own_home: Path) -> None:
    left(ledger)
    (file,) = own_home.rglob("calls/*.json")
    assert file.stat().st_mode & 0o777 == 0o600


PROGRAM = """
from callsheet.graphs import CallLedger
for number in range(20):
    CallLedger("/a/mcp.json").begin("bank/pay", f"theirs {number}", f"theirs {number}", "run-2")
"""


def test_threads_and_processes_lose_no_entry(ledger: CallLedger) -> None:
    other = subprocess.Popen([sys.executable, "-c", PROGRAM])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: CallLedger("/a/mcp.json").begin(PAY, f"ours {n}", f"ours {n}", "run-1"), range(20)))
    assert other.wait(60) == 0
    all_of_them = {f"{whose} {n}" for whose in ("ours", "theirs") for n in range(20)}
    assert {one.digest for one in ledger.entries()} == all_of_them


def test_replicas_share_the_open_calls(store: str, ledger: CallLedger, own_home: Path) -> None:
    entry = left(ledger)
    assert found(CallLedger("/a/mcp.json")) == entry.id
    assert str(ledger.file).startswith("store:calls/")
    assert not [*own_home.rglob("calls/*")]
