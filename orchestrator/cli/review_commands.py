"""``check``, ``approve``, ``trust`` and ``export``: problems, changes and permissions of a catalog."""

from __future__ import annotations

import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, get_args

import click

from callsheet.graphs.errors import Finding, SettingsError, Severity, lookup, near_names
from callsheet.graphs.text.hidden import escaped_line, shown
from callsheet.graphs.text.messages import counted
from callsheet.graphs.trust.changes import describe_change, diff_of, findings_of
from callsheet.graphs.trust.consent import Agreements, StandingApprovals, belief_digest, believable
from callsheet.graphs.trust.open_calls import CallLedger, Verdict
from callsheet.graphs.trust.pins import Change, PinBook
from callsheet.orchestrator.cli import output
from callsheet.orchestrator.cli.approval_prompt import has_terminal
from callsheet.orchestrator.cli.shared_options import (
    CatalogOptions,
    allowed_catalog,
    catalog_options,
    output_option,
    progress_bar,
    refuse_before,
    report,
    save,
    taxonomy_option,
    together,
)

if TYPE_CHECKING:
    from callsheet.graphs import Capability, Catalog, Loaded, Taxonomy, Tool
    from callsheet.graphs.lint import LintRule

_ORDER = tuple(Severity)
_RDF = frozenset({".ttl", ".jsonld", ".nt"})


@click.command(short_help="Find errors in a catalog.")
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default=str(Severity.ERROR),
    help="Exit with status 1 if there is a finding at this severity or above.",
)
@click.option("--ignore", "ignored", multiple=True, metavar="RULE", help="Rule to ignore; repeatable.")
@taxonomy_option
@click.option("--rdf", is_flag=True, help="Check the RDF form too, with SHACL and SPARQL (extra rdf).")
@click.option("--all", "everything", is_flag=True, help="Show every finding, not only the first of each rule.")
@catalog_options
def check(
    options: CatalogOptions,
    fail_on: str,
    ignored: tuple[str, ...],
    taxonomy: Taxonomy | None,
    *,
    rdf: bool,
    everything: bool,
) -> int:
    """Check a catalog: schemas, descriptions, dependencies, and texts that could manipulate a model.

    \b
    Example:
      callsheet check --catalog manifests/ --fail-on warning --ignore near-identical-tools
    """
    from callsheet.graphs.lint import lint
    from callsheet.graphs.lint.text_rules import source_of_many
    from callsheet.retrievers.inference import infer_dependencies

    rules = _rules_without(ignored)
    loaded = options.open(tell=False)
    with progress_bar("Checking"):
        known = replace(loaded, problems=tuple(p for p in loaded.problems if p.kind != "quarantined"))
        proposals = infer_dependencies(loaded.catalog) if source_of_many in rules else ()
        findings = list(lint(known, rules=rules, taxonomy=taxonomy, proposals=proposals))
        findings.extend(replace(one, message=options.runnable(one.message)) for one in findings_of(loaded.changes))
        if loaded.policy:
            findings.extend(loaded.policy.findings(loaded.catalog, loaded.of_resources.catalog))
        if rdf:
            findings.extend(_rdf_findings(loaded, taxonomy))
    worst = min((_ORDER.index(finding.severity) for finding in findings), default=len(_ORDER))
    failed = worst <= _ORDER.index(Severity(fail_on))
    number = Counter(finding.severity for finding in findings)
    counts = {str(severity): number[severity] for severity in Severity}
    content = {"findings": [finding.to_dict() for finding in findings], "counts": counts, "passed": not failed}
    report(
        content, lambda: output.show_findings(findings, loaded.catalog, everything=everything), as_json=options.as_json
    )
    return 1 if failed else 0


def _rules_without(ignored: Sequence[str]) -> list[LintRule]:
    """Returns the rules but those of these names; a usage error if there is no such rule."""
    from callsheet.graphs.lint import RULES

    names = [rule.name for rule in RULES]
    for name in ignored:
        if name not in names:
            message = f"there is no rule {name!r}{near_names(name, names)}; there are {', '.join(names)}"
            raise click.BadParameter(message, param_hint="--ignore")
    return [rule for rule in RULES if rule.name not in ignored]


def _rdf_findings(loaded: Loaded, taxonomy: Taxonomy | None) -> Sequence[Finding]:
    """Findings in the catalog as RDF, and in each RDF file as written."""
    from callsheet.graphs.rdf import rdf_file_findings, rdf_findings

    sources = [Path(line) for line in loaded.label.splitlines()]
    written = [finding for file in sources if file.suffix.lower() in _RDF for finding in rdf_file_findings(file)]
    whole = rdf_findings(loaded.catalog, taxonomy.capabilities if taxonomy else None)
    return list(dict.fromkeys((*written, *whole)))


@click.command(short_help="Show and accept changes of servers.")
@click.argument("ids", nargs=-1, metavar="[AGENT|AGENT/TOOL]...")
@click.option("--all", "everything", is_flag=True, help="With --yes: accept all changes.")
@catalog_options
def approve(options: CatalogOptions, ids: tuple[str, ...], *, everything: bool) -> int:
    """Show what servers changed since you accepted them, and accept the changes.

    A tool that is new, changed or suspect is neither found nor called until you accept it. In a terminal, you are
    asked about each one. With --yes, the named ones are accepted without asking; with --yes --all, everything is.

    \b
    Example:
      callsheet approve files/read_file --catalog mcp.json
    """
    loaded = options.open(tell=False, anew=True)
    yes = options.yes and (everything or bool(ids))
    changes = _named_changes(loaded, ids)
    accepted = [change for change in changes if _accepted(change, yes=yes, quiet=options.as_json)]
    _accept(accepted)
    waiting = [change for change in changes if change not in accepted]
    content = {
        "changes": [_described(change) for change in changes],
        "accepted": [change.id for change in accepted],
        "waiting": [change.id for change in waiting],
    }
    text = f"{len(accepted)} accepted, {len(waiting)} waiting" if changes else "nothing waits for approval"
    report(content, text, as_json=options.as_json)
    if not waiting:
        return 0
    if not options.as_json and not sys.stdin.isatty():
        click.echo("to accept changes without a terminal, use --yes with their names or with --all", err=True)
    return 1


def _named_changes(loaded: Loaded, ids: Sequence[str]) -> list[Change]:
    """Returns the changes of these agents and tools; without ids, all.

    Raises:
        UnknownNameError: An id is neither in the catalog, nor among the changes or the pins.
    """
    if not ids:
        return list(loaded.changes)
    known = {*loaded.catalog.by_id, *loaded.catalog.tools, *_pinned(loaded)}
    for change in loaded.changes:
        known |= {change.id, change.agent}
    for name in ids:
        lookup(dict.fromkeys(known), name, "agent or tool", "catalog")
    return [change for change in loaded.changes if change.id in ids or change.agent in ids]


def _accept(changes: Sequence[Change]) -> None:
    """Writes the accepted changes into their files of pins."""
    by_book: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        by_book[change.book].append(change)
    for book, some in by_book.items():
        PinBook(book).accept(some)


def _described(change: Change) -> dict[str, Any]:
    """Returns a change as JSON: what it is about, what it says, and the differences."""
    about = {name: getattr(change, name) for name in ("id", "agent", "tool", "kind", "sha256")}
    return {**about, "message": describe_change(change), "diff": diff_of(change)}


def _pinned(loaded: Loaded) -> set[str]:
    """Returns ids of the accepted tools, those included that a server does not list at its start."""
    books = {str(live.terms["pins"].file): live.terms["pins"] for live in loaded.live.values() if live.terms["pins"]}
    pinned = [server for book in books.values() for server in book.servers().items()]
    return {f"{agent}/{tool}" for agent, server in pinned for tool in server.tools}


def _accepted(change: Change, *, yes: bool, quiet: bool) -> bool:
    if quiet:
        return yes
    click.echo(f"{describe_change(change)}\n{indent(diff_of(change), '  ')}")
    return click.confirm("Accept it?", err=True) if has_terminal() and not yes else yes


@click.group(short_help="List and change permanent permissions; settle open calls.", invoke_without_command=True)
@catalog_options
@click.pass_context
def trust(context: click.Context, options: CatalogOptions) -> int:
    """List the tools that were allowed for good, the servers that are believed, and the open calls.

    A tool is allowed for one user of one catalog, as it is defined now: if it changes, you are asked again. A server is
    believed which of its tools only read. Of an open call, it is not known whether it took effect.

    \b
    Example:
      callsheet trust allow git/git_log --catalog mcp.json
    """
    command = context.invoked_subcommand
    if command:
        refuse_before(context, command)
        return 0
    return _report_trust(options, options.open(known=True))


def _report_trust(options: CatalogOptions, loaded: Loaded, done: int = 0) -> int:
    standing = StandingApprovals.of(loaded.label)
    known = Agreements().known()
    tools = _nameable(loaded)
    lines = list[str]()
    allowed = [
        {**one.model_dump(), "holds": one.id in tools and loaded.pin(tools[one.id]) == one.digest}
        for one in (standing.entries() if standing else ())
    ]
    servers = [
        agent
        for agent, marked in believable(loaded.catalog, loaded.connections).items()
        if belief_digest(marked.server) in known
    ]
    for one in allowed:
        whose = f" for {one['user'] or 'clients without sign-in'}" if one["user"] != "" else ""
        changed = "" if one["holds"] else "; it has changed, so it is asked about"
        lines.append(escaped_line(f"{one['agent']}/{one['tool']}{whose}, since {one['since']}{changed}"))
    lines += [escaped_line(f"{agent}: believed which of its tools only read") for agent in servers]
    lines = lines or ["no tool is allowed for good"]
    open_calls = CallLedger(loaded.label).unsettled(everybody=True)
    lines += [escaped_line(f"open call {one.id}: {one.tool_id} {one.told}") for one in open_calls]
    # The id of a task is not told: some servers let whoever knows it read the result.
    told = [{**{name: getattr(one, name) for name in _OPEN_CALL}, "is_task": bool(one.task)} for one in open_calls]
    content = {"allowed": allowed, "servers": servers, "open_calls": told}
    report(content, "\n".join(lines), as_json=options.as_json)
    return done


_OPEN_CALL = ("id", "agent", "tool", "since", "run", "user")


def _nameable(loaded: Loaded) -> dict[str, Tool]:
    """Returns all tools, resources and prompts, which a gateway calls too."""
    return {**loaded.of_resources.catalog.tools, **loaded.catalog.tools}


_ids_options = together(
    click.argument("ids", nargs=-1, required=True, metavar="AGENT|AGENT/TOOL..."),
    click.option("--user", metavar="ID", help="Id of a user, as the authentication of a server has it."),
    catalog_options,
)


@trust.command(short_help="Allow tools permanently, or trust the hints of a server.")
@_ids_options
def allow(options: CatalogOptions, ids: tuple[str, ...], user: str | None) -> int:
    """Allow AGENT/TOOL for good, so that its calls are not asked about; or believe what AGENT says of its tools.

    \b
    Example:
      callsheet trust allow git/git_log --catalog mcp.json
    """
    loaded = options.open(known=True)
    servers = believable(loaded.catalog, loaded.connections)
    known = _nameable(loaded)
    agents: list[str] = []
    tools: list[Tool] = []
    for one in ids:
        if one not in loaded.catalog.by_id:
            tools.append(known[one] if one in known else loaded.catalog.tool(one))
        elif one in servers:
            agents.append(one)
        else:
            raise SettingsError(
                f"{one!r} marks no tool as read-only, so there is nothing to trust: allow its tools by name"
            )
    standing = StandingApprovals.of(loaded.label, user or "")
    if standing is None:
        raise SettingsError("the catalog is not a file, so nothing can be allowed for it")
    if not options.yes:
        _confirm_allowed(ids, tools)
    for tool in tools:
        standing.add(tool, loaded.pin(tool))
    if agents:
        Agreements().add(belief_digest(servers[agent].server) for agent in agents)
    return _report_trust(options, loaded)


def _confirm_allowed(ids: Sequence[str], tools: Sequence[Tool]) -> None:
    """Asks at the terminal whether these may be called without a question; ends the command if not."""
    if not has_terminal():
        raise click.UsageError("there is no terminal to ask in: --yes allows it")
    for tool in tools:
        click.echo(f"{escaped_line(tool.id)}: {escaped_line(tool.description)}", err=True)
    click.confirm(f"Call {', '.join(map(escaped_line, ids))} without asking from now on?", abort=True, err=True)


@trust.command(short_help="Revoke permissions of tools, or the trust in a server.")
@_ids_options
def revoke(options: CatalogOptions, ids: tuple[str, ...], user: str | None) -> int:
    """Revoke what was allowed, for everybody or for one --user; running programs ask again at once.

    \b
    Example:
      callsheet trust revoke git/git_log --catalog mcp.json
    """
    loaded = options.open(known=True)
    standing = StandingApprovals.of(loaded.label, user or "")
    servers = believable(loaded.catalog, loaded.connections)
    # What was allowed may be gone from the catalog.
    allowed = [one.id for one in standing.entries()] if standing else []
    for one in ids:
        lookup(dict.fromkeys([*loaded.catalog.by_id, *_nameable(loaded), *allowed]), one, "agent or tool", "catalog")
    done = standing.revoke(ids, everybody=user is None) if standing else 0
    done += Agreements().remove(belief_digest(servers[one].server) for one in ids if one in servers)
    return _report_trust(options, loaded, 0 if done else 1)


@trust.command(short_help="Record whether an open call took effect.")
@click.argument("call_id", metavar="ID")
@click.argument("verdict", type=click.Choice(get_args(Verdict)))
@catalog_options
def settle(options: CatalogOptions, call_id: str, verdict: Verdict) -> int:
    """Say of the open call ID whether it took effect, after you have looked.

    If it was done, the same call is not sent the next time, and a run that waits for the answer goes on without it. If
    it was not, the call may be sent again. The verdict is kept for a day.

    \b
    Example:
      callsheet trust settle 3fa9c1d2 done --catalog mcp.json
    """
    loaded = options.open(known=True)
    CallLedger(loaded.label).settle(call_id, verdict)
    return _report_trust(options, loaded)


FORMS = ("turtle", "jsonld", "ntriples", "graphml", "cypher", "mermaid", "json")


@click.command()
@click.option("--format", "form", type=click.Choice(FORMS), help="Output format.  [required unless --json]")
@output_option("Output file.")
@taxonomy_option
@catalog_options
def export(options: CatalogOptions, form: str | None, file: Path | None, taxonomy: Taxonomy | None) -> int:
    """Export the catalog to another format.

    The export includes inferred dependencies, with their provenance.

    turtle, jsonld, ntriples and json can be loaded again as a catalog. cypher is a script for Neo4j and similar
    databases.

    \b
    Example:
      callsheet export --format turtle --catalog manifests/ -o catalog.ttl
    """
    from callsheet.graphs import Catalog
    from callsheet.retrievers.inference import with_inferred

    form = form or ("json" if options.as_json else "")
    if not form:
        raise click.MissingParameter(f"Choose from {', '.join(FORMS)}.", param_hint="--format", param_type="option")
    if options.as_json and file is None and form not in ("json", "jsonld"):
        raise click.BadParameter(
            f"the format {form} is not JSON: leave out --json, or write to a file with -o", param_hint="--json"
        )
    loaded = options.open()
    with progress_bar("Writing"):
        catalog = with_inferred(allowed_catalog(loaded), rejected=loaded.rejected, trusted=loaded.trusted)
        document = _document(form, catalog, taxonomy.capabilities if taxonomy else None)
    if catalog.skills and form == "mermaid":
        click.echo(f"{counted(len(catalog.skills), 'skill')} left out: {form} shows agents and tools", err=True)
        catalog = Catalog(agents=catalog.agents)
    if file is None:
        text = shown(document, most=None) if _at_a_terminal() else document
        click.echo(text.encode("utf-8", "replace"), nl=False)
        return 0
    save(file, document)
    if options.as_json:
        counts = {"agents": len(catalog.agents), "tools": len(catalog.tools), "skills": len(catalog.skills)}
        click.echo(json.dumps({"path": str(file), "format": form, **counts}, ensure_ascii=False))
    else:
        click.echo(f"{catalog.sizes} in {file}", err=True)
    return 0


def _at_a_terminal() -> bool:
    return sys.stdout.isatty()


def _document(form: str, catalog: Catalog, taxonomy: Sequence[Capability] | None) -> str:
    from callsheet.graphs import dump, export

    match form:
        case "graphml":
            return export.to_graphml(catalog, taxonomy)
        case "cypher":
            return export.to_cypher(catalog, taxonomy)
        case "mermaid":
            return export.to_mermaid(catalog)
        case "json":
            return dump(catalog) + "\n"
    from callsheet.graphs.rdf import RdfFormat, to_rdf

    return to_rdf(catalog, taxonomy, form=RdfFormat(form))


COMMANDS = (approve, check, export, trust)
