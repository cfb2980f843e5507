"""Other tool retrievers on the same queries with the same vectors, each in an environment of its own.

``make bench-rivals`` makes the environment; none of them is ever a dependency of this project.
"""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.baselines import owners
from benchmarks.rankings import OURS, Outcome, evaluate, outcomes, summary
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.graphs import Agent

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
_BESIDE = (OURS, "dense, tools", "dense (naive RAG)", "Agent-as-a-Graph 1.5:1", "BM25 + dense, RRF (hybrid RAG)")


class RivalRun(NamedTuple):
    """What a rival answered: ids for each query, best first, seconds for all, embedding apart, and its version."""

    rankings: Sequence[Sequence[str]]
    seconds: float
    version: str


def run_rival(
    python: Path, rival: str, world: World, cases: Sequence[Case], level: Level, depth: int
) -> RivalRun | str:
    """One rival over all queries, or one line that says why it could not.

    It runs in the environment of this interpreter, and is lent the vectors. For agents, each tool that it finds stands
    for its owner.
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
    fields = {"name": "name", "description": "description", "input_schema": "inputSchema"}
    tools = [{given: getattr(tool, own) for own, given in fields.items()} for tool in agent.tools]
    for entry, tool in zip(tools, agent.tools, strict=True):
        if tool.output_schema is not None:
            entry["outputSchema"] = tool.output_schema
    return {"id": agent.id, "name": agent.name, "description": agent.description, "tools": tools}


def rivals_there(python: Path | None, say: Callable[[str], None]) -> Path | None:
    """The interpreter, or a word that the rivals are left out and how to have them."""
    if python is not None and python.is_file():
        return python
    missing = "no --rivals-python was given" if python is None else f"there is no {python}"
    say(f"rivals: left out, {missing}; make bench-rivals sets them up and runs them")
    return None


def worth_comparing(bench: Benchmark) -> bool:
    """Not where a second benchmark asks the same queries: the rivals know no declared order, and take long."""
    return not bench.name.endswith(("-single", "-published", "-chinese"))


def beside_rivals(bench: Benchmark, world: World, python: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of a results file; a rival that fails is named and left out."""
    sample = bench.sample(MOST_OF_LARGE if len(bench.catalog.tools) > LARGE else MOST)
    levels, versions = {}, {}
    for level in sample.levels:
        found = {name: outcome for name, outcome in outcomes(sample, level, world) if name in _BESIDE}
        cases, cutoffs = sample.cases(level), sample.cutoffs_of(level)
        for rival, title in RIVALS.items():
            run = run_rival(python, rival, world, cases, level, cutoffs[-1])
            if isinstance(run, str):
                say(run)
                continue
            milliseconds = 1000 * run.seconds / len(cases)
            say(f"{title} {run.version}, {level}s: {milliseconds:.0f} ms a query, embedding apart")
            values = evaluate(run.rankings, cases, level, cutoffs)
            found[title] = Outcome(values, source=f"{title} {run.version}", seconds=run.seconds)
            versions[title] = run.version
        levels[level] = summary(sample, level, found)
    about = f"{bench.about}; other programs on the same queries with the same vectors"
    return {"about": about, "levels": levels, "rivals": versions}
