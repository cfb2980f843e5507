"""Requests that whoever changes the mode without a model does not read: none may be unsafe or silently wrong.

A failure says which records and how many, no request. To see the counts by category, honest and right ones too:
``python tests/support/requests/request_runs.py tests/agents/no_model/requests/unseen.jsonl --counts``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from request_judgement import Verdict, judge, read_records
from request_runs import Demo

pytestmark = pytest.mark.server
HERE = Path(__file__).parent
RECORDS = read_records(HERE / "unseen.jsonl") + read_records(HERE / "no_effects.jsonl")


@pytest.mark.parametrize("category", list(dict.fromkeys(record.category for record in RECORDS)))
def test_nothing_is_unsafe_or_silently_wrong(agents: Demo, category: str) -> None:
    records = [record for record in RECORDS if record.category == category]
    found = [(record.id, judge(record, agents.ask(record.request, record.fixture))) for record in records]
    bad = [f"{name} {verdict}" for name, verdict in found if verdict in (Verdict.UNSAFE, Verdict.SILENT)]
    counted = f"{len(bad)} of {len(records)}: {bad}"
    assert not bad, counted
