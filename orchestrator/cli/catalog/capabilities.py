"""``callsheet capabilities``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.orchestrator.cli.shared_options import (
    check_model,
    common,
    open_catalog,
    open_retriever,
    progress_bar,
    taxonomy_option,
    visible,
)

if TYPE_CHECKING:
    from callsheet.graphs import Catalog, Taxonomy
    from callsheet.retrievers import AgentGraphRetriever
    from callsheet.retrievers.capabilities import Assignments


@click.command(short_help="List the capabilities of each tool.")
@click.option(
    "--model",
    metavar="PROVIDER:NAME",
    help="Chat model that assigns capabilities.  [default: none; assigned by the texts]",
)
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the catalog to this file, and declare all capabilities with a confidence of at least .5.",
)
@taxonomy_option
@common
def capabilities(
    model: str | None,
    file: Path | None,
    taxonomy: Taxonomy | None,
    catalogs: tuple[str, ...],
    place: str | None,
    embeddings: str,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """List the capabilities of each tool, from a taxonomy.

    \b
    Examples:
      callsheet capabilities --catalog manifests/
      callsheet capabilities --catalog manifests/ --taxonomy ours.json -o catalog.json
    """
    check_model(model)
    loaded = open_catalog(catalogs, yes=yes)
    retriever = open_retriever(loaded, place, embeddings, taxonomy=taxonomy)
    found = retriever.capabilities()
    if model:
        found = _by_model(retriever, found, model)
    if file:
        _save(visible(loaded), found, file)
    if as_json:
        click.echo(json.dumps({**found.to_dict(), "path": str(file or "")}, ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.catalog_output import show_assignments

        show_assignments(found)
    return 0 if any(found.of.values()) else 1


def _by_model(retriever: AgentGraphRetriever, otherwise: Assignments, model: str) -> Assignments:
    from callsheet.agents import chat_model
    from callsheet.retrievers.capabilities import assign_by_model

    with progress_bar("Asking the model") as progress:
        return assign_by_model(
            retriever.catalog, chat_model(model), otherwise.taxonomy, otherwise=otherwise, progress=progress
        )


def _save(catalog: Catalog, found: Assignments, file: Path) -> None:
    from callsheet.graphs import CatalogError, dump
    from callsheet.retrievers.capabilities import with_capabilities

    try:
        file.write_text(dump(with_capabilities(catalog, found)) + "\n", encoding="utf-8")
    except OSError as error:
        raise CatalogError(f"the catalog cannot be written to {file}: {error.strerror}") from error
    click.echo(f"the catalog with its capabilities is in {file}", err=True)
