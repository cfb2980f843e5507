"""The page in a real browser: what the models of a run used."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.graphs import Catalog
from chromium import Browser
from explored import explorer
from explored_page import saved
from kept_runs import USED, Kept

pytestmark = pytest.mark.server
TOTAL = "3 model calls, 6,000 input tokens (4,000 cached), 430 output tokens"


def test_the_usage_is_shown_in_total_by_role_and_by_step(show: Callable[..., Browser], catalog: Catalog) -> None:
    page = show(explorer(catalog, runs=Kept([USED])), "#/runs?id=t")
    page.wait("document.querySelector('.run-models tbody tr')")
    assert TOTAL in page.run("document.querySelector('.run-head .small').textContent")
    rows = page.run("[...document.querySelectorAll('.run-models tr')].map((row) => row.innerText.split('\\t'))")
    assert rows[0] == ["role", "calls", "input tokens", "of them cached", "output tokens"]
    assert [row[:2] for row in rows[1:]] == [["planner", "1"], ["worker", "2"]]
    assert "5,540 tokens" in page.run("document.querySelector('.steps summary').textContent")
    assert TOTAL in saved(page, "HTML page")
    assert page.complaints == []
