"""``callsheet eval`` as a person or a CI job uses it, on the example in the repository; a stand-in for the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import callsheet.agents
from choosing_model import ChoosingModel
from commands import run

EXAMPLE = Path(__file__).parents[4] / "examples" / "eval"
QUERIES = str(EXAMPLE / "queries.jsonl")


@pytest.fixture(autouse=True)
def example(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_CATALOG", str(EXAMPLE / "catalog"))


def test_json_holds_the_figures_and_nothing_else_is_printed(cli: Any) -> None:
    status, out, err = cli("eval", QUERIES, "--json")
    report = json.loads(out)
    assert (status, err, report["n"], report["n_tool"]) == (0, "", 13, 12)
    assert set(report["agent"]) == {f"{m}@{k}" for m in ("recall", "map", "ndcg") for k in (1, 3, 5)}
    assert set(report["tool"]) == {f"{m}@{k}" for m in ("recall", "map", "ndcg") for k in (1, 3, 5, 10)}
    assert 0 < report["complete@10"] <= 1
    assert report["seconds"] >= report["seconds_per_query"] > 0
    assert 0 < report["tokens"]["share"] < 1
    low, high = report["intervals"]["agent.recall@1"]
    assert low <= report["agent"]["recall@1"] <= high


def test_a_small_selection_shows_misses_and_confusions(cli: Any) -> None:
    status, out, _ = cli("eval", QUERIES, "-k", "2", "--tools", "4", "--json", "--misses", "1")
    report = json.loads(out)
    assert status == 0
    assert report["misses"] >= 1
    (miss,) = report["missed"]
    assert {"id", "query", "lacking", "got"} <= set(miss)
    assert {"ids", "kind", "rank", "why"} <= set(miss["lacking"][0])
    assert report["confused"][0]["count"] >= 1
    assert "complete@4" in report


@pytest.mark.parametrize("size", [("-k", "1"), ("-k", "2", "--tools", "3"), ()])
def test_what_is_reported_is_what_retrieve_hands_over_with_the_same_options(
    size: tuple[str, ...], tmp_path: Path, cli: Any
) -> None:
    wanted = {
        "Will it rain in Oslo tomorrow? Then read plan.md": ["weather/forecast", "files/read_document"],
        "Read plan.md and send an e-mail about it to Ann": ["files/read_document", "mail/send_message"],
    }
    path, shares = tmp_path / "queries.jsonl", []
    path.write_text("\n".join(json.dumps({"query": query, "tools": tools}) for query, tools in wanted.items()))
    for query, tools in wanted.items():
        agents = json.loads(cli("retrieve", query, *size, "--json")[1])["agents"]
        given = {tool["id"] for agent in agents for tool in agent["tools"]}
        shares.append(len(given.intersection(tools)) / len(tools))
    status, out, _ = cli("eval", str(path), *size, "--json")
    last = f"recall@{size[-1] if '--tools' in size else 10}"
    assert (status, json.loads(out)["tool"][last]) == (0, pytest.approx(sum(shares) / len(shares), abs=1e-4))


def test_people_get_tables_of_at_most_100_columns(cli: Any) -> None:
    status, out, err = cli("eval", QUERIES, "-k", "2", "--tools", "4")
    assert (status, err) == (0, "")
    for part in (
        "13 queries, 4 agents, 16 tools",
        "recall",
        "mAP",
        "nDCG",
        "complete",
        "tokens",
        "Most often confused",
    ):
        assert part in out
    assert "of 13 queries lack something" in out
    assert "wanted" in out
    assert "\x1b" not in out
    tables = [line for line in out.splitlines() if not line.startswith(("   ", "A selection", "In ", "The "))]
    assert max(map(len, tables)) <= 100


def test_gates_that_hold_end_with_0(cli: Any) -> None:
    gates = ("--fail-under", "recall@5=.5", "--fail-under", "agent.ndcg@5=0", "--fail-under", "complete@10=0.1")
    status, out, err = cli("eval", QUERIES, *gates, "--json")
    assert (status, err) == (0, "")
    assert [gate["passed"] for gate in json.loads(out)["gates"]] == [True, True, True]


def test_each_gate_that_fails_is_a_line_and_the_status_is_1(cli: Any) -> None:
    gates = [f"--fail-under={metric}=1" for metric in ("recall@1", "tool.map@1", "tool.recall@1")]
    status, out, err = cli("eval", QUERIES, *gates, "--json")
    assert status == 1
    assert [gate["passed"] for gate in json.loads(out)["gates"]] == [False, False, False]
    lines = err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("failed: recall@1 is 0.")
    assert lines[0].endswith("under 1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-under", "recal@5=.8"], "unknown metric 'recal@5': there are recall@1, recall@3"),
        (["--fail-under", "recall@7=.8"], "complete@10"),
        (["--fail-under", "recall@5=.8", "-k", "2"], "unknown metric 'recall@5'"),
        (["--fail-under", "recall@5"], "'recall@5' is not METRIC=LEAST"),
        (["--fail-under", "recall@5=80"], "'recall@5=80' is not METRIC=LEAST"),
        (["--fail-under", "recall@5=nan"], "is not METRIC=LEAST"),
        (["-k", "0"], "-k"),
        (["--catalog", "nowhere.json"], "no catalog at nowhere.json"),
    ],
)
def test_a_callers_mistake_ends_with_2(arguments: list[str], said: str, cli: Any) -> None:
    status, out, err = cli("eval", QUERIES, *arguments)
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


def test_a_wrong_file_ends_with_2_and_says_where(tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "rain?", "tools": ["forcast"]}\n')
    status, out, err = cli("eval", str(path))
    assert (status, out) == (2, "")
    assert "queries.jsonl, line 1: no tool 'forcast' in the catalog (did you mean 'forecast'?)" in err


@pytest.mark.parametrize(("metric", "kind"), [("complete@10", "tools"), ("skill.recall@1", "skills")])
def test_a_gate_does_not_pass_because_nothing_is_labelled(metric: str, kind: str, tmp_path: Path, cli: Any) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "rain?", "agents": ["weather"]}\n')
    status, _, err = cli("eval", str(path), "--fail-under", f"{metric}=0")
    assert status == 2
    assert f"no query has {kind} labelled" in " ".join(err.split())


def test_queries_of_skills_only_have_figures_of_skills_only(tmp_path: Path, cli: Any) -> None:
    skill = tmp_path / "skills" / "minutes" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: minutes\ndescription: Write the minutes of a meeting.\n---\n")
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "write the minutes of the meeting", "skills": ["minutes"]}\n')
    catalog = ("--catalog", str(skill.parents[1]))
    status, out, err = cli("eval", str(path), *catalog, "--fail-under", "skill.recall@1=1")
    assert (status, err) == (0, "")
    assert out.splitlines()[3].split()[:4] == ["skill", "recall", "1.000", "1.000"]
    status, _, err = cli("eval", str(path), *catalog, "--fail-under", "recall@5=0")
    assert (status, "no query has agents labelled" in " ".join(err.split())) == (2, True)


CHOICES = {"rain": ("forecast", {"place": "Oslo", "days": "1"}), "clean": ("air_quality", {"place": "Delhi"})}


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The first two labelled queries of the example, and a model that knows their tools."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_CATALOG", str(EXAMPLE / "catalog"))
    monkeypatch.setattr(callsheet.agents, "chat_model", lambda name, **_: ChoosingModel(choices=CHOICES))
    file = tmp_path / "queries.jsonl"
    lines = (EXAMPLE / "queries.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    lines[0] = lines[0].replace('"tools"', '"arguments": {"forecast": {"place": "oslo"}}, "tools"')
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def test_arms_are_compared(queries: str, tmp_path: Path, capsys: Any) -> None:
    gate = ("--fail-under", "k5.success=1")
    status, out, err = run(capsys, "eval", queries, "--model", "m", "--arms", "all, k5", *gate)
    assert (status, err) == (0, "")
    assert "against all" in out
    assert max(map(len, out.splitlines())) <= 100
    status, out, _ = run(capsys, "eval", queries, "--model", "m", "--arms", "all,k5", "--json")
    report = json.loads(out)
    assert [(arm["name"], arm["n"], arm["success"]) for arm in report["arms"]] == [("all", 2, 1.0), ("k5", 2, 1.0)]
    assert report["arms"][0]["cost"] is None
    fields = {"interval", "calls", "input_tokens", "output_tokens", "cached_tokens", "seconds", "failures"}
    assert fields <= set(report["arms"][0])
    assert len(list((tmp_path / "home" / "model-evaluations").glob("*.json"))) == 4


def test_a_gate_that_fails_is_a_line_and_the_status_is_1(
    queries: str, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callsheet.agents, "chat_model", lambda name, **_: ChoosingModel(choices={}))
    status, out, err = run(capsys, "eval", queries, "--model", "m", "--arms", "k5", "--fail-under=k5.success=.5")
    assert (status, err) == (1, "failed: k5.success is 0.0000, under 0.5\n")
    assert "not chosen" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arms", "k5"), "--arms needs --model PROVIDER:NAME"),
        (("--model", "m", "--arms", "k5,most"), "there is no arm 'most': there are all"),
        (("--model", "m", "--fail-under", "recall@5=.8"), "with --model there are k5.success, k10.success"),
        (("--model", "m", "--max-cost", "1"), "--max-cost needs the price of the model: give --prices FILE"),
        (("--max-cost", "9"), "--max-cost needs --model PROVIDER:NAME"),
        (("--model", "m", "--prices", "none.json"), "none.json cannot be read"),
    ],
)
def test_what_cannot_be_measured_is_refused(queries: str, capsys: Any, words: tuple[str, ...], said: str) -> None:
    status, out, err = run(capsys, "eval", queries, *words)
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("[]", '"arguments" must hold an object for each tool'),
        ('{"air_quality": {}}', "has weather/air_quality, which"),
    ],
)
def test_labels_of_arguments_are_checked(queries: str, capsys: Any, arguments: str, said: str) -> None:
    line = f'{{"query": "Will it rain?", "tools": ["forecast"], "arguments": {arguments}}}'
    Path(queries).write_text(line, encoding="utf-8")
    status, _, err = run(capsys, "eval", queries)
    assert status == 2
    assert said in err
