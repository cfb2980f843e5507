"""The wheel holds what it should and nothing else, and the house keeps its own rules."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("callsheet", "graphs", "retrievers", "agents", "orchestrator")
PACKAGED = frozenset({".py", ".pyi", ".json", ".ttl", ".rq", ".css", ".html", ".js", ".npz", ".svg"})
SETUPTOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]


def working_files() -> list[Path]:
    """What a commit of everything would hold, relative to the checkout; symbolic links are not followed."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({Path(name) for name in listed.split("\0") if os.path.lexists(ROOT / name) and name})


def uv(*words: str | Path) -> None:
    """Run uv from its cache, or else over the network; skip the test when neither has what it needs."""
    program = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("uv is not installed: run the checks with make test")
    environment = {**os.environ, "UV_COMPILE_BYTECODE": "0"}  # what is installed here is started once
    run: Any = {"cwd": ROOT, "env": environment, "capture_output": True, "text": True}
    for extra in (["--offline"], []):
        done = subprocess.run([program, *words, *extra], check=False, **run)
        if done.returncode == 0:
            return
    if re.search("Failed to fetch|error sending request|dns error", done.stderr):
        pytest.skip("the Python package index cannot be reached, and uv's cache does not hold what this needs")
    pytest.fail(f"uv {' '.join(map(str, words))}\n{done.stderr}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy: what an earlier build left in the checkout must not get in."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in working_files():
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    uv("build", "--wheel", "--out-dir", folder / "out", folder / "source")
    return next((folder / "out").glob("*.whl"))


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    folder_of = {folder: package.replace(".", "/") for package, folder in SETUPTOOLS["package-dir"].items()}
    expected = {
        str(Path(folder_of[name.parts[0]], *name.parts[1:]))
        for name in working_files()
        if name.parts[0] in FOLDERS and (name.suffix in PACKAGED or name.name == "py.typed")
    }
    with zipfile.ZipFile(wheel) as archive:
        entries = archive.infolist()
    held = {entry.filename for entry in entries if ".dist-info/" not in entry.filename}
    assert held == expected
    assert {"callsheet/py.typed", "callsheet/retrievers/index/minilm_tokenizer.json"} <= held
    assert not [entry.filename for entry in entries if stat.S_ISLNK(entry.external_attr >> 16)]


def test_the_package_list_names_every_folder_with_modules() -> None:
    modules = [name for name in working_files() if name.suffix == ".py" and name.parts[0] in FOLDERS]
    dotted = {".".join(name.parent.parts) for name in modules}
    assert set(SETUPTOOLS["packages"]) == {d if d == "callsheet" else f"callsheet.{d}" for d in dotted}


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    machine_path = re.compile(r"(?<![\w./:}-])/(?:root|work|opt/pypi|opt/wheels|home/\w+|Users/\w+)(?![\w-])")
    found = [
        f"{name}: {hit.group()}"
        for name in working_files()
        if (ROOT / name).is_file()
        for hit in machine_path.finditer((ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]
    assert found == []


def test_the_pins_name_no_host() -> None:
    assert "://" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_callsheet_installs_beside_openai_agents(wheel: Path, tmp_path: Path) -> None:
    """Our folder ``agents`` must not take the place of their package ``agents``."""
    python = tmp_path / "venv" / "bin" / "python"
    uv("venv", "--python", sys.executable, tmp_path / "venv")
    # Only our tests need websockets, in a version that theirs does not take.
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(pin for pin in pins if not pin.startswith("websockets==")))
    uv("pip", "install", "--python", python, "--constraints", constraints, wheel, "openai-agents==0.24.0")
    program = (
        "import importlib.metadata as m, importlib.util as u\n"
        "theirs = {f.locate() for f in m.files('openai-agents')}\n"
        "assert u.find_spec('agents').origin in map(str, theirs)\n"
        "from callsheet import AgentGraphRetriever, Catalog, create_supervisor\n"
        "assert 'site-packages' in __import__('callsheet').__file__\n"
    )
    done = subprocess.run([python, "-I", "-c", program], check=False, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
