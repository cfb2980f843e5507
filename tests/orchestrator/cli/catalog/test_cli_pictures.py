"""``callsheet export --format html`` and ``svg`` as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callsheet.orchestrator.cli.main import main

MANIFEST = {"name": "sums", "tools": [{"name": "add", "description": "Adds </script> two.", "inputSchema": {}}]}


@pytest.mark.parametrize(("form", "first"), [("html", "<!doctype html>"), ("svg", "<?xml")])
def test_a_picture_is_written_to_a_file(
    form: str, first: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    (tmp_path / "sums.json").write_text(json.dumps(MANIFEST))
    picture = tmp_path / f"graph.{form}"
    with pytest.raises(SystemExit) as ended:
        main(["export", "--format", form, "--catalog", str(tmp_path / "sums.json"), "-o", str(picture)])
    assert not ended.value.code
    assert capsys.readouterr().out == ""
    text = picture.read_text(encoding="utf-8")
    assert text.startswith(first)
    assert "1 agent, 1 tool, 0 dependencies" in text
    assert "Adds </script>" not in text
