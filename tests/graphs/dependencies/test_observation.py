"""What runs teach: which argument came from which result, and how calls ended, counted by tool."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents import Call
from callsheet.graphs import Agent, Catalog, CatalogError, DependencyKind, Tool, TrustError
from callsheet.graphs.dependencies import (
    ObservationLog,
    OutcomeLog,
    Outcomes,
    following,
    observed,
    observed_proposals,
    outcomes_of,
)


@dataclass(frozen=True)
class Made:
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)
    output: str = ""


FIND = Made("crm/find", {"name": "Ada"}, '{"id": "u-4711", "name": "Ada", "age": 36, "open": true}')


def test_an_argument_taken_from_an_earlier_result_is_observed() -> None:
    cases = [
        ({"user": "u-4711"}, {"user": 1}),
        ({"to": {"users": ["u-4711", "x"]}}, {"to.users": 1}),
        ({"a": "u-4711", "b": "u-4711"}, {"a": 1, "b": 1}),
        ({"user": "u-471"}, {}),  # a part of a longer word
        ({"name": "Ada"}, {}),  # the first call was given it
        ({"age": 36}, {}),  # too short to tell
        ({"open": True, "none": None, "empty": ""}, {}),
        ({"user": "u-9"}, {}),
        ({}, {}),
    ]
    for later, expected in cases:
        seen = observed([FIND, Made("mail/send", later)])
        assert seen == {("mail/send", "crm/find", parameter): count for parameter, count in expected.items()}


def test_a_value_that_the_user_wrote_is_not_counted_as_taken_from_a_result() -> None:
    calls = [FIND, Made("mail/send", {"user": "u-4711"})]
    assert not observed(calls, said="write to u-4711, please")
    assert observed(calls, said="write to u-47110, please")


def test_a_call_is_counted_once_per_parameter_however_many_values_it_took() -> None:
    ids = [f"u-{number}" for number in range(100, 606)]
    listed = Made("crm/list", {}, json.dumps(ids))
    send = Made("mail/send", {"users": ids, "cc": ids[:2]})
    once = {("mail/send", "crm/list", "users"): 1, ("mail/send", "crm/list", "cc"): 1}
    assert observed([listed, send]) == once
    assert observed([listed, send, send]) == dict.fromkeys(once, 2)


def test_every_source_of_the_values_of_one_list_is_counted() -> None:
    other = Made("hr/list", {}, '["h-101", "h-102"]')
    send = Made("mail/send", {"users": ["u-4711", "h-101", "h-102"]})
    assert observed([FIND, other, send]) == {("mail/send", source, "users"): 1 for source in ("crm/find", "hr/list")}


def test_the_latest_result_with_a_value_counts_but_not_a_call_that_was_given_it() -> None:
    again = Made("crm/show", {"id": "u-4711"}, "u-4711: Ada")
    send = Made("mail/send", {"user": "u-4711"})
    assert observed([send], before=[FIND, again]) == {("mail/send", "crm/find", "user"): 1}
    fetched, other = Made("disk/read", {"path": "a.txt"}, "u-4711"), Made("web/read", {"path": "b.txt"}, "u-4711")
    assert observed([send], before=[FIND, fetched, other, again]) == {("mail/send", "web/read", "user"): 1}
    assert observed([other, send], before=[fetched]) == {("mail/send", "web/read", "user"): 1}
    wrote = Made("disk/write", {"text": f"{'word ' * 200}u-4711"}, "wrote: u-4711")
    assert observed([FIND, wrote, send]) == {("mail/send", "crm/find", "user"): 1}
    assert observed([fetched, send, other]) == {("mail/send", "disk/read", "user"): 1}


def test_later_results_own_results_and_failed_calls_are_never_counted() -> None:
    send = Made("mail/send", {"user": "u-4711"})
    assert not observed([send, FIND])
    assert not observed([FIND, Made("crm/find", {"id": "u-4711"})]), "a tool is no source of its own"
    assert not observed([Made("crm/find", {"name": "Ada"}, ""), send]), "a failed call gives nothing"


def test_long_numbers_and_words_of_other_scripts_are_observed() -> None:
    calls = [Made("a/count", {}, "Summe: 12345 件 東京駅"), Made("b/use", {"n": 12345, "place": "東京駅", "f": 1234})]
    assert observed(calls) == {("b/use", "a/count", "n"): 1, ("b/use", "a/count", "place"): 1}


def test_the_observation_file_adds_up_counts_and_holds_no_values(tmp_path: Path) -> None:
    log = ObservationLog(tmp_path / "state" / "observed.json")
    assert log.read() == Counter()
    log.add({})
    assert log.file.version() is None
    seen = observed([FIND, Made("mail/send", {"user": "u-4711"})])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(log.add, [seen] * 12))
    assert log.read() == {("mail/send", "crm/find", "user"): 12}
    assert "u-4711" not in log.file.text()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(TrustError, match="cannot be written"):
        ObservationLog(tmp_path / "file" / "observed.json").add({("a/b", "c/d", "e"): 1})


def test_frequent_observations_are_proposed_with_more_confidence_and_missing_tools_are_skipped() -> None:
    schema = {"type": "object", "properties": {"user": {"type": "object"}, "cc": {}}, "required": ["user"]}
    catalog = Catalog(
        agents=(
            Agent(id="mail", tools=(Tool(agent="mail", name="send", input_schema=schema),)),
            Agent(id="crm", tools=(Tool(agent="crm", name="find"),)),
        )
    )
    found, gone = ("mail/send", "crm/find"), ("mail/send", "crm/gone")
    often, once = observed_proposals({(*found, "cc"): 1, (*found, "user.id"): 9, (*gone, "user"): 5}, catalog)
    assert (often.parameter, often.kind) == ("user.id", DependencyKind.PARAMETER_DIRECTLY)
    assert (often.confidence, often.count) == (0.9, 9)
    assert (once.kind, once.confidence) == (DependencyKind.PARAMETER_INDIRECTLY, 0.5)
    assert "9 times" in often.evidence
    assert "once" in once.evidence


CATALOG = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t"), Tool(agent="a", name="u"))),))
CHANGED = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t", description="New."),)),))


@pytest.fixture
def log(tmp_path: Path) -> OutcomeLog:
    return OutcomeLog(tmp_path / "outcomes.json")


def test_only_faults_of_the_tool_count_as_failed_calls() -> None:
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
    assert outcomes_of(ends) == {"a/t": Outcomes(done=1, failed=3), "a/u": Outcomes(done=2)}


def test_recent_outcomes_weigh_more_than_old_ones() -> None:
    assert Outcomes(1, 2) + Outcomes(1, 0) == Outcomes(2, 2)
    assert Outcomes(100, 0) + Outcomes(0, 1) == Outcomes(50, 1)


def test_the_outcome_file_is_private_and_holds_no_contents(log: OutcomeLog) -> None:
    log.add({"a/t": Outcomes(done=1), "b/unknown": Outcomes(done=1)}, CATALOG)
    log.add({"a/t": Outcomes(failed=1)}, CATALOG, "ann@example.org")
    assert (log.of(CATALOG), log.of(CHANGED)) == ({"a/t": Outcomes(1, 1)}, {}), "a changed tool starts anew"
    assert "ann" not in log.file.text()
    document = json.loads(log.file.text())
    assert [len(row) for row in document["tools"]] == [5, 5]
    assert Path(str(log.file)).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("of_mallory", "mostly"),
    [
        (Outcomes(failed=20), Outcomes(failed=1)),
        (Outcomes(done=1, failed=2000), Outcomes(failed=1)),
        (Outcomes(done=500), Outcomes(done=1)),
        (Outcomes(done=3, failed=3), Outcomes(done=1)),
    ],
)
def test_many_outcomes_of_one_user_count_as_one_call(log: OutcomeLog, of_mallory: Outcomes, mostly: Outcomes) -> None:
    for _ in range(3):
        log.add({"a/t": of_mallory}, CATALOG, "mallory")
    for user in ("ann", "bob"):
        log.add({"a/t": Outcomes(done=2)}, CATALOG, user)
    assert log.of(CATALOG) == {"a/t": Outcomes(2 + mostly.done, mostly.failed)}


def test_outcomes_added_at_the_same_time_are_all_counted(log: OutcomeLog) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: log.add({"a/t": Outcomes(done=1)}, CATALOG), range(40)))
    assert log.of(CATALOG) == {"a/t": Outcomes(done=40)}


def test_outcomes_are_forgotten_by_pattern(log: OutcomeLog) -> None:
    assert (log.forget(), log.file.version()) == (0, None)
    log.add({"a/t": Outcomes(done=1), "a/u": Outcomes(done=1)}, CATALOG)
    assert (log.forget("a/t*"), log.of(CATALOG)) == (1, {"a/u": Outcomes(done=1)})
    assert (log.forget(), log.of(CATALOG)) == (1, {})


ROWS: list[object] = [["a/t", "x", "", 1], ["a/t", "x", "", 1, -1], ["a/t", "x", "", 1, "1"], "a/t"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"callsheet_outcomes": 2, "tools": []}', "[" * 9999]
    + [json.dumps({"callsheet_outcomes": 1, "tools": [row]}) for row in ROWS],
)
def test_a_file_that_holds_no_outcomes_is_refused_and_not_overwritten(
    log: OutcomeLog, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.file.replace(text.encode())
    with pytest.raises(CatalogError, match=r"outcomes\.json: not a file of tools .* remove it to start counting again"):
        log.add({"a/t": Outcomes(done=1)}, CATALOG)
    assert log.file.text() == text
    current = following(log, CATALOG)
    with caplog.at_level(logging.WARNING):
        assert [current(), current()] == [{}, {}]
    assert len(caplog.records) == 1


def test_a_follower_reads_outcomes_that_were_added_or_removed_later(log: OutcomeLog) -> None:
    current = following(log, CATALOG)
    assert current() == {}
    log.add({"a/t": Outcomes(done=1)}, CATALOG)
    assert current() == {"a/t": Outcomes(done=1)}
    log.add({"a/t": Outcomes(failed=10)}, CATALOG)
    assert current() == {"a/t": Outcomes(1, 10)}
    log.file.remove()
    assert current() == {}
