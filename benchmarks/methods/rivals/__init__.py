"""Other tool retrievers on the same queries with the same vectors, each in an environment of its own.

``make bench-rivals`` makes the environment; none of them is ever a dependency of this project.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.methods.baselines.agents import owners
from benchmarks.methods.search import World
from benchmarks.sets.cases import Case, Level
from callsheet.graphs import Agent, Tool

WORKER = Path(__file__).with_name("worker.py")
RIVALS: Mapping[str, str] = {
    "gtc": "graph-tool-call, keywords and graph",
    "gtc-embedding": "graph-tool-call, with embedding",
    "callbus-bm25": "callbus, BM25",
    "callbus-dense": "callbus, dense",
    "callbus-hybrid": "callbus, BM25 + dense",
}
_AGENT_DEPTH = 50


@dataclass(frozen=True, slots=True)
class RivalRun:
    """What a rival answered.

    Attributes:
        rankings: Tool or agent ids for each query, best first.
        seconds: For all queries, embedding apart.
        version: The installed package's.
    """

    rankings: Sequence[Sequence[str]]
    seconds: float
    version: str


def run_rival(
    python: Path, rival: str, world: World, cases: Sequence[Case], level: Level, depth: int
) -> RivalRun | str:
    """One rival over all queries, or one line that says why it could not.

    Args:
        python: The interpreter of the environment that has the rival.
        rival: A key of ``RIVALS``.
        world: The catalog, and the vectors that it is lent.
        cases: The queries.
        level: For agents, each tool that it finds stands for its owner.
        depth: How many tools it is asked for.
    """
    request = {
        "rival": rival,
        "agents": [_listing(agent) for agent in world.catalog.agents],
        "queries": [case.query for case in cases],
        "depth": max(depth, _AGENT_DEPTH) if level == "agent" else depth,
    }
    command = [str(python), str(WORKER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        answer = _talk(process, request, world)
    if "rankings" not in answer:
        return f"{RIVALS[rival]}: left out, {answer.get('error', 'its process ended')}"
    rankings = [[tool for tool in ranking if tool in world.catalog.tools] for ranking in answer["rankings"]]
    if level == "agent":
        rankings = [owners(world, ranking) for ranking in rankings]
    return RivalRun(rankings, answer["seconds"], answer["version"])


def _talk(process: subprocess.Popen[str], request: Mapping[str, Any], world: World) -> Mapping[str, Any]:
    """Sends the request and lends vectors until the answer comes."""
    if process.stdin is None or process.stdout is None:
        return {"error": "no pipes to its process"}

    def send(message: Mapping[str, Any]) -> None:
        process.stdin.write(json.dumps(message) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]

    send(request)
    for line in process.stdout:
        message: Mapping[str, Any] = json.loads(line)
        if "embed" not in message:
            return message
        vectors = world.published.encode(message["embed"])
        send({"vectors": base64.b64encode(vectors.astype("<f4").tobytes()).decode(), "columns": vectors.shape[1]})
    return {"error": f"its process ended with {process.wait()}"}


def _listing(agent: Agent) -> dict[str, Any]:
    return {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description,
        "tools": [_entry(tool) for tool in agent.tools],
    }


def _entry(tool: Tool) -> dict[str, Any]:
    entry = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    return entry if tool.output_schema is None else {**entry, "outputSchema": tool.output_schema}


def rivals_there(python: Path | None, say: Callable[[str], None]) -> Path | None:
    """The interpreter, or a word that the rivals are left out and how to have them."""
    if python is not None and python.is_file():
        return python
    missing = "no --rivals-python was given" if python is None else f"there is no {python}"
    say(f"rivals: left out, {missing}; make bench-rivals sets them up and runs them")
    return None
