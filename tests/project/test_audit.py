"""What the audit of dependencies says when there is something to say, and when there is nothing to say it from."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOOD: dict[str, Any] = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-2026-1", "fix_versions": ["3"]}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI"}


def told(report: str, trouble: str = "") -> tuple[str, int]:
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: tuple[str, int] = module.told(report, trouble)
    return found


@pytest.mark.parametrize(
    ("dependencies", "said", "status"),
    [
        ([GOOD], "1 of 1 pinned packages were audited", 0),
        ([GOOD, BAD], "VULNERABLE: b 2: PYSEC-2026-1, mended in 3", 1),
        ([SKIPPED], "0 of 1 pinned packages were audited\nNOT AUDITED: 1 packages, such as c: Dependency not found", 0),
        ([SKIPPED, BAD], "VULNERABLE", 1),
    ],
)
def test_the_audit_prints_its_findings_and_ends_with_their_status(
    dependencies: list[dict[str, Any]], said: str, status: int
) -> None:
    text, ended = told(json.dumps({"dependencies": dependencies}))
    assert said in text
    assert ended == status


@pytest.mark.parametrize("report", ["", "{}", "<html>"])
def test_a_missing_report_of_the_audit_is_named(report: str) -> None:
    assert told(report, "warning\nNo route to host\n") == (
        "NOT AUDITED: pip-audit gave no report: No route to host",
        0,
    )


def test_the_audit_is_a_part_of_ci() -> None:
    assert "make audit" in (ROOT / ".ci" / "run").read_text()
    assert "NOT AUDITED" in (ROOT / "SECURITY.md").read_text()
