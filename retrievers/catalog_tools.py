"""A-RAG's hierarchical interfaces for the catalog: search tools by words or by meaning, then read a few."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import Field

from callsheet.graphs import Catalog, Tool, UnknownNameError, shown, shown_schema
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.index.lexical_index import keyword_score
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.retriever import AgentGraphRetriever

MOST_FOUND = 20
MOST_READ = 10
_LONGEST_LINE = 160

Keywords = Annotated[list[str], Field(description="Exact words or parts of words; upper and lower case are alike.")]
Found = Annotated[int, Field(description=f"How many tools to list, 1 to {MOST_FOUND}.")]
Wanted = Annotated[str, Field(description="What is to be done, in any words.")]
Ids = Annotated[list[str], Field(description=f"Ids as a search gave them, at most {MOST_READ}.")]
Again = Annotated[bool, Field(description="Also those that were read before.")]


class CatalogTools:
    """Tools for a model to explore a catalog that is too large for its context.

    Searches return one line per tool; ``read_tools`` returns descriptions and schemas, once.

    Source: A-RAG, section 3 (hierarchical retrieval interfaces), with tools in place of chunks.

    Args:
        retriever: Searches its catalog by meaning.
    """

    def __init__(self, retriever: AgentGraphRetriever) -> None:
        self._retriever = retriever
        self._texts: tuple[Catalog | None, Mapping[str, str]] = None, {}
        self._read: dict[str, Tool] = {}

    @property
    def catalog(self) -> Catalog:
        """The catalog."""
        return self._retriever.catalog

    def keyword_search_tools(self, keywords: Keywords, top_k: Found = 5) -> str:
        """Find tools whose name, description or parameters contain exactly these words. Gives ids and one line each.

        ::

            s(T) = sum over keywords k of count(k, T) * |k|

        Source: A-RAG, Eq. 1.

        Raises:
            ToolException: There is no keyword, or ``top_k`` is out of range.
        """
        words = [word.strip().casefold() for word in keywords if word.strip()]
        if not words:
            raise ToolException("give at least one keyword")
        _check(top_k)
        scores = keyword_scores(words, self._searched())
        best = sorted(scores, key=lambda tool: -scores[tool])[:top_k]
        return self._lines(best) or f"no tool holds {' or '.join(map(repr, words))}; try other words, or by meaning"

    def semantic_search_tools(self, query: Wanted, top_k: Found = 5) -> str:
        """Find tools by what they do, with the tools that they need. Gives ids and one line each.

        Raises:
            ToolException: The query is empty, or ``top_k`` is out of range.
        """
        if not query.strip():
            raise ToolException("give a query: what is to be done")
        _check(top_k)
        selection = self._retriever.select(query, agents=top_k, tools=top_k, skills=0)
        lines = self._lines([tool.id for tool in selection.tools])
        if selection.verdict == "nothing_fits":
            return f"nothing fits well; the nearest are:\n{lines}" if lines else "the catalog is empty"
        return lines

    def read_tools(self, ids: Ids, again: Again = False) -> str:
        """Read the full description and input schema of tools, to call them. What was read before is not repeated.

        Raises:
            ToolException: An id is not in the catalog (the message names the nearest), or there are too many.
        """
        unique = list(dict.fromkeys(ids))
        if not 0 < len(unique) <= MOST_READ:
            raise ToolException(f"give 1 to {MOST_READ} ids, not {len(unique)}")
        try:
            tools = [self.catalog.tool(tool_id) for tool_id in unique]
        except UnknownNameError as error:
            raise ToolException(str(error)) from error
        texts = [self._in_full(tool, again=again) for tool in tools]
        self._read.update(zip(unique, tools, strict=True))
        return "\n".join(texts)

    def as_tools(self) -> list[BaseTool]:
        """The three as LangChain tools."""
        return [
            StructuredTool.from_function(
                function,
                description=(function.__doc__ or "").split("\n\n")[0],
                metadata={"annotations": dict(READ_ONLY)},
            )
            for function in (self.keyword_search_tools, self.semantic_search_tools, self.read_tools)
        ]

    def _searched(self) -> Mapping[str, str]:
        """Tool id -> text in lower case, made again if the retriever follows another catalog."""
        (known, texts), catalog = self._texts, self.catalog
        if known is not catalog:
            texts = {tool.id: _text(tool).casefold() for tool in catalog.tools.values()}
            self._texts = catalog, texts
        return texts

    def _lines(self, ids: Sequence[str]) -> str:
        return "\n".join(one_line(self.catalog.tool(tool_id)) for tool_id in ids)

    def _in_full(self, tool: Tool, *, again: bool) -> str:
        if self._read.get(tool.id) == tool and not again:
            return json.dumps({"id": tool.id, "read": "before; its schema stands above"}, ensure_ascii=False)
        return json.dumps(tool_in_full(tool), ensure_ascii=False)


def keyword_scores(keywords: Sequence[str], texts: Mapping[str, str]) -> dict[str, int]:
    """The score (``keyword_score``) of each text that contains a keyword.

    Args:
        keywords: In lower case; repetitions are ignored.
        texts: Id -> text in lower case.
    """
    words = list(dict.fromkeys(keywords))
    scores = {name: keyword_score(words, text) for name, text in texts.items()}
    return {name: score for name, score in scores.items() if score}


def tool_in_full(tool: Tool) -> dict[str, Any]:
    """All that a caller of the tool needs: ``id``, ``description``, ``inputSchema``, and ``outputs`` and ``needs``."""
    full: dict[str, Any] = {"id": tool.id, "description": shown(tool.description)}
    full["inputSchema"] = shown_schema(tool.input_schema)
    if tool.outputs:
        full["outputs"] = [field.name for field in tool.outputs]
    if tool.depends_on:
        full["needs"] = [
            {"id": edge.tool, "for": edge.parameter} if edge.parameter else {"id": edge.tool}
            for edge in tool.depends_on
        ]
    return full


def one_line(tool: Tool) -> str:
    """The id and the first sentence of the description."""
    about = " ".join(shown(first_sentence(tool.description or tool.title)).split())
    return f"{tool.id}: {shown(about, most=_LONGEST_LINE)}"


def _text(tool: Tool) -> str:
    parameters = (f"{parameter.name} {parameter.description}" for parameter in tool.parameters)
    return "\n".join((tool.id, tool.title, tool.description, *parameters))


def _check(top_k: int) -> None:
    if not 1 <= top_k <= MOST_FOUND:
        raise ToolException(f"top_k must be 1 to {MOST_FOUND}, not {top_k}")
