"""Where a program finds its catalog, model and folders: variables ``CALLSHEET_...``."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

STUDIO = "https://smith.langchain.com"
"""Where the pages of LangGraph Studio come from."""


class Environment(BaseSettings):
    """What the environment says: each attribute is the variable ``CALLSHEET_`` with its name in capitals.

    Attributes:
        catalog: One or more catalogs, separated by commas.
        model: Chat model, ``provider:model``.
        index: Folder of the index, or the address of ``chroma run``.
        embeddings: Embedder, ``minilm`` or ``provider:model``.
        documents: Folder of documents, for ``arag``.
        approval: Which calls a person is asked about: ``always``, ``risky`` or ``never``.
        reports: Reports of ``callsheet eval --json`` for the explorer, separated by commas.
        hosts: Names that the server answers to beside those of its machine, separated by commas; ``*`` for any.
        origins: Sites whose pages may use the server from browsers, separated by commas; LangGraph Studio's by default.
        sync_seconds: How often a server reads its catalogs anew; 0 leaves it at what servers say in their sessions.
    """

    model_config = SettingsConfigDict(env_prefix="CALLSHEET_", extra="ignore", frozen=True)

    catalog: str = ""
    model: str | None = None
    index: str | None = None
    embeddings: str = "minilm"
    documents: str | None = None
    approval: str = "risky"
    reports: str = ""
    hosts: str = ""
    origins: str = STUDIO
    sync_seconds: float = Field(default=0.0, ge=0)

    def catalogs(self) -> tuple[str, ...]:
        """The catalogs named."""
        return _named(self.catalog)

    def report_files(self) -> tuple[str, ...]:
        """The reports named."""
        return _named(self.reports)

    def host_names(self) -> tuple[str, ...]:
        """The names of the server."""
        return _listed(self.hosts)

    def page_origins(self) -> tuple[str, ...]:
        """The origins of other sites' pages."""
        return _listed(self.origins)


def _named(several: str) -> tuple[str, ...]:
    """What a variable names: one file, though it may have a comma in its name, or several."""
    if Path(several).exists():
        return (several,) if several else ()
    return _listed(several)


def _listed(several: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, several.split(","))))
