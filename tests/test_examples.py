"""The examples run as they stand."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(module: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env={**os.environ, "CALLSHEET_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_find_tools_brings_what_the_forecast_depends_on(tmp_path: Path) -> None:
    out = run("examples.find_tools", tmp_path)
    assert out.startswith("weather ")
    assert "weather/forecast > phone/get_location (required)" in out
    assert "calendar ['calendar/list_events'" in out


def test_own_tools_does_both_steps(tmp_path: Path) -> None:
    out = run("examples.own_tools", tmp_path)
    assert "done ['orders/order_status']" in out
    assert "done ['mail/send_mail']" in out
    assert "sent to ann@example.org" in out
