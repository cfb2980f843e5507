from __future__ import annotations

import asyncio
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.plan import resolve_references, value_of
from callsheet.agents.registry import tool_registry as registry_module
from callsheet.agents.registry.binding import BoundTool, bound_tool, model_names
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.agents.servers.in_process import InProcess
from callsheet.agents.work.equipment import answer_reading, calls_of
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Agent, Catalog, Tool
from callsheet.graphs.errors import UnknownNameError

FAULTS = Path(__file__).parents[2] / "fixtures" / "fault_server.py"
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def server(mode: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=(str(FAULTS), mode))


def listed(*modes: str) -> ToolRegistry:
    part = load_servers({mode: server(mode) for mode in modes})
    return ToolRegistry(Catalog(agents=part.agents), part.connections)


def in_process(found: BaseTool, limits: Limits | None = None) -> BoundTool:
    entry = Tool(agent="a", name=found.name)
    catalog = Catalog(agents=(Agent(id="a", tools=(entry,)),))
    return ToolRegistry(catalog, {"a": InProcess({found.name: found})}, limits=limits).bind([entry.id], "run")[
        f"a_{found.name}"
    ]


def manifest(*ids: str, **fields: Any) -> Catalog:
    agents: dict[str, list[Tool]] = {}
    for agent, name in (i.split("/", 1) for i in ids):
        agents.setdefault(agent, []).append(Tool(agent=agent, name=name, **fields))
    return Catalog(agents=tuple(Agent(id=agent, tools=tuple(tools)) for agent, tools in agents.items()))


async def ask(bound: BoundTool, args: Mapping[str, Any]) -> ToolMessage:
    return await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": dict(args)})


@pytest.fixture
def registry() -> Iterator[Callable[..., ToolRegistry]]:
    made: list[ToolRegistry] = []

    def make(*modes: str) -> ToolRegistry:
        made.append(listed(*modes))
        return made[-1]

    yield make
    for one in made:
        one.close()


async def test_a_call_reaches_its_own_server(registry: Callable[..., ToolRegistry]) -> None:
    bound = registry("ok", "structured").bind(["ok/work", "structured/work"], "run")
    assert list(bound) == ["ok_work", "structured_work"]
    plain, structured = await asyncio.gather(*(ask(found, {"x": 1}) for found in bound.values()))
    assert plain.status == structured.status == "success"
    assert plain.text.endswith('{"x": 1}')
    assert structured.artifact["structured"] == {"n": 7}
    assert structured.artifact["tool"] == "structured/work"
    assert structured.artifact["seconds"] > 0


async def test_data_beside_a_text_reach_the_model_and_references(registry: Callable[..., ToolRegistry]) -> None:
    bound = registry("beside").bind(["beside/work"], "run")["beside_work"]
    data = {"items": [{"id": "p-1"}, {"id": "p-2"}]}
    answer = await ask(bound, {"x": 1})
    assert answer.text == f"found 2 item(s).\n{json.dumps(data)}"
    asked = AIMessage("", tool_calls=[ToolCall(name=bound.name, args={}, id="1")])
    (call,) = calls_of([asked, answer], {bound.name: bound})
    assert value_of(call) == data
    assert resolve_references({"$call": "c1", "path": "items[1].id"}, (), [call]) == "p-2"
    reading = answer_reading(ToolCall(name="read_result", args={"id": "c1"}, id="2"), (), [call])
    assert reading.text == answer.text


async def test_arguments_are_checked_against_the_original(registry: Callable[..., ToolRegistry]) -> None:
    schema = {"anyOf": [{"properties": {"a[b]": {"type": "integer"}}, "required": ["a[b]"]}, {"required": ["c"]}]}
    entry = Tool(agent="ok", name="work", input_schema={"type": "object", **schema})
    found = listed("ok")
    made = ToolRegistry(Catalog(agents=(Agent(id="ok", tools=(entry,)),)), found.loaded.connections)
    bound = made.bind(["ok/work"], "run")["ok_work"]
    assert set(bound.args_schema["properties"]) == {"a_b", "c"}  # type: ignore[index]
    assert bound.description.endswith("- a_b\n- c")
    assert (await ask(bound, {})).artifact["kind"] == "refused"
    assert "{'a[b]': 'x'} is not valid" in (await ask(bound, {"a_b": "x"})).text
    answer = await ask(bound, {"a_b": 1})
    assert answer.text.endswith('{"a[b]": 1}')
    asked = AIMessage("", tool_calls=[ToolCall(name=bound.name, args={"a_b": 1}, id="1")])
    assert calls_of([asked, answer], {bound.name: bound})[0].args == {"a[b]": 1}
    assert (await ask(bound, {"c": 1})).text.endswith('{"c": 1}')
    made.close()
    found.close()


@pytest.mark.parametrize(("mode", "kind"), [("crash", "crash"), ("is_error", "tool"), ("rpc_error", "protocol")])
async def test_a_failure_is_marked_and_named(registry: Callable[..., ToolRegistry], mode: str, kind: str) -> None:
    answer = await ask(registry(mode).bind([f"{mode}/work"], "run")[f"{mode}_work"], {})
    assert answer.status == "error"
    assert f"agent {mode!r}, tool 'work'" in answer.text
    assert answer.artifact["kind"] == kind


DOUBLING = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)} | {"d60": {}}
CONNECTED = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{n}"} for n in range(30)]} for i in range(30)}


@pytest.mark.parametrize("reference", ["#/$defs/missing", "http://127.0.0.1:9/x", "#/$defs/d0", "x", "#/a/b", "#"])
@pytest.mark.parametrize("defs", [{}, DOUBLING, CONNECTED], ids=["none", "doubling", "connected"])
def test_a_model_can_be_shown_a_schema_whatever_it_refers_to(reference: str, defs: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": reference, "description": "X"}}, "$defs": defs}
    found = manifest("shop/buy", input_schema=schema)
    shown = convert_to_openai_tool(ToolRegistry(found, {}).bind(["shop/buy"], "run")["shop_buy"])["function"]
    assert shown["parameters"]["properties"]["x"]["description"] == "X"


async def test_arguments_may_have_any_name(registry: Callable[..., ToolRegistry]) -> None:
    bound = registry("odd_names").bind(["odd_names/work"], "run")["odd_names_work"]
    args = {"self": 1, "config": 2, "runtime": 3, "run_manager": 4}
    answer = await ask(bound, args)
    assert answer.text.endswith('{"self": 1, "config": 2, "runtime": 3, "run_manager": 4}')
    assert bound.invoke({"type": "tool_call", "id": "1", "name": "work", "args": args}).status == "success"


async def test_a_manifest_says_how_to_connect_it() -> None:
    bound = ToolRegistry(manifest("shop/buy"), {}).bind(["shop/buy"], "run")["shop_buy"]
    answer = await ask(bound, {})
    assert answer.status == "error"
    assert "agent 'shop' is known from a manifest only" in answer.text
    assert "mcp.json" in answer.text


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(UnknownNameError, match="shop/bye"):
        ToolRegistry(manifest("shop/buy"), {}).bind(["shop/bye"], "run")


def test_binding_costs_only_what_is_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"a/t{i}" for i in range(5_000)]
    monkeypatch.setattr(registry_module, "bound_tool", made := Mock(wraps=bound_tool))
    many = ToolRegistry(manifest(*ids), {})
    assert list(many.bind([*ids[:5], ids[0]], "run")) == ["a_t0", "a_t1", "a_t2", "a_t3", "a_t4"]
    assert made.call_count == 5


@tool
def add(a: int, b: int = 2) -> int:
    """Adds."""
    return a + b


@tool
def divide(a: float) -> float:
    """Divides."""
    return 1 / a


@tool
async def later(a: int) -> str:
    """Comes later."""
    await asyncio.sleep(0)
    return f"later {a}"


@tool
def refuse() -> str:
    """Refuses."""
    raise ToolException("not today")


@tool(response_format="content_and_artifact")
def rows() -> tuple[str, Any]:
    """Gives rows."""
    return "two rows", {"rows": [1, 2]}


WOKEN = threading.Event()


@tool
def sleepy() -> str:
    """Sleeps until it is woken."""
    WOKEN.wait(60)
    return "woke"


@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize(
    ("found", "args", "status", "words"),
    [
        (add, {"a": 1}, "success", "3"),
        (later, {"a": 1}, "success", "later 1"),
        (rows, {}, "success", "two rows"),
        (divide, {"a": 0}, "error", "agent 'a', tool 'divide': ZeroDivisionError"),
        (refuse, {}, "error", "agent 'a', tool 'refuse': ToolException: not today"),
        (add, {"a": "one"}, "error", "agent 'a', tool 'add': ValidationError"),
        (sleepy, {}, "error", "no answer within 0.3 s"),
    ],
)
async def test_tools_of_this_process(
    found: StructuredTool, args: dict[str, Any], status: str, words: str, sync: bool
) -> None:
    bound = in_process(found, Limits(call=0.3 if found is sleepy else 60))
    call = {"type": "tool_call", "id": "1", "name": bound.name, "args": args}
    WOKEN.clear()
    answer = await asyncio.to_thread(bound.invoke, call) if sync else await bound.ainvoke(call)
    WOKEN.set()
    assert answer.status == status
    assert words in answer.text
    if found is rows:
        assert answer.artifact["structured"] == {"rows": [1, 2]}


async def test_a_tool_of_this_process_may_interrupt_its_workflow() -> None:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt
    from typing_extensions import TypedDict

    @tool
    def confirm() -> str:
        """Asks."""
        return f"said {interrupt('sure?')}"

    class State(TypedDict):
        said: str

    bound = in_process(confirm)

    async def node(state: State) -> State:
        return {"said": (await ask(bound, {})).text}

    workflow = StateGraph(State).add_node("node", node).add_edge(START, "node")
    app = workflow.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    paused = await app.ainvoke({"said": ""}, config)
    assert paused["__interrupt__"][0].value == "sure?"
    assert (await app.ainvoke(Command(resume="yes"), config))["said"] == "said yes"


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["a/x", "b/y"], ["a_x", "b_y"]),
        (["a/x", "b/x"], ["a_x", "b_x"]),
        (["a/my tool/é"], ["a_my_tool__"]),
        (["my server/x", "my server/my server-x"], ["my_server_x", "my_server-x"]),
        (["git/git_log", "git/git-log", "git/gitlog"], ["git_log", "git-log", "git_gitlog"]),
        (["fetch/fetch", "fetch/refetch"], ["fetch", "fetch_refetch"]),
        (["git/git_log", "git/log"], ["git_git_log", "git_log"]),
        (["need/tool"], ["need_tool_d3e73b283931f8dd"]),
    ],
)
def test_names_that_a_model_sees(ids: list[str], names: list[str]) -> None:
    catalog = manifest(*ids)
    assert model_names([catalog.tool(i) for i in ids]) == names


def test_a_name_does_not_depend_on_the_other_tools() -> None:
    catalog = manifest("a/x", "b/x", "b/y", f"{'a' * 40}/{'x' * 40}")
    alone = [model_names([tool])[0] for tool in catalog.tools.values()]
    assert model_names(list(catalog.tools.values())) == alone
    assert alone[-1].startswith(f"{'a' * 23}_{'x' * 23}_"), "what is too long shows both, and a digest"
    assert len(alone[-1]) == 64


def test_names_stay_unique_whatever_the_ids() -> None:
    ids = [
        "a/x y",
        "a/x_y",
        "b/x.y",
        f"c/{'n' * 80}",
        f"d/{'n' * 80}",
        f"e/{'n' * 64}",
        "a_b/c",
        "a/b_c",
        "a/a_b_c",
        "a/c",
        "é/c",
        "è/c",
    ]
    catalog = manifest(*ids)
    names = model_names([catalog.tool(i) for i in ids])
    assert len(set(names)) == len(ids)
    assert all(NAME.match(name) for name in names)
    backwards = model_names([catalog.tool(i) for i in reversed(ids)])
    assert backwards == names[::-1]
