"""``callsheet infer``."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.graphs.text.sanitizing import counted, shown
from callsheet.orchestrator.cli.shared_options import catalog_options, check_model, open_catalog, progress_bar, visible

if TYPE_CHECKING:
    from callsheet.graphs import Catalog
    from callsheet.graphs.dependencies import Proposal, Seen


@click.command(short_help="Propose dependencies between tools.")
@click.option(
    "-o",
    "--output",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the proposals to this file for review. Rules and reviewed edges in it stay.",
)
@click.option("--least", default=0.5, show_default=True, type=click.FloatRange(0.05, 0.99), help="Minimum confidence.")
@click.option("--no-observed", is_flag=True, help="Ignore observed calls.")
@click.option("--server", metavar="URL", help="Add the calls that a LangGraph server observed, from its store.")
@click.option(
    "--model",
    metavar="PROVIDER:NAME",
    help="Chat model that judges each proposal. It changes the confidence, but does not accept or reject.",
)
@catalog_options
def infer(
    file: Path | None,
    least: float,
    model: str | None,
    server: str | None,
    catalogs: tuple[str, ...],
    *,
    no_observed: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Propose dependencies between tools, from names, schemas, descriptions and observed calls.

    Review the file (set "accept" to true or false), then load it together with its catalog.

    \b
    Examples:
      callsheet infer --catalog mcp.json -o dependencies.json
      callsheet retrieve "..." --catalog mcp.json --catalog dependencies.json
    """
    from callsheet.graphs.dependencies import DependencyFile, merge_proposals, read_dependencies, write_dependencies
    from callsheet.graphs.storage import locked
    from callsheet.retrievers.inference import infer_dependencies

    if no_observed and server:
        raise click.UsageError("--server adds observed calls, which --no-observed ignores: give only one of them")
    if file and not file.parent.is_dir():
        raise click.BadParameter(f"there is no folder {file.parent}: create it first", param_hint="--output")
    check_model(model)
    before = read_dependencies(file) if file and file.exists() else DependencyFile()
    catalog = visible(open_catalog(catalogs, yes=yes))
    found: Sequence[Proposal] = infer_dependencies(catalog, least=least, seen=None if no_observed else _seen(server))
    if model:
        found = _judged(found, catalog, model)
    if file:
        with locked(file):
            # Decisions of the meantime count too.
            content = merge_proposals(read_dependencies(file) if file.exists() else before, found)
            write_dependencies(content, file)
    else:
        content = merge_proposals(before, found)
    if as_json:
        report = {"edges": [edge.model_dump(mode="json") for edge in content.edges], "path": str(file or "")}
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.catalog_output import show_proposals

        show_proposals(content.edges, file)
    return 0 if content.edges else 1


def _seen(server: str | None) -> Counter[Seen]:
    from callsheet.graphs.dependencies import ObservationLog

    seen = ObservationLog().read()
    if server:
        import asyncio

        from callsheet.orchestrator.run.run_context import observed_on

        seen.update(asyncio.run(observed_on(server)))
    return seen


def _judged(found: Sequence[Proposal], catalog: Catalog, model: str) -> Sequence[Proposal]:
    import asyncio

    from callsheet.agents import chat_model, judge_proposals

    with progress_bar("Asking the model") as progress:
        judged = asyncio.run(judge_proposals(found, catalog, chat_model(model), progress=progress))
    if judged.failed:
        click.echo(f"{judged.judged} of {counted(len(found), 'proposal')} judged: {shown(judged.failed)}", err=True)
    return judged.proposals
