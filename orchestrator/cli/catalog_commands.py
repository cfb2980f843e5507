"""The commands that read a catalog: ``index``, ``sync``, ``retrieve``, ``discover``, ``infer``, ``capabilities`` ..."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from callsheet.graphs.catalog.formats.manifests import SERVER_TROUBLE
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.messages import counted
from callsheet.orchestrator.cli import output
from callsheet.orchestrator.cli.shared_options import (
    CatalogOptions,
    allowed_catalog,
    catalog_options,
    check_model_name,
    common,
    decision_option,
    json_option,
    methods_option,
    model_option,
    output_option,
    progress_bar,
    report,
    save,
    size_options,
    taxonomy_option,
)

if TYPE_CHECKING:
    from callsheet.graphs import Catalog, Loaded, Taxonomy
    from callsheet.graphs.dependencies import Proposal
    from callsheet.retrievers import Discovery, Selection
    from callsheet.retrievers.inference import DependencyReview

_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
_MOST = 20


@click.command(short_help="Update the index of a catalog.")
@common
def index(options: CatalogOptions) -> int:
    """Update the index of a catalog: embed new and changed tools, remove deleted ones.

    \b
    Example:
      callsheet index --catalog mcp.json
    """
    return _index(options, anew=False)


@click.command(short_help="Ask the servers for their current tools.")
@common
def sync(options: CatalogOptions) -> int:
    """Ask every server for its current tools, read every API again, and index the changes.

    A server that does not answer keeps its last known tools. Running programs update when they open a session with
    a server, and when the server announces a change.

    \b
    Example:
      callsheet sync --catalog mcp.json
    """
    return _index(options, anew=True)


def _index(options: CatalogOptions, *, anew: bool) -> int:
    from callsheet.graphs import dependency_counts

    began = time.monotonic()
    loaded = options.open(tell=not anew, anew=anew)
    selector, changes, place = options.selector(loaded)
    content: dict[str, Any] = {
        **{name: len(getattr(loaded.catalog, name)) for name in ("agents", "tools", "skills")},
        **dependency_counts(selector.graph),
        **{name: getattr(changes, name) for name in ("added", "updated", "removed")},
        "seconds": round(time.monotonic() - began, 3),
        "path": str(place or ""),
        "down": dict(loaded.down),
        "problems": [{"agent": one.agent, "kind": one.kind, "message": one.message} for one in loaded.problems],
        **(_asked(loaded) if anew else {}),
    }
    needs = f"{counted(content['dependencies'], 'dependency', 'dependencies')}, {content['inferred']:,} inferred"
    if content["observed"]:
        needs += f", {content['observed']:,} observed"
    said = f"{sum(one['status'] == 'down' for one in content['servers'])} down" if anew else needs
    done = "{added} added, {updated} updated, {removed} removed in {seconds} s".format(**content)
    lines = [*_lines(content), f"{loaded.catalog.sizes}, {said}: {done}", *([] if anew else [content["path"]])]
    report(content, options.runnable("\n".join(lines)), as_json=options.as_json)
    return 0 if loaded.catalog.agents or loaded.catalog.skills else 1


def _asked(loaded: Loaded) -> dict[str, Any]:
    """Returns what changed on each server that was asked, or why it is down; and what a person must review."""
    troubles = {one.agent: one for one in reversed(loaded.problems) if one.kind in SERVER_TROUBLE}
    servers = [
        {"agent": name, "status": "down", "kind": one.kind, "error": one.message, "since": loaded.down.get(name)}
        if (one := troubles.get(name))
        else {"agent": name, "status": "ok", **asdict(loaded.live[name].difference)}
        for name in sorted({*loaded.live, *troubles})
    ]
    return {"servers": servers, "quarantined": [change.id for change in loaded.changes if change.quarantines]}


def _lines(content: Mapping[str, Any]) -> Iterable[str]:
    for server in content.get("servers", ()):
        if server["status"] == "down":
            yield shown(f"{server['agent']}: down, {server['error']}")
        for word, sign in _SIGNS.items():
            names = server.get(word, ())
            yield from (shown(f"{sign} {server['agent']}/{name}") for name in names[:_MOST])
            if len(names) > _MOST:
                yield f"{sign} {server['agent']}: {len(names) - _MOST} more"
    quarantined = content.get("quarantined")
    if quarantined:
        yield f"not used until you review them: {shown(', '.join(quarantined[:_MOST]))} (`callsheet approve`)"


def _not_empty(_context: click.Context, _parameter: click.Parameter, query: str) -> str:
    if not query.strip():
        raise click.UsageError("the request is empty: write what is to be done")
    return query


_query = click.argument("query", callback=_not_empty)


def _report(options: CatalogOptions, found: Selection | Discovery, show: Callable[[], None], **how: bool) -> int:
    report(found.to_dict(**how), show, as_json=options.as_json)
    return 1 if found.verdict == "nothing_fits" else 0


@click.command(short_help="Find agents and tools for a request.")
@_query
@size_options(1000, 10000, "request")
@methods_option("--method", "Method of the literature instead of ours")
@decision_option
@click.option("--query-model", metavar="PROVIDER:NAME", help="Chat model that rewrites the request before the search.")
@click.option("--proposed", type=click.FloatRange(0, 1), help="Weight of unreviewed dependencies; 0: none is inferred.")
@click.option(
    "--explain", is_flag=True, help="Explain the selection: ranks and scores by meaning and by words, and what was cut."
)
@common
def retrieve(
    options: CatalogOptions,
    query: str,
    decision_model: str | None,
    query_model: str | None,
    *,
    explain: bool,
    **settings: Any,
) -> int:
    """Find agents and tools for QUERY.

    \b
    Examples:
      callsheet retrieve "convert 3 miles to km" -k 3 --explain --catalog manifests/
      callsheet retrieve "convert 3 miles to km" --method agent-as-a-graph --catalog manifests/
    """
    more: dict[str, object] = {"settings": next(iter(settings.pop("method").values()), None)}
    if decision_model:
        from callsheet.agents.models.chat_models import chat_model
        from callsheet.retrievers.selection.decision_models import judge_of

        more["judge"] = judge_of(chat_model(decision_model))
    if query_model:
        from callsheet.agents.models.chat_models import chat_model
        from callsheet.retrievers.selection.query_transform import transform_query

        query = transform_query(query, chat_model(query_model))
        click.echo(f"searched for: {shown(query)}", err=True)
    given = {name: value for name, value in settings.items() if value is not None}
    found = options.selector(options.open(), **more)[0].select(query, equip=True, **given)

    return _report(options, found, lambda: output.show_selection(found, explain=explain), trace=explain)


@click.command(short_help="Find a few tools for a request by capabilities.")
@_query
@click.option("--budget", default=5, type=click.IntRange(1, 1000), help="Maximum number of candidates.")
@taxonomy_option
@common
def discover(options: CatalogOptions, query: str, budget: int, taxonomy: Taxonomy | None) -> int:
    """Find a few tools for QUERY by the capabilities that it needs. Returns fewer than the budget if few fit.

    \b
    Example:
      callsheet discover "what is 3 miles in km" --budget 3 --catalog manifests/
    """
    found = options.retriever(options.open(), taxonomy=taxonomy).discover(query, budget=budget)
    return _report(options, found, lambda: output.show_discovery(found))


@click.command(short_help="Propose dependencies between tools.")
@output_option("Write the proposals to this file for review. Rules and reviewed edges in it stay.")
@click.option("--least", default=0.5, type=click.FloatRange(0.05, 0.99), help="Minimum confidence.")
@model_option("A chat model that accepts or drops each proposal.  [default: none]")
@catalog_options
def infer(options: CatalogOptions, file: Path | None, least: float, model: str | None) -> int:
    """Propose dependencies between tools, from names, schemas, descriptions and observed calls.

    Review the file (set "accept" to true or false), or let a model do it; then load it together with its catalog. The
    exit status is 1 if nothing is proposed, or if the model did not answer for all proposals.

    \b
    Examples:
      callsheet infer --catalog mcp.json -o dependencies.json
      callsheet infer --catalog mcp.json -o dependencies.json --model openai:gpt-5-mini
      callsheet retrieve "..." --catalog mcp.json --catalog dependencies.json
    """
    from callsheet.graphs.dependencies import ObservationLog, merge_proposals, read_dependencies, write_dependencies
    from callsheet.graphs.storage import file_lock
    from callsheet.retrievers.inference import infer_dependencies

    if file and not file.parent.is_dir():
        raise click.BadParameter(f"there is no folder {file.parent}: create it first", param_hint="--output")
    check_model_name(model)
    loaded = options.open()
    catalog = allowed_catalog(loaded)
    found = infer_dependencies(catalog, least=least, seen=ObservationLog().read())
    review: DependencyReview | None = None
    if model:
        decided = read_dependencies(file) if file and file.exists() else ()
        review = _judged(merge_proposals(decided, found), catalog, model, loaded.trusted)
        found = review.proposals
    merged = merge_proposals((), found)
    if file:
        with file_lock(file):
            # A person may have decided in the meantime.
            merged = merge_proposals(read_dependencies(file) if file.exists() else (), found)
            write_dependencies(merged, file)
    content: dict[str, object] = {"edges": [edge.model_dump(mode="json") for edge in merged], "path": str(file or "")}
    if review:
        content["judged"] = review.to_dict()
    report(content, lambda: output.show_proposals(merged, file, review), as_json=options.as_json)
    return 0 if merged and not (review and review.unanswered) else 1


def _judged(proposals: Sequence[Proposal], catalog: Catalog, model: str, trusted: Collection[str]) -> DependencyReview:
    """Lets a chat model judge proposals, with a progress bar; reports its error."""
    from callsheet.agents import chat_model
    from callsheet.retrievers.inference import judge_dependencies

    with progress_bar("Asking the model") as progress:
        review = judge_dependencies(proposals, catalog, chat_model(model), trusted=trusted, progress=progress)
    if review.error:
        click.echo(f"the model failed: {review.error}; run the command again for the rest", err=True)
    return review


@click.command(short_help="List the capabilities of each tool.")
@output_option("Write the catalog to this file, and declare all capabilities with a confidence of at least .5.")
@taxonomy_option
@common
def capabilities(options: CatalogOptions, file: Path | None, taxonomy: Taxonomy | None) -> int:
    """List the capabilities of each tool, from a taxonomy.

    \b
    Examples:
      callsheet capabilities --catalog manifests/
      callsheet capabilities --catalog manifests/ --taxonomy ours.json -o catalog.json
    """
    from callsheet.graphs import dump
    from callsheet.retrievers.capabilities import with_capabilities

    loaded = options.open()
    found = options.retriever(loaded, taxonomy=taxonomy).capabilities()
    if file:
        save(file, dump(with_capabilities(allowed_catalog(loaded), found)) + "\n")
        click.echo(f"the catalog with its capabilities is in {file}", err=True)
    report(
        {**found.to_dict(), "path": str(file or "")}, lambda: output.show_assignments(found), as_json=options.as_json
    )
    return 0 if any(found.of.values()) else 1


@click.command(short_help="Delete counts of earlier calls.")
@click.argument("patterns", nargs=-1, metavar="[TOOL]...")
@json_option
def forget(patterns: tuple[str, ...], *, as_json: bool) -> int:
    """Delete counts of earlier calls: how they ended, and which tool used the result of another one.

    TOOL is the id of a tool or a pattern of ids. Without TOOL, all counts are deleted. The exit status is 1 if nothing
    matches.

    \b
    Example:
      callsheet forget "files/*"
    """
    from callsheet.graphs.dependencies import ObservationLog, OutcomeLog

    tools, edges = (sum(map(log.forget, patterns or ("*",))) for log in (OutcomeLog(), ObservationLog()))
    learned = counted(edges, "observed dependency", "observed dependencies")
    report({"tools": tools, "dependencies": edges}, f"forgot {counted(tools, 'tool')} and {learned}", as_json=as_json)
    return 0 if tools or edges or not patterns else 1


@click.command(short_help="Show the links of an agent or a tool in the knowledge graph.")
@click.argument("node")
@click.option("--to", "end", metavar="NODE", help="Show the shortest path from NODE to this node instead.")
@click.option("--mermaid", is_flag=True, help="Print a Mermaid chart; around an agent, with the edges of its tools.")
@catalog_options
def graph(options: CatalogOptions, node: str, end: str | None, mermaid: bool) -> int:
    """Show the edges of NODE: its owner, dependencies, parameters, capabilities and skills, also inferred ones.

    NODE is the id of an agent, a tool, a skill or a capability. The exit status is 1 if there is no path.

    \b
    Examples:
      callsheet graph weather/forecast --catalog manifests/
      callsheet graph travel/plan_trip --to maps --catalog manifests/ --json
    """
    from callsheet.graphs.export import MOST_TOOLS, edges_to_mermaid
    from callsheet.graphs.knowledge_graph import (
        detailed_graph,
        edge_line,
        edge_values,
        edges_at,
        find_node,
        shortest_path,
    )
    from callsheet.retrievers.inference import with_inferred

    loaded = options.open()
    whole = detailed_graph(with_inferred(allowed_catalog(loaded), rejected=loaded.rejected, trusted=loaded.trusted))
    start = find_node(whole, node)
    content: dict[str, Any] = {"node": node}
    tools: list[str] = []
    if end:
        content["to"] = end
        edges = shortest_path(whole, start, find_node(whole, end))
        without = f"there is no path from {node} to {end}"
    else:
        tools = [tool.id for tool in loaded.catalog.tools.values() if tool.agent == start]
        edges = edges_at(whole, start)
        without = f"{node}: no edge"
    content["edges"] = [edge_values(edge) for edge in edges]
    lines = [edge_line(edge) for edge in edges] or [without]
    text = shown("\n".join(lines), most=None)
    if mermaid:
        # Around an agent, the chart also shows where the edges of its first tools lead.
        around = whole.out_edges(tools[:MOST_TOOLS], data=True)
        beyond = [edge for edge in around if edge[1] != start]
        content["mermaid"] = text = edges_to_mermaid(whole, [*edges, *beyond], start=start)
    report(content, text, as_json=options.as_json)
    return 1 if end and not edges and end != node else 0


COMMANDS = (capabilities, discover, forget, graph, index, infer, retrieve, sync)
