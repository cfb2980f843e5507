"""Tasks over a fleet of real servers: what selection alone finds of the gold path, and what comes of playing it.

The tasks are data from outside (``tasks.json``); ``{FLEET}`` in them stands for the folder that the servers work in.
The plan has the clauses of the task as its steps. Selection is looked at twice: for the whole question, and for each
step of that plan. Then a stand-in for a model plays the gold path through the supervisor, over stdio, and the end
state is looked at. It can call only what the selection gave it, or what it gets by asking for it.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import AliasChoices, ConfigDict, Field, field_validator, model_validator

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import BoundTool, Limits, Plan, PlanDraft, SessionPool, Step
from callsheet.agents.planning.planner import PlannedStep
from callsheet.agents.registry.binding import NEED_TOOL
from callsheet.agents.servers.catalogs.listings import LastListings
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.graphs import CatalogError, Loaded, load
from callsheet.graphs.catalog.loading import servers_in
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.text.words import clause_spans, parts_of
from callsheet.graphs.trust.pins import PinBook
from callsheet.retrievers.index.node_texts import first_sentence

FLEET, SANDBOX = "{FLEET}", "sandbox"
AGENTS, TOOLS, WIDE = 5, 10, 50
COLUMNS = (
    "task, step", "gold tool", "agent, question", "agent, step", "tool, question", "tool, step", "given by", "end state"
)  # fmt: skip
GIVEN = ("selection", "asked for in the step's words", "asked for in the tool's words")
HOLDS = "holds"
_RESULT = re.compile(r"<result>\n(.*?)\n</result>", re.DOTALL)
_ABOUT = (
    "{} tasks over {} MCP servers with {} tools. Ranks of the gold agents among the first {} and of the gold tools "
    "among the first {}, by the default settings: for the whole question, and for each clause of "
    "it; in brackets a tool that only a budget of {} tools would hold. Then the gold path is played through the "
    "supervisor, over stdio, by a stand-in for a model that can call only what it was given; every call is approved by "
    "its hash. *Given by*: how it got the tool of the step. *Holds*: the end state was not there before, is there "
    "after, and the gold calls were made, each once, and no other"
)
SETTINGS = Settings()
TAKEN: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "t01": (("18:00", r"T(\d\d:\d\d):\d\d\+09:00", ""),),
    "t05": (("42.164813", r"42\.\d+", ""), ("26.08", r"26\.\d+", ".2f")),
    "t08": (("# Hello", r"# .+", ""),),
    "t09": (("(x - 1)*(x + 1)", r"\(x.*\)", ""), ("working tree clean", r"working tree clean", "")),
}
"""What of the gold arguments is taken from an earlier step's result, by task: how the data write it, a pattern that
finds it in the results (its first group, or all of it), and a format for it as a number."""


class _Given(Record):
    """The data say more than is used here."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class GoldCall(_Given):
    """One call of the gold path."""

    server: str
    tool: str
    args: dict[str, Any] = Field(default_factory=dict)

    @property
    def id(self) -> str:
        """The tool's id in the catalog."""
        return f"{self.server}/{self.tool}"


class Check(_Given):
    """What must hold: a pattern fits the text of a file, what a command prints, the answer, or an observation.

    Observations are those of a named entity in a knowledge graph, one JSON object a line; or it has no such entity.
    """

    kind: Literal["file_regex", "cmd", "answer", "jsonl_entity", "jsonl_no_entity"]
    path: Path = Path()
    name: str = ""
    argv: tuple[str, ...] = ()
    regex: str | None = Field(None, validation_alias=AliasChoices("regex", "stdout_regex", "observation_regex"))

    @model_validator(mode="after")
    def _has_a_pattern(self) -> Check:
        if self.regex is None and self.kind != "jsonl_no_entity":
            raise ValueError(f"a check {self.kind} needs a pattern")
        return self

    def holds(self, answer: str) -> bool:
        """Whether that is so now."""
        texts = [answer]
        if self.kind == "cmd":
            texts = [subprocess.run(self.argv, capture_output=True, text=True, check=False, timeout=30).stdout]
        elif self.kind != "answer":
            texts = [self.path.read_text(encoding="utf-8", errors="replace")] if self.path.is_file() else []
        if self.kind.startswith("jsonl"):
            lines = [json.loads(line) for text in texts for line in text.splitlines() if line.strip()]
            found = [one for one in lines if one.get("type") == "entity" and one.get("name") == self.name]
            if self.kind == "jsonl_no_entity":
                return not found
            texts = [text for one in found for text in one["observations"]]
        return any(re.search(self.regex or "", text) for text in texts)


class Task(_Given):
    """A request, texts of files that are laid beforehand, by name, and what must hold afterwards, all of it.

    A task of the fleet has the calls that do it too, in order, and says in words which ones a person must agree to.
    """

    id: str
    task: str
    check: tuple[Check, ...]
    files: Mapping[str, str] = Field(default_factory=dict)
    gold: tuple[GoldCall, ...] = ()
    approval: tuple[str, ...] = ()

    @field_validator("check", mode="before")
    @classmethod
    def _as_list(cls, given: Any) -> Any:
        return given if isinstance(given, list | tuple) else [given]

    def unmet(self, answer: str = "") -> tuple[str, ...]:
        """Kinds of the checks that do not hold."""
        return tuple(check.kind for check in self.check if not check.holds(answer))


def read_tasks(path: Path, fleet: Path) -> tuple[Task, ...]:
    """The tasks of a file; ``{FLEET}`` in it stands for a folder.

    Raises:
        CatalogError: It cannot be read, or a task lacks something.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8").replace(FLEET, _in_json(fleet)))
        entries = document["tasks"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CatalogError(f"{path} holds no tasks: {type(error).__name__}: {error}") from error
    return tuple(Task(**entry) for entry in entries)


def moved(config: Path, scratch: Path) -> Path:
    """The ``mcp.json`` of the same servers over a copy of their data, so that nothing of the fleet is changed.

    Raises:
        CatalogError: There is no such folder, or the servers are not told of it.
    """
    here = config.resolve().parent / SANDBOX
    text = config.read_text(encoding="utf-8")
    if not here.is_dir() or _in_json(here) not in text:
        raise CatalogError(f"{config}: its servers do not work in {here}, which the tasks ask for: lay the fleet anew")
    shutil.copytree(here, scratch / SANDBOX)
    copy = scratch / "mcp.json"
    copy.write_text(text.replace(_in_json(here), _in_json(scratch / SANDBOX)), encoding="utf-8")
    return copy


def _in_json(value: object) -> str:
    return json.dumps(str(value))[1:-1]


def filled(args: Mapping[str, Any], taken: Sequence[tuple[str, str, str]], results: Sequence[str]) -> dict[str, Any]:
    """Gold arguments with what the earlier steps really gave.

    Raises:
        ValueError: Something to be taken is in none of the results.
    """
    text = json.dumps(args)
    for part, pattern, form in taken:
        if _in_json(part) in text:
            match = next(filter(None, (re.search(pattern, result) for result in reversed(results))), None)
            if match is None:
                raise ValueError(f"no earlier result holds what {pattern!r} finds, for {part!r}")
            value = match[match.lastindex or 0]
            text = text.replace(_in_json(part), _in_json(format(float(value), form) if form else value))
    made: dict[str, Any] = json.loads(text)
    return made


class GoldPath(BaseChatModel):
    """Calls the gold tool of its step (``calls``, by its text) and then repeats what that said.

    A tool that it was not given it asks for with ``need_tool``, once in the step's own words and once in those of the
    tool's description (``words``); after that it gives up. What it says comes from the conversation alone.
    """

    calls: Mapping[str, GoldCall]
    words: Mapping[str, str]
    taken: Sequence[tuple[str, str, str]] = ()

    @property
    def _llm_type(self) -> str:
        return "gold-path"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Keeps what it is given: nothing else can be called."""
        names = {tool.id: tool.name for tool in tools if isinstance(tool, BoundTool)}
        return self.bind(names=names, can_ask=len(names) < len(tools))

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        message = self._reply(messages, kwargs.get("names", {}), can_ask=kwargs.get("can_ask", False))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _reply(self, messages: Sequence[BaseMessage], names: Mapping[str, str], *, can_ask: bool) -> AIMessage:
        step, _, told = next(m.text for m in messages if isinstance(m, HumanMessage)).partition("\n\n")
        call = self.calls[step]
        answers = [message for message in messages if isinstance(message, ToolMessage)]
        asked = sum(answer.name == NEED_TOOL for answer in answers)
        if len(answers) > asked:
            return AIMessage(answers[-1].text)
        if name := names.get(call.id):
            try:
                return _calling(name, filled(call.args, self.taken, _RESULT.findall(told)))
            except ValueError as error:
                return AIMessage(str(error))
        wordings = (step, self.words[call.id])
        if can_ask and asked < len(wordings):
            return _calling(NEED_TOOL, {"what": wordings[asked]}, turn=asked)
        return AIMessage(f"{call.id} is not among the tools of this step")


def _calling(name: str, args: Mapping[str, Any], turn: int = 0) -> AIMessage:
    call = {"name": name, "args": dict(args), "id": f"call_{name}_{turn}", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


class Played(NamedTuple):
    """What came of a task: the tools that were called with success, and whether the end state held before and after.

    ``requests`` has for each step how many times its tool was asked for before it was called, None where it never was;
    ``asked`` is the number of calls that a person was asked about.
    """

    done: tuple[str, ...]
    requests: tuple[int | None, ...]
    asked: int
    held_before: bool
    held: bool

    def right(self, gold: Sequence[GoldCall]) -> bool:
        """Whether the task was done: by these calls, in this order, each made once, and by nothing else."""
        return self.held and not self.held_before and self.done == tuple(call.id for call in gold)


def opened(config: Path, scratch: Path) -> tuple[Loaded, AgentGraphRetriever]:
    """The servers of a configuration, listed, with everything that is kept about them in ``scratch``."""
    servers = servers_in(str(config))
    answers = SessionPool(limits=Limits(start=300, list=120)).list_all(servers)
    if broken := [f"{name}: {answer.error}" for name, answer in answers.items() if answer.error]:
        raise RuntimeError(f"not listed: {'; '.join(broken)}")
    pins, listings = PinBook(scratch / "pins.json"), LastListings(scratch / "listings")
    loaded = load(read_listings(servers, answers, pins=pins, listings=listings))
    return loaded, AgentGraphRetriever.from_catalog(loaded, index=":memory:")


async def play(task: Task, plan: Plan, loaded: Loaded, retriever: AgentGraphRetriever, *, answer: str) -> Played:
    """Plays the gold path of a task through the supervisor, whose planner gives this plan.

    A person gives the same answer about every call, for the call as it was shown.
    """
    calls = {step.text: call for step, call in zip(plan.steps, task.gold, strict=True)}
    words = {call.id: first_sentence(loaded.catalog.tool(call.id).description) for call in task.gold}
    drafts = [PlannedStep(id=step.id, text=step.text, depends_on=list(step.depends_on)) for step in plan.steps]
    app = create_supervisor(
        loaded,
        planner_model=GenericFakeChatModel(messages=iter([AIMessage(PlanDraft(steps=drafts).model_dump_json())])),
        worker_model=GoldPath(calls=calls, words=words, taken=TAKEN.get(task.id, ())),
        retriever=retriever,
        settings=SETTINGS,
    ).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex}}
    held_before, asked = not task.unmet(), 0
    state = await app.ainvoke({"messages": [HumanMessage(task.task)]}, config)
    while questions := state.get("__interrupt__"):
        if other := [str(one.value) for one in questions if one.value.get("type") != "tool_approval"]:
            raise RuntimeError(f"something else was asked than whether a call may be made: {other[0]}")
        asked += len(questions)
        replies = {one.id: {"type": answer, "hash": one.value["hash"]} for one in questions}
        state = await app.ainvoke(Command(resume=replies), config)
    results = [state["results"][step.id] for step in plan.steps]
    made = [[call["tool"] for call in result["calls"] if not call["error"]] for result in results]
    return Played(
        done=tuple(tool for tools in made for tool in tools if tool != NEED_TOOL),
        requests=tuple(
            tools.count(NEED_TOOL) if call.id in tools else None for tools, call in zip(made, task.gold, strict=True)
        ),
        asked=asked,
        held_before=held_before,
        held=not task.unmet(),
    )


def measure(config: Path, tasks: Path, say: Callable[[str], None]) -> dict[str, object]:
    """The body of the results file. The data of the servers are copied, and nothing of the fleet is changed."""
    with tempfile.TemporaryDirectory(prefix="callsheet-fleet-") as folder:
        scratch = Path(folder).resolve()
        copy, known = moved(config, scratch), read_tasks(tasks, scratch)
        say("listing the servers")
        (loaded, retriever), rows, approved = opened(copy, scratch), list[list[str]](), dict[str, int]()
        for task in known:
            say(f"{task.id}: {task.task}")
            plan = planned(task)
            if task.approval:  # first with every question answered by a refusal
                refused = asyncio.run(play(task, plan, loaded, retriever, answer="reject"))
                if refused.done or refused.held or not refused.asked:
                    raise RuntimeError(f"{task.id}: what a person refused was done, or nobody was asked")
            played = asyncio.run(play(task, plan, loaded, retriever, answer="approve"))
            rows += rows_of(task, plan, played, retriever)
            approved[task.id] = played.asked
    sizes = len(loaded.catalog.agents), len(loaded.catalog.tools)
    return {
        "about": _ABOUT.format(len(known), *sizes, AGENTS, TOOLS, WIDE),
        "columns": list(COLUMNS),
        "rows": [*rows, total_row(rows)],
        "approved": approved,
        "refused_first": [task.id for task in known if task.approval],
    }


def planned(task: Task) -> Plan:
    """The clauses of a task and their parts as a plan, in which each step is one call of the gold path."""
    clauses = [task.task[start:end] for start, end in clause_spans(task.task)] or [task.task]
    texts = clauses if len(clauses) == len(task.gold) else [part for one in clauses for part in parts_of(one)]
    if len(texts) != len(task.gold):
        raise RuntimeError(f"{task.id}: the plan has {len(texts)} steps, the gold path {len(task.gold)} calls")
    before = [str(number) for number in range(len(texts))]
    return Plan(
        steps=tuple(Step(id=str(n), text=text, depends_on=tuple(before[1:n])) for n, text in enumerate(texts, 1))
    )


def ranks(query: str, call: GoldCall, retriever: AgentGraphRetriever) -> tuple[str, str]:
    """Where the agent and the tool of a call are in the selection for a query, from 1, as a table has it."""
    chosen, wide = (retriever.select(query, agents=AGENTS, tools=tools) for tools in (TOOLS, WIDE))
    agents, tools, more = ([node.id for node in nodes] for nodes in (chosen.agents, chosen.tools, wide.tools))
    agent = str(agents.index(call.server) + 1) if call.server in agents else "-"
    if call.id in tools:
        return agent, str(tools.index(call.id) + 1)
    return agent, f"({more.index(call.id) + 1})" if call.id in more else "-"


def rows_of(task: Task, plan: Plan, played: Played, retriever: AgentGraphRetriever) -> list[list[str]]:
    """A row for each gold call; the last one says what became of the task."""
    rows = []
    for step, call, requests in zip(plan.steps, task.gold, played.requests, strict=True):
        both = (ranks(query, call, retriever) for query in (task.task, step.text))
        places = [place for level in zip(*both, strict=True) for place in level]
        rows.append([f"{task.id}, {step.id}", call.id, *places, "nothing" if requests is None else GIVEN[requests], ""])
    rows[-1][-1] = HOLDS if played.right(task.gold) else "does not hold"
    return rows


def total_row(rows: Sequence[Sequence[str]]) -> list[str]:
    """How many of the calls, and of the tasks with all of their calls."""
    task_of = [row[0].partition(",")[0] for row in rows]
    tasks = set(task_of)
    counts = []
    for column in range(2, 6):
        lacking = {task for task, row in zip(task_of, rows, strict=True) if not row[column].isdecimal()}
        counts.append(f"{sum(row[column].isdecimal() for row in rows)} calls, {len(tasks - lacking)} tasks")
    given, held = (sum(row[column] == text for row in rows) for column, text in ((6, GIVEN[0]), (7, HOLDS)))
    sizes = f"{len(rows)} calls, {len(tasks)} tasks"
    return ["all", sizes, *counts, f"selection: {given} of {len(rows)}", f"{held} of {len(tasks)} hold"]
