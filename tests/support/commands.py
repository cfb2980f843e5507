"""The command line, run in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from callsheet.orchestrator.cli.main import main

Cli = Callable[..., tuple[int, str, str]]
"""``callsheet`` with some arguments: exit status, standard output, standard error."""


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of ``callsheet`` with these arguments."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err
