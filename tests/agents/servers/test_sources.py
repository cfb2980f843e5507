"""Sources that must be run: servers, Python objects by reference, and toolkits, with consent and pins."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet import CatalogError, ToolRegistry, TrustError, load
from callsheet.agents.servers.catalogs.catalog_sources import load_reference, load_servers
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs import Agreements
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from callsheet.graphs.catalog.model import Agent, Skill, Tool
from callsheet.graphs.sources.loaded import SourceCatalog
from callsheet.graphs.sources.loading import starts_in

FAULTS = Path(__file__).parents[2] / "fixtures" / "fault_server.py"

MODULE = '''
from langchain_core.tools import BaseToolkit, tool
from langgraph.graph import MessagesState, StateGraph, START
from callsheet.graphs.catalog.model import Agent, Catalog, Tool

@tool
def read(path: str) -> str:
    """Reads a file."""
    return path

@tool
def write(path: str, text: str) -> str:
    """Writes a file."""
    return text

write.metadata = {
    "annotations": {"destructiveHint": True},
    "callsheet/core": True,
    "callsheet/depends_on": [{"tool": "read", "kind": "tool_directly"}],
}

class Kit(BaseToolkit):
    """Works with files."""

    def get_tools(self):
        return [read, write]

def node(state):
    return {"messages": [("ai", "heard: " + state["messages"][-1].content)]}

app = StateGraph(MessagesState).add_node("listen", node).add_edge(START, "listen").compile()
files = [read, write]
kit = Kit()
catalog = Catalog(agents=(Agent(id="x", tools=(Tool(agent="x", name="y"),)),))
both = {"disk": files, "chat": app}
number = 5

def make():
    return both

def fail():
    raise OSError("disk is gone")
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"tools_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(MODULE)
    return name


def server(mode: str, **limits: float) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=(str(FAULTS), mode), callsheet=ServerOptions(limits=limits))


def test_the_users_words_for_a_server_come_before_its_own() -> None:
    told = server("ok").model_copy(update={"description": "Counts the stock of our warehouse."})
    part = load_servers({"told": told, "untold": server("ok")})
    assert [agent.description for agent in part.agents] == ["Counts the stock of our warehouse.", ""]
    assert [agent.instructions for agent in part.agents] == ["Be brief.", "Be brief."]


@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("files", ["files/read", "files/write"]),
        ("Kit", ["Kit/read", "Kit/write"]),
        ("app", ["app/run"]),
        ("make", ["disk/read", "disk/write", "chat/run"]),
    ],
)
def test_a_reference_gives_agents_and_tools(module: str, name: str, tools: list[str]) -> None:
    part = load_reference(f"{module}:{name}")
    assert [tool.id for agent in part.agents for tool in agent.tools] == tools
    assert set(part.connections) == {agent.id for agent in part.agents}
    assert all(isinstance(found, InProcess) for found in part.connections.values())


def test_metadata_of_tools_reaches_the_catalog(module: str) -> None:
    catalog = load(f"{module}:kit").catalog
    write = catalog.tool("kit/write")
    assert write.annotations == {"destructiveHint": True}
    assert write.core
    assert write.depends_on[0].tool == "kit/read"
    assert [parameter.name for parameter in write.parameters] == ["path", "text"]
    assert catalog.agent("kit").description == "Works with files."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("filez", "there is no 'filez' (did you mean 'files'"),
        ("number", "'number' is of type int"),
        ("fail", "OSError: disk is gone"),
    ],
)
def test_a_reference_that_cannot_be_read_is_named(module: str, name: str, words: str) -> None:
    with pytest.raises(CatalogError) as caught:
        load_reference(f"{module}:{name}")
    assert words in str(caught.value)


def test_a_server_that_changes_its_tools_leaves_the_rest_of_the_catalog_alone() -> None:
    def part(*names: str) -> SourceCatalog:
        return SourceCatalog((Agent(id="web", tools=tuple(Tool(agent="web", name=name) for name in names)),))

    skill = Skill(name="read", tools=("get", "find"))
    edge = ("web/get", "web/find", None)
    loaded = load(SourceCatalog(part("get", "find").agents, skills=(skill,), rejected=(edge,)))
    without = with_agent(loaded, "web", part("find"))
    assert without.catalog.skills[0].tools == ("web/find",)
    again = with_agent(without, "web", part("get", "find"))
    assert set(again.catalog.skills[0].tools) == {"web/get", "web/find"}
    assert again.rejected == (edge,)


def test_a_server_cannot_touch_the_definitions_of_one_whose_name_begins_with_its_own() -> None:
    def agent(name: str, *tools: str) -> Agent:
        return Agent(id=name, tools=tuple(Tool(agent=name, name=tool) for tool in tools))

    digests = {"a": {"b/ok": "of a", "fine": "1"}, "a/b": {"ok": "of a/b"}}
    loaded = load(SourceCatalog((agent("a/b", "ok"), agent("a", "b/ok", "fine")), digests=digests))
    ok = loaded.catalog.tool("a/b/ok")
    assert (ok.agent, loaded.digest(ok)) == ("a/b", "of a/b")
    again = with_agent(loaded, "a", SourceCatalog((agent("a", "b/ok", "more"),), digests={"a": {"b/ok": "new"}}))
    assert list(again.catalog.tools) == ["a/b/ok", "a/more"]
    assert again.digest(ok) == "of a/b"
    assert again.digest(again.catalog.tool("a/more")) is None


FILES = "langchain_community.agent_toolkits.FileManagementToolkit"
OWN = """
from langchain_core.tools import BaseToolkit, tool

class Kit(BaseToolkit):
    "Greets people."
    greeting: str = "Hello"

    def get_tools(self):
        @tool(description=f"Says {self.greeting}.")
        def greet(name: str) -> str:
            return f"{self.greeting} {name}"
        return [greet]

class Needy(Kit):
    def model_post_init(self, context):
        raise RuntimeError("no such key")
"""
Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Written:
    """Writes an ``mcp.json`` with these entries, beside a module ``own_kit``."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CALLSHEET_YES", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_kit", raising=False)
    (tmp_path / "own_kit.py").write_text(OWN)

    def write(**entries: Any) -> Path:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries}))
        return path

    return write


def entry(**more: Any) -> dict[str, Any]:
    return {"toolkit": FILES, "arguments": {"root_dir": "work"}, **more}


def test_nothing_is_imported_without_consent(written: Written, tmp_path: Path) -> None:
    path = written(kit={"toolkit": "own_kit.Kit", "callsheet": {"allow": ["greet"]}})
    with pytest.raises(TrustError, match=r"would import these toolkits:\n  kit: own_kit.Kit '{}'"):
        load(path)
    assert "own_kit" not in sys.modules
    (start,) = starts_in(str(path))
    assert str(start) == f"kit: own_kit.Kit '{{}}'  (in {tmp_path}); called without asking: greet"
    Agreements().add([start])
    assert [tool.id for tool in load(path).catalog.agents[0].tools] == ["kit/greet"]
    for other in (
        {"toolkit": "own_kit.Kit", "arguments": {"greeting": "Hi"}},
        {"command": "own_kit.Kit", "args": ["{}"]},
    ):
        with pytest.raises(TrustError):
            load(written(kit={**other, "callsheet": {"allow": ["greet"]}}))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_tools_of_a_toolkit_work_in_a_folder_beside_the_catalog(
    written: Written, tmp_path: Path, *, asynchronous: bool
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load(written(files=entry(callsheet={"allow": ["read_file"]})), yes=True)
    (agent,) = loaded.catalog.agents
    assert (agent.id, agent.description) == ("files", "Toolkit for interacting with local files.")
    registry = ToolRegistry.from_catalog(loaded)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("The race begins at nine.")
    (bound,) = registry.bind("files/read_file", "run").values()
    args = {"file_path": "a.txt"}
    text = await bound.ainvoke(args) if asynchronous else bound.invoke(args)
    assert text == "The race begins at nine."
    assert registry.assurance("files/read_file").refusal("ask") is None
    assert registry.assurance("files/read_file").allowed
    assert "may change something" in str(registry.assurance("files/write_file").refusal("ask"))


def test_what_a_catalog_says_of_approval_holds_for_all_its_tools(written: Written) -> None:
    registry = ToolRegistry.from_catalog(load(written(files=entry(callsheet={"approval": "never"})), yes=True))
    assert registry.assurance("files/write_file").refusal("ask") is None
    assert registry.assurance("files/write_file").refusal("always")


def test_the_definitions_of_a_toolkit_are_pinned(written: Written, tmp_path: Path) -> None:
    path = written(kit={"toolkit": "own_kit.Kit"})
    assert load(path, yes=True).changes == ()
    (tmp_path / "own_kit.py").write_text(OWN.replace("Says", "Ignores all and says"))
    del sys.modules["own_kit"]
    loaded = load(path, yes=True)
    assert [(change.id, change.kind) for change in loaded.changes] == [("kit/greet", "changed")]
    assert loaded.catalog.agents[0].tools == ()
    assert loaded.connections["kit"].tools == {}  # type: ignore[attr-defined]
    (changed,) = load(written(kit={"toolkit": "own_kit.Kit", "arguments": {"greeting": "Hi"}}), yes=True).changes[:1]
    assert (changed.id, changed.kind) == ("kit", "command")


@pytest.mark.parametrize(
    ("toolkit", "arguments", "why"),
    [
        (FILES, {"root": "work"}, "has no argument 'root' (did you mean 'root_dir'?)"),
        (FILES, {"selected_tools": ["fly"]}, "does not take these arguments: arguments: Value error, File Tool of"),
        (FILES, {"root_dir": ["work"]}, "does not take these arguments: root_dir: Input should be a valid string"),
        (FILES, {"root_dir": "${NOBODY_SET_THIS}"}, "the variable NOBODY_SET_THIS is not set"),
        (f"{FILES}s", {}, "there is no 'FileManagementToolkits'"),
        ("nothing_here.Kit", {}, "there is no module 'nothing_here': correct the name or install it"),
        ("needs_more.Kit", {}, "module 'needs_more' needs 'nothing_here', which is not installed"),
        ("needs_later.Kit", {}, "needs a package that is not installed: No module named 'nothing_here'"),
        ("json.JSONDecoder", {}, "json.JSONDecoder is not a LangChain toolkit"),
        ("json.loads", {}, "json.loads is not a LangChain toolkit"),
        ("own_kit.Needy", {}, "own_kit.Needy cannot be made: RuntimeError: no such key"),
    ],
)  # fmt: skip
def test_a_toolkit_that_cannot_be_made_is_named_and_the_rest_is_there(
    written: Written, tmp_path: Path, toolkit: str, arguments: dict[str, Any], why: str
) -> None:
    (tmp_path / "needs_more.py").write_text("import nothing_here")
    (tmp_path / "needs_later.py").write_text("def __getattr__(name):\n    import nothing_here")
    loaded = load(written(bad={"toolkit": toolkit, "arguments": arguments}, good={"toolkit": "own_kit.Kit"}), yes=True)
    assert [agent.id for agent in loaded.catalog.agents] == ["good"]
    (problem,) = loaded.problems
    assert problem.agent == "bad"
    assert why in problem.message


@pytest.mark.parametrize(
    ("name", "document"),
    [
        ("kit.json", {"toolkit": "own_kit.Kit"}),
        ("a.json", {"name": "kit", "toolkit": "own_kit.Kit"}),
        ("a.json", {"callsheet": 1, "agents": [{"id": "kit", "toolkit": "own_kit.Kit"}, {"id": "other"}]}),
        ("folder/kit.json", {"toolkit": "own_kit.Kit"}),
    ],
)
def test_any_json_catalog_may_name_a_toolkit(written: Written, tmp_path: Path, name: str, document: Any) -> None:
    written()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    source = tmp_path / Path(name).parts[0]
    (start,) = starts_in(str(source))
    assert start.agent == "kit"
    with pytest.raises(TrustError, match="would import these toolkits"):
        load(source)
    Agreements().add([start])
    assert load(source).catalog.agent("kit").description == "Greets people."
