"""Tools with which a model explores a catalog: it searches first, then reads, as in A-RAG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from callsheet.graphs import Agent, Catalog, KnowledgeGraph, Tool, UnknownNameError, shown, shown_schema, split_name
from callsheet.graphs.knowledge_graph import Edge, detailed_graph, edge_line, edges_at, find_node, graph_of, node_name
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.words import tokens
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.capabilities import with_capabilities
from callsheet.retrievers.index.indexes import keyword_score
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.retriever import AgentGraphRetriever

_DESCRIPTION = 120
_LONGEST_LINE = 160


def agent_line(agent: Agent) -> str:
    """Returns the id and the description of an agent on one line.

    If the description only repeats the name, the descriptions of its tools stand in its place.
    """
    named = set(tokens(split_name(f"{agent.id} {agent.name}")))
    about = agent.description
    if set(tokens(split_name(about))) <= named:
        about = " ".join(first_sentence(tool.description) for tool in agent.tools)
    return _line(f"- {agent.id}", about)


def tool_line(tool: Tool) -> str:
    """Returns the id of a tool and the first sentence of its description, on one line."""
    return f"{tool.id}: {_short(first_sentence(tool.description or tool.title), _LONGEST_LINE)}"


def _line(name: str, about: str, most: int = _DESCRIPTION) -> str:
    return shown(f"{name}: {_short(about, most)}".rstrip(": "), most=None)


def _short(text: str, most: int) -> str:
    return " ".join(shown(text, most=most).split())


MOST_FOUND = 20
MOST_READ = 10
MOST_LINES = 40

Keywords = Annotated[list[str], Field(description="Exact words or parts of words; upper and lower case are alike.")]
Found = Annotated[int, Field(description=f"How many tools to list, 1 to {MOST_FOUND}.")]
Wanted = Annotated[str, Field(description="What is to be done, in any words.")]
Ids = Annotated[list[str], Field(description=f"Ids as a search gave them, at most {MOST_READ}.")]
Node = Annotated[str, Field(description="Id of an agent, a tool, a skill or a capability; empty for all there is.")]
Skip = Annotated[int, Field(description="How many lines to leave out, to read on.", ge=0)]
Again = Annotated[bool, Field(description="Also those that were read before.")]


class CatalogTools:
    """Tools for a model to explore a catalog that is too large for its context.

    Searches return one line per tool; ``read_tools`` returns descriptions and schemas, once. All raise a
    ``ToolException`` for arguments that are empty, unknown or out of range.

    Source: A-RAG, section 3 (hierarchical retrieval interfaces), with tools in place of chunks; for ``walk_graph``,
    Representing Agentic Tools in Knowledge Graphs (the discovery agent).
    """

    def __init__(self, retriever: AgentGraphRetriever) -> None:
        self._retriever = retriever
        self._graph: tuple[Catalog | None, KnowledgeGraph] = None, graph_of(())
        self._read: dict[str, Tool] = {}

    def keyword_search_tools(self, keywords: Keywords, top_k: Found = 5) -> str:
        """Find tools whose name, description or parameters contain exactly these words. Gives ids and one line each."""
        words = [word.strip().casefold() for word in keywords if word.strip()]
        if not words:
            raise ToolException("give at least one keyword")
        _check(top_k)
        tools = self._retriever.catalog.tools
        scores = {one: keyword_score(dict.fromkeys(words), _text(tool).casefold()) for one, tool in tools.items()}
        best = sorted(filter(scores.get, scores), key=lambda tool: -scores[tool])[:top_k]
        return self._lines(best) or f"no tool holds {' or '.join(map(repr, words))}; try other words, or by meaning"

    def semantic_search_tools(self, query: Wanted, top_k: Found = 5) -> str:
        """Find tools by what they do, with the tools that they need. Gives ids and one line each."""
        if not query.strip():
            raise ToolException("give a query: what is to be done")
        _check(top_k)
        selection = self._retriever.select(query, agents=top_k, tools=top_k, skills=0)
        lines = self._lines([tool.id for tool in selection.tools])
        if selection.verdict == "nothing_fits":
            return f"nothing fits well; the nearest are:\n{lines}" if lines else "the catalog is empty"
        return lines

    def read_tools(self, ids: Ids, again: Again = False) -> str:
        """Read the full description and input schema of tools, to call them. What was read before is not repeated."""
        unique = list(dict.fromkeys(ids))
        if not 0 < len(unique) <= MOST_READ:
            raise ToolException(f"give 1 to {MOST_READ} ids, not {len(unique)}")
        try:
            tools = [self._retriever.catalog.tool(tool_id) for tool_id in unique]
        except UnknownNameError as error:
            raise ToolException(str(error)) from error
        texts = [self._in_full(tool, again=again) for tool in tools]
        self._read.update(zip(unique, tools, strict=True))
        return "\n".join(texts)

    def walk_graph(self, node: Node = "", skip: Skip = 0) -> str:
        """Walk the knowledge graph: all agents and capabilities, or the neighbours of one node, one line each.

        An agent leads to its tools; a tool to its inputs, its capabilities, what it needs and what needs it; a
        capability to its tools.
        """
        graph = self._walked()
        try:
            found = edges_at(graph, find_node(graph, node)) if node else []
        except UnknownNameError as error:
            raise ToolException(str(error)) from error
        lines = [self._neighbour(edge, node) for edge in found] if node else self._overview(graph)
        left = len(lines) - skip - MOST_LINES
        more = [f"and {left} more: skip {skip + MOST_LINES}"] if left > 0 else []
        return "\n".join([*lines[skip : skip + MOST_LINES], *more]) or "nothing more"

    def as_tools(self) -> list[BaseTool]:
        """Returns the four methods as LangChain tools, which return their errors as results."""
        functions = (self.keyword_search_tools, self.semantic_search_tools, self.read_tools, self.walk_graph)
        known: dict[str, Any] = {"handle_tool_error": True, "handle_validation_error": True}
        known["metadata"] = {"annotations": dict(READ_ONLY)}
        texts = {one: " ".join(str(one.__doc__).split()) for one in functions}
        return [StructuredTool.from_function(one, description=text, **known) for one, text in texts.items()]

    def _walked(self) -> KnowledgeGraph:
        """Returns the graph of the tools that the user may see, with their likely capabilities.

        Made again for another one.
        """
        (known, graph), catalog = self._graph, self._retriever.catalog
        if known is not catalog:
            able = with_capabilities(catalog, self._retriever.capabilities())
            graph = detailed_graph(able, self._retriever.selector.capabilities.taxonomy.capabilities)
            self._graph = catalog, graph
        return graph

    def _overview(self, graph: KnowledgeGraph) -> list[str]:
        able = ((node, data["record"]) for node, data in graph.nodes(data=True) if data["kind"] == "capability")
        lines = [
            _line(f"- capability {node[1]} ({graph.in_degree(node)})", record.definition if record else "")
            for node, record in able
        ]
        agents = self._retriever.catalog.agents
        return lines + [f"{agent_line(agent)} ({counted(len(agent.tools), 'tool')})" for agent in agents]

    def _neighbour(self, edge: Edge, node: str) -> str:
        """Returns the edge, and what the node at its other end is about."""
        other = edge[1] if node_name(edge[0]) == node else edge[0]
        catalog = self._retriever.catalog
        record = self._graph[1].nodes[other].get("record")
        record = record or catalog.tools.get(other) or catalog.by_id.get(other)
        about = getattr(record, "definition", "") or first_sentence(getattr(record, "description", ""))
        return _line(edge_line(edge), about, _LONGEST_LINE)

    def _lines(self, ids: Sequence[str]) -> str:
        return "\n".join(map(tool_line, map(self._retriever.catalog.tool, ids)))

    def _in_full(self, tool: Tool, *, again: bool) -> str:
        if self._read.get(tool.id) == tool and not again:
            return json.dumps({"id": tool.id, "read": "before; its schema stands above"}, ensure_ascii=False)
        return json.dumps(tool_in_full(tool), ensure_ascii=False)


def tool_in_full(tool: Tool) -> dict[str, Any]:
    """Returns all that a caller of a tool needs, as JSON values.

    The keys are ``id``, ``description``, ``inputSchema``, ``outputs`` and ``needs``.
    """
    schema = shown_schema(tool.input_schema)
    full: dict[str, Any] = {"id": tool.id, "description": shown(tool.description), "inputSchema": schema}
    if tool.outputs:
        full["outputs"] = [field.name for field in tool.outputs]
    if tool.depends_on:
        full["needs"] = [
            {"id": edge.tool, "for": edge.parameter} if edge.parameter else {"id": edge.tool}
            for edge in tool.depends_on
        ]
    return full


def _text(tool: Tool) -> str:
    parameters = (f"{parameter.name} {parameter.description}" for parameter in tool.parameters)
    return "\n".join((tool.id, tool.title, tool.description, *parameters))


def _check(top_k: int) -> None:
    if not 1 <= top_k <= MOST_FOUND:
        raise ToolException(f"top_k must be 1 to {MOST_FOUND}, not {top_k}")
