"""``callsheet forget``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Outcomes

CATALOG = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t"), Tool(agent="a", name="u"))),))
NOTHING = "forgot 0 tools and 0 observed dependencies\n"


@pytest.fixture(autouse=True)
def learned(own_home: Path) -> None:
    OutcomeLog().add({"a/t": Outcomes(done=1), "a/u": Outcomes(failed=1)}, CATALOG)
    ObservationLog().add({("a/t", "a/u", "x"): 1, ("a/t", "b/v", "x"): 1})


def test_everything_or_what_matches_is_forgotten(cli: Any) -> None:
    assert cli("forget", "a/u")[1] == "forgot 1 tool and 1 observed dependency\n"
    assert list(OutcomeLog().of(CATALOG)) == ["a/t"]
    assert json.loads(cli("forget", "--json")[1]) == {"tools": 1, "dependencies": 1}
    assert (OutcomeLog().read(), ObservationLog().read()) == ({}, {})
    assert cli("forget")[0] == 0


def test_files_that_cannot_be_read_are_deleted_too(cli: Any, own_home: Path) -> None:
    for name in ("outcomes.json", "observed.json"):
        (own_home / name).write_text("{")
    assert cli("forget")[1] == NOTHING
    assert (OutcomeLog().read(), ObservationLog().read()) == ({}, {})


def test_a_pattern_without_a_match_is_a_negative_result(cli: Any) -> None:
    assert cli("forget", "none/*")[:2] == (1, NOTHING)
