"""Reads the environment variables ``CALLSHEET_...`` for catalog, model and folders."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

STUDIO = "https://smith.langchain.com"
"""The origin of the pages of LangGraph Studio."""


def _listed(several: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, several.split(","))))


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


class Environment(BaseSettings):
    """Environment variables: each attribute is ``CALLSHEET_`` with its name in capitals.

    Attributes:
        catalog: One or more catalogs, separated by commas.
        model: Chat model, ``provider:model``.
        index: Folder of the index, the address of ``chroma run``, or ``module:object`` of a ``VectorStore``.
        embeddings: Embedder, ``minilm`` or ``provider:model``.
        documents: Folder of documents, for ``arag``.
        approval: Which calls need approval: ``always``, ``ask`` or ``never``.
        allow: Tools whose calls need no approval, as ``agent/tool``, separated by commas.
        hosts: Further host names of the server, separated by commas; ``*`` for any.
        origins: Origins of web pages that may use the server, separated by commas; LangGraph Studio's by default.
        sync_seconds: Interval at which a server reloads its catalogs; 0 relies on the servers' own announcements.
    """

    model_config = SettingsConfigDict(env_prefix="CALLSHEET_", extra="ignore", frozen=True, validate_default=False)

    catalog: Names = ()
    model: str | None = None
    index: str | None = None
    embeddings: str = "minilm"
    documents: str | None = None
    approval: str = "ask"
    allow: Names = ()
    hosts: Names = ()
    origins: Names = (STUDIO,)
    sync_seconds: float = Field(default=0.0, ge=0)
