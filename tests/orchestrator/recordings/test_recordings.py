"""Runs by hand behind the supervisor, replayed: what models are sent is what the person who answered was sent.

A recording holds the request, the answers that a person gave in the place of a strong model, the outputs of the tools,
and what the product sent before each answer. If prompts, tools or their order change on purpose, look at the changes:
``CALLSHEET_RECORDINGS=update pytest tests/orchestrator/recordings`` writes them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import Prompts
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs import Loaded, load
from callsheet.retrievers.roster import LEGEND, roster

FOLDER = Path(__file__).parent
RUNS = sorted(path for path in FOLDER.glob("*.json") if path.name != "catalog.json")
UPDATE = os.environ.get("CALLSHEET_RECORDINGS") == "update"
_NOW = re.compile(r"Now: \w+, \d{4}-\d{2}-\d{2} \d{2}:\d{2}, UTC[+-]\d{4} \([^)]*\)")
_SEEDS = {"tool": "[tool]", "ai": "[assistant]", "human": "[user]"}


class Replay(BaseChatModel):
    """Gives the recorded answers: those of each step in their order; keeps what it was sent."""

    answers: dict[str, list[Any]] = Field(default_factory=dict)
    sent: dict[str, list[Any]] = Field(default_factory=dict)

    @property
    def _llm_type(self) -> str:
        return "replay"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        kwargs.pop("ls_structured_output_format", None)
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        tools = [tool["function"]["name"] for tool in kwargs.get("tools", [])]
        place = place_of(messages)
        before = self.sent.setdefault(place, [])
        before.append({"messages": list(told(messages)), "tools": tools})
        left = self.answers.get(place, [])
        if len(before) > len(left):
            raise AssertionError(f"the model was asked more often than in the recording: {place}")
        said = left[len(before) - 1]
        calls = [
            {"name": call["name"], "args": call["arguments"], "id": f"{place}-{len(before)}-{n}", "type": "tool_call"}
            for n, call in enumerate(said.get("tool_calls", ()))
        ]
        text = said.get("content") or ""
        if tools in (["PlanDraft"], ["PlanRevision"]) and not calls:  # it was asked for JSON in another form
            calls = [{"name": tools[0], "args": json.loads(text), "id": place, "type": "tool_call"}]
            text = ""
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text, tool_calls=calls))])


def place_of(messages: Sequence[BaseMessage]) -> str:
    """Where in a run a model is asked: the role, and for a worker its step."""
    role = role_of(messages[0].text)
    return f"{role}: {messages[1].text.partition(chr(10))[0]}" if role == "worker" else role


def role_of(system: str) -> str:
    """The role with this prompt, which may be followed by the roster and by words on the last turn."""
    return next(name for name, prompt in Prompts() if system.startswith(prompt))


def told(messages: Sequence[BaseMessage]) -> Iterator[str]:
    """The messages without what differs from run to run; of those before the last answer, only their number."""
    last = max((at for at, message in enumerate(messages) if isinstance(message, AIMessage)), default=0)
    for message in messages[last + 1 :]:
        assert isinstance(message, HumanMessage | ToolMessage | SystemMessage)
        yield f"{_SEEDS[message.type]} {_NOW.sub('Now: NOW', message.text)}"


def catalog(outputs: Sequence[Mapping[str, Any]]) -> Loaded:
    """The recorded catalog, whose tools give the recorded outputs."""
    loaded = load(FOLDER / "catalog.json")
    connections = {
        agent.id: InProcess({tool.name: replayed(tool, outputs) for tool in agent.tools})
        for agent in loaded.catalog.agents
    }
    return Loaded(loaded.catalog, connections=connections)


def replayed(tool: Any, outputs: Sequence[Mapping[str, Any]]) -> BaseTool:
    def give(**args: Any) -> str:
        for made in outputs:
            if (made["tool"], made["args"]) == (tool.id, args):
                if made["error"]:
                    raise ToolException(made["error"])
                return str(made["output"])
        raise AssertionError(f"{tool.id} was not called with {args} in the recording")

    schema = dict(tool.input_schema) or {"type": "object", "properties": {}}
    return StructuredTool(name=tool.name, description=tool.description or tool.name, args_schema=schema, func=give)


@pytest.fixture(scope="module")
def retriever() -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(load(FOLDER / "catalog.json"), index=":memory:")


def test_at_least_ten_runs_are_recorded() -> None:
    assert len(RUNS) >= 10


@pytest.mark.parametrize("path", RUNS, ids=[path.stem for path in RUNS])
def test_what_models_are_sent_is_what_was_answered(path: Path, retriever: AgentGraphRetriever) -> None:
    run = json.loads(path.read_text("utf-8"))
    model = Replay(answers=run["answers"])
    settings = Settings(planning=run["planning"], approval="never", allow=("files/file_delete",), attended=False)
    loaded = catalog(run["outputs"])
    workflow = create_supervisor(loaded, model=model, retriever=retriever, settings=settings)
    app: Any = workflow.compile(checkpointer=InMemorySaver())
    state = app.invoke({"messages": run["request"]}, {"configurable": {"thread_id": "1"}})
    statuses = {name: result["status"] for name, result in state["results"].items()}
    ended = {"answer": state["messages"][-1].text, "statuses": statuses, "sent": model.sent}
    if UPDATE:
        path.write_text(json.dumps({**run, **ended}, indent=1, ensure_ascii=False) + "\n", "utf-8")
        return
    assert {name: run[name] for name in ended} == ended


def test_the_prompts_are_those_that_were_answered() -> None:
    """After a change of a prompt, runs by hand tell whether it is better; then the recordings are updated."""
    names = roster(load(FOLDER / "catalog.json").catalog)
    parts = {**dict(Prompts()), "roster": f"{LEGEND}\n\n{names.text}"}
    path, prompts = FOLDER / "prompts.txt", "\n\n".join(f"# {name}\n{text}" for name, text in parts.items())
    if UPDATE:
        path.write_text(prompts + "\n", "utf-8")
    assert path.read_text("utf-8") == prompts + "\n"
