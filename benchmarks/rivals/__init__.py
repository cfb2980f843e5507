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
from benchmarks.measurements.whole_requests import LARGE as PLANNED_IN_PART, plans_of
from benchmarks.rankings import OURS, Outcome, evaluate, ours_at, summary
from benchmarks.search import World
from benchmarks.sets.cases import Benchmark, Case, Level
from callsheet.graphs import Agent, Tool
from callsheet.retrievers.index.embedding import encode

WORKER = Path(__file__).with_name("worker.py")
RIVALS: Mapping[str, str] = {
    "gtc": "graph-tool-call, keywords and graph",
    "gtc-embedding": "graph-tool-call, with embedding",
    "gtc-closure": "graph-tool-call, with embedding and closure",
    "callbus-bm25": "callbus, BM25",
    "callbus-dense": "callbus, dense",
    "callbus-hybrid": "callbus, BM25 + dense",
    "callbus-bm25-schema": "callbus, BM25, text of schemas",
    "callbus-dense-schema": "callbus, dense, text of schemas",
    "callbus-hybrid-schema": "callbus, BM25 + dense, text of schemas",
    "toolhunch-bm25": "toolhunch, BM25",
    "toolhunch-hybrid": "toolhunch, BM25 + embedding",
    "dehydrator": "dehydrator, BM25L",
    "fastmcp": "FastMCP, BM25 search transform",
    "langchain": "LangChain, LLMToolSelectorMiddleware, recorded model",
}
DECLARED = "gtc-closure"
"""The rival that follows declared dependencies: run only where a catalog has some."""
ANSWERED = "langchain"
"""The rival that asks a model: run only on requests for which answers of one are recorded."""
_AGENT_DEPTH = 50
SLOW = ("gtc", "gtc-embedding", "gtc-closure", "fastmcp")
"""The rivals that are asked a part of the queries, evenly spread, because each takes them up to seconds."""
MOST, MOST_OF_LARGE, LARGE = 270, 30, 1_000
"""Numbers of queries for the slow ones: of a catalog with at most so many tools, and of a larger one."""


class RivalError(RuntimeError):
    """Why a rival gave no rankings."""


def worth_comparing(bench: Benchmark) -> bool:
    """Not where a second benchmark asks the same queries: the rivals know no declared order, and take long."""
    return not bench.name.endswith(("-single", "-published", "-chinese"))


def beside_rivals(bench: Benchmark, world: World, python: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of a results file; a rival that fails is named and left out."""
    part = bench.sample(MOST_OF_LARGE if len(bench.catalog.tools) > LARGE else MOST)
    levels, versions, answers = {}, dict[str, str](), recorded_answers(bench)
    for level, cutoffs in bench.levels.items():
        select = ours_at(world, level, cutoffs[-1])
        ours = {case.query: select(case.query) for case in bench.cases(level)}
        body: Any = summary(bench, level, {OURS: _outcome(ours, bench, level)})
        for rival, title in RIVALS.items():
            if not _fits(rival, bench, answers):
                continue
            asked = part if rival in SLOW else bench
            try:
                found = run_rival(python, rival, world, asked.cases(level), level, cutoffs[-1], answers)
            except RivalError as error:
                say(f"{title}: left out, {error}")
                continue
            say(f"{title} {found.version}, {level}s: {found.milliseconds:.0f} ms of processor a query, embedding apart")
            both = {OURS: _outcome(ours, asked, level), title: _outcome(found.rankings, asked, level)}
            measured: Any = summary(asked, level, both)
            body["methods"][title] = {**measured["methods"][title], "n": measured["n"]}
            versions[title] = found.version
        levels[level] = body
    about = f"{bench.about}; other programs on the same queries with the same vectors"
    return {"about": about, "levels": levels, "rivals": versions}


def _outcome(rankings: Mapping[str, Sequence[str]], bench: Benchmark, level: Level) -> Outcome:
    """The metrics of rankings by query."""
    cases = bench.cases(level)
    return Outcome(evaluate((rankings[case.query] for case in cases), cases, level, bench.levels[level]))


def recorded_answers(bench: Benchmark) -> dict[str, list[str]]:
    """The tools that a model chose for each query of a benchmark; empty if no answers for all are recorded."""
    if bench.name == PLANNED_IN_PART:
        return {}
    plans = plans_of(bench.name)
    known = {case.query: list(plans[case.id].picks) for case in bench.queries if case.id in plans}
    return known if all(case.query in known for case in bench.queries) else {}


def _fits(rival: str, bench: Benchmark, answers: Mapping[str, Sequence[str]]) -> bool:
    if rival == DECLARED:
        return bench.dependencies
    return bool(answers) or rival != ANSWERED


class Answers(NamedTuple):
    """What a rival answered: ids by query, best first; its version; processor time a query, embedding apart."""

    rankings: Mapping[str, Sequence[str]]
    version: str
    milliseconds: float


def run_rival(
    python: Path,
    rival: str,
    world: World,
    cases: Sequence[Case],
    level: Level,
    depth: int,
    answers: Mapping[str, Sequence[str]] | None = None,
) -> Answers:
    """Asks a rival all queries of these cases; it is lent the vectors, and answers of a model by query.

    For agents, each tool that it finds stands for its owner. If it fails: ``RivalError``.
    """
    queries = list(dict.fromkeys(case.query for case in cases))
    request = {
        "rival": rival,
        "agents": [_listing(agent) for agent in world.catalog.agents],
        "queries": queries,
        "depth": max(depth, _AGENT_DEPTH) if level == "agent" else depth,
        "answers": answers or {},
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
    found = dict(zip(queries, rankings, strict=True))
    return Answers(found, answer["version"], 1000 * answer["seconds"] / len(queries))


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
    return {
        "id": agent.id,
        "name": agent.name,
        "description": agent.description,
        "tools": [_entry(tool) for tool in agent.tools],
    }


def _entry(tool: Tool) -> dict[str, Any]:
    entry = {
        "id": tool.id,
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "depends_on": [one.tool for one in tool.depends_on],
    }
    return entry | ({} if tool.output_schema is None else {"outputSchema": tool.output_schema})
