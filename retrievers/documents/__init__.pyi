from .best_passages import NOT_FOUND as NOT_FOUND, best_passages as best_passages
from .document_overview import Overview as Overview, overview_of as overview_of
from .indexing.chunk_store import Chunk as Chunk, TextStore as TextStore
from .indexing.chunk_vectors import SentenceVectors as SentenceVectors, Similar as Similar
from .indexing.document_index import DocumentIndex as DocumentIndex, Indexed as Indexed, Stage as Stage
from .indexing.keyword_index import Lexicon as Lexicon, Occurrences as Occurrences, PlainChunk as PlainChunk
from .interface_results import Hit as Hit, Hits as Hits, Part as Part, Reading as Reading
from .interface_tools import DocumentTools as DocumentTools
from .interfaces import (
    chunk_read as chunk_read,
    keyword_search as keyword_search,
    search_and_read as search_and_read,
    semantic_search as semantic_search,
)
from .phrases import content_words as content_words, names as names
from .reading.chunking import (
    Block as Block,
    Passage as Passage,
    estimated_tokens as estimated_tokens,
    passages_of as passages_of,
    sentences_of as sentences_of,
)
from .reading.folder_scan import Found as Found, Listing as Listing, documents_in as documents_in
from .reading.loaders import LOADERS as LOADERS, DocumentError as DocumentError, Loader as Loader
