from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, SettingsError, Tool
from callsheet.retrievers import AgentGraphRetriever, Changes, default_place
from callsheet.retrievers.selection.selector_factory import SelectorFactory

QUERY = "Convert 3 miles to kilometres"


def small_catalog() -> Catalog:
    edge = Dependency(tool="units/convert", kind=DependencyKind.TOOL_DIRECTLY)
    return Catalog(
        agents=tuple(
            Agent(id=agent, tools=(Tool(agent=agent, name=name, description=says, depends_on=edges),))
            for agent, name, says, edges in (
                ("units", "convert", "Converts miles and kilometres.", ()),
                ("weather", "forecast", "Weather forecast.", ()),
                ("maps", "route", "Length of a route.", (edge,)),
            )
        )
    )


class TestStandard(RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return cast("type[BaseRetriever]", AgentGraphRetriever.from_catalog)

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"source": small_catalog(), "index": ":memory:"}

    @property
    def retriever_query_example(self) -> str:
        return QUERY


@pytest.fixture(scope="module")
def retriever() -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(small_catalog(), k=2)


def test_a_wrong_setting_of_a_retriever_is_named() -> None:
    with pytest.raises(SettingsError, match="the embedder 'bogus:x' cannot be used"):
        AgentGraphRetriever.from_catalog(small_catalog(), embeddings="bogus:x")


@pytest.mark.parametrize("query", [{"query": "add"}, None, 5, ["add"]])
async def test_a_query_that_is_not_text_is_refused(retriever: AgentGraphRetriever, query: Any) -> None:
    words = f"the query must be a text such as 'convert 3 miles to km', not {type(query).__name__}"
    asks: list[Any] = [retriever.invoke, retriever.select, retriever.discover]
    for ask in asks:
        with pytest.raises(SettingsError, match=words):
            ask(query)
    with pytest.raises(SettingsError, match=words):
        await retriever.ainvoke(query)


def test_a_document_is_an_agent_with_its_tools_and_the_reason(retriever: AgentGraphRetriever) -> None:
    first = retriever.invoke(QUERY)[0]
    assert first.id == "units"
    assert first.page_content == "units\nunits/convert: Converts miles and kilometres."
    assert list(first.metadata) == ["agent", "tools", "score", "why", "verdict"]
    assert (first.metadata["agent"], first.metadata["tools"], first.metadata["verdict"]) == (
        "units",
        ["units/convert"],
        "found",
    )
    (why,) = first.metadata["why"]
    assert why.startswith("score 1.")
    assert "words" in why


async def test_ainvoke_returns_the_same_as_invoke(retriever: AgentGraphRetriever) -> None:
    assert await retriever.ainvoke(QUERY) == retriever.invoke(QUERY)
    assert await retriever.abatch([QUERY]) == [retriever.invoke(QUERY)]


def test_k_is_how_many_agents(retriever: AgentGraphRetriever) -> None:
    with pytest.raises(SettingsError, match="agents must be a whole number of at least 1, not 0"):
        retriever.invoke(QUERY, k=0)
    assert len(retriever.invoke(QUERY)) == 2
    assert len(retriever.invoke(QUERY, k=1)) == 1
    assert len(retriever.invoke(QUERY, k=9)) == 3
    assert len(retriever.select(QUERY).agents) == 2
    assert len(retriever.select(QUERY, agents=1).agents) == 1


def test_no_agent_of_k_comes_without_a_tool_and_the_budget_stays() -> None:
    def agent(name: str, size: int) -> Agent:
        about = "Convert a length of miles to kilometers, number" if size > 1 else "Ring the bell, number"
        tools = (Tool(agent=name, name=f"{name}_{n}", description=f"{about} {n}") for n in range(size))
        return Agent(id=name, tools=tuple(tools))

    retriever = AgentGraphRetriever.from_catalog(Catalog(agents=(agent("units", 12), agent("bell", 1))), k=2)
    bare = retriever.select("convert 3 miles to kilometers")
    assert [len(one.tools) for one in bare.agents] == [10, 0]
    units, bell = (document.metadata["tools"] for document in retriever.invoke("convert 3 miles to kilometers"))
    assert units == [tool.id for tool in bare.agents[0].tools[:9]]
    assert bell == ["bell/bell_0"]


def test_a_dependency_is_among_the_tools_of_the_agent_that_needs_it(retriever: AgentGraphRetriever) -> None:
    maps = retriever.invoke("How long is the route?", k=1)[0]
    assert maps.metadata["tools"] == ["maps/route", "units/convert"]
    assert maps.metadata["why"][1] == "required by maps/route"


def test_a_query_that_nothing_fits_still_returns_the_best_with_that_verdict(retriever: AgentGraphRetriever) -> None:
    documents = retriever.invoke("zxqv blorp")
    assert {document.metadata["verdict"] for document in documents} <= {"nothing_fits"}
    assert retriever.invoke("") == AgentGraphRetriever.from_catalog(Catalog()).invoke(QUERY) == []


def test_every_search_holds_off_updates_of_the_index(
    retriever: AgentGraphRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[SelectorFactory] = []
    monkeypatch.setattr(SelectorFactory, "searching", lambda self: nullcontext(entered.append(self)))
    for number, search in enumerate((retriever.select, retriever.discover, lambda _: retriever.capabilities()), 1):
        search(QUERY)
        assert len(entered) == number


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of two manifests; indexes go beside it."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    place = tmp_path / "manifests"
    place.mkdir()
    for name, says in (("units", "Converts miles and kilometres."), ("weather", "Weather forecast.")):
        listing = [{"name": "run", "description": says, "inputSchema": {"type": "object"}}]
        (place / f"{name}.json").write_text(json.dumps({"name": name, "tools": listing}))
    return place


def test_a_folder_is_indexed_once_in_the_users_cache_folder(folder: Path) -> None:
    first = AgentGraphRetriever.from_catalog(folder, k=1)
    assert first.changes == Changes(added=4)
    assert first.place == default_place() == folder.parent / "home" / "index"
    assert [document.id for document in first.invoke(QUERY)] == ["units"]
    assert AgentGraphRetriever.from_catalog(str(folder)).changes == Changes()
    (folder / "weather.json").unlink()
    assert AgentGraphRetriever.from_catalog(folder).changes == Changes(removed=2)


def test_the_index_can_be_put_elsewhere(folder: Path, tmp_path: Path) -> None:
    made = AgentGraphRetriever.from_catalog(folder, index=tmp_path / "here")
    assert made.place == tmp_path / "here"
    assert (tmp_path / "here" / "chroma.sqlite3").is_file()
    assert AgentGraphRetriever.from_catalog(folder, index=":memory:").changes == Changes(added=4)
    assert not Path(default_place()).exists()
