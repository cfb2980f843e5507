"""The publications that the encoder learns from or is validated on, read from checkouts of their repositories."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from callsheet.graphs import Agent, Tool
from callsheet.retrievers.index.node_texts import first_sentence

_LONGEST, _SHORTEST = 900, 8
_DOCUMENTED = 60
"""Maximum operations of one service whose documentation is read."""
_TAG = re.compile(r"<[^>]+>")
_ALPACA = re.compile(r"\d+\. Name: (\w+)\s+Description: (.*?)\s+Input: (.*?)\s+Output: (.*?)(?=\n\n|\Z)", re.DOTALL)
_MADE, _LIVE = ("simple_python", "multiple", "parallel", "parallel_multiple"), ("live_simple", "live_multiple")
_BFCL = "gorilla/berkeley-function-call-leaderboard/bfcl_eval/data"


@dataclass(frozen=True, slots=True)
class Example:
    """A request with the ids of the tools that answer it, and of those that were offered beside them and do not.

    Or a sentence of a tool's own documentation, which the tool must then be shown without.
    """

    query: str
    wanted: tuple[str, ...]
    others: tuple[str, ...] = ()
    documentation: bool = False


@dataclass(slots=True)
class Source:
    """The tools of one publication, by agent, and its examples."""

    name: str
    agents: dict[str, dict[str, Tool]] = field(default_factory=dict)
    examples: list[Example] = field(default_factory=list)

    def tool(self, agent: str, name: str, about: str, inputs: Iterable[str], outputs: Iterable[str] = ()) -> str:
        """Adds a tool, where it is new; its id."""
        owner, name = f"{self.name} {agent or name}".strip(), name.strip() or agent
        known = self.agents.setdefault(owner, {})
        if name not in known:
            given, back = ({one: {"type": "string"} for one in islice(names, 12)} for names in (inputs, outputs))
            schemas = {"input_schema": {"type": "object", "properties": given}}
            schemas |= {"output_schema": {"type": "object", "properties": back}} if back else {}
            known[name] = Tool(agent=owner, name=name, description=about or "", **schemas)
        return known[name].id

    def function(self, agent: str, function: Mapping[str, Any]) -> str:
        """Adds a tool that is described as a function; its id."""
        return self.tool(agent, function["name"], function["description"], _inputs(function))

    def asked(self, query: str, wanted: Iterable[str], offered: Iterable[str] = ()) -> None:
        """Adds a request, if it has a sensible length and something is wanted."""
        text, right = " ".join(query.split()), tuple(dict.fromkeys(wanted))
        if right and _SHORTEST <= len(text) <= _LONGEST:
            self.examples.append(Example(text, right, tuple(sorted(set(offered) - set(right)))))

    def documented(self, about: str, tool: str) -> None:
        """Adds the first sentence of a tool's documentation, if it says something."""
        sentence = first_sentence(_TAG.sub("", about or ""))
        if len(sentence) > 2 * _SHORTEST:
            self.examples.append(Example(sentence, (tool,), documentation=True))

    def catalog(self) -> dict[str, Agent]:
        """The agents by id; the name of one is what its publication calls it."""
        return {
            owner: Agent(id=owner, name=owner.removeprefix(self.name).strip(), tools=tuple(tools.values()))
            for owner, tools in self.agents.items()
        }


def _json(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _rows(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _inputs(function: Mapping[str, Any]) -> Iterable[str]:
    return (function.get("parameters") or function.get("arguments") or {}).get("properties") or ()


def stabletoolbench(folder: Path) -> Source:
    """StableToolBench (Apache-2.0): solvable requests of ToolBench to APIs of RapidAPI."""
    source = Source("stabletoolbench")
    for file in sorted((folder / "StableToolBench/solvable_queries/test_instruction").glob("*.json")):
        for row in _json(file):
            ids = {}
            for api in row["api_list"]:
                inputs = [p["name"] for p in (*api["required_parameters"], *api["optional_parameters"])]
                answer = api.get("template_response")
                key = api["tool_name"], api["api_name"]
                outputs = answer if isinstance(answer, dict) else ()
                ids[key] = source.tool(*key, api["api_description"], inputs, outputs)
            source.asked(row["query"], [ids[*key] for key in row["relevant APIs"] if tuple(key) in ids], ids.values())
    return source


def function_calls(folder: Path, name: str = "bfcl", kinds: Sequence[str] = _MADE) -> Source:
    """Berkeley Function Calling Leaderboard (Apache-2.0), by default the part that its makers wrote."""
    source = Source(name)
    for file in (f"BFCL_v4_{kind}.json" for kind in kinds):
        answers = {row["id"]: row["ground_truth"] for row in _rows(folder / _BFCL / "possible_answer" / file)}
        for row in _rows(folder / _BFCL / file):
            named = [(f, *f["name"].rpartition(".")[::2]) for f in row["function"]]
            ids = {f["name"]: source.function(agent, {**f, "name": name}) for f, agent, name in named}
            text = " ".join(turn["content"] for turn in row["question"][0] if turn["role"] == "user")
            source.asked(text, [ids[name] for call in answers[row["id"]] for name in call if name in ids], ids.values())
    return source


def conversations(folder: Path) -> Source:
    """The conversations of the same leaderboard: each turn asks for calls of classes such as a file system."""
    source, owner = Source("bfcl-turns"), dict[str, str]()
    for file in sorted((folder / _BFCL / "multi_turn_func_doc").glob("*.json")):
        for row in _rows(file):
            about = row["description"].split("Tool description:")[-1].strip()
            outputs = row.get("response", {}).get("properties", {})
            owner[row["name"]] = source.tool(file.stem, row["name"], about, _inputs(row), outputs)
    answers = {
        row["id"]: row["ground_truth"] for row in _rows(folder / _BFCL / "possible_answer/BFCL_v4_multi_turn_base.json")
    }
    for row in _rows(folder / _BFCL / "BFCL_v4_multi_turn_base.json"):
        for turn, calls in zip(row["question"], answers[row["id"]], strict=True):
            source.asked(turn[0]["content"], [owner[n] for call in calls if (n := call.partition("(")[0]) in owner])
    return source


def toolalpaca(folder: Path) -> Source:
    """ToolAlpaca (Apache-2.0), its evaluation set."""
    source = Source("toolalpaca")
    for name in ("eval_simulated.json", "eval_real.json"):
        for row in _json(folder / "ToolAlpaca/data" / name):
            ids = {
                match[1]: source.tool(row["Name"], match[1], match[2], re.findall(r'"(\w+)":', match[3]))
                for match in _ALPACA.finditer(row.get("Functions") or row.get("NLDocumentation") or "")
            }
            for text, calls in zip(row.get("Instructions") or (), row.get("Golden_Answers") or (), strict=False):
                source.asked(text, [ids[call["Action"]] for call in calls if call.get("Action") in ids], ids.values())
    return source


def nestful(folder: Path) -> Source:
    """NESTFUL (Apache-2.0): nested calls."""
    source = Source("nestful")
    for part in ("non-executable/non-executable-glaive", "executable/executable"):
        specifications = _json(folder / f"NESTFUL/data/{part}-spec.json")
        ids = {}
        for f in specifications:
            sides = [f.get(f"{side}_parameters") or () for side in ("query", "output")]
            ids[f["name"]] = source.tool("", f["name"], f["description"], *sides)
        for row in _json(folder / f"NESTFUL/data/{part}-data.json"):
            source.asked(row["input"], [ids[call["name"]] for call in row["output"] if call["name"] in ids])
    return source


def api_bank(folder: Path) -> Source:
    """API-Bank (MIT): dialogues with an assistant; the user's last words ask for the call that follows."""
    source, ids = Source("api-bank"), dict[str, str]()
    for file in sorted((folder / "DAMO-ConvAI/api-bank/apis").glob("*.py")):
        for part in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(part, ast.ClassDef) and (facts := dict(_literals(part))).get("description"):
                inputs, outputs = facts.get("input_parameters") or (), facts.get("output_parameters") or ()
                ids[part.name] = source.tool("", part.name, facts["description"], inputs, outputs)
    for file in sorted((folder / "DAMO-ConvAI/api-bank/lv1-lv2-samples").rglob("*.jsonl")):
        said = ""
        for row in _rows(file):
            said = row["text"] if row["role"] == "User" else said
            if row["role"] == "API" and row["api_name"] in ids and "password" not in said:
                source.asked(said, [ids[row["api_name"]]])
    return source


def api_zoo(folder: Path) -> Source:
    """The API Zoo of Gorilla (Apache-2.0): documentation of operations."""
    source = Source("api-zoo")
    for file in sorted((folder / "gorilla/data/apizoo").glob("*.json")):
        try:
            rows = _json(file)
        except ValueError:
            continue  # some files of the collection are no JSON
        for row in rows[: 4 * _DOCUMENTED] if isinstance(rows, list) else ():
            agent, _, name = row["api_name"].partition(" - ")
            inputs, about = row.get("api_arguments"), row.get("functionality") or ""
            tool = source.tool(agent, name or agent, about, inputs if isinstance(inputs, dict) else ())
            source.documented(about, tool)
    return source


def google(folder: Path) -> Source:
    """The descriptions of Google's APIs in the package google-api-python-client (Apache-2.0)."""
    source, latest = Source("google"), dict[str, Path]()
    for file in sorted((folder / "googleapiclient/discovery_cache/documents").glob("*.json")):
        latest[file.name.partition(".")[0]] = file
    for file in latest.values():
        api = _json(file)
        for name, method in islice(_methods(api, ""), _DOCUMENTED):
            shape = (method.get("response") or {}).get("$ref", "")
            answer = api.get("schemas", {}).get(shape, {}).get("properties", {}).get("properties", {})
            about, agent = method.get("description") or "", api.get("title", "").replace(" API", "")
            tool = source.tool(agent, name, about, method.get("parameters") or (), answer)
            source.documented(about, tool)
    return source


def aws(folder: Path) -> Source:
    """The descriptions of the services of AWS in the package botocore (Apache-2.0)."""
    source = Source("aws")
    for service in sorted((folder / "botocore/data").iterdir()):
        if not (versions := sorted(service.glob("*/service-2.json*"))):
            continue
        content = versions[-1].read_bytes()
        api = json.loads(gzip.decompress(content) if versions[-1].suffix == ".gz" else content)
        for name, operation in list(api["operations"].items())[:_DOCUMENTED]:
            shapes = [(operation.get(side) or {}).get("shape", "") for side in ("input", "output")]
            inputs, outputs = (api["shapes"].get(shape, {}).get("members", {}) for shape in shapes)
            about = _TAG.sub("", operation.get("documentation", ""))
            tool = source.tool(api["metadata"].get("serviceId") or service.name, name, about, inputs, outputs)
            source.documented(about, tool)
    return source


def mcp_servers(folder: Path) -> Source:
    """MCPToolBench++: single calls of MCP servers. Names no licence: for validation, nothing of it is learned."""
    source = Source("mcptoolbench")
    for file in sorted((folder / "MCPToolBenchPP/data").rglob("*_single*.json")):
        if "demo" in file.name or "qwen" in file.name:
            continue
        for row in _json(file):
            tools = [{**tool, "parameters": tool.get("input_schema")} for tool in row["tools"]]
            ids = {tool["name"]: source.function(row["category"], tool) for tool in tools}
            calls = row["function_call_label"]
            source.asked(row["query"], [ids[c["name"]] for c in calls if isinstance(c, dict) and c["name"] in ids])
    return source


def plan_steps(folder: Path) -> Source:
    """UltraTool: steps of plans with their tools. Names no licence: for validation, nothing of it is learned."""
    source = Source("ultratool")
    for row in _rows(folder / "UltraTool/data/English-dataset/test.json"):
        ids = {t["name"]: source.function(row["domain"], t) for t in row["tools"]}
        for step in row["plan"]:
            called = (step.get("tool") or "").partition("(")[0].strip()
            if called in ids:
                source.asked(re.sub(r"^[\d.]+\s*", "", step["step"]), [ids[called]], ids.values())
    return source


TRAINING: Mapping[Callable[[Path], Source], float] = {
    stabletoolbench: 24,
    function_calls: 16,
    conversations: 10,
    toolalpaca: 4,
    nestful: 8,
    api_bank: 6,
    api_zoo: 8,
    google: 10,
    aws: 14,
}
"""What is learned from, each with its share of a batch."""
VALIDATION: Sequence[Callable[[Path], Source]] = (
    partial(function_calls, name="bfcl-live", kinds=_LIVE),
    mcp_servers,
    plan_steps,
)
"""What is only measured: it decides how far the weights go."""


def _literals(part: ast.ClassDef) -> Iterator[tuple[str, Any]]:
    for line in part.body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
            with suppress(ValueError):
                yield line.targets[0].id, ast.literal_eval(line.value)


def _methods(node: Mapping[str, Any], path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, method in (node.get("methods") or {}).items():
        yield f"{path}{name}", method
    for name, resource in (node.get("resources") or {}).items():
        yield from _methods(resource, f"{name}_")
