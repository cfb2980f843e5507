"""The demo's agents, started once for all requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from request_runs import ROOT, Demo, demo


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    if not (ROOT / ".venv/.demo").exists():
        pytest.skip("the demo's MCP servers are not set up: run `make test`")
    home: Path = tmp_path_factory.mktemp("requests")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        with demo(home) as started:
            yield started
