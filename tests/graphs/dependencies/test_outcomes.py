"""How calls ended, counted by tool."""

from __future__ import annotations

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from callsheet.agents import Call
from callsheet.graphs import Agent, Catalog, CatalogError, Tool
from callsheet.graphs.dependencies import OutcomeLog, Outcomes, following, outcomes_of

CATALOG = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t"), Tool(agent="a", name="u"))),))
CHANGED = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t", description="New."),)),))


@pytest.fixture
def log(tmp_path: Path) -> OutcomeLog:
    return OutcomeLog(tmp_path / "outcomes.json")


def test_what_counts_as_what() -> None:
    ends = [
        Call(agent="a", tool="a/t", output="fine"),
        Call(agent="a", tool="a/t", error="the process ended", kind="crash", effect="unknown"),
        Call(agent="a", tool="a/t", error="too late", kind="timeout", effect="unknown"),
        Call(agent="a", tool="a/t", error="does not start", kind="start", effect="none"),
        Call(agent="a", tool="a/t", error="place is missing", effect="none"),
        Call(agent="a", tool="a/t", error="a person said no", kind="rejected", effect="none"),
        Call(agent="a", tool="a/t", error="no such tool any more", kind="refused", effect="none"),
        Call(agent="a", tool="a/t", output="a person answered in its place", effect="none"),
        Call(agent="a", tool="a/u", output="fine"),
        Call(agent="a", tool="a/u", output="The documents do not answer this."),
        Call(agent="a", tool="a/u", error="no such file", kind="tool"),
        Call(agent="a", tool="a/u", error="502 Bad Gateway", kind="tool", effect="unknown"),
        Call(agent="a", tool="a/u", error="sign in first", kind="sign_in", effect="none"),
    ]
    assert outcomes_of(ends) == {"a/t": Outcomes(done=1, failed=3, misused=1), "a/u": Outcomes(done=2)}


def test_counts_add_up_and_new_ones_count_more() -> None:
    assert Outcomes(1, 2, 3) + Outcomes(1, 0, 1) == Outcomes(2, 2, 4)
    assert Outcomes(100, 0, 1) + Outcomes(0, 1, 0) == Outcomes(50, 1, 1)
    assert Outcomes(1, 2, 500) + Outcomes(1, 0, 0) == Outcomes(2, 2, 500)


def test_they_are_kept_without_contents_and_privately(log: OutcomeLog) -> None:
    log.add({"a/t": Outcomes(done=1), "b/unknown": Outcomes(done=1)}, CATALOG)
    log.add({"a/t": Outcomes(failed=1)}, CATALOG, "ann@example.org")
    assert (log.of(CATALOG), log.of(CHANGED)) == ({"a/t": Outcomes(1, 1)}, {}), "a changed tool starts anew"
    assert "ann" not in log.file.text()
    document = json.loads(log.file.text())
    assert [len(row) for row in document["tools"]] == [6, 6]
    assert Path(str(log.file)).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("of_mallory", "mostly"),
    [
        (Outcomes(failed=20), Outcomes(failed=1)),
        (Outcomes(done=1, failed=2000), Outcomes(failed=1)),
        (Outcomes(done=500), Outcomes(done=1)),
        (Outcomes(done=3, failed=3, misused=9), Outcomes(done=1)),
        (Outcomes(misused=50), Outcomes()),
    ],
)
def test_a_user_counts_as_one_call(log: OutcomeLog, of_mallory: Outcomes, mostly: Outcomes) -> None:
    for _ in range(3):
        log.add({"a/t": of_mallory}, CATALOG, "mallory")
    for user in ("ann", "bob"):
        log.add({"a/t": Outcomes(done=2)}, CATALOG, user)
    assert log.of(CATALOG) == {"a/t": Outcomes(2 + mostly.done, mostly.failed)}


def test_many_at_once_lose_nothing(log: OutcomeLog) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: log.add({"a/t": Outcomes(done=1)}, CATALOG), range(40)))
    assert log.of(CATALOG) == {"a/t": Outcomes(done=40)}


def test_they_are_forgotten_by_pattern(log: OutcomeLog) -> None:
    assert (log.forget(), log.file.version()) == (0, None)
    log.add({"a/t": Outcomes(done=1), "a/u": Outcomes(done=1)}, CATALOG)
    assert (log.forget("a/t*"), log.of(CATALOG)) == (1, {"a/u": Outcomes(done=1)})
    assert (log.forget(), log.of(CATALOG)) == (1, {})


ROWS: list[object] = [["a/t", "x", "", 1, 1], ["a/t", "x", "", 1, 1, -1], ["a/t", "x", "", 1, "1", 1], "a/t"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"callsheet_outcomes": 2, "tools": []}', "[" * 9999]
    + [json.dumps({"callsheet_outcomes": 1, "tools": [row]}) for row in ROWS],
)
def test_another_file_in_its_place(log: OutcomeLog, text: str, caplog: pytest.LogCaptureFixture) -> None:
    log.file.replace(text.encode())
    with pytest.raises(CatalogError, match=r"outcomes\.json: not a file of tools .* remove it to start counting again"):
        log.add({"a/t": Outcomes(done=1)}, CATALOG)
    assert log.file.text() == text
    current = following(log, CATALOG)
    with caplog.at_level(logging.WARNING):
        assert [current(), current()] == [{}, {}]
    assert len(caplog.records) == 1


def test_a_follower_reads_changes(log: OutcomeLog) -> None:
    current = following(log, CATALOG)
    assert current() == {}
    log.add({"a/t": Outcomes(done=1)}, CATALOG)
    assert current() == {"a/t": Outcomes(done=1)}
    log.add({"a/t": Outcomes(failed=10)}, CATALOG)
    assert current() == {"a/t": Outcomes(1, 10)}
    log.file.remove()
    assert current() == {}
