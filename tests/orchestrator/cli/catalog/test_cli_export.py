"""``callsheet export``: the document itself, and what may not be asked for; ``callsheet graph``: edges and paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Skill, Tool, dump, load
from callsheet.orchestrator.cli.main import callsheet, main
from callsheet.orchestrator.cli.review_commands import FORMS


def tool(agent: str, name: str, *needs: str) -> Tool:
    edges = tuple(Dependency(tool=other, kind=DependencyKind.TOOL_DIRECTLY) for other in needs)
    return Tool(agent=agent, name=name, depends_on=edges)


@pytest.fixture
def sample() -> Catalog:
    travel = tool("travel", "plan_trip", "weather/forecast", "units/convert_length")
    weather = tool("weather", "forecast", "weather/find_place"), tool("weather", "find_place")
    return Catalog(
        agents=(
            Agent(id="travel", tools=(travel,)),
            Agent(id="weather", tools=weather),
            Agent(id="units", tools=(tool("units", "convert_length"),)),
        )
    )


@pytest.fixture
def place(sample: Catalog, tmp_path: Path) -> Path:
    (tmp_path / "callsheet.json").write_text(dump(sample), encoding="utf-8")
    return tmp_path / "callsheet.json"


def run(place: Path, *words: str) -> Result:
    return CliRunner().invoke(callsheet, ["export", "--catalog", str(place), *words])


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_written_to_standard_output_and_to_a_file(name: str, place: Path, tmp_path: Path) -> None:
    shown = run(place, "--format", name)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.endswith("\n")
    saved = run(place, "--format", name, "-o", str(tmp_path / "out"))
    assert saved.exit_code == 0
    assert saved.stdout == ""
    assert "3 agents, 4 tools" in saved.stderr
    assert (tmp_path / "out").read_text(encoding="utf-8") == shown.stdout
    assert sorted(item.name for item in tmp_path.iterdir()) == ["callsheet.json", "out"]


@pytest.mark.parametrize(
    ("name", "suffix"), [("turtle", ".ttl"), ("jsonld", ".jsonld"), ("ntriples", ".nt"), ("json", ".json")]
)
def test_an_export_is_a_catalog(name: str, suffix: str, place: Path, sample: Catalog, tmp_path: Path) -> None:
    copy = tmp_path / f"copy{suffix}"
    assert run(place, "--format", name, "-o", str(copy)).exit_code == 0
    assert load(copy).catalog == sample
    again = run(copy, "--format", name)
    assert again.stdout == copy.read_text(encoding="utf-8")


def test_json_is_one_object(place: Path, tmp_path: Path) -> None:
    assert json.loads(run(place, "--json").stdout)["callsheet"] == 1
    assert "@graph" in json.loads(run(place, "--json", "--format", "jsonld").stdout)
    report = json.loads(run(place, "--json", "--format", "turtle", "-o", str(tmp_path / "x.ttl")).stdout)
    assert report == {"path": str(tmp_path / "x.ttl"), "format": "turtle", "agents": 3, "tools": 4, "skills": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--format"),
        (["--format", "rdfxml"], "'rdfxml' is not one of 'turtle'"),
        (["--format", "turtle", "--json"], "turtle is not JSON"),
        (["--format", "json", "-o", "/nowhere/at/all"], "/nowhere/at/all cannot be written"),
    ],
)
def test_a_usage_error_of_export_ends_with_status_2_and_is_named(
    words: list[str], said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["export", "--catalog", str(place), *words])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("form", "said"), [("mermaid", "1 skill left out: mermaid shows agents and tools\n"), ("json", "")]
)
def test_a_chart_says_that_it_leaves_out_skills(form: str, said: str, sample: Catalog, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(dump(Catalog(agents=sample.agents, skills=(Skill(name="s"),))), encoding="utf-8")
    assert run(tmp_path / "c.json", "--format", form).stderr == said
    saved = run(tmp_path / "c.json", "--format", form, "-o", str(tmp_path / "out")).stderr
    assert saved == f"{said}3 agents, 4 tools{'' if said else ', 1 skill'} in {tmp_path / 'out'}\n"


@pytest.fixture
def graph(place: Path) -> Callable[..., tuple[int, Any]]:
    """``callsheet graph``: its exit status, and its JSON object or its lines."""

    def told(*words: str) -> tuple[int, Any]:
        result = CliRunner().invoke(callsheet, ["graph", "--catalog", str(place), *words], standalone_mode=False)
        if result.exception:
            return 2, result.exception
        return result.return_value, json.loads(result.stdout) if "--json" in words else result.stdout.splitlines()

    return told


def test_the_graph_command_shows_the_edges_of_a_node(graph: Callable[..., tuple[int, Any]]) -> None:
    assert graph("weather/forecast") == (
        0,
        [
            "weather/forecast -[owned_by]-> weather",
            "weather/forecast -[tool_directly]-> weather/find_place",
            "travel/plan_trip -[tool_directly]-> weather/forecast",
        ],
    )
    status, content = graph("weather", "--json")
    assert (status, content["node"]) == (0, "weather")
    assert {(edge["source"], edge["kind"]) for edge in content["edges"]} == {
        ("weather/forecast", "owned_by"),
        ("weather/find_place", "owned_by"),
    }


def test_the_graph_command_draws_servers_tools_capabilities_and_parameters(tmp_path: Path) -> None:
    """Representing Agentic Tools in Knowledge Graphs, figure 3."""
    schema = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": "integer"}}, "required": ["q"]}
    entry = {"name": "find", "inputSchema": schema, "_meta": {"callsheet/capabilities": ["web-search"]}}
    (tmp_path / "web.json").write_text(json.dumps({"name": "web", "tools": [entry]}), encoding="utf-8")
    words = ["graph", "web", "--mermaid", "--catalog", str(tmp_path)]
    chart = CliRunner().invoke(callsheet, words, standalone_mode=False).stdout.splitlines()
    drawn = {line.strip() for line in chart}
    assert chart[0] == "flowchart LR"
    assert {'n0[["web"]]:::start', 'n1["web/find"]:::tool', 'n1 -->|"owned by"| n0'} <= drawn
    kinds = {line.partition('-->|"')[2].partition('"')[0] for line in drawn if "-->" in line}
    assert kinds == {"owned by", "has required input", "has optional input", "has capability"}
    assert {'(["web-search"]):::capability', '[/"q"/]:::parameter'} <= {line.lstrip("n0123456789") for line in drawn}


def test_the_graph_command_shows_a_path(graph: Callable[..., tuple[int, Any]]) -> None:
    status, content = graph("travel/plan_trip", "--to", "weather/find_place", "--json")
    assert (status, content["to"]) == (0, "weather/find_place")
    assert [(edge["source"], edge["target"], edge["provenance"]) for edge in content["edges"]] == [
        ("travel/plan_trip", "weather/forecast", "declared"),
        ("weather/forecast", "weather/find_place", "declared"),
    ]
    assert graph("weather", "--to", "units") == (1, ["there is no path from weather to units"])
    status, error = graph("weather/forcast")
    assert (status, "did you mean 'weather/forecast'" in str(error)) == (2, True)
