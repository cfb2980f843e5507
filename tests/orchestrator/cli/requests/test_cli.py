"""The command line as a person or a script uses it."""

from __future__ import annotations

import builtins
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from langchain_core.language_models import FakeListChatModel

from callsheet.__main__ import main
from callsheet.orchestrator.cli.main import callsheet
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.supervisor import create_supervisor
from callsheet.retrievers import SelectSettings
from commands import Cli

MANIFEST = {
    "name": "units",
    "description": "Converts units of measure",
    "tools": [
        {
            "name": "convert_length",
            "description": "Convert a length from one unit to another.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "value": {"type": "number"},
                    "from_unit": {"type": "string", "enum": ["mile", "kilometer"]},
                    "to_unit": {"type": "string", "enum": ["mile", "kilometer"]},
                },
                "required": ["value", "from_unit", "to_unit"],
            },
        },
        {"name": "convert_weight", "description": "Convert a weight.", "inputSchema": {"type": "object"}},
    ],
}


@pytest.fixture
def manifests(tmp_path: Path, own_home: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    (folder / "units.json").write_text(json.dumps(MANIFEST))
    return folder


def test_index_says_what_changed(manifests: Path, cli: Cli) -> None:
    status, out, _ = cli("index", "--catalog", str(manifests), "--json")
    first = json.loads(out)
    assert status == 0
    assert {"agents": 1, "tools": 2, "dependencies": 0, "added": 3, "updated": 0, "removed": 0}.items() <= first.items()
    assert Path(first["path"]).is_dir()
    changed = {**MANIFEST, "tools": [{**MANIFEST["tools"][0], "description": "Lengths."}]}  # type: ignore[dict-item]
    (manifests / "units.json").write_text(json.dumps(changed))
    again = json.loads(cli("index", "--catalog", str(manifests), "--json")[1])
    assert (again["added"], again["updated"], again["removed"]) == (0, 2, 1)


def test_retrieve_finds_and_explains(manifests: Path, cli: Cli) -> None:
    status, out, err = cli("retrieve", "convert 3 miles to km", "--catalog", str(manifests), "--json", "--explain")
    found = json.loads(out)
    assert (status, found["verdict"]) == (0, "unsure")
    assert found["agents"][0]["id"] == "units"
    assert found["agents"][0]["tools"][0]["id"] == "units/convert_length"
    assert found["agents"][0]["tools"][0]["via"] == ["units/convert_length"]
    assert found["trace"]["nodes"][0]["cosine"] is not None
    assert err == ""


def test_retrieve_has_the_settings_of_the_library(manifests: Path, cli: Cli) -> None:
    arguments = ("retrieve", "convert 3 miles to km", "--catalog", str(manifests), "--json", "--explain")
    library = json.loads(json.dumps(SelectSettings(equip=True).to_dict()))
    assert json.loads(cli(*arguments)[1])["trace"]["settings"] == library
    changed = json.loads(cli(*arguments, "--proposed", "0", "-k", "2", "--tools", "3")[1])["trace"]["settings"]
    assert changed == {**library, "proposed": 0, "agents": 2, "tools": 3}


def test_ask_has_the_settings_of_the_library(manifests: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []

    def made(*sources: Any, settings: Settings, **more: Any) -> Any:
        seen.append(settings)
        return create_supervisor(*sources, settings=settings, **more)

    monkeypatch.setattr("callsheet.orchestrator.supervisor.create_supervisor", made)
    for given in ((), ("--tools", "3", "-k", "2")):
        cli("ask", "convert 3 miles", "--catalog", str(manifests), *given)
    assert seen == [Settings(attended=False), Settings(attended=False, tools=3, agents=2)]
    told = " ".join(cli("ask", "--help")[1].split())
    assert f"Maximum tools per worker. [default: {Settings().tools}" in told


def test_retrieve_without_a_result_ends_with_status_1(manifests: Path, cli: Cli) -> None:
    status, out, _ = cli("retrieve", "bake a chocolate cake", "--catalog", str(manifests), "--json")
    assert (status, json.loads(out)["verdict"]) == (1, "nothing_fits")


def test_retrieve_says_what_the_model_decided(manifests: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(
        "callsheet.agents.models.chat_models.chat_model", lambda name: FakeListChatModel(responses=["no order"])
    )
    arguments = ("retrieve", "convert 3 miles to km", "--catalog", str(manifests), "--explain")
    status, out, _ = cli(*arguments, "--decision-model", "scripted:model")
    assert (status, "judged: not judged, FakeListChatModel failed" in out) == (0, True)
    assert "units/convert_length" in out
    assert "meaning" in out
    assert "\x1b" not in out
    assert "judged" not in cli(*arguments)[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["retrieve", "x"], "no catalog"),
        (["retrieve", "x", "--catalog", "nowhere.json"], "no catalog at nowhere.json"),
        (["retrieve", "  ", "--catalog", "{}"], "the request is empty"),
        (["ask", "", "--catalog", "{}"], "the request is empty"),
        (["retrieve", "x", "-k", "0", "--catalog", "{}"], "-k"),
        (["retrieve", "x", "--catalog", "{}", "--embeddings", "nonsense"], "unknown embedder 'nonsense'"),
        (["ask", "x", "--catalog", "{}", "--model", "nonsense"], "nonsense"),
        (["reticulate"], "No such command"),
        (["index", "--catalog", "no_such_module:thing"], "no_such_module"),
    ],
)
def test_a_usage_error_ends_with_status_2_and_one_line(
    arguments: list[str], said: str, manifests: Path, cli: Cli
) -> None:
    status, out, err = cli(*(a.replace("{}", str(manifests)) for a in arguments))
    assert status == 2
    assert said in err
    assert "Traceback" not in err
    assert out == ""


def _commands(group: click.Group, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        yield (*before, name)
        if isinstance(command, click.Group):
            yield from _commands(command, (*before, name))


@pytest.mark.parametrize("words", list(_commands(callsheet)), ids=" ".join)
def test_every_command_helps_with_an_example(words: tuple[str, ...], cli: Cli) -> None:
    status, out, _ = cli(*words, "--help")
    assert (status, "Example" in out) == (0, True)


@pytest.mark.server
def test_an_interrupt_ends_with_130_and_leaves_no_process(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    hanging = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"slow": {"command": sys.executable, "args": ["-c", hanging]}}}))
    command = [sys.executable, "-m", "callsheet", "index", "--yes", "--catalog", str(config)]
    environment = {**os.environ, "CALLSHEET_HOME": str(tmp_path / "home")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    while not (mark.exists() and mark.read_text()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


MODEL_COMMANDS = (("ask", "x", "--model"), ("retrieve", "x", "--decision-model"), ("infer", "--model"))


@pytest.mark.parametrize("command", MODEL_COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("bogus:x", "the model 'bogus:x' cannot be used: "),
        ("bogus:x", "such as openai:gpt-5-mini"),
        ("mistralai:x", "pip install langchain-mistralai"),
        ("anthropic:claude-x", "it needs a key: set ANTHROPIC_API_KEY"),
    ],
)
def test_a_wrong_model_is_refused_before_any_server_starts(
    command: tuple[str, ...], model: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    started = tmp_path / "started"
    config = tmp_path / "mcp.json"
    server = {"command": sys.executable, "args": ["-c", f"open({str(started)!r}, 'w')"]}
    config.write_text(json.dumps({"mcpServers": {"own": server}}))
    status, out, err = cli(*command, model, "--yes", "--catalog", str(config))
    assert (status, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert not started.exists()


def test_interrupted_while_it_is_loaded_it_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *rest: Any, **more: Any) -> Any:
        if name == "callsheet.orchestrator.cli.main":
            raise KeyboardInterrupt
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\ninterrupted\n"
