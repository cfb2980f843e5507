"""Every command in README and docs is run on small stand-ins for the reader's files, or at least understood."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from langchain.chat_models import init_chat_model
from langgraph_cli.cli import cli as langgraph

from callsheet.agents import chat_model
from callsheet.graphs import TrustError, load
from callsheet.graphs.rdf import to_rdf
from callsheet.orchestrator.cli.main import callsheet, main
from deciding_model import DecidingModel

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
FOREIGN = {"pip", "export", "echo", "ollama", "$EDITOR", "docker", "curl", "chroma", "git", "psql", "uvicorn"}
"""What is somebody else's; that it is right is not for us to test."""
KEPT_OPEN = {"explore"}
"""What runs until it is stopped; it has tests of its own."""
ASKS_A_REGISTRY = {"add"}
"""What asks a registry on the internet; its tests have one of their own."""


@dataclass(frozen=True)
class Words:
    """One command of a page."""

    page: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {' '.join(self.words)}"


def commands() -> Iterator[Words]:
    for page in PAGES:
        for block in CONSOLE.findall(page.read_text(encoding="utf-8")):
            for line in (line[2:] for line in block.splitlines() if line.startswith("$ ")):
                yield from (Words(page.name, words) for words in _split(line))


def _split(line: str) -> Iterator[tuple[str, ...]]:
    words: list[str] = []
    for word in [*shlex.split(line, comments=True), "&&"]:
        if word in ("&&", ";", "|", ">"):
            yield tuple(words)
            words = []
        elif words or not re.fullmatch(r"\w+=.*", word):
            words.append(word)


COMMANDS = list(commands())
OURS = [found for found in COMMANDS if found.words[0] == "callsheet"]
LOCAL = re.compile(r"openai:|ollama:|huggingface:|bedrock_converse:|http")
"""What needs a key or the network is understood only."""


def parsed(group: click.Group, words: tuple[str, ...]) -> click.Context:
    """Reads a command line as the program would, down to its options, without doing anything."""
    command: click.Command = group
    context, rest = click.Context(group), list(words)
    while isinstance(command, click.Group):
        if not rest and command.invoke_without_command:
            break
        assert rest, f"{command.name} of what?"
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no {rest[0]}"
        command, context = found, found.make_context(rest[0], rest[1:], parent=context)
        _, rest, _ = found.make_parser(context).parse_args(rest[1:])
    return context


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the pages call the reader's own files."""
    folder = tmp_path_factory.mktemp("reader")
    eval_, server = ROOT / "examples" / "eval", ROOT / "tests" / "fixtures" / "fault_server.py"
    shutil.copytree(eval_ / "catalog", folder / "manifests")
    shutil.copytree(eval_, folder / "examples" / "eval")
    shutil.copy(eval_ / "queries.jsonl", folder)
    config = {"mcpServers": {"own": {"command": sys.executable, "args": [str(server), "ok"]}}}
    shutil.copy(ROOT / "examples" / "catalogs" / "bookshop.yaml", folder)
    shutil.copytree(ROOT / "examples" / "catalogs" / "skills", folder / "skills")
    (folder / "mcp.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "home").mkdir()  # as after any other command
    (folder / "docs").mkdir()
    (folder / "docs" / "leave.md").write_text("# Leave\n\nThere are 30 days of leave in a year.\n", encoding="utf-8")
    (folder / "policy.json").write_text('{"default": "allow"}', encoding="utf-8")
    (folder / "report.json").write_text("{}", encoding="utf-8")
    (folder / "dependencies.json").write_text('{"callsheet_dependencies": 1, "edges": []}', encoding="utf-8")
    (folder / "catalog.ttl").write_text(to_rdf(load(folder / "manifests").catalog), encoding="utf-8")
    return folder


@pytest.fixture
def at_home(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """In the reader's folder, with nothing more to be read from standard input than that."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("CALLSHEET_HOME", str(workspace / "home"))
    monkeypatch.setenv("CALLSHEET_YES", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")  # without one, an option that names the model is refused
    with (workspace / "queries.jsonl").open(encoding="utf-8") as some:
        monkeypatch.setattr("sys.stdin", some)
        yield workspace


def test_there_are_commands_to_look_at() -> None:
    assert len(OURS) > 20
    known = {"callsheet", "make", "langgraph", "python", *FOREIGN}
    assert {str(found) for found in COMMANDS if found.words[0] not in known} == set()


@pytest.mark.parametrize("found", OURS, ids=str)
def test_our_commands_are_run_or_understood(found: Words, at_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = found.words[1:]
    context = parsed(callsheet, words)
    if context.info_name in KEPT_OPEN | ASKS_A_REGISTRY or LOCAL.search(" ".join(words)):
        return
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code in (0, 1, None), capsys.readouterr().err


def test_the_first_program_of_the_readme_runs_after_the_command_before_it(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a fresh home, at a terminal where a person says yes, with a stand-in for the model of the provider."""
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    monkeypatch.delenv("CALLSHEET_YES", raising=False)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    program = next(PYTHON.finditer(text))
    (index,) = [found.words for found in OURS if found.page == "README.md" and found.words[1] == "index"]
    assert text.index(" ".join(index)) < program.start()
    with pytest.raises(TrustError, match="would start these commands"):
        exec(program[1], {})
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(click, "confirm", lambda *_, **__: True)
    with pytest.raises(SystemExit) as ended:
        main(index[1:])
    assert ended.value.code == 0
    model = DecidingModel(plan=lambda _: {}, work=lambda _: ("work", {}), answer=lambda _: "")
    monkeypatch.setattr("langchain.chat_models.init_chat_model", lambda _: model)
    chat_model.cache_clear()
    exec(program[1], {})
    chat_model.cache_clear()
    assert "wants to call own/work" in capsys.readouterr().out


README = (ROOT / "README.md").read_text(encoding="utf-8")
OF_PAPERS = re.findall(r"`(callsheet [^`]+)`", README[README.index("| paper (") : README.index("## Use it")])


def test_the_readme_has_commands_for_each_paper() -> None:
    assert len(OF_PAPERS) == 6


@pytest.mark.parametrize("command", OF_PAPERS)
def test_the_commands_of_the_papers_run_as_printed(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the checkout, in a fresh home, without a terminal, with the catalog that stands above them."""
    (catalog,) = re.findall(r"^\$ export PATH=.* CALLSHEET_CATALOG=(\S+)$", README, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    monkeypatch.setenv("CALLSHEET_CATALOG", catalog)
    monkeypatch.delenv("CALLSHEET_YES", raising=False)
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(command)[1:])
    told = capsys.readouterr()
    assert ended.value.code in (0, None), told.err
    assert len(told.out) > 20


@pytest.mark.parametrize("found", [one for one in COMMANDS if one.words[0] in ("make", "langgraph", "python")], ids=str)
def test_words_of_other_commands_name_what_exists(found: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(str(ROOT))
    program, *words = found.words
    match program:
        case "make":
            targets = re.findall(r"^([\w-]+):", Path("Makefile").read_text(encoding="utf-8"), re.MULTILINE)
            assert {word for word in words if "=" not in word} <= set(targets)
        case "langgraph":
            assert parsed(langgraph, tuple(words))
        case _:
            assert words[0] == "-m"
            assert importlib.util.find_spec(words[1])


def test_the_models_of_the_page_of_providers_are_of_providers_that_langchain_knows() -> None:
    named = [found.words for found in OURS if found.page == "providers.md"]
    providers = {words[words.index("--model") + 1].partition(":")[0] for words in named}
    assert providers == {"ollama", "openai", "azure_openai", "bedrock_converse"}
    with pytest.raises(ValueError, match="Supported model providers") as refused:
        init_chat_model("x", model_provider="nobody")
    assert all(provider in str(refused.value) for provider in providers)


def code() -> list[tuple[str, str]]:
    return [(page.name, block) for page in PAGES for block in PYTHON.findall(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("page", "block"), code())
def test_code_can_be_read_and_names_what_there_is(page: str, block: str) -> None:
    for node in ast.walk(ast.parse(block, page)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "callsheet":
            known = names_in(str(node.module))
            assert [alias.name for alias in node.names if alias.name not in known] == []


def names_in(module: str) -> set[str]:
    """The names of a module; ``callsheet.orchestrator.app`` loads a catalog, so it is read and not imported."""
    if module != "callsheet.orchestrator.app":
        return set(dir(importlib.import_module(module)))
    text = (ROOT / "orchestrator" / "app.py").read_text(encoding="utf-8")
    return set(re.findall(r"^(\w+) = ", text, re.MULTILINE))


FRAGMENT = {"reportUndefinedVariable", "reportMissingImports"}
"""What a page other than the README may leave out: what stood in an earlier block, and other people's packages."""


@pytest.fixture(scope="module")
def type_errors(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str, str]]:
    """Page, rule and words of each error that pyright finds in a block of code."""
    folder = tmp_path_factory.mktemp("blocks")
    for number, (page, block) in enumerate(code()):
        (folder / f"{page.removesuffix('.md')}_{number}.py").write_text(block, encoding="utf-8")
    venv = Path(sys.prefix)
    config = {"venvPath": str(venv.parent), "venv": venv.name, "extraPaths": [str(ROOT)], "pythonVersion": "3.11"}
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    words = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(folder)]
    said = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    assert said["summary"]["filesAnalyzed"] == len(code())
    found = said["generalDiagnostics"]
    return [(Path(e["file"]).stem, e.get("rule", ""), e["message"]) for e in found if e["severity"] == "error"]


def test_code_has_no_type_errors(type_errors: list[tuple[str, str, str]]) -> None:
    wrong = [e for e in type_errors if e[0].startswith("README") or e[1] not in FRAGMENT]
    assert wrong == []
