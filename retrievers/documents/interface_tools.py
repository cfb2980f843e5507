"""The three interfaces as LangChain tools with a context tracker."""

from __future__ import annotations

import json
from typing import Annotated, Any

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BeforeValidator, Field

from callsheet.graphs import SettingsError
from callsheet.graphs.trust.policy import READ_ONLY
from callsheet.retrievers.documents.indexing.document_index import DocumentIndex
from callsheet.retrievers.documents.interface_results import Hits, Reading
from callsheet.retrievers.documents.interfaces import (
    MOST_HITS,
    MOST_KEYWORDS,
    MOST_NEIGHBOURS,
    MOST_READ,
    SENTENCES,
    TOP_K,
    chunk_read,
    keyword_search,
    search_and_read,
    semantic_search,
)


def _as_list(value: object) -> object:
    """A list, also if a model wrote one string, or a list as JSON."""
    if not isinstance(value, str):
        return value
    try:
        items = json.loads(value)
    except ValueError:
        return [value]
    return items if isinstance(items, list) else [value]


Keywords = Annotated[
    list[str],
    BeforeValidator(_as_list),
    Field(description=f"Names, terms or phrases of one to three words, at most {MOST_KEYWORDS}."),
]
Many = Annotated[int, Field(description=f"How many chunks, 1 to {MOST_HITS}.")]
Sought = Annotated[str, Field(description="What is looked for, as a question or a statement.")]
Ids = Annotated[
    list[str], BeforeValidator(_as_list), Field(description=f"Ids as the searches give them, at most {MOST_READ}.")
]
Around = Annotated[int, Field(description=f"Also read so many chunks before and after each, 0 to {MOST_NEIGHBOURS}.")]
Result = tuple[str, dict[str, Any]]


class DocumentTools:
    """The interfaces to one index, for one conversation.

    Each returns a text, and as artifact ``{"tokens": retrieved tokens, "chunks": [ids of chunks read now or before],
    "read": {id: digest of those read now}}``.

    Args:
        index: The documents.
        read: The context tracker, which ``chunk_read`` updates; a new one by default.
        sentences: Maximum number of snippets per chunk.
    """

    def __init__(self, index: DocumentIndex, *, read: dict[str, str] | None = None, sentences: int = SENTENCES) -> None:
        self._index = index
        self._sentences = sentences
        self.read: dict[str, str] = {} if read is None else read

    def keyword_search(self, keywords: Keywords, top_k: Many = TOP_K) -> Result:
        """Find chunks that hold these words to the letter, in any case; longer keywords count more. Gives chunk ids with the sentences that hold a keyword, not whole chunks. Best for names, numbers and terms; give several short keywords rather than a sentence.

        Raises:
            ToolException: There is no keyword, or ``top_k`` is less than 1.
        """  # noqa: E501 (models read it in one line)
        return self._result(lambda: keyword_search(self._index, keywords, top_k=top_k, sentences=self._sentences))

    def semantic_search(self, query: Sought, top_k: Many = TOP_K) -> Result:
        """Find chunks by meaning, where the words of the documents are not known. Gives chunk ids with the sentences nearest to the query, not whole chunks.

        Raises:
            ToolException: The query is empty, or ``top_k`` is less than 1.
        """  # noqa: E501 (models read it in one line)
        return self._result(lambda: semantic_search(self._index, query, top_k=top_k, sentences=self._sentences))

    def chunk_read(self, chunk_ids: Ids, neighbours: Around = 0) -> Result:
        """Read chunks whole, before you answer from them. Ask for neighbours where a text begins or ends too early. A chunk that you have read before is not shown again.

        Raises:
            ToolException: There is no id, or ``neighbours`` is out of range.
        """  # noqa: E501 (models read it in one line)
        return self._result(lambda: chunk_read(self._index, chunk_ids, neighbours=neighbours, read=self.read))

    def search_and_read(self, query: Sought, top_k: Many = TOP_K) -> Result:
        """Find the chunks nearest in meaning to a query and read them whole. A chunk that you have read before is not shown again.

        Raises:
            ToolException: The query is empty, or ``top_k`` is less than 1.
        """  # noqa: E501 (models read it in one line)
        return self._result(lambda: search_and_read(self._index, query, top_k=top_k, read=self.read))

    def as_tools(self, *, naive: bool = False) -> list[BaseTool]:
        """The three interfaces as LangChain tools, or the one tool of Naive A-RAG."""
        three = (self.keyword_search, self.semantic_search, self.chunk_read)
        return [
            StructuredTool.from_function(
                function,
                description=(function.__doc__ or "").split("\n\n")[0],
                response_format="content_and_artifact",
                metadata={"annotations": dict(READ_ONLY)},
            )
            for function in ((self.search_and_read,) if naive else three)
        ]

    def _result(self, search: Any) -> Result:
        try:
            result: Hits | Reading = search()
        except SettingsError as error:
            raise ToolException(str(error)) from error
        parts = result.parts if isinstance(result, Reading) else ()
        news = result.read if isinstance(result, Reading) else {}
        self.read.update(news)
        return str(result), {
            "tokens": result.tokens,
            "chunks": [part.chunk for part in parts if part.digest],
            "read": news,
        }
