"""A reranker in a selection: what changes, what stays, and what the trace says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, SettingsError, Tool
from callsheet.retrievers import AgentGraphRetriever, Reranker, SelectSettings


class Scripted:
    """A compressor that does what a test wrote down, and remembers what it was shown."""

    def __init__(self, act: Callable[[list[Document]], Sequence[Document]]) -> None:
        self.act, self.shown, self.query = act, list[Document](), ""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        self.shown, self.query = list(documents), query
        return self.act(self.shown)


def town(direct: bool = True) -> Catalog:
    """An agent whose tool needs one of another agent, and a third that has nothing to do with either."""
    kind = DependencyKind.TOOL_DIRECTLY if direct else DependencyKind.TOOL_INDIRECTLY
    needs = (Dependency(tool="clock/now", kind=kind),)
    rain = Tool(agent="weather", name="rain", description="Will it rain in a city tomorrow.", depends_on=needs)
    snow = Tool(agent="weather", name="snow", description="Will it snow in a city tomorrow.")
    made = {
        "weather": (rain, snow),
        "clock": (Tool(agent="clock", name="now", description="The time."),),
        "mail": (Tool(agent="mail", name="send", description="Sends a letter."),),
    }
    return Catalog(agents=tuple(Agent(id=agent, tools=owned) for agent, owned in made.items()))


def retriever(reranker: Reranker | None, *, direct: bool = True) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(town(direct), index=":memory:", reranker=reranker)


def putting(*ids: str) -> Scripted:
    """Keeps these, in this order."""
    return Scripted(lambda shown: [document for i in ids for document in shown if document.metadata["id"] == i])


RAIN = "will it rain in Oslo"


def test_a_selection_without_a_reranker_says_nothing_of_one() -> None:
    assert retriever(None).select(RAIN).trace.reranked == ""


def test_a_selection_has_the_reranker_s_order_and_says_by_what() -> None:
    plain = [tool.id for tool in retriever(None).select(RAIN).tools]
    assert plain[0] == "weather/rain"
    selection = retriever(putting("mail/send", "weather/snow")).select(RAIN)
    assert [tool.id for tool in selection.tools][:2] == ["mail/send", "weather/snow"]
    assert sorted(tool.id for tool in selection.tools) == sorted(plain)
    assert selection.agents[0].id == "mail"
    assert selection.trace.reranked == "the first 4 tools, by Scripted"
    assert selection.to_dict(trace=True)["trace"]["reranked"] == selection.trace.reranked


def test_the_reranker_decides_who_fits_into_the_budget() -> None:
    selection = retriever(putting("mail/send")).select(RAIN, agents=1, tools=1)
    assert selection.tools_of == {"mail": ("mail/send",)}


def test_a_required_tool_comes_along_though_the_reranker_drops_it() -> None:
    selection = retriever(putting("weather/rain", "weather/snow", "mail/send")).select(RAIN, agents=1, tools=2)
    assert selection.tools_of == {"weather": ("weather/rain", "clock/now")}
    assert [tool.required for tool in selection.agents[0].tools] == [False, True]


def test_a_dependency_put_first_does_not_pull_in_what_it_came_for() -> None:
    selection = retriever(putting("clock/now"), direct=False).select(RAIN, agents=1, tools=1)
    assert selection.tools_of == {"clock": ("clock/now",)}


def test_agents_left_out_stay_so_and_their_tools_come_only_for_others() -> None:
    selection = retriever(putting("clock/now"), direct=False).select(RAIN, without=("clock",))
    assert {agent.id for agent in selection.agents} == {"weather", "mail"}
    assert "clock/now" in selection.tools_of["weather"]


def test_a_failure_leaves_the_selection_as_it_was() -> None:
    def fail(shown: list[Document]) -> Sequence[Document]:
        raise ConnectionError("refused")

    plain, failed = retriever(None).select(RAIN), retriever(Scripted(fail)).select(RAIN)
    assert failed.agents == plain.agents
    assert failed.trace.reranked == "not reranked, Scripted failed: ConnectionError: refused"


def test_how_many_are_shown_is_a_setting() -> None:
    reranker = putting()
    retriever(reranker).select(RAIN, rerank=2)
    assert len(reranker.shown) == 2
    with pytest.raises(SettingsError, match="rerank must be a whole number of at least 1"):
        SelectSettings(rerank=0)


def test_it_works_with_the_published_expansion_too() -> None:
    selection = retriever(putting("mail/send", "weather/snow")).select(RAIN, expansion="graph_rag_tool_fusion")
    assert [tool.id for tool in selection.tools][:2] == ["mail/send", "weather/snow"]
