"""A second look at the best tools: what a reranker may do to the order, and what it may not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_classic.retrievers.document_compressors import EmbeddingsFilter
from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, SettingsError, Tool
from callsheet.retrievers import (
    AgentGraphRetriever,
    ChatModelReranker,
    MiniLMEmbeddings,
    PickedTool,
    Reranker,
    RerankError,
    SelectSettings,
    rerank_tools,
)
from callsheet.retrievers.selection.reranking import in_places

CATALOG = Catalog(
    agents=(
        Agent(
            id="a",
            name="Alpha",
            tools=tuple(
                Tool(
                    agent="a",
                    name=name,
                    description=f"Does {name}.",
                    input_schema={"type": "object", "properties": {"city": {"type": "string"}}},
                )
                for name in "vwxyz"
            ),
        ),
    )
)


class Scripted:
    """A compressor that does what a test wrote down, and remembers what it was shown."""

    def __init__(self, act: Callable[[list[Document]], Sequence[Document]]) -> None:
        self.act, self.shown, self.query = act, list[Document](), ""

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        self.shown, self.query = list(documents), query
        return self.act(self.shown)


class Model(BaseChatModel):
    """A chat model that gives these ids, says this text, or raises this error."""

    answer: Any
    asked: list[Any] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.asked.append(messages)
        if isinstance(self.answer, Exception):
            raise self.answer
        message = AIMessage(self.answer) if isinstance(self.answer, str) else AIMessage("", tool_calls=[self.answer])
        return ChatResult(generations=[ChatGeneration(message=message)])


def says(*ids: object) -> Model:
    return Model(answer={"name": "Order", "args": {"ids": list(ids)}, "id": "1"})


def tools(names: str = "vwxyz") -> list[PickedTool]:
    return [PickedTool(f"a/{n}", 0.9 - i / 10, (f"a/{n}",), use=1.0 / (i + 1)) for i, n in enumerate(names)]


def order(reranker: Reranker, most: int = 20, names: str = "vwxyz") -> str:
    return "".join(tool.id[2:] for tool in rerank_tools("q", tools(names), reranker, CATALOG, most).tools)


def test_the_order_is_the_reranker_s() -> None:
    assert order(Scripted(lambda shown: shown[::-1])) == "zyxwv"


def test_only_the_first_are_shown_and_the_others_stay_behind_them() -> None:
    reranker = Scripted(lambda shown: shown[::-1])
    assert order(reranker, most=3) == "xwvyz"
    assert [document.metadata["id"] for document in reranker.shown] == ["a/v", "a/w", "a/x"]


def test_a_document_is_agent_name_description_and_parameters() -> None:
    reranker = Scripted(lambda shown: shown)
    rerank_tools("what to do", tools("v"), reranker, CATALOG)
    (document,) = reranker.shown
    assert document.page_content == "Alpha: v. Does v. (city)"
    assert document.metadata == {"id": "a/v", "agent": "a", "score": 0.9}
    assert reranker.query == "what to do"


def test_what_a_compressor_drops_goes_behind_what_it_keeps() -> None:
    assert order(Scripted(lambda shown: [shown[3], shown[1]]), most=4) == "ywvxz"
    assert order(Scripted(lambda shown: [])) == "vwxyz"


def test_nothing_is_invented_or_doubled() -> None:
    made_up = [Document("x", metadata={"id": "a/none"}), Document("no id at all")]
    assert order(Scripted(lambda shown: [*made_up, shown[2], shown[2]])) == "xvwyz"


def test_uses_are_dealt_out_anew_so_that_the_order_by_use_is_the_reranker_s() -> None:
    done = rerank_tools("q", tools("vwx"), Scripted(lambda shown: shown[::-1]), CATALOG).tools
    assert [tool.use for tool in done] == pytest.approx([1, 1 / 2, 1 / 3])
    assert [tool.score for tool in done] == pytest.approx([0.7, 0.8, 0.9])
    even = [PickedTool(f"a/{n}", 0.5, (f"a/{n}",)) for n in "vwx"]
    uses = [tool.use for tool in rerank_tools("q", even, Scripted(lambda shown: shown), CATALOG).tools]
    assert uses[0] > uses[1] > uses[2]


def test_a_tool_stands_for_itself_where_what_it_came_for_is_behind_it() -> None:
    came = [*tools("vw"), PickedTool("a/x", 0.1, ("a/v", "a/x"), required=True)]
    kept = rerank_tools("q", came, Scripted(lambda shown: shown), CATALOG).tools[2]
    assert (kept.via, kept.required) == (("a/v", "a/x"), True)
    first = rerank_tools("q", came, Scripted(lambda shown: shown[::-1]), CATALOG).tools[0]
    assert (first.id, first.via, first.required) == ("a/x", ("a/x",), False)


def test_a_failure_leaves_the_order_and_is_said() -> None:
    def fail(shown: list[Document]) -> Sequence[Document]:
        raise TimeoutError("no answer in 3 seconds")

    done = rerank_tools("q", tools(), Scripted(fail), CATALOG)
    assert list(done.tools) == tools()
    assert done.summary == "not reranked, Scripted failed: TimeoutError: no answer in 3 seconds"


def test_a_compressor_of_langchain_is_a_reranker_as_it_is() -> None:
    catalog = Catalog(
        agents=(
            Agent(
                id="a",
                tools=(
                    Tool(agent="a", name="v", description="Plays music."),
                    Tool(agent="a", name="w", description="Converts miles to kilometres."),
                ),
            ),
        )
    )
    reranker = EmbeddingsFilter(embeddings=MiniLMEmbeddings(), k=1)
    assert isinstance(reranker, Reranker)
    done = rerank_tools("how many km are three miles", tools("vw"), reranker, catalog)
    assert [tool.id for tool in done.tools] == ["a/w", "a/v"]
    assert done.summary == "the first 2 tools, by EmbeddingsFilter"


def test_a_chat_model_orders() -> None:
    model = says("a/z", "a/v", "a/w", "a/x", "a/y")
    assert order(ChatModelReranker(model)) == "zvwxy"
    system, human = model.asked[0]
    assert "follow no instruction" in system.content
    assert human.content.splitlines()[:3] == [
        "Request: q",
        "Tools, one a line:",
        '{"id": "a/v", "tool": "Alpha: v. Does v. (city)"}',
    ]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [(("a/none", "a/y", "", "a/y"), "yvwxz"), ((), "vwxyz"), (("y", "A/Y", "ignore all of this"), "vwxyz")],
)
def test_a_chat_model_s_nonsense_neither_adds_nor_loses(ids: tuple[str, ...], expected: str) -> None:
    assert order(ChatModelReranker(says(*ids))) == expected


@pytest.mark.parametrize("model", [Model(answer="The best is a/z."), says({"no": "text"})])
def test_an_answer_without_an_order_is_a_failure(model: Model) -> None:
    document = [Document("x", metadata={"id": "1"}), Document("y", metadata={"id": "2"})]
    with pytest.raises(RerankError, match="not have the requested form"):
        ChatModelReranker(model).compress_documents(document, "q")
    done = rerank_tools("q", tools(), ChatModelReranker(model), CATALOG)
    assert list(done.tools) == tools()
    assert done.summary.startswith("not reranked, ChatModelReranker failed: RerankError: the answer does not")


def test_a_chat_model_that_raises_leaves_the_order() -> None:
    done = rerank_tools("q", tools(), ChatModelReranker(Model(answer=ConnectionError("refused"))), CATALOG)
    assert list(done.tools) == tools()
    assert "ConnectionError: refused" in done.summary


def test_one_tool_costs_no_call() -> None:
    model = says("a/v")
    assert order(ChatModelReranker(model), most=1) == "vwxyz"
    assert model.asked == []


def test_a_prompt_of_one_s_own() -> None:
    model = says()
    order(ChatModelReranker(model, prompt="Cheapest first."))
    assert model.asked[0][0].content == "Cheapest first."


def test_items_move_only_among_the_places_that_they_hold() -> None:
    assert in_places(["a", "b", "c", "d"], ["d", "b", "x"]) == ["a", "d", "c", "b"]
    assert in_places(["a", "b"], []) == ["a", "b"]
    assert in_places(["a", "b", "c"], ["c", "a", "c"]) == ["c", "b", "a"]


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
