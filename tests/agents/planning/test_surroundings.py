"""What models know of date, people and folders."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.tools import tool

from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.context import folders_of, surroundings
from callsheet.graphs import Catalog, ServerConfig
from callsheet.graphs.catalog.formats.manifests import Problem
from callsheet.graphs.catalog.formats.server_config import ServerOptions


def registry(*problems: Problem, **connections: Any) -> Any:
    loaded = SimpleNamespace(connections=connections, problems=problems)
    return SimpleNamespace(loaded=loaded, catalog=Catalog(), policy=None)


def test_the_folders_of_a_server_are_read_from_its_entry(tmp_path: Path) -> None:
    data, base = tmp_path / "data", tmp_path / "base"
    data.mkdir(), base.mkdir()
    (tmp_path / "shop.db").touch()
    server = ServerConfig(
        command="serve",
        args=("--dir", str(data), str(tmp_path / "shop.db"), "relative", str(tmp_path / "gone")),
        env={"BASE": str(base), "KEY": "secret"},
        cwd=str(tmp_path),
        callsheet=ServerOptions(roots=("/srv/reports",)),
    )
    known = registry(disk=server)
    assert folders_of(known, "disk") == ("/srv/reports", str(tmp_path), str(data), str(base))
    assert folders_of(known, "other") == ()


def test_a_server_whose_variables_are_not_set_has_no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    assert folders_of(registry(disk=ServerConfig(command="serve", args=("${NOT_SET}",))), "disk") == ()


def test_the_folder_of_tools_of_this_process_is_their_root_dir(tmp_path: Path) -> None:
    @tool
    def read(path: str) -> str:
        """Reads."""
        return path

    object.__setattr__(read, "root_dir", str(tmp_path))
    assert folders_of(registry(files=InProcess({"read": read})), "files") == (str(tmp_path),)


def test_surroundings_are_one_text_for_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    one, two = (ServerConfig(command="serve", cwd=str(tmp_path / name)) for name in "ab")
    text = surroundings(registry(a=one, b=two), ["a", "b", "c"], 0.0, present=True)
    assert text.startswith("Now: Thursday, 1970-01-01 00:00, UTC+0000 (UTC).\nA person is present")
    assert f"- a: {tmp_path / 'a'}\n- b: {tmp_path / 'b'}\nA path of one agent may be out of reach for another." in text
    gone = Problem("sympy", "start", "it did not start within 60 s")
    alone = surroundings(registry(gone, a=one), ["a"], 0.0, present=False)
    assert "Nobody is present" in alone
    assert "Agents that are not available in this run: sympy." in alone
    assert "did not start" not in alone  # what a server wrote is no way into a prompt
    assert "out of reach" not in alone
