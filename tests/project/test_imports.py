"""What must not be imported on the way to the first answer."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("chromadb", "langchain", "langchain_core", "langgraph", "mcp", "networkx", "numpy", "onnxruntime", "rdflib")
OF_WORK = (
    "a2a", "babel", "bs4", "chromadb", "cryptography", "jsonschema", "langchain_community", "langgraph_api", "mcp",
    "networkx", "onnxruntime", "pint", "pydantic_monty", "rdflib", "sqlalchemy", "starlette", "tokenizers",
    "uvicorn", "yaml",
)  # fmt: skip
"""What only an index, a graph, a server or a call needs: none of it is imported with the name of the supervisor."""


@pytest.mark.parametrize(
    ("program", "heavy"),
    [
        ("import callsheet", (*HEAVY, "pydantic")),
        ("from callsheet.orchestrator.cli.main import callsheet; callsheet(['--help'], standalone_mode=False)", HEAVY),
        ("import callsheet; callsheet.Catalog", HEAVY[:5]),
        ("import callsheet; callsheet.create_supervisor", OF_WORK),
    ],
)
def test_what_costs_seconds_to_import_waits_until_it_is_needed(program: str, heavy: tuple[str, ...]) -> None:
    check = f"import sys; {program}; print('loaded', *(name for name in {heavy!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["loaded"]
