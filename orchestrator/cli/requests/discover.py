"""``callsheet discover``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from callsheet.orchestrator.cli.shared_options import common, open_catalog, open_retriever, taxonomy_option

if TYPE_CHECKING:
    from callsheet.graphs import Taxonomy


@click.command(short_help="Find a few tools for a request by capabilities.")
@click.argument("query")
@click.option(
    "--budget", default=5, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of candidates."
)
@taxonomy_option
@common
def discover(
    query: str,
    budget: int,
    taxonomy: Taxonomy | None,
    catalogs: tuple[str, ...],
    place: str | None,
    embeddings: str,
    *,
    yes: bool,
    as_json: bool,
) -> int:
    """Find a few tools for QUERY by the capabilities that it needs. Returns fewer than the budget if few fit.

    \b
    Example:
      callsheet discover "what is 3 miles in km" --budget 3 --catalog manifests/
    """
    if not query.strip():
        raise click.UsageError("the query is empty: say what is to be done")
    retriever = open_retriever(open_catalog(catalogs, yes=yes), place, embeddings, taxonomy=taxonomy)
    found = retriever.discover(query, budget=budget)
    if as_json:
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.catalog_output import show_discovery

        show_discovery(found)
    return 0 if found.verdict == "found" else 1
