"""What must not be imported on the way to the first answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("chromadb", "langchain", "langchain_core", "langgraph", "mcp", "networkx", "numpy", "onnxruntime", "rdflib")


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import callsheet", (*HEAVY, "pydantic")),
        ("from callsheet.orchestrator.cli.main import callsheet; callsheet(['--help'], standalone_mode=False)", HEAVY),
        ("import callsheet; callsheet.Catalog", HEAVY[:5]),
    ],
)
def test_what_costs_seconds_to_import_waits_until_it_is_needed(program: str, heavy: tuple[str, ...]) -> None:
    check = f"import sys; {program}; print('loaded', *(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]
