"""``callsheet forget``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Outcomes
from callsheet.orchestrator.cli.main import callsheet

CATALOG = Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="t"), Tool(agent="a", name="u"))),))


@pytest.fixture(autouse=True)
def learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    OutcomeLog().add({"a/t": Outcomes(done=1), "a/u": Outcomes(failed=1)}, CATALOG)
    ObservationLog().add({("a/t", "a/u", "x"): 1, ("a/t", "b/v", "x"): 1})


def test_everything_or_what_matches_is_forgotten() -> None:
    run = CliRunner()
    assert run.invoke(callsheet, ["forget", "a/u"]).stdout == "forgot 1 tool and 1 observed dependency\n"
    assert list(OutcomeLog().of(CATALOG)) == ["a/t"]
    assert json.loads(run.invoke(callsheet, ["forget", "--json"]).stdout) == {"tools": 1, "dependencies": 1}
    assert (OutcomeLog().read(), ObservationLog().read()) == ({}, {})
    assert run.invoke(callsheet, ["forget"]).exit_code == 0


def test_files_that_cannot_be_read_are_deleted_too(tmp_path: Path) -> None:
    for name in ("outcomes.json", "observed.json"):
        (tmp_path / name).write_text("{")
    assert CliRunner().invoke(callsheet, ["forget"]).stdout == "forgot 0 tools and 0 observed dependencies\n"
    assert (OutcomeLog().read(), ObservationLog().read()) == ({}, {})


def test_a_pattern_without_a_match_is_a_negative_result() -> None:
    found = CliRunner().invoke(callsheet, ["forget", "none/*"], standalone_mode=False)
    assert (found.stdout, found.return_value) == ("forgot 0 tools and 0 observed dependencies\n", 1)
