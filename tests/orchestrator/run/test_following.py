"""The catalog follows its servers: what they say anew is in force at once, and searches meet it whole."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.vectorstores import InMemoryVectorStore

from callsheet import AgentGraphRetriever
from callsheet.agents import ToolRegistry
from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.agents.servers.catalogs.listings import LastListings, Listing
from callsheet.graphs import Agent, Catalog, Loaded, ServerConfig, Tool, User, load
from callsheet.graphs.catalog.formats.mcp_format import Difference
from callsheet.graphs.storage import cache_folder
from callsheet.graphs.trust.pins import PinBook
from callsheet.orchestrator.run.process.process_state import CatalogSync, follow_every
from callsheet.retrievers.index.vector_indexes import VectorStoreIndex
from servers import Servers, until

ANYTHING = {"type": "object", "properties": {}}


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


@pytest.fixture
def mode(tmp_path: Path) -> Path:
    """The file that says how the server ``@mode`` behaves."""
    file = tmp_path / "mode"
    file.write_text("ok")
    return file


@pytest.fixture
def followed(minilm: Any) -> Iterator[Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]]]:
    registries: list[ToolRegistry] = []

    def make(config: dict[str, ServerConfig]) -> tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]:
        loaded = load(load_servers(config))
        registry = ToolRegistry.from_catalog(loaded)
        registries.append(registry)
        retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=minilm, index=":memory:")
        return loaded, registry, retriever, CatalogSync(retriever, registry)

    yield make
    for registry in registries:
        registry.close()


async def answered(registry: ToolRegistry, tool_id: str, user: str = "") -> Any:
    (bound,) = registry.bind([tool_id], "run", user=User(user)).values()
    return await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": {"x": 1}})


@pytest.mark.parametrize("user", ["", "anna"])
async def test_what_a_server_announces_is_found_and_callable(servers: Servers, followed: Any, user: str) -> None:
    _, registry, retriever, following = followed({"a": servers.stdio("list_changed"), "b": servers.stdio("ok")})
    assert set(registry.catalog.tools) == {"a/work", "b/work"}
    assert (await answered(registry, "a/work", user)).status == "success"
    assert until(lambda: "a/extra" in registry.catalog.tools)
    following.settled(30)
    assert until(lambda: "a/extra" in retriever.catalog.tools)
    assert "a/extra" in {tool.id for tool in retriever.select("work that is extra").tools}
    assert (await answered(registry, "a/extra", user)).status == "success"
    assert retriever.catalog.tool("a/work").description == "Does other work."


@pytest.mark.parametrize("user", ["", "anna"])
async def test_a_tool_that_is_gone_when_its_session_opens_is_refused(
    servers: Servers, followed: Any, user: str
) -> None:
    _, registry, retriever, following = followed({"a": servers.stdio("vanishing")})
    answer = await answered(registry, "a/work", user)
    assert answer.status == "error"
    assert "its server does not offer it any more" in answer.text
    assert servers.count("vanishing", "call") == 0
    following.settled(30)
    assert until(lambda: set(retriever.catalog.tools) == {"a/other"})


def state(number: int) -> Catalog:
    tools = tuple(
        Tool(agent="a", name=f"convert_{number}_{i}", description=f"Converts miles, way {i} of {number}.")
        for i in range(12)
    )
    return Catalog(agents=(Agent(id="a", tools=tools),))


@pytest.mark.parametrize("rewritten", [False, True], ids=["anew", "in its place"])
def test_a_search_meets_the_state_before_or_the_one_after(minilm: Any, rewritten: bool) -> None:
    index: Any = VectorStoreIndex(InMemoryVectorStore(minilm)) if rewritten else ":memory:"
    retriever = AgentGraphRetriever.from_catalog(state(0), embeddings=minilm, index=index)
    stop, met, troubles = threading.Event(), set[str](), list[str]()

    def search() -> None:
        while not stop.is_set():
            found = retriever.select("convert miles", tools=12)
            states = {tool.id.split("_")[1] for tool in found.tools}
            met.update(states)
            if len(states) != 1 or len(found.tools) != 12:
                troubles.append(f"{len(found.tools)} tools of the states {states}")

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 6):
        retriever.follow(load(state(number)))
        assert {tool.id.split("_")[1] for tool in retriever.select("convert miles").tools} == {str(number)}
    stop.set()
    for thread in threads:
        thread.join()
    assert not troubles
    assert len(met) > 1


def test_a_server_that_is_down_keeps_its_last_tools_and_says_so(servers: Servers, mode: Path) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log"), "never": servers.stdio("exit")}
    assert not load_servers(config).down
    mode.write_text("exit")
    loaded = load(load_servers(config, anew=True))
    assert set(loaded.catalog.tools) == {"a/work"}
    assert set(loaded.down) == {"a"}
    assert [problem.agent for problem in loaded.problems] == ["a", "never"]
    assert "Its last known tools are kept, as of 20" in loaded.problems[0].message
    assert "kept" not in loaded.problems[1].message


def test_a_server_whose_last_answer_is_fresh_is_not_started(servers: Servers, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    config = {"a": servers.stdio("ok", log="a.log"), "b": servers.stdio("ok", log="b.log", limits={"fresh": 0})}
    asked = load(load_servers(config))
    assert not asked.remembered
    written = log.read_text()
    again = load(load_servers(config))
    assert again.catalog == asked.catalog
    assert set(again.remembered) == {"a"}
    assert log.read_text() == written
    load_servers(config, anew=True)
    assert len(log.read_text()) > len(written)


def test_a_server_whose_entry_has_changed_is_asked(servers: Servers) -> None:
    first = servers.stdio("ok", log="a.log")
    load_servers({"a": first})
    assert load_servers({"a": first}).remembered
    other = first.model_copy(update={"env": {**first.env, "TOKEN": "of somebody else"}})
    assert not load_servers({"a": other}).remembered
    assert load_servers({"a": other}).remembered


def test_a_server_without_a_pin_is_asked(servers: Servers, tmp_path: Path) -> None:
    config, book = {"a": servers.stdio("ok", log="a.log")}, PinBook(tmp_path / "pins.json")
    load_servers(config, pins=book)
    assert load_servers(config, pins=book).remembered
    book.file.remove()
    assert not load_servers(config, pins=book).remembered


def test_a_server_of_which_something_is_quarantined_is_asked(servers: Servers, mode: Path, tmp_path: Path) -> None:
    book = PinBook(tmp_path / "pins.json")
    config = {"a": servers.stdio(f"@{mode}", log="a.log")}
    load_servers(config, pins=book)
    mode.write_text("hints")
    assert load_servers(config, pins=book, anew=True).changes
    mode.write_text("ok")
    again = load_servers(config, pins=book)
    assert not again.changes
    assert not again.remembered


async def test_a_session_makes_a_listing_new(servers: Servers, followed: Any) -> None:
    config = {"a": servers.stdio("ok", log="a.log")}
    load_servers(config)
    kept = max((cache_folder() / "listings").iterdir(), key=lambda file: file.stat().st_mtime)
    os.utime(kept, (0, time.time() - 5_000))
    loaded, registry, _, _ = followed(config)
    assert loaded.remembered
    await answered(registry, "a/work")
    assert kept.stat().st_mtime > time.time() - 4_000


async def test_a_tool_that_is_gone_since_its_listing_is_not_called(
    servers: Servers, mode: Path, tmp_path: Path
) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log")}
    book = PinBook(tmp_path / "pins.json")
    mode.write_text("hints")
    load_servers(config, pins=book)
    mode.write_text("ok")
    registry = ToolRegistry.from_catalog(load(load_servers(config, pins=book)))
    try:
        said = await answered(registry, "a/write")
    finally:
        registry.close()
    assert said.status == "error"
    assert "does not offer it any more" in said.text
    assert servers.count("a", "call") == 0


def test_an_answer_does_not_stay_fresh_by_being_used(servers: Servers, mode: Path) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log", limits={"fresh": 600})}
    load_servers(config)
    kept = max((cache_folder() / "listings").iterdir(), key=lambda file: file.stat().st_mtime)
    os.utime(kept, (0, time.time() - 599))
    load_servers(config)
    assert kept.stat().st_mtime < time.time() - 590
    os.utime(kept, (0, time.time() - 601))
    mode.write_text("exit")
    assert set(load_servers(config).down) == {"a"}


async def test_a_tool_that_is_not_as_it_was_remembered_is_seen_before_it_is_called(
    servers: Servers, mode: Path, followed: Any
) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log", limits={"fresh": 600})}
    load_servers(config)
    mode.write_text("structured")
    loaded, registry, _, _ = followed(config)
    before = registry.catalog.tool("a/work")
    await answered(registry, "a/work")
    assert registry.catalog.tool("a/work") != before
    assert loaded.catalog.tool("a/work") == before


async def test_the_mark_goes_when_the_server_is_back(servers: Servers, mode: Path, followed: Any) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log", limits={"fresh": 0})}
    load_servers(config)
    mode.write_text("exit")
    loaded, registry, _, _ = followed(config)
    assert set(loaded.down) == set(registry.down) == {"a"}
    assert "did not start" in (await answered(registry, "a/work")).text
    mode.write_text("ok")
    assert (await answered(registry, "a/work")).status == "success"
    assert not registry.down


def test_a_catalog_is_read_anew_in_an_interval(minilm: Any) -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    retriever = AgentGraphRetriever.from_catalog(state(0), embeddings=minilm, index=":memory:")
    CatalogSync(retriever, registry)
    stop = follow_every(0.05, registry, lambda: load(state(1)))
    assert until(lambda: set(retriever.catalog.tools) == set(state(1).tools))
    stop.set()


def test_a_catalog_that_was_remembered_is_read_anew_at_once() -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    read = threading.Event()
    registry.watch(lambda loaded: read.set())
    follow_every(0, registry, lambda: load(state(1)), at_once=True)
    assert read.wait(30)
    assert set(registry.catalog.tools) == set(state(1).tools)


def test_a_retriever_over_another_catalog_is_left_as_it_is(minilm: Any) -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    retriever = AgentGraphRetriever.from_catalog(state(5), embeddings=minilm, index=":memory:")
    following = CatalogSync(retriever, registry)
    registry.follow(load(state(1)))
    following.settled(10)
    assert set(retriever.catalog.tools) == set(state(5).tools)


def test_a_last_answer_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    listings, server = LastListings(tmp_path), ServerConfig(command="x")
    assert listings.last("a", server) is None
    listings.keep("a", server, Listing(tools=({"name": "t"},), name="A"))
    assert listings.last("a", server) == Listing(tools=({"name": "t"},), name="A")
    assert listings.last("a", ServerConfig(command="y")) is None
    (file,) = tmp_path.iterdir()
    for content in ("", "[]", "{}", '{"tools": 5}', "\x00", "[" * 100_000):
        file.write_text(content)
        assert listings.last("a", server) is None


def test_a_difference_names_tools() -> None:
    before = ({"name": "a"}, {"name": "b"}, "no tool")
    after = ({"name": "b", "title": "B"}, {"name": "c"}, {"name": "d"}, {"name": "d", "title": "again"})
    assert Difference.of(before, after) == Difference(("c",), ("b",), ("a",))
    assert Difference.of((), after).added == ("b", "c")
    assert Difference.of(after, after) == Difference()
