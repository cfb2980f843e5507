"""The retriever as a LangChain component."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr

from callsheet.graphs import Catalog, CatalogSource, Loaded, Policy, SettingsError, Taxonomy, User, load, shown
from callsheet.graphs.trust.policy import counts_outcomes
from callsheet.retrievers.capabilities import Assignments, assign_capabilities
from callsheet.retrievers.discovery import Discovery, discover
from callsheet.retrievers.index.embedding import EMBEDDED
from callsheet.retrievers.index.minilm_embeddings import embeddings_of
from callsheet.retrievers.index.node_texts import Changes, Progress, VectorIndex
from callsheet.retrievers.index.rows import IN_MEMORY
from callsheet.retrievers.selection.result import PickedAgent, PickedSkill, Selection, explain_tool
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Draft, Selector
from callsheet.retrievers.selection.selector_factory import SelectorFactory, selector_factory
from callsheet.retrievers.selection.step_selection import StepNeed, select_steps

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.vectorstores import VectorStore

    from callsheet.retrievers.decisions.chat_decision_model import DecisionModel
    from callsheet.retrievers.selection.decision import ToolJudge


class AgentGraphRetriever(BaseRetriever):
    """A LangChain retriever that finds agents, tools and skills for a request, synchronous and asynchronous.

    ``invoke(query)`` returns one Document per agent: its description as text, and in the metadata ``agent``,
    ``tools`` (ids), ``score``, ``why`` (one line per tool) and ``verdict``. A Document of a skill follows, with the
    skill's text and with ``skill`` in the metadata, where ``agent`` and ``why`` are empty. ``select(query)`` returns
    all details.

    Attributes:
        k: Maximum number of agents; None: no maximum.
        changes: Rows that the last update of the index added and removed.
        place: Where the vectors are stored; None if unknown or in memory.
        policy: Who may see and call which tools; None: everyone, everything.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    selector: Selector
    k: int | None = Field(default=None, ge=1)
    changes: Changes = Changes()
    place: str | Path | None = None
    policy: Policy | None = None
    user: User = User()
    _factory: SelectorFactory | None = PrivateAttr(default=None)
    _loaded: Loaded | None = PrivateAttr(default=None)

    @classmethod
    def from_catalog(
        cls,
        source: CatalogSource,
        *,
        k: int | None = None,
        embeddings: str | Embeddings = EMBEDDED,
        index: str | Path | VectorIndex | VectorStore | None = None,
        settings: SelectSettings | None = None,
        progress: Progress | None = None,
        decision_model: DecisionModel | None = None,
        yes: bool = False,
        policy: Policy | str | Path | None = None,
        taxonomy: Taxonomy | str | Path | None = None,
    ) -> AgentGraphRetriever:
        """Makes a retriever over a catalog of any kind; it indexes new agents and tools.

        Args:
            source: One source or several; see ``callsheet.graphs.load``.
            k: Maximum number of agents; by default, only the numbers of tools and of their tokens are limited.
            embeddings: An embedder, ``minilm``, or ``provider:model``.
            index: A folder, the address of ``chroma run``, ``:memory:``, a ``VectorIndex``, or a LangChain
                ``VectorStore`` or ``module:object`` that names one; by default the user's cache for a catalog on
                disk, and memory for one that was made in memory.
            settings: Settings of the selection.
            progress: Called during embedding.
            decision_model: Judges the first tools of each selection: their order, and whether one of them fits.
            yes: Starts the commands of an ``mcp.json`` without consent; see ``callsheet.graphs.load``.
            policy: Who may see and call which tools: a policy or its file; ``CALLSHEET_POLICY`` by default.
            taxonomy: The capabilities that tools can have, as for ``read_taxonomy``: ``detailed``, a file, ...

        Raises:
            CatalogError: The catalog cannot be read.
            SettingsError: The index cannot be opened, the policy cannot be read, or a setting is invalid.
            TrustError: A command of the catalog has no consent, or its pins cannot be used.
        """
        loaded = load(source, yes=yes, policy=policy)
        # Not the embedder without LangChain: users find theirs in the index, and hand it on.
        embedder = embeddings_of(embeddings)
        judge = _judge(decision_model)
        factory = selector_factory(loaded, embedder, index=index, settings=settings, judge=judge, taxonomy=taxonomy)
        return cls._first(factory, loaded, k, progress)

    @classmethod
    def _first(
        cls, factory: SelectorFactory, loaded: Loaded, k: int | None, progress: Progress | None = None
    ) -> AgentGraphRetriever:
        selector, changes = factory.made(loaded, progress)
        retriever = cls(selector=selector, k=k, changes=changes, place=factory.place, policy=loaded.policy)
        retriever._factory = factory
        return retriever

    def beside(self, loaded: Loaded) -> AgentGraphRetriever:
        """Makes a retriever over another catalog with the same embedder.

        Its index is in memory, and no dependencies are inferred.
        """
        embedder = self._factory.embeddings if self._factory else embeddings_of(EMBEDDED)
        settings = SelectSettings(proposed=False)
        return self._first(selector_factory(loaded, embedder, index=IN_MEMORY, settings=settings), loaded, self.k)

    def follow(self, loaded: Loaded, progress: Progress | None = None) -> Changes:
        """Switches to another state of the catalog, with its policy; embeds only its new texts, and blocks meanwhile.

        A search during the switch uses the old state completely; a search after it uses the new one.

        Raises:
            SettingsError: The retriever was made without ``from_catalog``.
        """
        if self._factory is None:
            raise SettingsError("only a retriever that from_catalog made can follow its catalog: make another one")
        with self._factory.making:
            if loaded is not self._loaded:  # two may follow the same registry
                with self._factory.next(loaded, progress) as (selector, changes):
                    self.selector = selector
                    self.policy = loaded.policy
                    self.changes = changes
                self._loaded = loaded
            return self.changes

    @property
    def catalog(self) -> Catalog:
        """Returns the part of the catalog that the user may see."""
        return self._visible.catalog

    def is_over(self, catalog: Catalog) -> bool:
        """Returns whether the retriever searches this catalog, apart from inferred dependencies."""
        own = self._factory.source if self._factory else self.selector.catalog
        return own is catalog or own == catalog

    @property
    def _visible(self) -> Selector:
        whole = self.selector
        return whole.within(self.policy.view(whole.catalog, self.user)) if self.policy else whole

    @contextmanager
    def _searching(self) -> Iterator[Selector]:
        """The selector of the user, whose index no update changes within the block."""
        with self._factory.searching() if self._factory else nullcontext():
            yield self._visible

    def within(self, user: User | str) -> AgentGraphRetriever:
        """Returns a retriever restricted to what one user may see; it shares the indexes, so it is cheap to make."""
        return self.model_copy(update={"user": User(user) if isinstance(user, str) else user})

    def select(
        self,
        query: str,
        *,
        decision_model: DecisionModel | None = None,
        query_model: BaseChatModel | None = None,
        **changes: Any,
    ) -> Selection:
        """Selects agents and tools for a query, with a trace that explains the selection.

        ``decision_model`` judges the tools in this call, instead of the retriever's own. ``query_model`` rewrites the
        query first (``selection.query_transform``); ``query`` of the selection is then what was searched with. Changes
        are fields of ``SelectSettings`` for this call; ``agents`` is ``k`` by default.
        """
        return self._drafted(query, decision_model, query_model, changes).selection()

    async def aselect(
        self,
        query: str,
        *,
        decision_model: DecisionModel | None = None,
        query_model: BaseChatModel | None = None,
        **changes: Any,
    ) -> Selection:
        """Selects as ``select`` does, in a thread; the decision model is awaited on the event loop."""
        return await (await asyncio.to_thread(self._drafted, query, decision_model, query_model, changes)).aselection()

    def _drafted(
        self, query: str, model: DecisionModel | None, query_model: BaseChatModel | None, changes: dict[str, Any]
    ) -> Draft:
        """Selects up to the decision model: an update of the index must not wait for a model."""
        if query_model is not None:
            from callsheet.retrievers.selection.query_transform import transform_query

            query = transform_query(query, query_model)
        with self._searching() as visible:
            return visible.draft(query, _judge(model), **{"agents": self.k, **self._of_user(changes)})

    def _of_user(self, changes: dict[str, Any]) -> dict[str, Any]:
        return changes if counts_outcomes(self.policy, self.user) else {**changes, "learned": False}

    def select_steps(
        self,
        needs: Sequence[StepNeed],
        *,
        fill: int = 10,
        tools: int = 15,
        schema_tokens: int | None = 8_000,
        decision_model: DecisionModel | None = None,
        **changes: Any,
    ) -> tuple[Selection, ...]:
        """Selects the tools for the steps of one worker together, and returns one selection for each step.

        First come all tools that the plan names, then what these declare to need, then the best tools of each step in
        turn, until there are ``fill`` tools. ``tools`` and ``schema_tokens`` limit all steps together. What is named
        and not given is in ``trace.cut``, with the reason. Without ``decision_model``, the retriever's own judges the
        tools of the steps of which the plan names none.

        Changes are fields of ``SelectSettings`` for this call; see ``selection.step_selection.select_steps``.
        """
        judge = _judge(decision_model)
        known = self._of_user(changes)
        with self._searching() as visible:
            return select_steps(visible, needs, judge, fill=fill, tools=tools, schema_tokens=schema_tokens, **known)

    def capabilities(self) -> Assignments:
        """Returns the capabilities of each tool, declared by its author or derived from its text."""
        with self._searching() as visible:
            return assign_capabilities(visible.catalog, visible.capabilities)

    def discover(self, query: str, *, budget: int = 5, **changes: Any) -> Discovery:
        """Finds a few tools for a request by its capabilities; see ``discover``."""
        with self._searching() as visible:
            return discover(visible, query, budget=budget, **self._of_user(changes))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._documents(self.select(query, agents=self.k if k is None else k, equip=True))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return self._documents(await self.aselect(query, agents=self.k if k is None else k, equip=True))

    def _documents(self, selection: Selection) -> list[Document]:
        agents = [self._document(agent, selection) for agent in selection.agents]
        return [*agents, *(self._skill_document(skill, selection) for skill in selection.skills)]

    def _skill_document(self, picked: PickedSkill, selection: Selection) -> Document:
        skill = self.catalog.skills_by_id[picked.id]
        known = {"skill": skill.id, "agent": "", "tools": list(picked.tools), "score": picked.score, "why": []}
        text = shown(f"{skill.description}\n\n{skill.text}", most=None)
        return Document(id=skill.id, page_content=text, metadata={**known, "verdict": selection.verdict})

    def _document(self, agent: PickedAgent, selection: Selection) -> Document:
        known = self.catalog.agent(agent.id)
        tools = [self.catalog.tool(tool.id) for tool in agent.tools]
        texts = [known.description or known.name or known.id, *(f"{tool.id}: {tool.description}" for tool in tools)]
        return Document(
            id=agent.id,
            page_content="\n".join(map(shown, texts)),
            metadata={
                "agent": agent.id,
                "tools": [tool.id for tool in agent.tools],
                "score": agent.score,
                "why": [explain_tool(tool.id, selection) for tool in agent.tools],
                "verdict": selection.verdict,
            },
        )


def _judge(model: DecisionModel | None) -> ToolJudge | None:
    """Returns the judge that a model is; without a model, nothing is imported for it."""
    if model is None:
        return None
    from callsheet.retrievers.selection.decision_models import judge_of

    return judge_of(model)
