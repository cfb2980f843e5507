"""What a person reads at the terminal: nothing empty, nothing left out, numbers and their words in the right form."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from callsheet.graphs import counted
from callsheet.orchestrator.cli.output import run_output

command_line = import_module("callsheet.orchestrator.cli.main")  # the package has a function of that name
CATALOG = Path(__file__).parents[4] / "examples" / "eval" / "catalog"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))

    def done(*words: str) -> tuple[str, str]:
        with pytest.raises(SystemExit):
            command_line.main(words)
        return capsys.readouterr()

    return done


def test_every_row_of_retrieve_has_a_tool_and_the_other_agents_are_named_once(run: Any) -> None:
    out, _ = run("retrieve", "will it rain tomorrow", "--catalog", str(CATALOG), "--tools", "2")
    header, *rows, last = out.splitlines()
    assert header.split() == ["agent", "score", "tool"]
    assert [row.split()[-1] for row in rows] == ["weather/forecast", "weather/current_weather"]
    assert last.startswith("without a tool among these: calendar (")
    assert [name in last for name in ("mail (", "files (", "weather")] == [True, True, False]


def test_an_empty_catalog_is_no_table(run: Any, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {}}')
    out, _ = run("retrieve", "will it rain tomorrow", "--catalog", str(config))
    assert out == "Nothing in the catalog fits.\n"


def test_every_tool_that_a_worker_gets_is_named_among_the_picked(capsys: pytest.CaptureFixture[str]) -> None:
    tools = [{"id": f"a/t{n}"} for n in range(4)]
    agents = [{"id": "a", "tools": tools}, *({"id": name, "tools": [{"id": f"{name}/t"}]} for name in "bcd")]
    why = {tool["id"]: "score 1" for agent in agents for tool in agent["tools"]}  # type: ignore[index]
    event = {"event": "picked", "step_id": "1", "attempt": 1, "why": why}
    run_output.Show().event({**event, "selection": {"verdict": "found", "agents": agents}})
    out = capsys.readouterr().out
    assert all(tool in out for tool in why)
    assert out.splitlines()[-1] == "  and a/t2, a/t3, d/t"


def test_one_is_not_many(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"name": "a", "tools": [{"name": "t", "inputSchema": {}}]}))
    assert run("index", "--catalog", str(folder))[0].startswith("1 agent, 1 tool, 0 dependencies, 0 inferred: ")
    assert run("check", "--catalog", str(folder))[0].splitlines()[-1].startswith("1 agent, 1 tool: ")
    _, err = run("export", "--format", "json", "-o", str(tmp_path / "x.json"), "--catalog", str(folder))
    assert err.startswith("1 agent, 1 tool in ")
    forms = counted(0, "tool"), counted(1, "query", "queries"), counted(2000, "query", "queries")
    assert forms == ("0 tools", "1 query", "2,000 queries")


@pytest.mark.parametrize("how", [KeyboardInterrupt, click.Abort])
def test_an_interrupt_ends_its_line_first(monkeypatch: pytest.MonkeyPatch, run: Any, how: type[BaseException]) -> None:
    @click.command()
    def hangs() -> None:
        error = how()
        error.add_note("continue with: this")
        raise error

    monkeypatch.setattr(command_line, "callsheet", hangs)
    assert run()[1] == "\ninterrupted\ncontinue with: this\n"
