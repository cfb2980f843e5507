"""Requirement 9: arguments are checked before they are sent, paths stay in roots, no ``$ref`` is fetched or delays."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.no_model.filling import fill
from callsheet.graphs import Agent, Tool, load
from callsheet.orchestrator.cli.approval_prompt import approve_all
from fleet import Fleet, definition
from scripted_model import ScriptedModel, calls


async def called(registry: ToolRegistry, tool_id: str, args: dict[str, Any]) -> ToolMessage:
    (bound,) = registry.bind([tool_id], "run").values()
    answer: ToolMessage = await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": args})
    return answer


@pytest.fixture
def listener() -> Iterator[tuple[int, list[Any]]]:
    """A port that nobody may connect to, and who did."""
    came: list[Any] = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            came.append(self.client_address)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1], came
        server.shutdown()


async def test_arguments_that_do_not_fit_are_not_sent(fleet: Fleet) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    registry = ToolRegistry.from_catalog(load(fleet.serve("a", definition("work", inputSchema=schema)), yes=True))
    before = fleet.bytes_sent("a")
    for args, words in (({"n": "two"}, "n: 'two' is not of type 'integer'"), ({}, "'n' is a required property")):
        answer = await called(registry, "a/work", args)
        assert answer.status == "error"
        assert words in answer.text
        assert "Nothing was sent: correct them and call again" in answer.text
        assert (answer.artifact["kind"], answer.artifact["effect"]) == ("refused", "none")
    assert fleet.bytes_sent("a") == before
    assert (await called(registry, "a/work", {"n": 2})).status == "success"
    await registry.close_run("run")


async def test_the_schema_that_counts_is_the_one_that_the_server_has_now(fleet: Fleet) -> None:
    fleet.serve("a", definition("work"), definition("rest"))
    registry = ToolRegistry.from_catalog(load(fleet.config, yes=True))
    fleet.serve("a", definition("work", inputSchema={"type": "object", "required": ["all_of_it"]}), definition("rest"))
    assert (await called(registry, "a/work", {"x": "1"})).status == "error"
    assert fleet.calls("a") == []
    assert (await called(registry, "a/rest", {"x": "1"})).status == "success"
    await registry.close_run("run")


UNUSABLE = {"type": "object", "properties": {"x": {"$ref": "#/$defs/Missing"}}}
THREAD: Any = {"configurable": {"thread_id": "1"}}


def working(fleet: Any, policy: Any, **entry: Any) -> Any:
    """An app whose model calls a tool of an unusable schema."""
    repair = definition("work", "Repairs the roof.", inputSchema=UNUSABLE, annotations={"readOnlyHint": True})
    config = fleet.serve(
        "a", repair, definition("rest", "Paints the roof."), entry={"callsheet": {"trusted": True, **entry}}
    )
    model = ScriptedModel(replies=[calls("a_work", x="1"), AIMessage("It is over.")])
    settings = Settings(approval=policy)
    return create_supervisor(config, worker_model=model, settings=settings, yes=True).compile(InMemorySaver())


@pytest.mark.parametrize(
    ("approval", "own"),
    [("ask", {}), ("always", {}), ("ask", {"approval": "never"}), ("never", {"approval": "always"})],
)
async def test_a_person_is_told_that_arguments_were_not_checked(fleet: Fleet, approval: Any, own: Any) -> None:
    app = working(fleet, approval, **own)
    state = await app.ainvoke({"messages": [HumanMessage("repair the roof")]}, THREAD)
    (question,) = state["__interrupt__"]
    assert "The arguments were not checked: its schema cannot be used (" in question.value["why"]
    assert fleet.calls("a") == []
    assert approve_all([question]) == {}
    state = await app.ainvoke(Command(resume={question.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == ["work"]
    assert state["results"]["1"]["calls"][0]["error"] == ""


async def test_where_nobody_is_asked_arguments_that_were_not_checked_are_not_sent(fleet: Fleet) -> None:
    app = working(fleet, "never")
    state = await app.ainvoke({"messages": [HumanMessage("repair the roof")]}, THREAD)
    (call,) = state["results"]["1"]["calls"]
    assert "the arguments were not checked" in call["error"]
    assert 'a run that asks for it (approval "ask" or "always")' in call["error"]
    assert (call["kind"], call["effect"], fleet.calls("a")) == ("refused", "none", [])


async def test_paths_stay_in_the_roots_of_their_server(fleet: Fleet, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "way_out").symlink_to(tmp_path)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    config = fleet.serve("a", definition("read", inputSchema=schema), entry={"callsheet": {"roots": [str(root)]}})
    registry = ToolRegistry.from_catalog(load(config, yes=True))
    before = fleet.bytes_sent("a")
    for path in ("/etc/passwd", f"{root}/../mcp.json", f"{root}/way_out/x", "~/.ssh/id_rsa", "file:///etc/passwd"):
        answer = await called(registry, "a/read", {"path": path})
        assert answer.artifact["kind"] == "refused", path
        assert "outside of the folders" in answer.text
    assert fleet.bytes_sent("a") == before
    assert (await called(registry, "a/read", {"path": f"{root}/notes.txt"})).status == "success"
    await registry.close_run("run")


READS = """
import json, sys
for line in sys.stdin:
    open(sys.argv[1], "a").write(line)
    asked = json.loads(line)
    match asked.get("method"):
        case "initialize":
            able = {"protocolVersion": asked["params"]["protocolVersion"], "capabilities": {"resources": {}}}
            answer = {**able, "serverInfo": {"name": "files", "version": "1"}}
        case "resources/list":
            answer = {"resources": [{"uri": "file://" + sys.argv[2] + "/a"}, {"uri": "file:///etc/hosts"}]}
        case "resources/templates/list":
            answer = {"resourceTemplates": [{"uriTemplate": uri} for uri in json.loads(sys.argv[3])]}
        case "resources/read":
            answer = {"contents": [{"uri": asked["params"]["uri"], "text": "x"}]}
        case _:
            answer = None
    result = {"error": {"code": -32601, "message": "Method not found"}} if answer is None else {"result": answer}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **result}), flush=True)
"""
TEMPLATES = ["file:///{+rest}", "{scheme}:{+rest}", "file://{+rest}{?v}", "note://{name}"]


async def test_what_a_template_makes_of_its_arguments_stays_in_the_roots_too(tmp_path: Path) -> None:
    root, log = str(tmp_path / "pub"), tmp_path / "log"
    entry = {"command": sys.executable, "args": ["-c", READS, str(log), root, json.dumps(TEMPLATES)]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"a": {**entry, "callsheet": {"roots": [root]}}}}))
    registry = ToolRegistry.from_catalog(load(config, yes=True)).of_resources()

    async def read(name: str, /, **arguments: str) -> str:
        answer = await called(registry, f"a/{name}", arguments)
        return str(answer.artifact["kind"]) if answer.status == "error" else "read"

    whole, made, query, note = (f"template:{uri}" for uri in TEMPLATES)
    assert await read(whole, rest="etc/passwd") == "refused"
    assert await read(whole, rest=f"{root[1:]}/../../etc/passwd") == "refused"
    assert await read(made, scheme="file", rest="///etc/passwd") == "refused"
    assert await read(query, rest=f"{root}/a", v="/../../../../etc/passwd") == "refused"
    assert await read("resource:file:///etc/hosts") == "refused"
    assert "resources/read" not in log.read_text()
    assert await read(whole, rest=f"{root[1:]}/a") == await read(f"resource:file://{root}/a") == "read"
    assert await read(note, name="today") == "read"
    await registry.close_run("run")


async def test_no_reference_to_elsewhere_is_fetched(fleet: Fleet, listener: tuple[int, list[Any]]) -> None:
    port, came = listener
    elsewhere = {"$ref": f"http://127.0.0.1:{port}/steal.json"}
    schema = {"type": "object", "properties": {"x": elsewhere}, "$defs": {"y": elsewhere}}
    registry = ToolRegistry.from_catalog(load(fleet.serve("a", definition("work", inputSchema=schema)), yes=True))
    assert "the arguments were not checked" in (await called(registry, "a/work", {"x": "anything"})).text
    assert (await called(registry, "a/work", {})).status == "success"
    await registry.close_run("run")
    assert came == []


def test_a_form_of_a_schema_with_a_reference_to_elsewhere_fetches_nothing(listener: tuple[int, list[Any]]) -> None:
    port, came = listener
    elsewhere = {"$ref": f"http://127.0.0.1:{port}/steal.json"}
    for spec in (elsewhere, {"allOf": [elsewhere]}):
        schema = {"properties": {"radius": {"type": "number", **spec}}, "required": ["radius"]}
        circle = Tool(agent="a", name="circle", input_schema=schema)
        assert fill(circle, Agent(id="a", tools=(circle,)), "circle of 5").args == {"radius": 5}
    assert came == []


async def test_a_schema_that_takes_for_ever_keeps_no_call_waiting(fleet: Fleet) -> None:
    """Its references double at each of forty levels; nobody waits for the end, and nothing is sent unchecked."""
    deeper: Any = [{"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)]
    defs = {f"d{i}": spec for i, spec in enumerate([*deeper, {"type": "string"}])}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": defs}
    registry = ToolRegistry.from_catalog(load(fleet.serve("a", definition("work", inputSchema=schema)), yes=True))
    for _ in range(2):
        assert "takes too long. Nothing was sent" in (await called(registry, "a/work", {"x": "anything"})).text
    assert fleet.calls("a") == []
    await registry.close_run("run")
