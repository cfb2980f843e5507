"""From the published files to benchmarks. The data are not kept here: each loader says where its own come from."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.sets.cases import Benchmark, Case, Level, wanted, with_dependencies
from callsheet.graphs import Agent, Catalog, CatalogError, Dependency, DependencyKind, Tool, load
from callsheet.retrievers import read_queries

SHUFFLE_SEED = 0
_AGENT_KS, _TOOL_KS, _LIST_KS = (1, 3, 5), (1, 3, 5, 10), (10, 20, 30)
_BOTH: Mapping[Level, tuple[int, ...]] = {"agent": _AGENT_KS, "tool": _TOOL_KS}
_LONGER = "Callsheet's lists are its selections of 10 tools, and at 20 and 30 go on with those of a selection of 30"
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_FAMILY = re.compile(
    r"(_(alt|implicit|ambiguous|twice|multiple_user_turn|insufficient_information|no_remove_contact"
    r"|no_search_contacts|low_battery_mode|wifi_off|cellular_off))+$"
)


def livemcpbench(folder: Path) -> list[Benchmark]:
    """Step by step (each aligned step one query), and the whole question at once.

    Some steps can be done by either of two servers: any one counts, and in the benchmarks named ``-single``
    only the first does, which is how the figures of some earlier reports were counted.

    Source: LiveMCPBench, github.com/icip-cas/LiveMCPBench (Apache-2.0): ``tools.json`` as published;
    ``aligned.json``: its annotated steps, each aligned by hand to the tools that serve it.
    """
    catalog = load(folder / "tools.json").catalog
    tasks = _read(folder / "aligned.json")["queries"]
    about = "LiveMCPBench, {}: 70 servers, 527 tools"
    only = "; of alternative servers only the one that is named first counts"
    parts = {
        "steps": [(f"{t['id']}/{n}", t, step["text"], [step]) for t in tasks for n, step in enumerate(t["steps"], 1)],
        "direct": [(task["id"], task, task["text"], task["steps"]) for task in tasks],
    }
    benches = []
    for (name, asked), form in zip(parts.items(), ("each step a query", "whole questions"), strict=True):
        said = about.format(form)
        every, one = (tuple(_case(*part, key) for part in asked) for key in ("gold_agent_alts", "gold_agents"))
        benches += [
            Benchmark(f"livemcpbench-{name}", said, catalog, every, _BOTH),
            Benchmark(f"livemcpbench-{name}-single", said + only, catalog, one, {"agent": _AGENT_KS}),
        ]
    return [*benches, *_chinese(benches[0])]


def _chinese(steps: Benchmark) -> list[Benchmark]:
    """The steps that are served by an agent which describes itself or a tool in Chinese, searched among all agents."""
    written = {
        agent.id
        for agent in steps.catalog.agents
        if _CJK.search("".join((agent.description, *(tool.description for tool in agent.tools))))
    }
    cases = tuple(case for case in steps.queries if any(element & written for element in case.agents))
    about = f"{steps.about}; only the steps, mostly in English, that one of {len(written)} servers with Chinese serves"
    return [replace(steps, name=f"{steps.name}-chinese", about=about, queries=cases)] if cases else []


def _case(name: str, task: Mapping[str, Any], text: str, steps: Sequence[Mapping[str, Any]], agents: str) -> Case:
    found = [[one] if isinstance(one, str) else one for step in steps for one in step[agents]]
    return Case(name, text, task["id"], wanted(found), wanted(tool for step in steps for tool in step["gold_tools"]))


def toollinkos(folder: Path) -> list[Benchmark]:
    """With its dependencies as published, and with each tool's list of them shuffled.

    The published order of ``depends_on`` follows that of the gold lists, so a walk in file order is told
    more than a user's catalog would tell it: the shuffled one is the honest target.

    Source: Graph RAG-Tool Fusion, github.com/EliasLumer/Graph-RAG-Tool-Fusion-ToolLinkOS (MIT).
    """
    catalog = load(folder).catalog
    agent = catalog.agents[0].id
    cases = tuple(
        Case(
            str(number),
            instance["user_query"],
            instance["main_golden_function_name"],
            tools=wanted([f"{agent}/{name}"] for name in instance["golden_function_names"]),
        )
        for number, instance in enumerate(_read(folder / "instances.json"))
    )
    about = f"ToolLinkOS, dependencies in {{}} order: 573 tools; {_LONGER}"
    return [
        Benchmark(f"toollinkos-{order}", about.format(order), tools, cases, {"tool": _LIST_KS})
        for order, tools in (("published", catalog), ("shuffled", shuffled(catalog, SHUFFLE_SEED)))
    ]


def shuffled(catalog: Catalog, seed: int) -> Catalog:
    """The same catalog with each tool's dependencies in another order."""
    chance = random.Random(seed)
    return with_dependencies(catalog, lambda tool: chance.sample(tool.depends_on, len(tool.depends_on)))


def toolsandbox(folder: Path) -> list[Benchmark]:
    """Base scenarios over the tools of a phone; wordings and set-ups of one scenario are one group.

    Source: derived from ToolSandbox, github.com/apple/ToolSandbox (Apple sample code licence): tools and
    gold lists as there, dependencies read off its code.
    """
    document = _read(folder / "toolsandbox.json")
    owner = {tool["name"]: tool["agent"] for tool in document["tools"]}
    tools = [
        Tool(
            **{name: tool[name] for name in ("agent", "name", "description", "input_schema")},
            depends_on=tuple(
                Dependency(
                    tool=f"{owner[edge['dst']]}/{edge['dst']}",
                    kind=DependencyKind(edge["type"].removesuffix("_DEPENDS_ON").lower()),
                    parameter=edge["param"],
                )
                for edge in document["edges"]
                if edge["src"] == tool["name"]
            ),
        )
        for tool in document["tools"]
    ]
    agents = (Agent(id=one, tools=tuple(t for t in tools if t.agent == one)) for one in dict.fromkeys(owner.values()))
    cases = tuple(
        Case(
            query["id"],
            query["text"],
            _FAMILY.sub("", query["id"]),
            tools=wanted([f"{owner[name]}/{name}"] for name in query["gold_tools"]),
        )
        for query in document["queries"]
    )
    about = f"ToolSandbox, base scenarios: {len(owner)} tools; {_LONGER}"
    return [Benchmark("toolsandbox", about, Catalog(agents=tuple(agents)), cases, {"tool": _LIST_KS})]


def restbench(folder: Path) -> list[Benchmark]:
    """Questions over the operations of TMDB; questions with the same chain of operations are one group.

    The edges come from the chains of these questions, so retrieval with them is not measured.

    Source: the TMDB half of RestBench, github.com/Yifan-Song793/RestGPT (MIT): the specification as published, the
    chain of each question, and the edges that the chains show.
    """
    specification = folder / "tmdb_oas.json"
    operations = {
        f"{method.upper()} {path}": operation["operationId"]
        for path, item in _read(specification)["paths"].items()
        for method, operation in item.items()
        if isinstance(operation, Mapping) and "operationId" in operation
    }
    with TemporaryDirectory() as kept:
        agents = load(specification, pins=Path(kept) / "pins.json").catalog.agents
    ids = {tool.name: tool.id for agent in agents for tool in agent.tools}
    needs: dict[str, list[Dependency]] = {}
    for edge in _read(folder / "tmdb_edges.json"):
        source, target = (ids[operations[edge[end]]] for end in ("source", "target"))
        needs.setdefault(source, []).append(Dependency(tool=target, kind=DependencyKind.PARAMETER_INDIRECTLY))
    catalog = with_dependencies(Catalog(agents=agents), lambda tool: needs.get(tool.id, ()))
    cases = []
    for number, line in enumerate((folder / "tmdb.jsonl").read_text(encoding="utf-8").splitlines(), 1):
        query, chain = (json.loads(line)[field] for field in ("query", "chain"))
        cases.append(Case(str(number), query, "+".join(chain), tools=wanted([ids[operations[one]]] for one in chain)))
    about = f"RestBench, TMDB: {len(ids)} operations of one API"
    return [Benchmark("restbench", about, catalog, tuple(cases), {})]


def labelled(folder: Path) -> list[Benchmark]:
    """A folder with ``catalog/`` and ``queries.jsonl``; queries that want the same tools are one group.

    Source: Seal-Tools, its dev split, with the fields of its tools as agents, github.com/fairyshine/Seal-Tools
    (Apache-2.0); MetaTool, whose agents have one tool each, so tools only, github.com/HowieHwong/MetaTool (MIT).
    """
    catalog, seal = load(folder / "catalog").catalog, folder.name == "sealtools"
    cases = []
    for query in read_queries(folder / "queries.jsonl", catalog):
        group = "+".join(sorted("|".join(sorted(element)) for element in query.tools or query.agents))
        cases.append(Case(query.id, query.query, group, wanted(query.agents), wanted(query.tools)))
    title = "Seal-Tools, dev split" if seal else "MetaTool, one tool an agent"
    about = f"{title}: {len(catalog.agents)} agents, {len(catalog.tools)} tools"
    return [Benchmark(folder.name, about, catalog, tuple(cases), _BOTH if seal else {"tool": _TOOL_KS})]


def mcp_atlas(folder: Path) -> list[Benchmark]:
    """Steps of tasks, those of a task one group, and whole requests; any of several tools that serve counts.

    Source: MCP-Atlas, github.com/scaleapi/mcp-atlas (CC BY 4.0), with the alternatives of each tool, and for steps the
    texts, added.
    """
    catalog, found = load(folder / "catalog").catalog, []
    about = f"{len(catalog.agents)} MCP servers, {len(catalog.tools)} tools; any of several tools that serve counts"
    for part, title in (("steps", "single steps of tasks"), ("requests", "whole requests")):
        name, said, levels = f"mcp-atlas-{part}", f"MCP-Atlas, {title}: {about}", {"tool": _TOOL_KS}
        lines = map(json.loads, (folder / f"{part}.jsonl").read_text(encoding="utf-8").splitlines())
        cases = (Case(one["id"], one["query"], one.get("task", one["id"]), (), wanted(one["tools"])) for one in lines)
        found.append(Benchmark(name, said, catalog, tuple(cases), levels))  # type: ignore[arg-type]
    return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


LOADERS: Mapping[str, Callable[[Path], list[Benchmark]]] = {
    **{loader.__name__: loader for loader in (livemcpbench, toollinkos, toolsandbox, restbench)},
    **dict.fromkeys(("sealtools", "metatool"), labelled),
    "mcp-atlas": mcp_atlas,
}
SOURCES = "docs/reference/benchmarks.md says where its data come from"


def load_benchmarks(data: Path, only: Sequence[str] = ()) -> tuple[list[Benchmark], list[str]]:
    """Every benchmark whose data are there, and one line for each folder that is missing or unreadable.

    ``only`` has names, or beginnings of names, of the benchmarks that are wanted; all where none is given.
    """
    found, said = list[Benchmark](), list[str]()
    for name, loader in LOADERS.items():
        if only and not any(word.startswith(name) or name.startswith(word) for word in only):
            continue
        if not (data / name).is_dir():
            said.append(f"{name}: left out, there is no {data / name}: {SOURCES}")
            continue
        try:
            found.extend(loader(data / name))
        except (CatalogError, OSError, KeyError, ValueError) as error:
            said.append(f"{name}: left out, its data cannot be read: {type(error).__name__}: {error}; {SOURCES}")
    return [bench for bench in found if not only or any(bench.name.startswith(word) for word in only)], said
