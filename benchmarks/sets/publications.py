"""The publications that the encoder learns from or is validated on, read from checkouts of their repositories."""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from callsheet.graphs import Agent, Tool
from callsheet.retrievers.index.node_texts import first_sentence

_LONGEST, _SHORTEST = 900, 8
_DOCUMENTED = 60
"""Maximum operations of one service whose documentation is read."""
_TAG = re.compile(r"<[^>]+>")
_ALPACA = re.compile(r"\d+\. Name: (\w+)\s+Description: (.*?)\s+Input: (.*?)\s+Output: (.*?)(?=\n\n|\Z)", re.DOTALL)
_MADE, _LIVE = ("simple_python", "multiple", "parallel", "parallel_multiple"), ("live_simple", "live_multiple")
_BFCL = "gorilla/berkeley-function-call-leaderboard/bfcl_eval/data"
Reader = Callable[["Source", Path], None]


class Example(NamedTuple):
    """A request with the ids of the tools that answer it, and of those that were offered beside them and do not.

    Or a sentence of a tool's own documentation, which the tool must then be shown without.
    """

    query: str
    wanted: tuple[str, ...]
    others: tuple[str, ...] = ()
    documentation: bool = False


class Source:
    """The tools of one publication, by agent, and its examples."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.agents: dict[str, dict[str, Tool]] = {}
        self.examples: list[Example] = []

    def read(self, reader: Reader, folder: Path) -> Source:
        """Reads the publication from the folder of the checkouts."""
        reader(self, folder)
        return self

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
        schema = function.get("parameters") or function.get("arguments") or function.get("input_schema") or {}
        return self.tool(agent, function["name"], function["description"], schema.get("properties") or ())

    def asked(self, query: str, wanted: Iterable[str], offered: Iterable[str] = ()) -> None:
        """Adds a request, if it has a sensible length and something is wanted."""
        text, right = " ".join(query.split()), tuple(dict.fromkeys(wanted))
        if right and _SHORTEST <= len(text) <= _LONGEST:
            self.examples.append(Example(text, right, tuple(sorted(set(offered) - set(right)))))

    def documented(self, agent: str, name: str, about: str, inputs: Iterable[str], outputs: Iterable[str] = ()) -> None:
        """Adds a tool, and the first sentence of its documentation as a request, if that says something."""
        tool, sentence = self.tool(agent, name, about, inputs, outputs), first_sentence(_TAG.sub("", about or ""))
        if len(sentence) > 2 * _SHORTEST:
            self.examples.append(Example(sentence, (tool,), documentation=True))

    def catalog(self) -> dict[str, Agent]:
        """The agents by id; the name of one is what its publication calls it."""
        return {
            owner: Agent(id=owner, name=owner.removeprefix(self.name).strip(), tools=tuple(tools.values()))
            for owner, tools in self.agents.items()
        }


def _rows(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def stabletoolbench(source: Source, folder: Path) -> None:
    """StableToolBench (Apache-2.0): solvable requests of ToolBench to APIs of RapidAPI."""
    for file in sorted((folder / "StableToolBench/solvable_queries/test_instruction").glob("*.json")):
        for row in json.loads(file.read_bytes()):
            ids = {}
            for api in row["api_list"]:
                inputs = [p["name"] for p in (*api["required_parameters"], *api["optional_parameters"])]
                key, answer = (api["tool_name"], api["api_name"]), api.get("template_response")
                ids[key] = source.tool(*key, api["api_description"], inputs, answer if isinstance(answer, dict) else ())
            source.asked(row["query"], [ids[*key] for key in row["relevant APIs"] if tuple(key) in ids], ids.values())


def function_calls(source: Source, folder: Path, kinds: Sequence[str]) -> None:
    """Berkeley Function Calling Leaderboard (Apache-2.0): the part that its makers wrote, or what users sent."""
    for file in (f"BFCL_v4_{kind}.json" for kind in kinds):
        answers = {row["id"]: row["ground_truth"] for row in _rows(folder / _BFCL / "possible_answer" / file)}
        for row in _rows(folder / _BFCL / file):
            named = [(f, *f["name"].rpartition(".")[::2]) for f in row["function"]]
            ids = {f["name"]: source.function(agent, {**f, "name": name}) for f, agent, name in named}
            text = " ".join(turn["content"] for turn in row["question"][0] if turn["role"] == "user")
            source.asked(text, [ids[name] for call in answers[row["id"]] for name in call if name in ids], ids.values())


def conversations(source: Source, folder: Path) -> None:
    """The conversations of the same leaderboard: each turn asks for calls of classes such as a file system."""
    owner: dict[str, str] = {}
    for file in sorted((folder / _BFCL / "multi_turn_func_doc").glob("*.json")):
        for row in _rows(file):
            about = row["description"].split("Tool description:")[-1].strip()
            inputs, outputs = ((row.get(side) or {}).get("properties") or () for side in ("parameters", "response"))
            owner[row["name"]] = source.tool(file.stem, row["name"], about, inputs, outputs)
    file, folder = Path("BFCL_v4_multi_turn_base.json"), folder / _BFCL
    answers = {row["id"]: row["ground_truth"] for row in _rows(folder / "possible_answer" / file)}
    for row in _rows(folder / file):
        for turn, calls in zip(row["question"], answers[row["id"]], strict=True):
            source.asked(turn[0]["content"], [owner[n] for call in calls if (n := call.partition("(")[0]) in owner])


def toolalpaca(source: Source, folder: Path) -> None:
    """ToolAlpaca (Apache-2.0), its evaluation set."""
    for name in ("eval_simulated.json", "eval_real.json"):
        for row in json.loads((folder / "ToolAlpaca/data" / name).read_bytes()):
            ids = {
                match[1]: source.tool(row["Name"], match[1], match[2], re.findall(r'"(\w+)":', match[3]))
                for match in _ALPACA.finditer(row.get("Functions") or row.get("NLDocumentation") or "")
            }
            for text, calls in zip(row.get("Instructions") or (), row.get("Golden_Answers") or (), strict=False):
                source.asked(text, [ids[call["Action"]] for call in calls if call.get("Action") in ids], ids.values())


def nestful(source: Source, folder: Path) -> None:
    """NESTFUL (Apache-2.0): nested calls."""
    for part in ("non-executable/non-executable-glaive", "executable/executable"):
        ids = {}
        for f in json.loads((folder / f"NESTFUL/data/{part}-spec.json").read_bytes()):
            sides = [f.get(f"{side}_parameters") or () for side in ("query", "output")]
            ids[f["name"]] = source.tool("", f["name"], f["description"], *sides)
        for row in json.loads((folder / f"NESTFUL/data/{part}-data.json").read_bytes()):
            source.asked(row["input"], [ids[call["name"]] for call in row["output"] if call["name"] in ids])


def api_bank(source: Source, folder: Path) -> None:
    """API-Bank (MIT): dialogues with an assistant; the user's last words ask for the call that follows."""
    ids: dict[str, str] = {}
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


def api_zoo(source: Source, folder: Path) -> None:
    """The API Zoo of Gorilla (Apache-2.0): documentation of operations."""
    for file in sorted((folder / "gorilla/data/apizoo").glob("*.json")):
        try:
            rows = json.loads(file.read_bytes())
        except ValueError:
            continue  # some files of the collection are no JSON
        for row in rows[: 4 * _DOCUMENTED] if isinstance(rows, list) else ():
            agent, _, name = row["api_name"].partition(" - ")
            inputs, about = row.get("api_arguments"), row.get("functionality") or ""
            source.documented(agent, name or agent, about, inputs if isinstance(inputs, dict) else ())


def google(source: Source, folder: Path) -> None:
    """The descriptions of Google's APIs in the package google-api-python-client (Apache-2.0)."""
    latest: dict[str, Path] = {}
    for file in sorted((folder / "googleapiclient/discovery_cache/documents").glob("*.json")):
        latest[file.name.partition(".")[0]] = file
    for file in latest.values():
        api = json.loads(file.read_bytes())
        for name, method in islice(_methods(api, ""), _DOCUMENTED):
            shape = (method.get("response") or {}).get("$ref", "")
            answer = api.get("schemas", {}).get(shape, {}).get("properties", {}).get("properties", {})
            about, agent = method.get("description") or "", api.get("title", "").replace(" API", "")
            source.documented(agent, name, about, method.get("parameters") or (), answer)


def aws(source: Source, folder: Path) -> None:
    """The descriptions of the services of AWS in the package botocore (Apache-2.0)."""
    for service in sorted((folder / "botocore/data").iterdir()):
        if not (versions := sorted(service.glob("*/service-2.json*"))):
            continue
        content = versions[-1].read_bytes()
        api = json.loads(gzip.decompress(content) if versions[-1].suffix == ".gz" else content)
        for name, operation in list(api["operations"].items())[:_DOCUMENTED]:
            shapes = [(operation.get(side) or {}).get("shape", "") for side in ("input", "output")]
            inputs, outputs = (api["shapes"].get(shape, {}).get("members", {}) for shape in shapes)
            about = _TAG.sub("", operation.get("documentation", ""))
            source.documented(api["metadata"].get("serviceId") or service.name, name, about, inputs, outputs)


def mcp_servers(source: Source, folder: Path) -> None:
    """MCPToolBench++: single calls of MCP servers. Names no licence: for validation, nothing of it is learned."""
    for file in sorted((folder / "MCPToolBenchPP/data").rglob("*_single*.json")):
        if "demo" in file.name or "qwen" in file.name:
            continue
        for row in json.loads(file.read_bytes()):
            ids = {tool["name"]: source.function(row["category"], tool) for tool in row["tools"]}
            calls = [call for call in row["function_call_label"] if isinstance(call, dict)]
            source.asked(row["query"], [ids[call["name"]] for call in calls if call["name"] in ids])


def plan_steps(source: Source, folder: Path) -> None:
    """UltraTool: steps of plans with their tools. Names no licence: for validation, nothing of it is learned."""
    for row in _rows(folder / "UltraTool/data/English-dataset/test.json"):
        ids = {t["name"]: source.function(row["domain"], t) for t in row["tools"]}
        for step in row["plan"]:
            called = (step.get("tool") or "").partition("(")[0].strip()
            if called in ids:
                source.asked(re.sub(r"^[\d.]+\s*", "", step["step"]), [ids[called]], ids.values())


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


TRAINING: Mapping[str, tuple[Reader, float]] = {
    "stabletoolbench": (stabletoolbench, 24),
    "bfcl": (partial(function_calls, kinds=_MADE), 16),
    "bfcl-turns": (conversations, 10),
    "toolalpaca": (toolalpaca, 4),
    "nestful": (nestful, 8),
    "api-bank": (api_bank, 6),
    "api-zoo": (api_zoo, 8),
    "google": (google, 10),
    "aws": (aws, 14),
}
"""What is learned from, each with its share of a batch."""
VALIDATION: Mapping[str, Reader] = {
    "bfcl-live": partial(function_calls, kinds=_LIVE),
    "mcptoolbench": mcp_servers,
    "ultratool": plan_steps,
}
"""What is only measured: it decides how far the weights go."""
