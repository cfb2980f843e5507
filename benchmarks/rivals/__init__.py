"""Other tool retrievers on the same queries with the same vectors, each in an environment of its own.

``make bench-rivals`` makes the environment; none of them is ever a dependency of this project.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines import owners
from benchmarks.rankings import OURS, Outcome, evaluate, outcomes, summary
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.graphs import Agent
from callsheet.retrievers.index.embedding import encode

WORKER = Path(__file__).with_name("worker.py")
RIVALS: Mapping[str, str] = {
    "gtc": "graph-tool-call, keywords and graph",
    "gtc-embedding": "graph-tool-call, with embedding",
    "callbus-bm25": "callbus, BM25",
    "callbus-dense": "callbus, dense",
    "callbus-hybrid": "callbus, BM25 + dense",
}
_AGENT_DEPTH = 50
MOST, MOST_OF_LARGE, LARGE = 270, 30, 1_000
"""Queries: one rival takes seconds for each over thousands of tools."""
_BESIDE = (OURS, "dense, tools", "dense (naive RAG)", "Agent-as-a-Graph 1.5:1", "BM25 + dense, RRF")


class RivalError(RuntimeError):
    """Why a rival gave no rankings."""


def worth_comparing(bench: Benchmark) -> bool:
    """Not where a second benchmark asks the same queries: the rivals know no declared order, and take long."""
    return not bench.name.endswith(("-single", "-published", "-chinese"))


def beside_rivals(bench: Benchmark, world: World, python: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of a results file; a rival that fails is named and left out."""
    sample = bench.sample(MOST_OF_LARGE if len(bench.catalog.tools) > LARGE else MOST)
    levels, versions = {}, {}
    for level in sample.levels:
        found = {name: outcome for name, outcome in outcomes(sample, level, world) if name in _BESIDE}
        cases, cutoffs = sample.cases(level), sample.levels[level]
        for rival, title in RIVALS.items():
            try:
                rankings, seconds, version = run_rival(python, rival, world, cases, level, cutoffs[-1])
            except RivalError as error:
                say(f"{title}: left out, {error}")
                continue
            say(f"{title} {version}, {level}s: {1000 * seconds / len(cases):.0f} ms a query, embedding apart")
            found[title] = Outcome(evaluate(rankings, cases, level, cutoffs))
            versions[title] = version
        levels[level] = summary(sample, level, found)
    about = f"{bench.about}; other programs on the same queries with the same vectors"
    return {"about": about, "levels": levels, "rivals": versions}


def run_rival(
    python: Path, rival: str, world: World, cases: Sequence[Case], level: Level, depth: int
) -> tuple[list[list[str]], float, str]:
    """What a rival answers: ids for each query, best first, seconds for all, embedding apart, and its version.

    It is lent the vectors. For agents, each tool that it finds stands for its owner. If it fails: ``RivalError``.
    """
    request = {
        "rival": rival,
        "agents": [_listing(agent) for agent in world.catalog.agents],
        "queries": [case.query for case in cases],
        "depth": max(depth, _AGENT_DEPTH) if level == "agent" else depth,
    }
    try:
        with subprocess.Popen([python, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            answer = _talk(process, request, world)
    except BrokenPipeError as error:
        raise RivalError("its process ended") from error
    if "error" in answer:
        raise RivalError(answer["error"])
    rankings = [[tool for tool in ranking if tool in world.catalog.tools] for ranking in answer["rankings"]]
    if level == "agent":
        rankings = [owners(world, ranking) for ranking in rankings]
    return rankings, answer["seconds"], answer["version"]


def _talk(process: subprocess.Popen[str], request: Mapping[str, Any], world: World) -> Mapping[str, Any]:
    """Sends the request and lends vectors until the answer comes."""
    message: Mapping[str, Any] = request
    while True:
        print(json.dumps(message), file=process.stdin, flush=True)
        if not (line := process.stdout.readline()):  # type: ignore[union-attr]
            return {"error": f"its process ended with {process.wait()}"}
        answer: Mapping[str, Any] = json.loads(line)
        if "embed" not in answer:
            return answer
        vectors = encode(world.published, answer["embed"])
        coded = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
        message = {"vectors": coded, "columns": vectors.shape[1]}


def _listing(agent: Agent) -> dict[str, Any]:
    tools: list[dict[str, Any]] = [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
        | ({} if tool.output_schema is None else {"outputSchema": tool.output_schema})
        for tool in agent.tools
    ]
    return {"id": agent.id, "name": agent.name, "description": agent.description, "tools": tools}
