"""The command before it is loaded."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from callsheet.__main__ import main


def test_interrupted_while_it_is_loaded_it_ends_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = builtins.__import__

    def interrupted(name: str, *rest: Any, **more: Any) -> Any:
        if name == "callsheet.orchestrator.cli.main":
            raise KeyboardInterrupt
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "\ninterrupted\n"
