"""``langgraph dev`` with our ``langgraph.json``, driven through ``langgraph_sdk`` and an MCP client."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_client
from mcp import Client

from callsheet import Settings
from callsheet.orchestrator import AskSettings, ReaderSettings, RetrieverSettings
from langgraph_server import DevServer
from served import pinged

pytestmark = pytest.mark.server

CONVERT = "Convert 3 miles to kilometers"


@pytest.fixture
def client(server: DevServer) -> Any:
    return get_client(url=server.url)


async def thread_of(client: Any) -> str:
    return str((await client.threads.create())["thread_id"])


async def test_the_server_lists_its_graphs_with_their_schemas(client: Any) -> None:
    found = {a["graph_id"]: a["assistant_id"] for a in await client.assistants.search()}
    for graph, given, back in (
        ("supervisor", {"messages"}, {"messages", "plan", "selections", "results", "revisions", "usage"}),
        ("ask", {"question"}, {"answer", "steps"}),
        ("retriever", {"query"}, {"selection"}),
        ("arag", {"messages"}, {"messages", "citations", "loops", "retrieved_tokens"}),
    ):
        schemas: dict[str, Any] = dict(await client.assistants.get_schemas(found[graph]))
        assert set(schemas["input_schema"]["properties"]) == given
        assert set(schemas["output_schema"]["properties"]) == back
        assert schemas["state_schema"] is not None
        assert set(schemas["context_schema"]["properties"]) == set(FORMS[graph].model_fields)


FORMS: dict[str, Any] = {
    "supervisor": Settings,
    "ask": AskSettings,
    "retriever": RetrieverSettings,
    "arag": ReaderSettings,
}


@pytest.mark.parametrize("graph", list(FORMS))
async def test_studios_form_begins_with_what_matters_and_has_settings_of_its_graph_only(
    client: Any, graph: str
) -> None:
    """Studio shows the properties in the order of the schema, and at each node of the graph those that name it."""
    (assistant,) = await client.assistants.search(graph_id=graph)
    schemas = await client.assistants.get_schemas(assistant["assistant_id"])
    drawn = await client.assistants.get_graph(assistant["assistant_id"])
    form: dict[str, Any] = schemas["context_schema"]["properties"]
    assert list(form)[:5] == list(FORMS[graph].FIRST)
    nodes = {node["id"] for node in drawn["nodes"]}
    stages: list[str] = []
    for place, shown in enumerate(form.values()):
        assert nodes.issuperset(shown["langgraph_nodes"])
        assert "\n" not in shown["description"]
        assert "``" not in shown["description"]
        words = shown["title"].split(": ")
        assert len(words) == (1 if place < 5 else 2)
        stages += words[:1] if place >= 5 and words[0] not in stages[-1:] else []
    assert len(stages) == len(set(stages)), "the settings of a stage stand together"


async def test_the_server_draws_the_graph_down_to_the_workers_model_and_tools(client: Any) -> None:
    drawn = await client.assistants.get_graph("supervisor", xray=True)
    nodes = {node["id"] for node in drawn["nodes"]}
    assert {"plan", "dispatch", "retriever", "worker:agent:model", "worker:agent:tools", "answer"} <= nodes


MODES = {
    "values": "values",
    "updates": "updates",
    "messages": "messages",
    "messages-tuple": "messages",
    "custom": "custom",
    "events": "events",
    "tasks": "tasks",
    "checkpoints": "checkpoints",
    "debug": "debug",
}


async def test_the_server_streams_in_every_mode(client: Any) -> None:
    async def streamed(mode: str) -> list[Any]:
        stream = client.runs.stream(
            await thread_of(client),
            "supervisor",
            input={"messages": f"{CONVERT}. Count the words of 'one two three'."},
            stream_mode=mode,
            stream_subgraphs=True,
        )
        return [part async for part in stream]

    streams = await asyncio.gather(*map(streamed, MODES))
    for (mode, event), parts in zip(MODES.items(), streams, strict=True):
        assert [part.data for part in parts if part.event == "error"] == [], mode
        assert [part for part in parts if part.event.split("|")[0].split("/")[0] == event], mode
        said = [json.dumps(part.data) for part in parts]
        assert any('"step_id": "1"' in text for text in said), mode
        assert any('"step_id": "2"' in text for text in said), mode
        assert any("|worker:" in part.event for part in parts) or mode in ("messages", "events"), mode


async def test_a_run_can_be_cancelled_and_its_thread_goes_on(client: Any, folder: Path) -> None:
    thread = await thread_of(client)
    given: Any = {"messages": "Compile the long report with seconds 120"}
    run = await client.runs.create(thread, "supervisor", input=given)
    while not (folder / "begun.txt").exists():
        await asyncio.sleep(0.1)
    await client.runs.cancel(thread, run["run_id"], wait=True)
    assert (await client.runs.get(thread, run["run_id"]))["status"] == "interrupted"
    state: Any = await client.runs.wait(thread, "supervisor", input={"messages": CONVERT})
    assert state["results"]["1"]["status"] == "done"


async def test_a_second_assistant_has_a_context_of_its_own(client: Any) -> None:
    narrow = await client.assistants.create("supervisor", context={"tools": 1, "agents": 1}, name="narrow")
    wide = await client.assistants.create("supervisor", context={"tool_floor": 0.0}, name="wide")
    both = {}
    for name, assistant in (("narrow", narrow["assistant_id"]), ("wide", wide["assistant_id"])):
        state: Any = await client.runs.wait(await thread_of(client), assistant, input={"messages": CONVERT})
        both[name] = len(state["results"]["1"]["tools"])
    assert both["narrow"] == 1 < both["wide"]


async def test_a_wrong_context_is_named(client: Any) -> None:
    with pytest.raises(Exception, match="setting 'tools': Input should be greater than or equal to 1, not 0"):
        await client.runs.wait(await thread_of(client), "supervisor", input={"messages": CONVERT}, context={"tools": 0})


@pytest.mark.parametrize("graph", ["supervisor", "ask", "retriever", "arag"])
async def test_an_unknown_option_is_refused_before_a_run_is_made(client: Any, graph: str) -> None:
    given, thread = {"messages": CONVERT, "question": CONVERT, "query": CONVERT}, await thread_of(client)
    with pytest.raises(Exception, match=r"no setting 'tool'( \(did you mean 'tools'\?\))?; there are: (model|tools), "):
        await client.runs.wait(thread, graph, input=given, context={"tool": 1})
    assert await client.runs.list(thread) == []
    with pytest.raises(Exception, match="no setting 'tool'"):
        await client.runs.wait(None, graph, input=given, context={"tool": 1})
    with pytest.raises(Exception, match="no setting 'tool'"):
        await client.assistants.create(graph, context={"tool": 1})
    known = {"max_loops": 1} if graph == "arag" else {"agents": 1}
    made = await client.assistants.create(graph, context=known)
    with pytest.raises(Exception, match="no setting 'tool'"):
        await client.assistants.update(made["assistant_id"], context={"tool": 1})
    assert (await client.assistants.get(made["assistant_id"]))["context"] == known


async def test_an_answer_without_an_id_is_for_the_first_question_and_the_second_is_asked_next(client: Any) -> None:
    thread = await thread_of(client)
    await client.runs.wait(thread, "scripted", input={"messages": "Do all three."})
    first, second = (await client.threads.get_state(thread))["interrupts"]
    strange = {"decisions": [{"type": "reject", "hash": "0" * 64}]}
    with pytest.raises(Exception, match="the hash of a question that does not wait"):
        await client.runs.wait(thread, "scripted", command={"resume": strange})
    assert (await client.threads.get(thread))["status"] == "interrupted"
    refusal = {"decisions": [{"type": "reject"}]}
    await client.runs.wait(thread, "scripted", command={"resume": refusal})
    (left,) = (await client.threads.get_state(thread))["interrupts"]
    assert (left["id"], left["id"] != first["id"]) == (second["id"], True)
    state: Any = await client.runs.wait(thread, "scripted", command={"resume": refusal})
    assert [state["results"][i]["status"] for i in "123"] == ["failed", "failed", "done"]


@pytest.mark.parametrize(("graph", "field"), [("ask", "question"), ("retriever", "query")])
async def test_an_input_without_its_field_is_named(client: Any, graph: str, field: str) -> None:
    inputs: list[Any] = [{}, {field: None}, {field: 5}, {"other": "text"}]
    runs = [client.runs.wait(None, graph, input=given) for given in inputs]
    for error in await asyncio.gather(*runs, return_exceptions=True):
        assert isinstance(error, Exception)
        assert f"the input needs a text {field!r}" in str(error)
        assert "KeyError" not in "".join([str(error), *getattr(error, "__notes__", [])])


async def test_an_mcp_client_asks_a_question(server: DevServer) -> None:
    async with Client(f"{server.url}/mcp") as client:
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(offered["ask"].input_schema["properties"]) == {"question"}
        assert len(json.dumps(offered["ask"].input_schema)) < 400
        assert "agents and tools" in (offered["ask"].description or "")
        said: Any = await client.call_tool("ask", {"question": f"{CONVERT}. Add a note with the text 'x y'."})
    # LangGraph's server gives a Python literal.
    answer = ast.literal_eval(said.content[0].text)
    assert [step["status"] for step in answer["steps"]] == ["done", "needs_input"]
    assert "4.828 kilometer" in answer["answer"]
    assert "Nobody is here to confirm the call" in answer["steps"][1]["error"]


async def test_ten_runs_at_once_leave_the_server_responsive(client: Any, server: DevServer) -> None:
    given: Any = {"messages": f"{CONVERT}. Count the words of 'one two three'. Compile the long report with seconds 1."}
    async with pinged(server.url) as pings:
        threads = [await thread_of(client) for _ in range(10)]
        states: Any = await asyncio.gather(*(client.runs.wait(t, "supervisor", input=given) for t in threads))
    assert [[state["results"][i]["status"] for i in "123"] for state in states] == [["done"] * 3] * 10
    assert len(pings.seconds) > 20
    assert pings.slowest(0.5) < 0.1
    assert pings.slowest() < 0.5
