"""Runs one rival in its own environment; started by ``benchmarks.rivals``, imports nothing of this project.

Messages are lines of JSON. In: the request, then vectors. Out: ``{"embed": [texts]}`` for vectors, and at the
end ``{"rankings", "seconds", "version"}`` or ``{"error"}``.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

Rank = Callable[[str], list[str]]
Request = Mapping[str, Any]


class Channel:
    """The way to the process that started this one; what a rival prints goes to the error stream instead."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)

    def receive(self) -> Any:
        """The next message."""
        return json.loads(sys.stdin.readline())

    def send(self, message: dict[str, Any]) -> None:
        """One message out."""
        print(json.dumps(message), file=self._out, flush=True)

    def encode(self, texts: Sequence[str], *, kind: str = "document") -> Any:
        """The texts' vectors, ``(n, d) float32``; ``kind`` is of callbus's protocol."""
        import numpy as np

        self.send({"embed": list(texts)})
        answer = self.receive()
        vectors = np.frombuffer(base64.b64decode(answer["vectors"]), "<f4")
        return vectors.reshape(len(texts), answer["columns"]).copy()


def unique_names(request: Request, joint: str = ".") -> dict[str, str]:
    """From the id of each tool to a name that no other has: one that servers share gets its server's before it."""
    shared = Counter(tool["name"] for agent in request["agents"] for tool in agent["tools"])
    return {
        tool["id"]: f"{agent['id']}{joint}{tool['name']}" if shared[tool["name"]] > 1 else tool["name"]
        for agent in request["agents"]
        for tool in agent["tools"]
    }


def graph_tool_call(request: Request, channel: Channel, *, embedding: bool = True, closure: bool = False) -> Rank:
    """graph-tool-call, as its README says, and with the closure of the declared dependencies of a target."""
    from graph_tool_call import ToolGraph  # type: ignore[import-not-found]

    graph, names = ToolGraph(), unique_names(request)
    for place, agent in enumerate(request["agents"], 1):
        entries = [{**tool, "name": names[tool["id"]]} for tool in agent["tools"]]
        graph.ingest_mcp_tools(entries, server_name=agent["id"], detect_dependencies=place == len(request["agents"]))
    needs = {
        names[tool["id"]]: [names[one] for one in tool["depends_on"]]
        for agent in request["agents"]
        for tool in agent["tools"]
    }
    if embedding:
        graph.enable_embedding(lambda texts: channel.encode(texts).tolist())
    ids = {name: one for one, name in names.items()}
    depth = request["depth"]

    def rank(query: str) -> list[str]:
        found = [tool.name for tool in graph.retrieve(query, top_k=depth)]
        return [ids[name] for name in (_closed(graph, query, found, needs) if closure else found)][:depth]

    return rank


_SHORTLIST, _RESERVED, _HOPS = 4, 2, 20
"""Of graph-tool-call's own measurement on ToolLinkOS: among how many the target is chosen, and how many of them come
right behind its dependencies. More hops than by default (3), because the chains of the set are longer."""


def _closed(graph: Any, query: str, found: Sequence[str], needs: Mapping[str, Sequence[str]]) -> list[str]:
    """One target with all that it needs, then the other tools: how graph-tool-call itself orders ToolLinkOS."""
    from graph_tool_call.graphify import (  # type: ignore[import-not-found]
        complete_target_dependencies,
        select_target_candidate,
    )

    if not found:
        return []
    first = list(found[:_SHORTLIST])
    ranks = [{"name": name, "score": 1 / place} for place, name in enumerate(first, 1)]
    target = select_target_candidate(query, first, graph.tools, retrieval_results=ranks, llm_target=first[0])
    chosen = target["selected_target"]
    needed = complete_target_dependencies(chosen, graph.tools, graph=needs, max_hops=_HOPS, allow_mutation=True)
    ordered = [chosen, *needed.required_dependencies, *first[:_RESERVED], *needed.optional_dependencies, *found]
    return list(dict.fromkeys(ordered))


def callbus(request: Request, channel: Channel, *, scorer: str, text: str = "documentation") -> Rank:
    """callbus, the scorers that its ``search`` and ``serve`` build; ``text`` is one of its formats of a tool."""
    from callbus.adapters.bm25 import BM25Scorer  # type: ignore[import-not-found]
    from callbus.adapters.dense import DenseScorer  # type: ignore[import-not-found]
    from callbus.adapters.hybrid import HybridScorer  # type: ignore[import-not-found]
    from callbus.domain import Query  # type: ignore[import-not-found]
    from callbus.ingest.mcp import tools_from_listing  # type: ignore[import-not-found]

    channel.name = "minilm"  # type: ignore[attr-defined]
    lexical = BM25Scorer(text, "plain")
    dense = DenseScorer(channel, text, "plain")
    made = {"bm25": lexical, "dense": dense, "hybrid": HybridScorer(dense, lexical)}[scorer]
    made.index([tool for agent in request["agents"] for tool in tools_from_listing(agent["id"], agent["tools"])])
    return lambda query: list(made.rank([Query("0", query, {})], request["depth"])[0].tool_ids)


def toolhunch(request: Request, channel: Channel, *, hybrid: bool) -> Rank:
    """The search of toolhunch without a decider, which is a paid model: by words, or by words and vectors."""
    from toolhunch import (  # type: ignore[import-not-found]
        BM25Retriever,
        DenseRetriever,
        HybridRetriever,
        ToolCard,
        ToolCatalog,
        ToolSearchPipeline,
    )

    async def embed(texts: Sequence[str], /, *, kind: str) -> Any:
        return SimpleNamespace(vectors=channel.encode(texts).tolist(), input_tokens=0)

    cards = [
        ToolCard(
            id=tool["id"],
            name=tool["name"],
            description=tool["description"],
            parameters=tool["inputSchema"],
            source=agent["id"],
        )
        for agent in request["agents"]
        for tool in agent["tools"]
    ]
    dense = DenseRetriever(SimpleNamespace(model_id="minilm", embed=embed))
    retriever = HybridRetriever([BM25Retriever(), dense]) if hybrid else BM25Retriever()
    pipeline, catalog = ToolSearchPipeline(retriever, k=request["depth"]), ToolCatalog(cards)
    return lambda query: list(asyncio.run(pipeline.search([query], catalog)).ids)


def dehydrator(request: Request, channel: Channel) -> Rank:
    """The index of dehydrator without its reranker, which is a paid model: BM25L over words of whole schemas."""
    from dehydrator import ToolIndex  # type: ignore[import-not-found]

    names = unique_names(request, "_")
    tools = [{**tool, "name": names[tool["id"]]} for agent in request["agents"] for tool in agent["tools"]]
    index, ids = ToolIndex.from_mcp(tools, top_k=request["depth"]), {name: one for one, name in names.items()}
    return lambda query: [ids[name] for name in index.search(query)]


def fastmcp(request: Request, channel: Channel) -> Rank:
    """FastMCP's BM25 search transform, asked by a client; names are those of servers mounted with a namespace."""
    from fastmcp import Client, FastMCP  # type: ignore[import-not-found]
    from fastmcp.server.transforms.search import BM25SearchTransform  # type: ignore[import-not-found]
    from fastmcp.tools import Tool  # type: ignore[import-not-found]

    server, ids = FastMCP("all", transforms=[BM25SearchTransform(max_results=request["depth"])]), {}
    for agent in request["agents"]:
        for tool in agent["tools"]:
            name = f"{agent['id']}_{tool['name']}"
            ids[name] = tool["id"]
            server.add_tool(Tool(name=name, description=tool["description"], parameters=tool["inputSchema"]))
    loop, client = asyncio.new_event_loop(), Client(server)

    def wait(what: Coroutine[Any, Any, Any]) -> Any:
        return loop.run_until_complete(what)

    wait(client.__aenter__())

    def rank(query: str) -> list[str]:
        found = wait(client.call_tool("search_tools", {"query": query}))
        return [ids[tool["name"]] for tool in found.structured_content["result"]]

    return rank


def langchain(request: Request, channel: Channel) -> Rank:
    """LangChain's ``LLMToolSelectorMiddleware`` with a model that gives recorded answers.

    The middleware hands on a set. Its order is that in which tools enter the set as ``max_tools`` grows.
    """
    from langchain.agents.middleware import LLMToolSelectorMiddleware
    from langchain.agents.middleware.types import ModelRequest
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.messages import HumanMessage
    from langchain_core.runnables import RunnableLambda
    from langchain_core.tools import StructuredTool

    names = unique_names(request)
    ids = {name: one for one, name in names.items()}

    class Recorded(FakeListChatModel):
        """Answers the last message with the tools that were chosen for it."""

        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            def answer(messages: Sequence[Any]) -> dict[str, list[str]]:
                return {"tools": [names[one] for one in request["answers"][messages[-1].content]]}

            return RunnableLambda(answer)

    tools = [
        StructuredTool.from_function(
            print, name=names[tool["id"]], description=tool["description"], args_schema=tool["inputSchema"]
        )
        for agent in request["agents"]
        for tool in agent["tools"]
    ]
    model = Recorded(responses=[])

    def rank(query: str) -> list[str]:
        asked = ModelRequest(model=model, messages=[HumanMessage(query)], tools=list(tools))
        chosen: list[str] = []
        for most in range(1, min(request["depth"], len(request["answers"][query])) + 1):
            kept: list[Any] = []
            middleware = LLMToolSelectorMiddleware(max_tools=most)
            middleware.wrap_model_call(asked, lambda given, kept=kept: kept.extend(given.tools))  # type: ignore[misc]
            chosen += [ids[tool.name] for tool in kept if ids[tool.name] not in chosen]
        return chosen

    return rank


PROGRAMS: Mapping[str, tuple[str, Callable[[Request, Channel], Rank]]] = {
    "gtc": ("graph-tool-call", partial(graph_tool_call, embedding=False)),
    "gtc-embedding": ("graph-tool-call", graph_tool_call),
    "gtc-closure": ("graph-tool-call", partial(graph_tool_call, closure=True)),
    "callbus-bm25": ("callbus", partial(callbus, scorer="bm25")),
    "callbus-dense": ("callbus", partial(callbus, scorer="dense")),
    "callbus-hybrid": ("callbus", partial(callbus, scorer="hybrid")),
    "callbus-bm25-schema": ("callbus", partial(callbus, scorer="bm25", text="schema")),
    "callbus-dense-schema": ("callbus", partial(callbus, scorer="dense", text="schema")),
    "callbus-hybrid-schema": ("callbus", partial(callbus, scorer="hybrid", text="schema")),
    "toolhunch-bm25": ("toolhunch", partial(toolhunch, hybrid=False)),
    "toolhunch-hybrid": ("toolhunch", partial(toolhunch, hybrid=True)),
    "dehydrator": ("dehydrator", dehydrator),
    "fastmcp": ("fastmcp", fastmcp),
    "langchain": ("langchain", langchain),
}
"""The distribution of each rival, and what makes its ranking."""


def main() -> None:
    """One request, one answer."""
    channel = Channel()
    request = channel.receive()
    distribution, made = PROGRAMS[request["rival"]]
    try:
        rank = made(request, channel)
        rank(request["queries"][0])
        start = time.process_time()
        rankings = [rank(query) for query in request["queries"]]
        spent = time.process_time() - start
        channel.send({"rankings": rankings, "seconds": spent, "version": version(distribution)})
    except Exception as error:  # noqa: BLE001 - whatever a rival raises is reported, not ours to handle
        channel.send({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    main()
