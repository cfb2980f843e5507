"""Agents given as Python objects, at the door that all others share."""

from __future__ import annotations

import base64
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseToolkit, InjectedToolArg, InjectedToolCallId, StructuredTool, tool
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolRuntime
from langgraph.types import Command

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers import in_process
from callsheet.graphs import Agent, Catalog, CatalogError, Policy, load
from scripted_model import ScriptedModel
from small import outside


def add(a: float, b: float) -> float:
    """Adds two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def later(text: str) -> str:
    """Repeats a text after a while."""
    return text


def today() -> str:
    """Says which day it is."""
    return "Monday"


def undocumented(a: float) -> float:
    return a


@tool
def read(path: str) -> str:
    """Reads a file."""
    return path


class Kit(BaseToolkit):
    """Works with files."""

    def get_tools(self) -> Any:
        return [read]


class Clock:
    """An object with a method that is a tool."""

    def now(self, zone: str) -> str:
        """Says what time it is in a zone."""
        return f"noon in {zone}"


def listening(name: str | None = None) -> Any:
    workflow = StateGraph(MessagesState).add_node("listen", lambda state: {"messages": [AIMessage("heard")]})
    return workflow.add_edge(START, "listen").compile(name=name)


def ids(*given: Any) -> list[str]:
    return list(load(*given).catalog.tools)


math = create_agent(ScriptedModel(replies=[AIMessage("42")]), tools=[add, read], name="math")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"sums": [add], "disk": read}, ["sums/add", "disk/read"]),
        ({"sums": add, "kit": Kit(), "chat": listening()}, ["sums/add", "kit/read", "chat/run"]),
        ([math, listening("clerk")], ["math/run", "clerk/run"]),
        ([add, read, math, today], ["tools/add", "tools/read", "tools/today", "math/run"]),
        ([Kit(), {"chat": listening()}], ["Kit/read", "chat/run"]),
        ((read, later), ["tools/read", "tools/later"]),
        (add, ["add/add"]),
        (read, ["read/read"]),
        (math, ["math/run"]),
        (Clock().now, ["now/now"]),
        (lambda: {"sums": [add]}, ["sums/add"]),
        (RunnableLambda(str.upper, name="louder"), ["louder/run"]),
    ],
)
def test_what_may_be_given(given: Any, found: list[str]) -> None:
    assert ids(given) == found


def test_a_list_with_a_catalog_in_it_is_several_sources() -> None:
    catalog = Catalog(agents=(Agent(id="quiet"),))
    assert [agent.id for agent in load([catalog, math, add]).catalog.agents] == ["quiet", "tools", "math"]
    assert ids([{"sums": add}], {"disk": [read]}) == ["sums/add", "disk/read"]


def test_a_function_tells_what_its_parameters_are() -> None:
    made = load({"sums": [add]}).catalog.tool("sums/add")
    assert made.description == "Adds two numbers."
    assert {p.name: p.description for p in made.parameters} == {"a": "The first.", "b": "The second."}


def test_an_app_is_described_by_its_tools_or_by_its_caller() -> None:
    assert load(math).catalog.tool("math/run").description == (
        "Hands a request to math, which has these tools. add: Adds two numbers. read: Reads a file."
    )
    said = load({"math": {"description": "Does sums.", "tools": math}}).catalog
    assert (said.agent("math").description, said.tool("math/run").description) == ("Does sums.", "Does sums.")


def test_the_author_of_an_app_says_whether_a_person_is_asked() -> None:
    sure = listening("clerk").with_config(metadata={"callsheet/approval": "never", "owner": "us"})
    third = listening().with_config(metadata={"callsheet/approval": "always"})
    loaded = load({"clerk": sure, "other": listening(), "third": third})
    registry = ToolRegistry.from_catalog(loaded)
    assert registry.assurance("clerk/run").refusal("ask") is None
    assert registry.assurance("other/run").refusal("ask") is None
    assert "before every call" in str(registry.assurance("third/run").refusal("ask"))
    of_others = ToolRegistry.from_catalog(outside({"other": listening()}))
    assert "may change something" in str(of_others.assurance("other/run").refusal("ask"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "no catalog was named"),
        ({}, "the dict is empty"),
        ({"sums": []}, "'sums' holds no tool"),
        ({"sums": 5}, "'sums' is of type int"),
        (5, "it is of type int; it may be a Catalog, a LangChain tool"),
        ([5], "it is of type int"),
        ({"servers.json": "mcp.json"}, "'servers.json' is of type str"),
        ([undocumented], "function 'undocumented' cannot be a tool: Function must have a docstring"),
        ([len], "wrap it with @tool"),
        ([listening()], "has no name: give it one, compile(name=...), or give a dict by agent id"),
        ([listening("a"), listening("a")], "'a'"),
        ([math, partial(listening, "math")], "'math'"),
        ([StateGraph(MessagesState)], "not compiled"),
        ([add, add], "several tools named add"),
    ],
)
def test_what_may_not_be_given(given: Any, words: str) -> None:
    with pytest.raises(CatalogError) as caught:
        load(given)
    assert words in str(caught.value)


async def test_apps_of_the_functional_api_are_handed_messages_or_a_text() -> None:
    @entrypoint()
    def joker(state: Any) -> Any:
        return {"messages": [*state["messages"], AIMessage("ha")]}

    @entrypoint()
    def shout(text: str) -> str:
        return text.upper()

    loaded = load({"joker": joker, "shout": shout})
    bound = ToolRegistry.from_catalog(loaded).bind(["joker/run", "shout/run"], "run")
    assert await bound["joker_run"].ainvoke({"request": "hi"}) == "ha"
    assert bound["shout_run"].invoke({"request": "hi"}) == "HI"


@tool
def stateful(path: str, state: Annotated[dict[str, Any], InjectedState]) -> str:
    """Reads the state of the workflow."""
    return path


@tool
def running(path: str, runtime: ToolRuntime) -> str:
    """Reads the runtime of the workflow."""
    return path


@tool
def private(path: str, user: Annotated[str, InjectedToolArg]) -> str:
    """Reads a file of a user."""
    return path


@tool
def numbered(path: str, call: Annotated[str, InjectedToolCallId], user: Annotated[str, InjectedToolArg] = "x") -> str:
    """Reads a file with the number of the call."""
    return f"{path} {bool(call)} {user}"


@tool
def colour(name: str) -> Command[Any]:
    """Sets a colour in the state."""
    return Command(update={"colour": name})


@tool(response_format="content_and_artifact")
def draw(name: str) -> tuple[str, Any]:
    """Draws a picture."""
    return "drawn", b"\x89PNG" if name == "png" else {"name": name}


def called(given: Any, **args: str) -> Any:
    (bound,) = ToolRegistry.from_catalog([given]).bind(f"tools/{given.name}", "1").values()
    return bound.invoke({"type": "tool_call", "id": "1", "name": bound.name, "args": args})


@pytest.mark.parametrize(("given", "taken"), [(stateful, "state"), (running, "runtime"), (private, "user")])
def test_a_tool_that_its_workflow_must_fill_is_left_out_and_told(given: Any, taken: str) -> None:
    loaded = load([read, given])
    assert list(loaded.catalog.tools) == ["tools/read"]
    (problem,) = loaded.problems
    assert f"tool '{given.name}' is left out: the workflow that calls it must fill its parameter '{taken}'" in str(
        problem
    )
    with pytest.raises(CatalogError, match=f"must fill its parameter '{taken}'"):
        load([given])


def test_the_id_of_a_call_and_defaults_need_no_workflow() -> None:
    assert called(numbered, path="a").text == "a True x"


def test_a_command_for_a_workflow_is_no_result() -> None:
    message = called(colour, name="red")
    assert message.status == "error"
    assert "agent 'tools', tool 'colour': it returned a Command" in message.text


def test_an_artifact_is_kept_as_a_structured_result_or_told_to_be_left_out() -> None:
    kept, lost = called(draw, name="svg"), called(draw, name="png")
    assert (kept.text, kept.artifact["structured"]) == ("drawn", {"name": "svg"})
    assert (lost.text, lost.artifact["structured"]) == ("drawn\n[artifact left out: bytes that is not JSON]", None)


@pytest.mark.parametrize("trusted", [False, True])
async def test_tools_of_langchains_mcp_adapter_are_those_of_a_server(*, trusted: bool) -> None:
    """Not the program's own code: their hints are claims of the server, and calls ask as for any server."""

    async def call_tool(**arguments: Any) -> Any:
        return [{"type": "text", "text": "0.9"}], {"structured_content": {"rate": 0.9, **arguments}}

    schema = {"type": "object", "properties": {"currency": {"type": "string"}}}
    about = {"tool": {"annotations": {"read_only_hint": True}, "_meta": {"callsheet/approval": "never"}}}
    made: dict[str, Any] = {"response_format": "content_and_artifact", "coroutine": call_tool, "args_schema": schema}
    rate = StructuredTool(name="rate", description="Rates.", metadata={"mcp": {**about, "server": {}}}, **made)
    plain = StructuredTool(name="plain", description="Plain.", **made)
    policy = Policy(default="allow", trust=("bank",)) if trusted else None
    registry = ToolRegistry.from_catalog(load({"bank": [rate, plain]}, policy=policy))
    assert registry.catalog.tools["bank/rate"].annotations == {"readOnlyHint": True}
    found = registry.assurance("bank/rate")
    assert (found.own, found.rule, bool(found.doubt)) == (False, None, not trusted)
    assert registry.assurance("bank/plain").own
    (bound,) = registry.bind("bank/rate", "run").values()
    answer = await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": {"currency": "USD"}})
    assert (answer.text, answer.artifact["structured"]) == ("0.9", {"rate": 0.9, "currency": "USD"})


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PNG = f"data:image/png;base64,{PIXEL}"


@pytest.mark.parametrize(
    ("block", "media"),
    [
        ({"type": "image_url", "image_url": {"url": PNG}}, "image/png"),
        ({"type": "image_url", "image_url": PNG}, "image/png"),
        ({"type": "image", "url": PNG}, "image/png"),
        ({"type": "image", "base64": PIXEL, "mime_type": "image/png"}, "image/png"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}, "image/png"),
        ({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PIXEL}"}}, "application/pdf"),
        ({"type": "image", "data": PIXEL, "mimeType": "image/png"}, "image/png"),
    ],
)
async def test_media_of_a_langchain_tool_are_files_in_every_form(block: Any, media: str, tmp_path: Path) -> None:
    def work() -> Any:
        """Works."""
        return [{"type": "text", "text": "one pixel"}, block]

    kept = KeptResults(tmp_path).of("run", "a", "work")
    outcome = await in_process.call("a", StructuredTool.from_function(work), {}, Limits(), kept)
    (file,) = outcome.media
    assert file.media == media
    assert Path(file.path).read_bytes() == base64.b64decode(PIXEL)
    assert outcome.text.startswith("one pixel\n[")
    assert PIXEL[:20] not in outcome.text


async def test_a_picture_at_an_address_is_a_link(tmp_path: Path) -> None:
    def work() -> Any:
        """Works."""
        return [{"type": "image_url", "image_url": {"url": "https://example.org/x.png"}}]

    outcome = await in_process.call("a", StructuredTool.from_function(work), {}, Limits())
    assert outcome.media == ()
    assert outcome.text.splitlines()[0] == "[resource https://example.org/x.png: image]"
