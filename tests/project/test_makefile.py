"""What make says and leaves, in a copy of the checkout's Makefile."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = re.findall(r"^([.\w][\w.-]+)/$", (ROOT / ".gitignore").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the Makefile, an environment, and everything that git ignores."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in (*IGNORED, "callsheet.egg-info", ".venv/bin", "graphs/text/__pycache__"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "file").touch()
    program(tmp_path, "python", f'exec {sys.executable} "$@"')
    return tmp_path


def program(checkout: Path, name: str, body: str) -> None:
    (checkout / ".venv" / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
    (checkout / ".venv" / "bin" / name).chmod(0o755)


def make(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=checkout, capture_output=True, text=True, check=False)


def test_clean_leaves_nothing_in_the_checkout_and_names_the_rest(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", "/the/home/of/callsheet")
    done = make(checkout, "clean")
    assert done.returncode == 0, done.stderr
    assert sorted(file.name for file in checkout.rglob("*")) == ["Makefile", "graphs", "text"]
    assert done.stdout.count("/the/home/of/callsheet") == 2
    assert "uv cache clean" in done.stdout


@pytest.mark.parametrize(("status", "ends"), [(0, 0), (1, 0), (2, 2), (70, 2)])
def test_a_refusal_is_no_error_of_make_and_a_crash_is(checkout: Path, status: int, ends: int) -> None:
    program(checkout, "callsheet", f'echo "$@"; exit {status}')
    done = make(checkout, "-o", ".venv/.demo", "run", 'Q=Say "$HOME" twice')
    assert 'Say "$HOME" twice' in done.stdout
    assert (done.returncode, "Error" in done.stderr) == (ends, bool(ends))
