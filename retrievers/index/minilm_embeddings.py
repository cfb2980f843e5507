"""The embedders as LangChain components."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from callsheet.retrievers.index.embedding import EMBEDDED, MiniLM, provider_embeddings


class MiniLMEmbeddings(MiniLM, Embeddings):
    """The embedded model ``MiniLM`` as LangChain ``Embeddings``."""


def embeddings_of(embedder: str | Embeddings) -> Embeddings:
    """Returns an embedder unchanged, or the one with this name: ``minilm``, or ``provider:model`` as LangChain has it.

    Raises:
        SettingsError: The name is of neither form, or its provider is not known or refuses it (a missing key).
        ImportError: The provider's package is not installed; the message names it.
    """
    if isinstance(embedder, Embeddings):
        return embedder
    return MiniLMEmbeddings() if embedder == EMBEDDED else provider_embeddings(embedder)
