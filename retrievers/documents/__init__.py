"""A-RAG over documents: a folder as an index, three interfaces to it, and a loop by rules."""

from typing import TYPE_CHECKING, Any

from callsheet.retrievers.documents.document_overview import Overview, overview_of
from callsheet.retrievers.documents.indexing.chunk_store import Chunk, TextStore
from callsheet.retrievers.documents.indexing.chunk_vectors import SentenceVectors, Similar
from callsheet.retrievers.documents.indexing.document_index import DocumentIndex, Indexed, Stage
from callsheet.retrievers.documents.indexing.keyword_index import Lexicon, Occurrences, PlainChunk
from callsheet.retrievers.documents.interface_results import Hit, Hits, Part, Reading
from callsheet.retrievers.documents.interfaces import chunk_read, keyword_search, search_and_read, semantic_search
from callsheet.retrievers.documents.reading.chunking import Block, Passage, estimated_tokens, passages_of, sentences_of
from callsheet.retrievers.documents.reading.folder_scan import Found, Listing, documents_in
from callsheet.retrievers.documents.reading.loaders import LOADERS, DocumentError, Loader
from callsheet.retrievers.documents.rules.chunk_evidence import Words, words_of
from callsheet.retrievers.documents.rules.interface_rules import Call, Interface, Rules, asked_for, moves, next_call
from callsheet.retrievers.documents.rules.phrases import content_words, names
from callsheet.retrievers.documents.rules.quoted_answer import Answer, Quote, answer_from

if TYPE_CHECKING:
    from callsheet.retrievers.documents.interface_tools import DocumentTools

__all__ = [
    "LOADERS",
    "Answer",
    "Block",
    "Call",
    "Chunk",
    "DocumentError",
    "DocumentIndex",
    "DocumentTools",
    "Found",
    "Hit",
    "Hits",
    "Indexed",
    "Interface",
    "Lexicon",
    "Listing",
    "Loader",
    "Occurrences",
    "Overview",
    "Part",
    "Passage",
    "PlainChunk",
    "Quote",
    "Reading",
    "Rules",
    "SentenceVectors",
    "Similar",
    "Stage",
    "TextStore",
    "Words",
    "answer_from",
    "asked_for",
    "chunk_read",
    "content_words",
    "documents_in",
    "estimated_tokens",
    "keyword_search",
    "moves",
    "names",
    "next_call",
    "overview_of",
    "passages_of",
    "search_and_read",
    "semantic_search",
    "sentences_of",
    "words_of",
]


def __getattr__(name: str) -> Any:
    """What stands on LangChain, when it is first used."""
    if name != "DocumentTools":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from callsheet.retrievers.documents.interface_tools import DocumentTools

    return DocumentTools
