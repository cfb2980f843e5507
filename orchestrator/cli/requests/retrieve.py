"""``callsheet retrieve``."""

from __future__ import annotations

import json

import click

from callsheet.orchestrator.cli.shared_options import common, open_catalog, open_selector


@click.command(short_help="Find agents and tools for a request.")
@click.argument("query")
@click.option(
    "-k", "agents", default=5, show_default=True, type=click.IntRange(1, 1000), help="Maximum number of agents."
)
@click.option(
    "--tools", default=10, show_default=True, type=click.IntRange(1, 10000), help="Maximum number of tools, in total."
)
@click.option(
    "--rerank",
    "reranker",
    metavar="PROVIDER:NAME",
    help="Chat model that reranks the first tools.  [default: none]",
)
@click.option(
    "--proposed",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Weight of inferred dependencies that nobody has reviewed; 0 ignores them.",
)
@click.option(
    "--explain", is_flag=True, help="Explain the selection: ranks and scores by meaning and by words, and what was cut."
)
@common
def retrieve(
    query: str,
    agents: int,
    tools: int,
    catalogs: tuple[str, ...],
    place: str | None,
    embeddings: str,
    reranker: str | None,
    proposed: float,
    *,
    explain: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Find agents and tools for QUERY.

    \b
    Example:
      callsheet retrieve "convert 3 miles to km" -k 3 --explain --catalog manifests/
    """
    if not query.strip():
        raise click.UsageError("the query is empty: say what is to be done")
    more: dict[str, object] = {}
    if reranker:
        from callsheet.agents.models.chat_models import chat_model
        from callsheet.retrievers import ChatModelReranker

        more["reranker"] = ChatModelReranker(chat_model(reranker))
    selector = open_selector(open_catalog(catalogs, yes=yes), place, embeddings, **more).selector
    selection = selector.select(query, agents=agents, tools=tools, proposed=proposed)
    if as_json:
        click.echo(json.dumps(selection.to_dict(trace=explain), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.run_output import show_selection

        show_selection(selection, explain=explain)
    return 0 if selection.verdict == "found" else 1
