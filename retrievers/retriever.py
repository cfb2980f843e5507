"""The retriever as a LangChain component."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, PrivateAttr, ValidationError

from callsheet.graphs import (
    Catalog,
    CatalogSource,
    Loaded,
    Policy,
    SettingsError,
    Taxonomy,
    User,
    load,
    shown,
)
from callsheet.retrievers.capabilities import Assignments, Discovery, assign_capabilities, discover
from callsheet.retrievers.index.embedding.minilm import EMBEDDED
from callsheet.retrievers.index.embedding.providers import embeddings_of
from callsheet.retrievers.index.protocols import Changes, Progress, VectorIndex
from callsheet.retrievers.selection.reranking import Reranker
from callsheet.retrievers.selection.result import PickedAgent, Selection, explain_tool
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Selector
from callsheet.retrievers.selection.selector_factory import Assembly, assembly_of


class AgentGraphRetriever(BaseRetriever):
    """Finds the agents and tools for a request; a LangChain retriever, synchronous and asynchronous.

    ``invoke(query)`` gives one Document an agent: what it is in the text, and in the metadata ``agent``,
    ``tools`` (ids), ``score``, ``why`` (one line a tool) and ``verdict``. ``select(query)`` gives it all.

    Attributes:
        selector: What does the work.
        k: How many agents are given.
        changes: What the last indexing did.
        place: Where the vectors are kept; None where that is not known, or memory.
        policy: Who may see and call what; everybody everything where there is none.
        user: For whom things are found, where there is a policy.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    selector: Selector
    k: int = Field(default=5, ge=1)
    changes: Changes = Changes()
    place: str | Path | None = None
    policy: Policy | None = None
    user: User = User()
    _assembly: Assembly | None = PrivateAttr(default=None)

    def __init__(self, *args: Any, **values: Any) -> None:
        if args or "selector" not in values:
            raise SettingsError("a retriever is made from a catalog: AgentGraphRetriever.from_catalog('mcp.json')")
        try:
            super().__init__(**values)
        except ValidationError as error:
            wrong = (f"{'.'.join(map(str, e['loc']))!r}: {e['msg']}, not {e['input']!r}" for e in error.errors())
            raise SettingsError("; ".join(wrong)) from error

    @classmethod
    def from_catalog(
        cls,
        source: CatalogSource,
        *,
        k: int = 5,
        embeddings: str | Embeddings = EMBEDDED,
        index: str | Path | VectorIndex | None = None,
        settings: SelectSettings | None = None,
        progress: Progress | None = None,
        reranker: Reranker | None = None,
        yes: bool = False,
        policy: Policy | str | Path | None = None,
        taxonomy: Taxonomy | None = None,
    ) -> AgentGraphRetriever:
        """A retriever over a catalog of any kind; it indexes what is not indexed yet.

        Args:
            source: One source, or several that are joined; see ``callsheet.graphs.load``.
            k: How many agents are given.
            embeddings: An embedder, ``minilm``, or ``provider:model``.
            index: A folder, the address of ``chroma run``, ``:memory:``, or any ``VectorIndex``; by default
                the user's cache for a catalog on disk, and memory for one that was made in memory.
            settings: How agents and tools are picked.
            progress: Called while texts are embedded.
            reranker: What takes a second look at the first tools, such as any LangChain document compressor.
            yes: Agrees to start the commands that an ``mcp.json`` names; see ``callsheet.graphs.load``.
            policy: Who may see and call what, or the file that says so; ``CALLSHEET_POLICY`` by default.
            taxonomy: The capabilities that tools may have; the default ones where none is given.

        Raises:
            CatalogError: The catalog cannot be read.
            SettingsError: The index cannot be opened, the policy not be read, or a setting cannot work.
            TrustError: A command of the catalog was not agreed to, or its pins cannot be relied on.
        """
        if not isinstance(settings, SelectSettings | None):
            raise SettingsError(f"settings must be SelectSettings, not {type(settings).__name__}")
        loaded = load(source, yes=yes, policy=policy)
        # Not the embedder without LangChain: users find theirs in the index, and hand it on.
        embedder = _embedder(embeddings)
        assembly = assembly_of(loaded, embedder, index=index, settings=settings, reranker=reranker, taxonomy=taxonomy)
        selector, changes = assembly.first(loaded.catalog, progress)
        retriever = cls(selector=selector, k=k, changes=changes, place=assembly.place, policy=loaded.policy)
        retriever._assembly = assembly
        return retriever

    def follow(self, loaded: Loaded, progress: Progress | None = None) -> Changes:
        """Retrieves from another state of the catalog from now on; embeds only what is new in it.

        A search that is under way, or comes meanwhile, meets the state before, whole; one that comes after it has
        returned meets the new one. It blocks while it embeds.

        Args:
            loaded: The catalog as it is now, and who may see what of it.
            progress: Called while texts are embedded.

        Raises:
            SettingsError: The retriever was made without ``from_catalog``.
        """
        if self._assembly is None:
            raise SettingsError("only a retriever that from_catalog made can follow its catalog: make another one")
        with self._assembly.next(loaded.catalog, progress) as (selector, changes):
            self.selector, self.policy, self.changes = selector, loaded.policy, changes
        return changes

    @property
    def catalog(self) -> Catalog:
        """What is retrieved from: as much of the catalog as the user may see."""
        return self._seen.catalog

    @property
    def _seen(self) -> Selector:
        whole = self.selector
        return whole.within(self.policy.view(whole.catalog, self.user)) if self.policy else whole

    def within(self, user: User | str) -> AgentGraphRetriever:
        """The same for one user: what that one may not see is not there. It costs nothing; indexes are shared."""
        return self.model_copy(update={"user": User(user) if isinstance(user, str) else user})

    def select(self, query: str, **changes: Any) -> Selection:
        """The agents and tools for a query, with the trace that says why.

        Args:
            query: What is to be done.
            changes: Fields of ``SelectSettings`` that hold for this call; ``agents`` is ``k`` by default.
        """
        with self._assembly.searching() if self._assembly else nullcontext():
            return self._seen.select(query, **{"agents": self.k, **changes})

    def more(self, query: str, has: Collection[str], *, most: int = 5, **changes: Any) -> tuple[str, ...]:
        """Ids of tools for a query beyond those that somebody has; none where nothing fits.

        Args:
            query: What the tool must do.
            has: Ids of the tools that are there already.
            most: How many are given at most.
            changes: As in ``select``.
        """
        selection = self.select(query, **{**changes, "tools": len(has) + most})
        new = [tool.id for tool in selection.tools if tool.id not in has]
        return tuple(new[:most]) if selection.verdict == "found" else ()

    def capabilities(self) -> Assignments:
        """Which capabilities each tool has, by its author's word or by its text.

        Raises:
            SettingsError: The selector was made without a ``CapabilityIndex``.
        """
        return assign_capabilities(self.catalog, self._seen.capabilities)

    def discover(self, query: str, *, budget: int = 5, **changes: Any) -> Discovery:
        """The few tools that a request needs, by way of its capabilities; see ``capabilities.discover``.

        Args:
            query: What is to be done.
            budget: At most how many candidates.
            changes: Fields of ``SelectSettings`` that hold for this call.
        """
        return discover(self._seen, query, budget=budget, **changes)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        selection = self.select(query, agents=self.k if k is None else k)
        return [self._document(agent, selection) for agent in selection.agents]

    def _document(self, agent: PickedAgent, selection: Selection) -> Document:
        known = self.catalog.agent(agent.id)
        tools = [self.catalog.tool(tool.id) for tool in agent.tools]
        said = [known.description or known.name or known.id, *(f"{tool.id}: {tool.description}" for tool in tools)]
        return Document(
            id=agent.id,
            page_content="\n".join(map(shown, said)),
            metadata={
                "agent": agent.id,
                "tools": [tool.id for tool in agent.tools],
                "score": agent.score,
                "why": [explain_tool(tool.id, selection) for tool in agent.tools],
                "verdict": selection.verdict,
            },
        )


def _embedder(embeddings: str | Embeddings) -> Embeddings:
    if isinstance(embeddings, str):
        return embeddings_of(embeddings)
    if not isinstance(embeddings, Embeddings):
        raise SettingsError(
            f"embeddings must be 'minilm', 'provider:model' or an Embeddings object, not {embeddings!r}"
        )
    return embeddings
