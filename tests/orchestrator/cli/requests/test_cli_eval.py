"""``callsheet eval`` as a person or a CI job uses it, on the example in the repository; a stand-in for the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

import callsheet.agents
from callsheet import AgentGraphRetriever
from callsheet.agents import Call, Usage
from callsheet.agents.calls.token_usage import Price, price_of
from callsheet.graphs import Loaded, SettingsError, load
from callsheet.orchestrator.apps.model_arms import ARMS, Arms, Attempt, record_only
from callsheet.orchestrator.apps.model_evaluation import ModelEvaluation, evaluate_arms, grade_attempt, sample_queries
from callsheet.retrievers import METHODS, LabelledQuery
from choosing_model import ChoosingModel
from commands import Cli, run
from scripted_model import ScriptedModel

EXAMPLE = Path(__file__).parents[4] / "examples" / "eval"
QUERIES = str(EXAMPLE / "queries.jsonl")


@pytest.fixture(autouse=True)
def example(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_CATALOG", str(EXAMPLE / "catalog"))


def test_eval_prints_one_json_object_with_all_figures(cli: Cli) -> None:
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


@pytest.mark.parametrize("size", [("-k", "1"), ("-k", "2", "--tools", "3"), ()])
def test_the_recall_is_that_of_what_retrieve_returns_with_the_same_options(
    size: tuple[str, ...], tmp_path: Path, cli: Cli
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


@pytest.mark.parametrize(("metric", "kind"), [("complete@10", "tools"), ("skill.recall@1", "skills")])
def test_a_gate_on_a_metric_without_labels_is_refused(metric: str, kind: str, tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "rain?", "agents": ["weather"]}\n')
    status, _, err = cli("eval", str(path), "--fail-under", f"{metric}=0")
    assert status == 2
    assert f"no query has {kind} labelled" in " ".join(err.split())


def test_queries_of_skills_only_have_figures_of_skills_only(tmp_path: Path, cli: Cli) -> None:
    skill = tmp_path / "skills" / "minutes" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: minutes\ndescription: Write the minutes of a meeting.\n---\n")
    path = tmp_path / "queries.jsonl"
    path.write_text('{"query": "write the minutes of the meeting", "skills": ["minutes"]}\n')
    catalog = ("--catalog", str(skill.parents[1]))
    status, out, err = cli("eval", str(path), *catalog, "--fail-under", "skill.recall@1=1")
    assert (status, err) == (0, "")
    assert out.splitlines()[1] == "Budget of a selection: 10 tools of any number of agents."
    assert out.splitlines()[4].split()[:3] == ["skill.recall", "1.000", "1.000"]
    status, _, err = cli("eval", str(path), *catalog, "--fail-under", "recall@5=0")
    assert (status, "no query has agents labelled" in " ".join(err.split())) == (2, True)


def test_eval_prints_tables_of_at_most_100_columns(cli: Cli) -> None:
    status, out, err = cli("eval", QUERIES, "-k", "2", "--tools", "4")
    assert (status, err) == (0, "")
    for part in (
        "13 queries, 4 agents, 16 tools",
        "agent.recall",
        "tool.map",
        "complete",
        "tokens",
        "Most often confused",
    ):
        assert part in out
    assert "of 13 queries lack something" in out
    assert "\x1b" not in out
    tables = [line for line in out.splitlines() if not line.startswith(("   ", "A selection"))]
    assert max(map(len, tables)) <= 100


def test_a_gate_that_fails_is_a_line_and_the_status_is_1(cli: Cli) -> None:
    gates = {"recall@5": ".5", "agent.ndcg@5": "0", "complete@10": "0.1", "recall@1": "1", "tool.map@1": "1"}
    words = [f"--fail-under={metric}={least}" for metric, least in gates.items()]
    status, out, err = cli("eval", QUERIES, *words, "--json")
    report = json.loads(out)
    assert status == 1
    assert [gate["passed"] for gate in report["gates"]] == [True, True, True, False, False]
    assert [line.partition(" is 0.")[0] for line in err.splitlines()] == ["failed: recall@1", "failed: tool.map@1"]
    assert err.endswith("under 1\n")
    assert cli("eval", QUERIES, *words[:3])[0] == 0


def test_a_report_names_what_is_missed_and_confused(cli: Cli) -> None:
    report = json.loads(cli("eval", QUERIES, "--tools", "1", "--json")[1])
    assert {"ids", "kind", "rank", "why"} <= set(report["missed"][0]["lacking"][0])
    assert report["confused"][0]["count"] >= 1


def test_methods_are_measured_side_by_side(cli: Cli) -> None:
    status, out, err = cli("eval", QUERIES, "--methods", ",".join(METHODS), "--json")
    report = json.loads(out)
    by_name = {method.pop("name"): method for method in report["methods"]}
    assert (status, err, [*by_name]) == (0, "", [*METHODS])
    assert by_name["callsheet"].items() <= report.items()
    for method in by_name.values():
        assert set(method["agent"]) == set(report["agent"])
        assert set(method["tool"]) == set(report["tool"])
        assert method["intervals"].keys() == report["intervals"].keys()
    assert len({method["tool"]["map@10"] for method in by_name.values()}) > 3
    status, out, _ = cli("eval", QUERIES, "--methods", "dense,bm25")
    rows = [line for line in out.splitlines() if line.strip().startswith(("dense", "bm25"))]
    assert len(rows) == 2
    assert max(map(len, rows)) <= 100


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("callsheet", "agent-as-a-graph")])
def test_retrieve_shows_what_eval_measures(name: str, cli: Cli) -> None:
    query = json.loads(Path(QUERIES).read_text(encoding="utf-8").splitlines()[0])["query"]
    status, out, _ = cli("retrieve", query, "--method", name, "-k", "10", "--json")
    found = json.loads(out)
    tools = sorted((tool for agent in found["agents"] for tool in agent["tools"]), key=lambda tool: -tool["use"])
    settings = replace(METHODS[name], agents=10)
    retriever = AgentGraphRetriever.from_catalog(str(EXAMPLE / "catalog"), settings=settings, index=":memory:", k=10)
    assert (status, found["verdict"]) == (0, "found")
    assert [tool["id"] for tool in tools] == [tool.id for tool in retriever.select(query).tools]


@pytest.mark.parametrize("name", ["agent-as-a-graph", "agents-and-tools", "weighted-rrf"])
def test_an_explanation_has_what_brought_each_agent(name: str, cli: Cli) -> None:
    query = json.loads(Path(QUERIES).read_text(encoding="utf-8").splitlines()[0])["query"]
    _, out, _ = cli("retrieve", query, "--method", name, "--explain", "--json")
    found = json.loads(out)
    for agent in found["agents"]:
        terms = found["trace"]["contributions"][agent["id"]]
        assert sum(term["weight"] / (term["k"] + term["rank"]) for term in terms) == pytest.approx(agent["score"])
        assert all(term["node"].startswith(agent["id"]) for term in terms)
    _, out, _ = cli("retrieve", query, "--method", name, "--explain")
    first, terms = next(iter(found["trace"]["contributions"].items()))
    said = [f"{term['weight']:g} / ({term['k']} + {term['rank']}) by {term['node']}" for term in terms]
    assert f"agent {first}: {' + '.join(said)}" in out


def test_a_model_rewrites_the_request_before_the_search(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(replies=[AIMessage("Weather forecast for a place.")])
    monkeypatch.setattr("callsheet.agents.models.chat_models.chat_model", lambda name: model)
    status, out, err = cli("retrieve", "an umbrella?", "--query-model", "any:model", "--json")
    assert (status, json.loads(out)["query"]) == (0, "Weather forecast for a place.")
    assert err.strip() == "searched for: Weather forecast for a place."


@pytest.mark.parametrize(("command", "option"), [("retrieve", "--method"), ("eval", "--methods")])
def test_an_unknown_method_is_refused_with_the_names_of_all(command: str, option: str, cli: Cli) -> None:
    status, _, err = cli(command, QUERIES, option, "bm26")
    assert status == 2
    assert f"there is no method 'bm26' (did you mean 'bm25'?); there are {', '.join(METHODS)}" in " ".join(err.split())


CHOICES = {"rain": ("forecast", {"place": "Oslo", "days": "1"}), "clean": ("air_quality", {"place": "Delhi"})}


@pytest.fixture
def queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The first two labelled queries of the example, and a model that knows their tools."""
    monkeypatch.setattr(callsheet.agents, "chat_model", lambda name, **_: ChoosingModel(choices=CHOICES))
    file = tmp_path / "queries.jsonl"
    lines = Path(QUERIES).read_text(encoding="utf-8").splitlines()[:2]
    lines[0] = lines[0].replace('"tools"', '"arguments": {"forecast": {"place": "oslo"}}, "tools"')
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fail-under", "recal@5=.8"], "unknown metric 'recal@5': there are recall@1, recall@3"),
        (["--fail-under", "recall@5=.8", "-k", "2"], "unknown metric 'recall@5'"),
        (["--fail-under", "recall@5"], "'recall@5' is not METRIC=LEAST"),
        (["--fail-under", "recall@5=nan"], "is not METRIC=LEAST"),
        (["--arms", "k10"], "--arms needs --model PROVIDER:NAME"),
        (["--model", "m", "--arms", "k10,k5"], "there is no arm 'k5': there are all"),
        (["--model", "m", "--fail-under", "recall@5=.8"], "with --model there are k10.success, none.success"),
        (["--model", "m", "--max-cost", "1"], "--max-cost needs the price of the model: give --prices FILE"),
        (["--model", "m", "--prices", "none.json"], "none.json cannot be read"),
    ],
)
def test_a_usage_error_ends_with_status_2(arguments: list[str], said: str, queries: str, cli: Cli) -> None:
    status, out, err = cli("eval", queries, *arguments)
    assert (status, out) == (2, "")
    assert said in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"tools": ["forcast"]}, "queries.jsonl, line 1: no tool 'forcast' in the catalog (did you mean 'forecast'?)"),
        ({"tools": ["forecast"], "arguments": []}, '"arguments" must hold an object for each tool'),
        ({"tools": ["forecast"], "arguments": {"air_quality": {}}}, "has weather/air_quality, which"),
    ],
)
def test_an_invalid_file_ends_with_status_2_and_names_the_line(line: Any, said: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "queries.jsonl").write_text(json.dumps({"query": "rain?", **line}))
    status, out, err = cli("eval", tmp_path / "queries.jsonl")
    assert (status, out) == (2, "")
    assert said in err


def test_a_gate_on_an_arm_can_fail(
    queries: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callsheet.agents, "chat_model", lambda name, **_: ChoosingModel(choices={}))
    status, out, err = run(capsys, "eval", queries, "--model", "m", "--arms", "k10", "--fail-under=k10.success=.5")
    assert (status, err) == (1, "failed: k10.success is 0.0000, under 0.5\n")
    assert "not chosen" in out


def test_eval_compares_the_arms(queries: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate = ("--fail-under", "k10.success=1")
    status, out, err = run(capsys, "eval", queries, "--model", "m", "--arms", "all, k10", *gate)
    assert (status, err) == (0, "")
    assert "against all" in out
    assert max(map(len, out.splitlines())) <= 100
    status, out, _ = run(capsys, "eval", queries, "--model", "m", "--arms", "all,k10", "--json")
    report = json.loads(out)
    assert [(arm["name"], arm["n"], arm["success"]) for arm in report["arms"]] == [("all", 2, 1.0), ("k10", 2, 1.0)]
    assert report["arms"][0]["cost"] is None
    fields = {"interval", "calls", "input_tokens", "output_tokens", "cached_tokens", "seconds", "failures"}
    assert fields <= set(report["arms"][0])
    assert len(list((tmp_path / "home" / "model-evaluations").glob("*.json"))) == 4


RAIN = LabelledQuery(
    "rain",
    "Will it rain in Oslo tomorrow?",
    agents=(("weather",),),
    tools=(("weather/forecast",),),
    arguments={"weather/forecast": {"place": "Oslo"}},
)
AIR = LabelledQuery("air", "How clean is the air in Delhi?", agents=(("weather",),), tools=(("weather/air_quality",),))
RIGHT = {"rain": ("forecast", {"place": "oslo", "days": "1"}), "air": ("air_quality", {"place": "Delhi"})}


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load(EXAMPLE / "catalog")


@pytest.fixture(scope="module")
def arms(loaded: Loaded) -> Callable[..., Arms]:
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    return lambda model: Arms(record_only(loaded), retriever, model)


async def evaluated(made: Arms, names: list[str], folder: Path, **more: Any) -> ModelEvaluation:
    arms = {name: made.named(name) for name in names}
    return await evaluate_arms(arms, [RAIN, AIR], model="m", folder=folder, **more)


@pytest.mark.parametrize("name", ARMS)
async def test_every_arm_lets_the_right_tool_be_called(arms: Callable[..., Arms], name: str, tmp_path: Path) -> None:
    evaluation = await evaluated(arms(ChoosingModel(choices=RIGHT)), [name], tmp_path)
    (arm,) = evaluation.arms
    assert [(case.grade.cause, case.grade.detail) for case in arm.cases] == [("", ""), ("", "")]
    assert [case.attempt.calls[0].tool for case in arm.cases] == ["weather/forecast", "weather/air_quality"]
    assert all("recorded" in call.output for case in arm.cases for call in case.attempt.calls)
    assert max(len(case.attempt.offered) for case in arm.cases) <= (16 if name == "all" else 10)
    assert arm.usage.input_tokens == 100 * arm.usage.calls > 0


@pytest.mark.parametrize(
    ("choices", "more", "arm", "cause"),
    [
        ({"rain": ("list_events", {"day": "2026-01-01"})}, {}, "all", "not chosen"),
        ({"rain": ("forecast", {"place": "Bergen", "days": "1"})}, {}, "all", "wrong arguments"),
        ({"rain": ("forecast", {"town": 3})}, {}, "all", "wrong arguments"),
        ({"rain": ("forecast", {"town": 3})}, {}, "none", "wrong arguments"),
        ({}, {"error": "rain"}, "k10", "model error"),
        ({}, {"error": "rain"}, "auto", "model error"),
    ],
)
async def test_each_cause_of_a_failure_is_named(
    arms: Callable[..., Arms], choices: Any, more: Any, arm: str, cause: str, tmp_path: Path
) -> None:
    evaluation = await evaluated(arms(ChoosingModel(choices=choices, **more)), [arm], tmp_path)
    assert evaluation.arms[0].cases[0].grade.cause == cause
    assert evaluation.arms[0].causes[cause] >= 1


class LengthFinishReasonError(Exception):
    """As openai raises it."""


class Wordy(ChoosingModel):
    """Its plans are longer than an answer may be."""

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        if "PlanDraft" in kwargs.get("tools", []):
            raise LengthFinishReasonError("the length limit was reached")
        return super()._generate(messages, *args, **kwargs)


async def test_an_attempt_with_an_answer_that_was_cut_is_graded_and_stored(
    arms: Callable[..., Arms], tmp_path: Path
) -> None:
    for model in (Wordy(choices=RIGHT), Wordy(choices={})):
        evaluation = await evaluated(arms(model), ["auto"], tmp_path)
        assert [case.grade.cause for case in evaluation.arms[0].cases] == ["", ""]
    assert len(list(tmp_path.glob("*.json"))) == 2


def made(**fields: Any) -> Attempt:
    return Attempt(**{"offered": ("weather/forecast",), **fields})


CALL = Call(agent="weather", tool="weather/forecast", args={"place": " OSLO "})


@pytest.mark.parametrize(
    ("attempt", "cause"),
    [
        (made(calls=(CALL,)), ""),
        (made(offered=("mail/send",)), "not retrieved"),
        (made(offered=()), "plan"),
        (made(offered=(), steps=("a step",)), "not retrieved"),
        (made(stopped="the limit of 8 model calls"), "gave up"),
        (made(calls=(CALL.model_copy(update={"error": "broken", "kind": "tool"}),)), "tool error"),
        (made(calls=(CALL.model_copy(update={"args": {"place": None}}),)), "wrong arguments"),
        (made(calls=(CALL,), failure="overloaded"), "model error"),
    ],
)
def test_an_attempt_is_graded_by_its_first_wrong_tool(attempt: Attempt, cause: str) -> None:
    assert grade_attempt(RAIN, attempt).cause == cause


@pytest.mark.parametrize(
    ("given", "wanted", "same"),
    [
        ("NAN", "nan", True),
        (float("nan"), float("nan"), True),
        ("1_000", 1000, False),
        (" 1e3", 1000, True),
        ("9007199254740993", 9007199254740992, False),
        pytest.param(10**400, "inf", False, id="long"),
        ("0.1", 0.1, True),
        (1, True, False),
    ],
)
def test_only_plain_numbers_are_compared_as_numbers(given: Any, wanted: Any, same: bool) -> None:
    query = LabelledQuery("1", "q", (("a",),), (("a/x",),), arguments={"a/x": {"value": wanted}})
    assert (not grade_attempt(query, made(calls=(Call(agent="a", tool="a/x", args={"value": given}),))).cause) is same


async def test_stored_attempts_are_not_made_again_also_after_a_kill(arms: Callable[..., Arms], tmp_path: Path) -> None:
    folder = tmp_path / "attempts"
    first = await evaluated(arms(ChoosingModel(choices=RIGHT)), ["k10", "none"], folder)
    stored = sorted(folder.iterdir())
    assert len(stored) == 4
    assert not any(path.stat().st_mode & 0o077 for path in (folder, *stored))
    stored[0].write_text(stored[0].read_text(encoding="utf-8")[:-40], encoding="utf-8")  # cut while it was written
    again = ChoosingModel(choices=RIGHT)
    second = await evaluated(arms(again), ["k10", "none"], folder)
    assert 1 <= len(again.asked) <= 4  # one attempt of four was lost
    third = ChoosingModel(choices={})
    assert (await evaluated(arms(third), ["k10", "none"], folder)).arms[0].success == 1.0
    assert third.asked == []
    assert [arm.success for arm in first.arms] == [arm.success for arm in second.arms] == [1.0, 1.0]


async def test_attempts_that_cannot_be_stored_are_an_error(arms: Callable[..., Arms], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"cannot be stored in .*: set CALLSHEET_HOME to a writable folder"):
        await evaluated(arms(ChoosingModel(choices=RIGHT)), ["k10"], tmp_path / "file")


async def test_an_error_of_the_model_is_not_stored(arms: Callable[..., Arms], tmp_path: Path) -> None:
    evaluation = await evaluated(arms(ChoosingModel(choices={}, error=" ")), ["k10"], tmp_path)
    assert not list(tmp_path.iterdir())
    assert evaluation.arms[0].causes == {"model error": 2}


async def test_no_attempt_begins_after_the_cost_is_reached(arms: Callable[..., Arms], tmp_path: Path) -> None:
    more = {"price": Price(input=1000, cached=0, output=0), "max_cost": 0.1}
    evaluation = await evaluated(arms(ChoosingModel(choices=RIGHT)), ["k10", "all"], tmp_path, **more)
    assert [len(arm.cases) for arm in evaluation.arms] == [1, 0]
    assert evaluation.row(evaluation.arms[0])["cost"] == pytest.approx(0.12)  # two calls with 60 fresh tokens each
    assert evaluation.stopped == "the new attempts cost 0.1200 of 0.1"
    assert [arm["interval"] for arm in evaluation.to_dict()["arms"]] == [[1.0, 1.0], [0.0, 0.0]]


async def test_differences_between_arms_are_paired(arms: Callable[..., Arms], tmp_path: Path) -> None:
    wrong = {**RIGHT, "rain": ("forecast", {"place": "Bergen", "days": "1"})}
    evaluation = await evaluated(arms(ChoosingModel(choices=wrong)), ["none", "k10"], tmp_path)
    first, second = evaluation.to_dict()["arms"]
    assert (first["success"], first["interval"]) == (0.5, [0.0, 1.0])
    assert second["difference"] == [0.0, 0.0, 0.0]
    assert first["failures"] == {"wrong arguments": 1}
    (failed,) = first["failed"]
    assert (failed["id"], failed["cause"]) == ("rain", "wrong arguments")
    assert "'place': 'Bergen'" in failed["detail"]


def test_a_sample_does_not_depend_on_the_order_of_the_file() -> None:
    queries = [LabelledQuery(str(i), f"request {i}", (("a",),), (("a/x",),)) for i in range(50)]
    chosen = sample_queries(queries, 10)
    assert len(chosen) == 10
    assert {q.id for q in sample_queries(queries[::-1], 10)} == {q.id for q in chosen}
    assert {q.id for q in sample_queries(queries, 5)} <= {q.id for q in chosen}
    with pytest.raises(SettingsError, match="needs labelled tools"):
        sample_queries([LabelledQuery("1", "q", (("a",),))], None)


def test_prices_are_per_million_tokens(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"m": {"input": 2, "cached": 1, "output": 10}}), encoding="utf-8")
    price = price_of("m", file)
    assert price
    assert price.of(Usage(input_tokens=3_000_000, cached_tokens=1_000_000, output_tokens=500_000)) == 2 * 2 + 1 + 5
    with pytest.raises(SettingsError, match="has no price of 'n': it has m"):
        price_of("n", file)
    file.write_text("[]", encoding="utf-8")
    with pytest.raises(SettingsError, match="not a table of prices"):
        price_of("m", file)
    with pytest.raises(SettingsError, match="cannot be read"):
        price_of("m", tmp_path / "none.json")


async def test_a_model_that_only_repeats_a_call_gives_up(loaded: Loaded) -> None:
    call = {"name": "weather_air_quality", "args": {"place": "Oslo"}, "id": "1"}
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    replies = [AIMessage("", tool_calls=[{**call, "id": str(n)}]) for n in range(8)]
    attempt = await Arms(record_only(loaded), retriever, ScriptedModel(replies=replies)).named("all")("air?")
    assert (attempt.usage.calls, attempt.stopped) == (8, "stopped after 7 turns without a result")
    assert len(attempt.calls) == 7
