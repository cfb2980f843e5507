"""``callsheet export``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.cli.shared_options import catalog_options, open_catalog, status, taxonomy_option, visible

if TYPE_CHECKING:
    from callsheet.graphs import Capability, Catalog

FORMS: Mapping[str, tuple[str, ...]] = {
    "turtle": ("base",),
    "jsonld": ("base",),
    "ntriples": ("base",),
    "graphml": (),
    "cypher": (),
    "cypher-schema": (),
    "mermaid": ("around", "depth"),
    "json": (),
}
"""The options of each format, by the name for ``--format``; other options are a usage error."""


def written(
    form: str,
    catalog: Catalog,
    taxonomy: Sequence[Capability] | None,
    *,
    around: str | None = None,
    depth: int | None = None,
    base: str | None = None,
) -> str:
    """The catalog as a document in this format."""
    from callsheet.graphs import dump, export

    match form:
        case "graphml":
            return export.to_graphml(catalog, taxonomy)
        case "cypher":
            return export.to_cypher(catalog, taxonomy)
        case "cypher-schema":
            return export.cypher_schema()
        case "mermaid":
            return export.to_mermaid(catalog, around=around, depth=depth or 2)
        case "json":
            return dump(catalog) + "\n"
    from callsheet.graphs.rdf import BASE, RdfFormat, to_rdf

    return to_rdf(catalog, taxonomy, form=RdfFormat(form), base=base or BASE)


if TYPE_CHECKING:
    from callsheet.graphs import Taxonomy


@click.command()
@click.option("--format", "name", type=click.Choice(list(FORMS)), help="Output format.  [required unless --json]")
@click.option("-o", "--output", "file", type=click.Path(path_type=Path, dir_okay=False), help="Output file.")
@click.option("--around", metavar="ID", help="mermaid: draw the neighbourhood of this tool or agent.")
@click.option("--depth", type=click.IntRange(min=1), help="mermaid: maximum distance, in dependencies.  [default: 2]")
@click.option("--base", metavar="IRI", help="RDF: prefix of the IRIs of agents and tools.")
@taxonomy_option
@catalog_options
def export(
    name: str | None,
    file: Path | None,
    taxonomy: Taxonomy | None,
    catalogs: tuple[str, ...],
    *,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Export the catalog to another format.

    The export includes inferred dependencies, with their provenance.

    turtle, jsonld, ntriples and json can be loaded again as a catalog. cypher is a script for Neo4j and similar
    databases; cypher-schema makes the tables that Ladybug needs first.

    \b
    Examples:
      callsheet export --format turtle --catalog manifests/ -o catalog.ttl
      callsheet export --format mermaid --around weather/forecast --depth 2 --catalog manifests/
    """
    from callsheet.graphs import Catalog
    from callsheet.retrievers.inference import with_inferred

    form = name or ("json" if as_json else "")
    _check_form(form, options, as_json=as_json and file is None)
    loaded = open_catalog(catalogs, yes=yes)
    with status("Writing"):
        catalog = with_inferred(visible(loaded), rejected=loaded.rejected)
        document = written(form, catalog, taxonomy.capabilities if taxonomy else None, **options)
    if catalog.skills and form == "mermaid":
        click.echo(f"{counted(len(catalog.skills), 'skill')} left out: {form} shows agents and tools", err=True)
        catalog = Catalog(agents=catalog.agents)
    if file is None:
        text = shown(document, most=None) if _at_a_terminal() else document
        click.echo(text.encode("utf-8", "replace"), nl=False)
        return 0
    _save(file, document)
    if as_json:
        counts = {"agents": len(catalog.agents), "tools": len(catalog.tools), "skills": len(catalog.skills)}
        click.echo(json.dumps({"path": str(file), "format": name or "json", **counts}, ensure_ascii=False))
    else:
        click.echo(f"{catalog.sizes} in {file}", err=True)
    return 0


def _at_a_terminal() -> bool:
    return sys.stdout.isatty()


def _check_form(name: str, options: Mapping[str, object], *, as_json: bool) -> None:
    if not name:
        raise click.MissingParameter(f"Choose from {', '.join(FORMS)}.", param_hint="--format", param_type="option")
    if as_json and name not in ("json", "jsonld"):
        raise click.BadParameter(
            f"{name} is not JSON: leave --json out, or write to a file with -o", param_hint="--json"
        )
    for option, value in options.items():
        if value is not None and option not in FORMS[name]:
            fit = " and ".join(form for form in FORMS if option in FORMS[form])
            raise click.BadParameter(f"the format {name} does not use it; it is for {fit}", param_hint=f"--{option}")


def _save(file: Path, document: str) -> None:
    from callsheet.graphs.storage import replace_text

    try:
        replace_text(file, document.encode("utf-8", "replace").decode("utf-8"), mode=0o666)
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be written: {error.strerror}", param_hint="--output") from error
