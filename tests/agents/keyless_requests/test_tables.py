"""What was once done wrongly without a model: a person's word is broken by no rule, and no answer is half an answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from request_judgement import Record, Verdict, judge, read_records
from request_runs import Demo

pytestmark = pytest.mark.server
RECORDS = read_records(Path(__file__).parent / "tables.jsonl")


@pytest.mark.parametrize("record", [pytest.param(record, id=record.id) for record in RECORDS])
def test_is_done_rightly_or_said_not_to_be(agents: Demo, record: Record) -> None:
    outcome = agents.ask(record.request)
    found = judge(record, outcome)
    why = "\n".join([found.why, outcome.answer, *outcome.steps])
    assert found.verdict in (Verdict.RIGHT, Verdict.HONEST), why
