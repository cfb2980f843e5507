"""The environment: variables ``CALLSHEET_...`` for catalog, model and folders."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

STUDIO = "https://smith.langchain.com"
"""Origin of the pages of LangGraph Studio."""


class Environment(BaseSettings):
    """Environment variables: each attribute is ``CALLSHEET_`` with its name in capitals.

    Attributes:
        catalog: One or more catalogs, separated by commas.
        model: Chat model, ``provider:model``.
        index: Folder of the index, the address of ``chroma run``, or of a database.
        embeddings: Embedder, ``minilm`` or ``provider:model``.
        documents: Folder of documents, for ``arag``.
        approval: Which calls need approval: ``always``, ``risky`` or ``never``.
        allow: Tools whose calls need no approval, as ``agent/tool``, separated by commas.
        prices: File of prices of models, for the costs of runs.
        reports: Reports of ``callsheet eval --json`` for the explorer, separated by commas.
        hosts: Further host names of the server, separated by commas; ``*`` for any.
        origins: Origins of web pages that may use the server, separated by commas; LangGraph Studio's by default.
        sync_seconds: Interval at which a server reloads its catalogs; 0 relies on the servers' own announcements.
    """

    model_config = SettingsConfigDict(env_prefix="CALLSHEET_", extra="ignore", frozen=True)

    catalog: str = ""
    model: str | None = None
    index: str | None = None
    embeddings: str = "minilm"
    documents: str | None = None
    approval: str = "risky"
    allow: str = ""
    prices: str = ""
    reports: str = ""
    hosts: str = ""
    origins: str = STUDIO
    sync_seconds: float = Field(default=0.0, ge=0)

    def catalogs(self) -> tuple[str, ...]:
        """The catalogs."""
        return _named(self.catalog)

    def allowed_tools(self) -> tuple[str, ...]:
        """The tools."""
        return _listed(self.allow)

    def price_file(self) -> Path | None:
        """The file of prices."""
        return Path(self.prices) if self.prices else None

    def report_files(self) -> tuple[str, ...]:
        """The reports."""
        return _named(self.reports)

    def host_names(self) -> tuple[str, ...]:
        """The host names."""
        return _listed(self.hosts)

    def page_origins(self) -> tuple[str, ...]:
        """The origins."""
        return _listed(self.origins)


def _named(several: str) -> tuple[str, ...]:
    """The files in a variable: one, whose name may contain a comma, or several."""
    if Path(several).exists():
        return (several,) if several else ()
    return _listed(several)


def _listed(several: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, several.split(","))))
