"""The resources and prompts of a catalog's servers, found and read as tools are."""

from __future__ import annotations

import threading

from callsheet.agents import ToolRegistry
from callsheet.graphs import Catalog, Loaded, Tool, User
from callsheet.retrievers import AgentGraphRetriever

MOST_FOUND = 3


class CatalogResources:
    """Resources, templates and prompts, each with the id ``agent/resource:URI`` or the like.

    They have a ranking of their own, so that they change nothing about the tools that a search finds. It is made at the
    first search, in memory; a server without resources and prompts costs nothing.

    Args:
        registry: Calls the tools of the catalog; its sessions read the resources.
        retriever: Searches the tools; its embedder is used.

    Attributes:
        registry: Reads resources, and renders prompts.
    """

    def __init__(self, registry: ToolRegistry, retriever: AgentGraphRetriever) -> None:
        self.registry = registry.of_resources()
        self._beside = retriever
        self._search: AgentGraphRetriever | None = None
        self._lock = threading.Lock()

    def catalog(self, user: User) -> Catalog:
        """What a user may see."""
        whole, policy = self.registry.catalog, self.registry.policy
        return policy.view(whole, user).catalog if policy else whole

    def find(self, query: str, user: User) -> list[Tool]:
        """The few that fit a query, best first; none if nothing fits. Blocks, and embeds what is new."""
        catalog = self.registry.catalog
        if not catalog.agents:
            return []
        search = self._current(catalog).within(user)
        selection = search.select(query, agents=MOST_FOUND, tools=MOST_FOUND, skills=0)
        found = [catalog.tools[tool.id] for tool in selection.tools if tool.id in catalog.tools]
        return found if selection.verdict == "found" else []

    def _current(self, catalog: Catalog) -> AgentGraphRetriever:
        """The search over this state of the catalog."""
        with self._lock:
            loaded = Loaded(catalog, policy=self.registry.policy)
            if self._search is None:
                self._search = self._beside.beside(loaded)
            elif not self._search.is_over(catalog):
                self._search.follow(loaded)
            return self._search
