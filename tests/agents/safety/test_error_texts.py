"""A tool that answers its error as text has failed; a text that only looks like one was read rightly."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from sqlalchemy import create_engine

from callsheet import Settings, create_supervisor
from callsheet.agents import Limits, ToolRegistry
from callsheet.agents.calls.tool_result import outcome_of
from callsheet.graphs import load

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.agent_toolkits.file_management.toolkit import FileManagementToolkit
    from langchain_community.agent_toolkits.json.toolkit import JsonToolkit
    from langchain_community.tools.json.tool import JsonSpec
    from langchain_community.tools.sql_database.tool import InfoSQLDatabaseTool, QuerySQLDatabaseTool
    from langchain_community.utilities.sql_database import SQLDatabase


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    (tmp_path / "log.txt").write_text("Error: disk full\n")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "Error: a name").write_text("")
    (tmp_path / "folder" / "another").write_text("")
    db = SQLDatabase(create_engine(f"sqlite:///{tmp_path}/planets.db"))
    db.run("create table planets (name text)")
    db.run("insert into planets values ('Error: Pluto')")
    agents: dict[str, Any] = {
        "files": FileManagementToolkit(root_dir=str(tmp_path)).get_tools(),
        "planets": [QuerySQLDatabaseTool(db=db), InfoSQLDatabaseTool(db=db)],
        "countries": JsonToolkit(spec=JsonSpec(dict_={"Norway": {"capital": "Oslo"}})).get_tools(),
    }
    return ToolRegistry.from_catalog(load(agents))


async def called(registry: ToolRegistry, tool_id: str, args: dict[str, Any]) -> Any:
    (bound,) = registry.bind([tool_id], "run").values()
    call = {"type": "tool_call", "id": "1", "name": bound.name, "args": args}
    answer = await bound.ainvoke(call)
    assert bound.invoke(call).status == answer.status
    return answer


@pytest.mark.parametrize(
    ("tool_id", "args"),
    [
        ("files/read_file", {"file_path": "nothing.txt"}),
        ("files/read_file", {"file_path": "../outside.txt"}),
        ("files/read_file", {"file_path": "binary"}),
        ("files/read_file", {"file_path": "folder"}),
        ("files/file_delete", {"file_path": "nothing.txt"}),
        ("files/copy_file", {"source_path": "nothing.txt", "destination_path": "b.txt"}),
        ("files/move_file", {"source_path": "nothing.txt", "destination_path": "b.txt"}),
        ("files/write_file", {"file_path": "../b.txt", "text": "x"}),
        ("files/list_directory", {"dir_path": "nowhere"}),
        ("files/file_search", {"dir_path": "..", "pattern": "*"}),
        ("planets/sql_db_query", {"query": "select * from stars"}),
        ("planets/sql_db_schema", {"table_names": "stars"}),
        ("countries/json_spec_get_value", {"tool_input": 'data["Sweden"]'}),
        ("countries/json_spec_list_keys", {"tool_input": 'data["Norway"]["capital"]'}),
    ],
)
async def test_the_community_s_tools_have_failed_where_they_say_so(
    registry: ToolRegistry, tool_id: str, args: dict[str, Any]
) -> None:
    answer = await called(registry, tool_id, args)
    assert answer.status == "error", answer.text
    agent, _, name = tool_id.partition("/")
    assert answer.text.startswith(f"agent {agent!r}, tool {name!r}: ")
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("tool", "reported")


@pytest.mark.parametrize(
    ("tool_id", "args", "said"),
    [
        ("files/read_file", {"file_path": "log.txt"}, "Error: disk full\n"),
        ("files/list_directory", {"dir_path": "folder"}, "Error: a name"),
        ("files/file_search", {"dir_path": ".", "pattern": "nothing"}, "No files found"),
        ("planets/sql_db_query", {"query": "select * from planets"}, "Error: Pluto"),
        ("countries/json_spec_get_value", {"tool_input": 'data["Norway"]["capital"]'}, "Oslo"),
    ],
)
async def test_what_was_read_rightly_is_no_failure(
    registry: ToolRegistry, tool_id: str, args: dict[str, Any], said: str
) -> None:
    answer = await called(registry, tool_id, args)
    assert answer.status == "success", answer.text
    assert said in answer.text


async def test_the_step_of_such_a_tool_has_failed(tmp_path: Path) -> None:
    files = FileManagementToolkit(root_dir=str(tmp_path), selected_tools=["read_file"]).get_tools()
    app = create_supervisor({"files": files}, settings=Settings(replans=0, approval="never")).compile(InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    state = await app.ainvoke({"messages": [HumanMessage("Read the file nothing.txt")]}, config)
    assert state["results"]["1"]["status"] == "failed"
    assert "no such file or directory: nothing.txt" in state["results"]["1"]["error"]


def structured(value: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": value}


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("divide", text("Error: division by zero")),
        ("divide", text("Error executing tool divide: by zero")),
        ("divide", text("ZeroDivisionError: division by zero")),
        ("divide", text("sqlite3.OperationalError: no such table")),
        ("divide", text("KeyError('x')")),
        ("send", text("Traceback (most recent call last):\n  File ...")),
        ("divide", {**text("Error: by zero"), "structuredContent": {"result": "Error: by zero"}}),
        ("add_slide", structured({"error": "No presentation is currently loaded"})),
        ("add_slide", text('{"error": "No presentation is currently loaded", "code": 3}')),
        ("add_slide", structured({"result": {"success": False, "error": "No presentation", "slide": 1}})),
        ("read_file", structured({"error": {"code": 3}})),
        ("load_variable", text("**Error:** Variable 'x' not found")),
        ("divide", text("**Error**: by zero")),
        ("divide", text("❌ Error: by zero")),
        ("load_variable", text(json.dumps(text("**Error:** Variable 'x' not found")))),
        ("load_variable", structured(text("Error: Variable 'x' not found"))),
        ("read_file", structured({**text("no such file"), "isError": True})),
    ],
)
def test_a_failure_inside_of_a_success_is_one(name: str, result: dict[str, Any]) -> None:
    outcome = outcome_of("a", name, result, Limits())
    assert outcome.error.startswith(f"agent 'a', tool '{name}': ")
    assert (outcome.kind, outcome.effect) == ("tool", "reported")


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("read_text_file", text("Error: disk full")),
        ("read_text_file", text('{"error": "disk full"}')),
        ("tailLog", text("Error: disk full")),
        ("get_messages", text("Traceback (most recent call last):")),
        ("plot", text("Error bars: 5 %")),
        ("statistics", text("Error rate: 0.02")),
        ("explain", text("Errors: none")),
        ("explain", text("An Error: it happens")),
        ("fit", structured({"value": 3.0, "error": "0.5 kg"})),
        ("fit", structured({"value": 3.0, "error": 0.5})),
        ("add_slide", structured({"error": None, "slide": 1})),
        ("add_slide", text('{"error": "", "message": "done"}')),
        ("last_error", structured({"errors": []})),
        ("explain", text("**Errors** are common")),
        ("read_file", text(json.dumps(text("**Error:** as it stands in the file")))),
        ("mean", structured(text("**Result:** 5"))),
    ],
)
def test_a_text_or_an_object_that_only_looks_like_one_is_none(name: str, result: dict[str, Any]) -> None:
    assert outcome_of("a", name, result, Limits()).error == ""


async def test_a_function_of_one_s_own_that_answers_its_error_has_failed() -> None:
    @tool
    def divide(a: int, b: int) -> str:
        """Divides."""
        return str(a / b) if b else "Error: division by zero"

    registry = ToolRegistry.from_catalog(load({"math": [divide]}))
    assert (await called(registry, "math/divide", {"a": 1, "b": 0})).status == "error"
    assert (await called(registry, "math/divide", {"a": 1, "b": 2})).text == "0.5"
