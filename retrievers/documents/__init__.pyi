from .document_formats import FORMATS as FORMATS, LOADERS as LOADERS, DocumentFormat as DocumentFormat
from .document_index import DocumentIndex as DocumentIndex, Indexed as Indexed
from .document_reading import (
    DocumentError as DocumentError,
    documents_in as documents_in,
    overview_of as overview_of,
)
from .document_text import (
    Block as Block,
    Chunk as Chunk,
    Passage as Passage,
    content_words as content_words,
    estimated_tokens as estimated_tokens,
    passages_of as passages_of,
    sentences_of as sentences_of,
)
from .extractive_answers import (
    LONGEST_ANSWER as LONGEST_ANSWER,
    NOT_FOUND as NOT_FOUND,
    best_chunks as best_chunks,
    best_passages as best_passages,
)
from .interfaces import (
    DocumentTools as DocumentTools,
    Hits as Hits,
    Reading as Reading,
    chunk_read as chunk_read,
    keyword_search as keyword_search,
    semantic_search as semantic_search,
)
