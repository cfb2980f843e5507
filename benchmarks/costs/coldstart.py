"""How long it takes from nothing to the first answer: import, ``--help``, ``retrieve``, a LangGraph server.

Each is run in turn with what it is measured beside, since a machine's seconds are its own: a bare interpreter, or a
server of the same version over a graph of one node. Seconds of the processor are of the process itself, so they say
what an idle machine would take at least.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sets.generated import generated_catalog
from callsheet.graphs.catalog.formats.catalog_files import dump

ROUNDS, TOOLS = 7, 1_000
COLUMNS = ("from nothing to", "at most", "median", "processor", "beside", "its median", "its processor", "difference")
BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]
_ABOUT = (
    f"Seconds, medians of {ROUNDS} processes, in turn with what is named beside them. The catalog has {TOOLS:,} "
    "generated tools, the index is built. Processor: user and system time, what an idle machine takes at least. The "
    "difference is that of the medians, and in brackets that of the processor"
)
_BARE = """
from langgraph.graph import START, MessagesState, StateGraph

graph = StateGraph(MessagesState).add_node("say", lambda state: {}).add_edge(START, "say").compile()
"""


@dataclass(frozen=True, slots=True)
class Took:
    """What one process took.

    Attributes:
        wall: Seconds on the clock.
        processor: Seconds of user and system time.
    """

    wall: float
    processor: float


def measure(say: Callable[[str], None], *, quick: bool = False) -> Mapping[str, object]:
    """The body of the results file."""
    rounds = 2 if quick else ROUNDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = prepared(folder)
        query = [str(BIN / "callsheet"), "retrieve", "a query about a tool"]
        bare = [sys.executable, "-c", "pass"]
        pairs = {
            "`import callsheet`": ([sys.executable, "-c", "import callsheet"], 0.2, True),
            "`callsheet --help`": ([str(BIN / "callsheet"), "--help"], 0.5, False),
            "`callsheet retrieve`": (query, 3.0, False),
        }
        rows = []
        for what, (words, most, over) in pairs.items():
            say(what)
            ours, beside = in_turn(lambda w=words: ran(w, env), lambda: ran(bare, env), rounds)
            rows.append(_row(what, most, ours, "a bare interpreter", beside, over=over))
        say("server")
        ours, beside = in_turn(
            lambda: _served(folder / "ours", env), lambda: _served(folder / "bare", env), max(2, rounds - 2)
        )
        rows.append(_row("a server that answers", 3.0, ours, "a bare LangGraph server", beside, over=True))
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def prepared(folder: Path) -> dict[str, str]:
    """A built index, and the folders of two servers."""
    (folder / "callsheet.json").write_text(dump(generated_catalog(TOOLS)), encoding="utf-8")
    bare = {"dependencies": ["."], "graphs": {"bare": "./bare.py:graph"}}
    for name, config in (("ours", json.loads((ROOT / "langgraph.json").read_text())), ("bare", bare)):
        (folder / name).mkdir()
        (folder / name / "langgraph.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "bare" / "bare.py").write_text(_BARE, encoding="utf-8")
    env = {
        **os.environ,
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": str(folder / "callsheet.json"),
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "true",
        "LANGSMITH_TRACING": "false",
        "ANONYMIZED_TELEMETRY": "False",
    }
    subprocess.run([str(BIN / "callsheet"), "index"], env=env, check=True, capture_output=True)
    return env


def in_turn(ours: Callable[[], Took], beside: Callable[[], Took], rounds: int) -> tuple[list[Took], list[Took]]:
    """Both, again and again; the first time only warms the file cache."""
    pairs = [(ours(), beside()) for _ in range(rounds + 1)][1:]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _row(what: str, most: float, ours: Sequence[Took], name: str, beside: Sequence[Took], *, over: bool) -> list[str]:
    wall, other = (statistics.median(took.wall for took in found) for found in (ours, beside))
    work, other_work = (statistics.median(took.processor for took in found) for found in (ours, beside))
    return [
        what,
        f"{most:g} more" if over else f"{most:g}",
        *(f"{wall:.2f}", f"{work:.2f}", name, f"{other:.2f}", f"{other_work:.2f}"),
        f"{wall - other:+.2f} ({work - other_work:+.2f})",
    ]


def ran(words: Sequence[str], env: Mapping[str, str]) -> Took:
    """One process from its start to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return _ended(process, began)


def _ended(process: subprocess.Popen[bytes], began: float, wall: float | None = None) -> Took:
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return Took(wall if wall is not None else time.perf_counter() - began, usage.ru_utime + usage.ru_stime)


def _served(folder: Path, env: Mapping[str, str]) -> Took:
    """A server, from its start until ``/ok`` answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(BIN / "langgraph"), "dev", "--port", str(port), "--no-browser", "--no-reload"]
    began = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not _answers(f"http://127.0.0.1:{port}/ok"):
        if process.poll() is not None:
            raise RuntimeError(f"the server of {folder.name} ended with status {process.returncode}")
        time.sleep(0.02)
    wall = time.perf_counter() - began
    process.terminate()
    return _ended(process, began, wall)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # a loopback address
            return bool(answer.status == 200)
    except OSError:
        return False
