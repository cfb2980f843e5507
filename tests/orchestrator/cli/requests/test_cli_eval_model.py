"""``callsheet eval --model`` as a person or a CI job uses it, with a stand-in for the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import callsheet.agents
from choosing_model import ChoosingModel
from commands import run

EXAMPLE = Path(__file__).parents[4] / "examples" / "eval"
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


def test_the_output_of_a_call_is_bounded(queries: str, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[Any] = []

    def made(name: str, **options: Any) -> ChoosingModel:
        bounds.append(options)
        return ChoosingModel(choices=CHOICES)

    monkeypatch.setattr(callsheet.agents, "chat_model", callsheet.agents.models.chat_models.chat_model)
    monkeypatch.setattr("langchain.chat_models.init_chat_model", made)
    assert run(capsys, "eval", queries, "--model", "m", "--arms", "k5", "--max-output", "90")[0] == 0
    assert bounds == [{"max_tokens": 90}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--arms", "k5"), "--arms needs --model PROVIDER:NAME"),
        (("--model", "m", "--arms", "k5,most"), "there is no arm 'most': there are all"),
        (("--model", "m", "--fail-under", "recall@5=.8"), "with --model there are k5.success, k10.success"),
        (("--model", "m", "--max-cost", "1"), "--max-cost needs the price of the model: give --prices FILE"),
        (("--max-output", "9"), "--max-output needs --model PROVIDER:NAME"),
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
