from __future__ import annotations

import sys
from pathlib import Path

import pytest

from callsheet.agents.servers.catalogs.catalog_sources import load_reference, load_servers
from callsheet.agents.servers.catalogs.server_catalog import with_agent
from callsheet.agents.servers.in_process import InProcess
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import ServerConfig, ServerOptions
from callsheet.graphs.catalog.loaded import SourceCatalog
from callsheet.graphs.catalog.loading import load
from callsheet.graphs.catalog.model import Agent, Skill, Tool

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
def test_references(module: str, name: str, tools: list[str]) -> None:
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
def test_references_that_cannot_be_read(module: str, name: str, words: str) -> None:
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
