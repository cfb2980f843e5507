"""An explorer over a catalog in memory, with an embedder that costs nothing."""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, SimpleUser
from starlette.responses import JSONResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from callsheet.agents import ToolRegistry
from callsheet.graphs import Agent, Catalog, Loaded, Policy, Tool
from callsheet.orchestrator.run.process.process_state import Served
from callsheet.orchestrator.server import Site, create_explorer
from callsheet.orchestrator.server.runs.runs import Runs
from callsheet.retrievers import AgentGraphRetriever, SelectSettings

KEY = "key-of-the-tests"
_SIZE = 64


class FixedEmbeddings(Embeddings):
    """The sum of one fixed random vector a word."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        total = sum((_vector(word) for word in re.findall(r"\w+", text.casefold())), np.full(_SIZE, 1e-6))
        found: list[float] = total.tolist()
        return found


@cache
def _vector(word: str) -> NDArray[np.float64]:
    return np.random.default_rng(int.from_bytes(sha256(word.encode()).digest()[:4])).normal(size=_SIZE)


def contacts() -> Catalog:
    """Two tools without a declared dependency: one finds the id that the other needs."""
    schema = {"type": "object", "properties": {"contact_id": {"type": "string"}}}
    find = Tool(agent="crm", name="find_contacts", description="Finds contacts.", output_schema=schema)
    needs = {**schema, "required": ["contact_id"]}
    delete = Tool(agent="crm", name="delete_contact", description="Deletes a contact.", input_schema=needs)
    return Catalog(agents=(Agent(id="crm", tools=(find, delete)),))


def served(source: Catalog | Loaded, policy: Policy | None = None) -> Served:
    """A catalog that is served, indexed in memory; dependencies are inferred where there are at most 1,000 tools."""
    loaded = source if isinstance(source, Loaded) else Loaded(source, policy=policy)
    settings = None if len(loaded.catalog.tools) <= 1_000 else SelectSettings(proposed=0)
    retriever = AgentGraphRetriever.from_catalog(
        loaded, embeddings=FixedEmbeddings(), index=":memory:", settings=settings
    )
    return Served(loaded, retriever, ToolRegistry.from_catalog(loaded))


def explorer(
    source: Catalog | Loaded,
    policy: Policy | None = None,
    *,
    runs: Runs | None = None,
    authenticated: bool = False,
) -> Starlette:
    """The explorer over it, for whoever has the key, or for users who sign in."""
    found = served(source, policy)
    key = "" if authenticated else KEY
    return create_explorer(Site(lambda: found), runs=runs, key=key, authenticated=authenticated, hosts=("testserver",))


def client_of(app: Starlette) -> TestClient:
    """A client with the key."""
    return TestClient(app, headers={"x-callsheet-key": KEY})


class Authenticated:
    """Does what a server does that authenticates routes: a bearer token is taken for the name of a user.

    Args:
        app: What is served.
        refuse: Whether its routes of data are refused without a token.
    """

    def __init__(self, app: Starlette, *, refuse: bool = False) -> None:
        self._app, self._refuse = app, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        told = dict(scope.get("headers", ())).get(b"authorization", b"").decode()
        name = told.removeprefix("Bearer ")
        if name:
            scope = {**scope, "user": _User(name), "auth": AuthCredentials(["staff"] if name == "ann" else [])}
        elif self._refuse and "/api/" in scope["path"]:
            await JSONResponse({"detail": "no such user"}, 401)(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _User(SimpleUser):
    @property
    def identity(self) -> str:
        return self.username
