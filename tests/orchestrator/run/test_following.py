"""The catalog follows its servers: what they say anew is in force at once, and searches meet it whole."""

from __future__ import annotations

import os
import socket
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
from callsheet.agents.servers.catalogs.last_listings import LastListings
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.graphs import Agent, Catalog, Loaded, ServerConfig, Tool, User, load
from callsheet.graphs.catalog.formats.manifests import Difference
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from callsheet.graphs.storage import cache_folder
from callsheet.graphs.trust.pins import PinBook
from callsheet.orchestrator.run.process.process_state import CatalogSync, ServerUpdates, finish_updates
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway
from callsheet.retrievers import MiniLMEmbeddings
from callsheet.retrievers.index.indexes import VectorStoreIndex
from servers import HANG, Servers, until


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
def followed(
    minilm: MiniLMEmbeddings,
) -> Iterator[Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]]]:
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
async def test_what_a_server_announces_is_found_and_callable(
    servers: Servers, followed: Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]], user: str
) -> None:
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
    servers: Servers, followed: Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]], user: str
) -> None:
    _, registry, retriever, following = followed({"a": servers.stdio("vanishing")})
    answer = await answered(registry, "a/work", user)
    assert answer.status == "error"
    assert "its server no longer lists it" in answer.text
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
def test_a_search_meets_the_state_before_or_the_one_after(minilm: MiniLMEmbeddings, rewritten: bool) -> None:
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


async def test_a_listing_in_a_session_is_stored_as_the_last_one(
    servers: Servers, followed: Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]]
) -> None:
    config = {"a": servers.stdio("ok", log="a.log")}
    load_servers(config)
    kept = max((cache_folder() / "listings").iterdir(), key=lambda file: file.stat().st_mtime)
    os.utime(kept, (0, time.time() - 5_000))
    loaded, registry, _, _ = followed(config)
    assert loaded.remembered
    await answered(registry, "a/work")
    assert kept.stat().st_mtime > time.time() - 4_000


def test_using_a_stored_listing_does_not_extend_its_time(servers: Servers, mode: Path) -> None:
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
    servers: Servers, mode: Path, followed: Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]]
) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log", limits={"fresh": 600})}
    load_servers(config)
    mode.write_text("structured")
    loaded, registry, _, _ = followed(config)
    before = registry.catalog.tool("a/work")
    await answered(registry, "a/work")
    assert registry.catalog.tool("a/work") != before
    assert loaded.catalog.tool("a/work") == before


def test_a_catalog_is_read_anew_in_an_interval(minilm: MiniLMEmbeddings) -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    retriever = AgentGraphRetriever.from_catalog(state(0), embeddings=minilm, index=":memory:")
    CatalogSync(retriever, registry)
    updates = ServerUpdates(registry, lambda **_: load(state(1)), seconds=0.05)
    assert until(lambda: set(retriever.catalog.tools) == set(state(1).tools))
    updates.stop.set()


def test_a_catalog_that_was_remembered_is_read_anew_at_once() -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    updates = ServerUpdates(registry, lambda **_: load(state(1)), anew=True)
    assert updates.complete.wait(HANG)
    assert set(registry.catalog.tools) == set(state(1).tools)


@pytest.fixture
def never() -> Iterator[ServerConfig]:
    """A server over HTTP that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield ServerConfig(url=f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", transport="http")


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = time.time() + seconds
    monkeypatch.setattr("callsheet.agents.servers.catalogs.last_listings.time.time", lambda: now)


LATE = Listing(error="it did not start within 60 s", kind="timeout", seconds=75)


def test_a_server_that_failed_is_not_asked_again_for_a_while(
    servers: Servers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = {"a": servers.stdio("ok", log="a.log")}
    LastListings().fail("a", config["a"], LATE)
    for _ in range(2):
        (problem,) = load_servers(config).problems
        assert (problem.kind, servers.count("a", "start")) == ("timeout", 0)
        assert (
            f"{LATE.error}\nIt failed 0 s ago, and is asked again in 12 min; `callsheet sync` asks it now"
            in problem.message
        )
    later(monkeypatch, 100)
    assert "It failed 2 min ago, and is asked again in 11 min" in load_servers(config).problems[0].message
    later(monkeypatch, 751)
    assert not load_servers(config).problems
    later(monkeypatch, 752)
    assert load_servers(config).remembered


def test_a_server_that_was_repaired_is_asked_for_a_person_who_waits(servers: Servers) -> None:
    config = {"a": servers.stdio("ok", log="a.log"), "b": servers.stdio("ok", log="b.log")}
    load_servers({"b": config["b"]})
    for name, server in config.items():
        LastListings().fail(name, server, Listing(error="it did not start", kind="start", seconds=60))
    assert [one.agent for one in load_servers(config).problems] == ["a", "b"]
    part = load_servers(config, retry=True)
    assert (part.problems, [agent.id for agent in part.agents]) == ((), ["a", "b"])
    assert not load_servers(config).problems


def test_what_is_known_of_a_server_that_failed_is_used_and_called_old(servers: Servers) -> None:
    config = {"a": servers.stdio("ok", log="a.log"), "b": servers.stdio("ok", log="b.log")}
    load_servers(config)
    LastListings().fail("a", config["a"], LATE)
    part = load_servers(config)
    assert [agent.id for agent in part.agents] == ["a", "b"]
    assert (set(part.down), set(part.remembered)) == ({"a"}, {"b"})
    assert "Its last known tools are kept, as of 20" in part.problems[0].message
    assert servers.count("a", "start") == 1


def test_the_pause_grows_with_each_failure_and_ends_with_an_answer(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, server = LastListings(), servers.stdio("ok")
    later(monkeypatch, 0)
    pauses = []
    for _ in range(12):
        store.fail("a", server, LATE)
        known = store.failure("a", server)
        assert known
        pauses.append(known[1])
    assert pauses[:3] == [750, 1_500, 3_000]
    assert pauses[-1] == 86_400
    assert store.failure("a", server.model_copy(update={"env": {**server.env, "KEY": "x"}})) is None
    store.keep("a", server, Listing())
    assert store.failure("a", server) is None
    for kind, seconds, pause in (("timeout", 3.0, 60.0), ("start", 0.5, 5.0), ("crash", 0.0, 0.0)):
        store.fail("b", server, Listing(error="x", kind=kind, seconds=seconds))  # type: ignore[arg-type]
        found = store.failure("b", server)
        assert found
        assert found[1] == pause
        store.recovered("b", server)


def test_a_server_that_is_known_is_not_waited_for_as_long_as_one_that_is_not(
    servers: Servers, mode: Path, never: ServerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.agents.servers.session_pool.PATIENCE", 0.2)
    limits = {"start": 3_600.0, "fresh": 0.0}
    never = never.model_copy(update={"callsheet": ServerOptions(limits=limits)})
    config = {"a": servers.stdio(f"@{mode}", log="a.log", limits=limits), "b": never}
    LastListings().keep("b", never, Listing(tools=({"name": "t"},)))
    load_servers({"a": config["a"]})
    mode.write_text("hang_init")
    part = load_servers(config)
    assert {tool.id for agent in part.agents for tool in agent.tools} == {"a/work", "b/t"}
    assert [(one.agent, one.kind) for one in part.problems] == [("a", "timeout"), ("b", "timeout")]
    assert part.problems[0].message.startswith("no answer within 0.2 s\n")
    assert [bool(LastListings().failure(name, config[name])) for name in config] == [True, True]


def test_what_is_known_is_loaded_without_asking_anybody(servers: Servers, never: ServerConfig) -> None:
    api = ServerConfig(openapi=f"{never.url}/openapi.json", transport="openapi")
    config = {"a": servers.stdio("ok", log="a.log"), "b": never, "c": api}
    LastListings().fail("b", never, LATE)
    part = load_servers(config, known=True)
    assert not part.agents
    assert {(one.agent, one.kind, one.message) for one in part.problems} == {
        ("a", "unheard", "it has not answered yet"),
        (
            "b",
            "timeout",
            f"{LATE.error}\nIt failed 0 s ago, and is asked again in 12 min; `callsheet sync` asks it now",
        ),
        ("c", "unheard", "it has not answered yet"),
    }
    assert servers.count("a", "start") == 0
    load_servers({"a": config["a"]})
    stored = next((cache_folder() / "listings").iterdir())
    os.utime(stored, (0, time.time() - 1_000_000))
    assert set(load_servers(config, known=True).remembered) == {"a"}
    assert servers.count("a", "start") == 1


def test_what_one_server_answers_is_in_force_while_another_never_answers(
    servers: Servers, never: ServerConfig, minilm: MiniLMEmbeddings
) -> None:
    never = never.model_copy(update={"callsheet": ServerOptions(limits={"start": 3_600})})
    config = {"never": never, "a": servers.stdio("ok"), "b": servers.stdio("ok")}

    def read(**asking: Any) -> Loaded:
        return load(load_servers(config, **asking))

    loaded = read(known=True)
    registry = ToolRegistry.from_catalog(loaded)
    retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=minilm, index=":memory:")
    gateway = Gateway(retriever, registry)
    gateway.updates = updates = ServerUpdates(registry, read, due=True)
    assert until(lambda: set(retriever.catalog.tools) == {"a/work", "b/work"})
    assert not updates.complete.is_set()
    assert gateway.catalog(Caller("x")).tools == registry.catalog.tools
    updates.stop.set()


def test_a_server_that_failed_is_asked_again_in_the_background(
    servers: Servers, mode: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.agents.servers.catalogs.last_listings._PAUSES", 0)
    monkeypatch.setattr("callsheet.orchestrator.run.process.process_state._LOOK_AGAIN", 0.05)
    mode.write_text("exit")
    config = {"a": servers.stdio(f"@{mode}", log="a.log"), "b": servers.stdio("ok", log="b.log")}

    def read(**asking: Any) -> Loaded:
        return load(load_servers(config, **asking))

    registry = ToolRegistry.from_catalog(read())
    assert set(registry.catalog.tools) == {"b/work"}
    ServerUpdates(registry, read)
    assert until(lambda: servers.count("a", "start") > 2)
    mode.write_text("ok")
    assert until(lambda: "a/work" in registry.catalog.tools)
    assert servers.count("b", "start") == 1


async def test_an_answer_in_a_session_ends_the_pause(
    servers: Servers, mode: Path, followed: Callable[..., tuple[Loaded, ToolRegistry, AgentGraphRetriever, CatalogSync]]
) -> None:
    config = {"a": servers.stdio(f"@{mode}", log="a.log")}
    load_servers(config)
    LastListings().fail("a", config["a"], LATE)
    _, registry, _, _ = followed(config)
    assert set(registry.loaded.down) == {"a"}
    assert (await answered(registry, "a/work")).status == "success"
    assert LastListings().failure("a", config["a"]) is None


def test_a_retriever_over_another_catalog_is_left_as_it_is(minilm: MiniLMEmbeddings) -> None:
    registry = ToolRegistry.from_catalog(load(state(0)))
    retriever = AgentGraphRetriever.from_catalog(state(5), embeddings=minilm, index=":memory:")
    following = CatalogSync(retriever, registry)
    registry.follow(load(state(1)))
    following.settled(10)
    assert set(retriever.catalog.tools) == set(state(5).tools)


def test_a_stored_listing_that_cannot_be_read_is_ignored(tmp_path: Path) -> None:
    listings, server = LastListings(tmp_path), ServerConfig(command="x")
    assert listings.last("a", server) is None
    listings.keep("a", server, Listing(tools=({"name": "t"},), name="A"))
    assert listings.last("a", server) == Listing(tools=({"name": "t"},), name="A")
    assert listings.last("a", ServerConfig(command="y")) is None
    (file,) = tmp_path.iterdir()
    for content in ("", "[]", "{}", '{"tools": 5}', "\x00", "[" * 100_000):
        file.write_text(content)
        assert listings.last("a", server) is None


def test_a_difference_of_two_listings_names_the_tools() -> None:
    before = ({"name": "a"}, {"name": "b"}, "no tool")
    after = ({"name": "b", "title": "B"}, {"name": "c"}, {"name": "d"}, {"name": "d", "title": "again"})
    assert Difference.of(before, after) == Difference(("c",), ("b",), ("a",))
    assert Difference.of((), after).added == ("b", "c")
    assert Difference.of(after, after) == Difference()


def test_a_program_does_not_end_before_its_index_has_followed_the_catalog(minilm: MiniLMEmbeddings) -> None:
    """A process that ended while a thread is in the embedded model would abort."""
    loaded = load(state(0))
    retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=minilm, index=":memory:")
    registry = ToolRegistry.from_catalog(loaded)
    CatalogSync(retriever, registry)
    registry.follow(load(state(1)))
    finish_updates()
    assert set(retriever.catalog.tools) == set(state(1).tools)
