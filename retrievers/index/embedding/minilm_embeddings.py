"""The embedded model as a LangChain component."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from callsheet.retrievers.index.embedding.minilm import MiniLM


class MiniLMEmbeddings(MiniLM, Embeddings):
    """``MiniLM`` as LangChain's ``Embeddings``.

    Args:
        weights: As in ``MiniLM``.

    Raises:
        SettingsError: As in ``MiniLM``.
    """
