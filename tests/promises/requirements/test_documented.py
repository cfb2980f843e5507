"""Each of the twelve requirements has a test named after it, and its line in the documentation names that test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/.]+)`")


def test_every_requirement_is_tested_and_says_where() -> None:
    rows = ROW.findall((ROOT / "docs" / "concepts" / "security.md").read_text(encoding="utf-8"))
    assert [int(number) for number, _, _ in rows] == list(range(1, 13))
    for number, requirement, tests in rows:
        named = TEST.findall(tests)
        assert any(f"/test_{int(number):02}_" in name for name in named), requirement
        assert all((ROOT / name).exists() for name in named), named
        first = (ROOT / named[0]).read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith(f'"""Requirement {number}'), named
