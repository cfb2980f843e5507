"""``callsheet check``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callsheet.graphs.catalog.errors import Finding, Severity
from callsheet.graphs.trust.changes import findings_of
from callsheet.orchestrator.cli.shared_options import catalog_options, open_catalog, say_age, status, taxonomy_option

if TYPE_CHECKING:
    from callsheet.graphs import Loaded, Taxonomy

_ORDER = tuple(Severity)
_RDF = frozenset({".ttl", ".jsonld", ".nt"})


@click.command(short_help="Find errors in a catalog.")
@click.option(
    "--fail-on",
    type=click.Choice([str(severity) for severity in Severity]),
    default=str(Severity.ERROR),
    show_default=True,
    help="Exit with status 1 if there is a finding at this severity or above.",
)
@click.option("--ignore", "ignored", multiple=True, metavar="RULE", help="Rule to ignore; repeatable.")
@taxonomy_option
@click.option("--rdf", is_flag=True, help="Check the RDF form too, with SHACL and SPARQL (extra rdf).")
@click.option("--all", "everything", is_flag=True, help="Show every finding, not only the first of each rule.")
@catalog_options
def check(
    fail_on: str,
    ignored: tuple[str, ...],
    taxonomy: Taxonomy | None,
    catalogs: tuple[str, ...],
    *,
    rdf: bool,
    everything: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Check a catalog: schemas, descriptions, dependencies, and texts that could manipulate a model.

    \b
    Example:
      callsheet check --catalog manifests/ --fail-on warning --ignore near-identical-tools
    """
    from callsheet.graphs.lint import RULES, lint

    if unknown := sorted(set(ignored) - {rule.name for rule in RULES}):
        names = ", ".join(rule.name for rule in RULES)
        raise click.BadParameter(f"there is no rule {unknown[0]!r}; there are {names}", param_hint="--ignore")
    loaded = open_catalog(catalogs, yes=yes, tell=False)
    say_age(loaded)
    with status("Checking"):
        known = replace(loaded, problems=tuple(p for p in loaded.problems if p.kind != "quarantined"))
        findings = list(lint(known, rules=[rule for rule in RULES if rule.name not in ignored], taxonomy=taxonomy))
        findings.extend(findings_of(loaded.changes))
        if loaded.policy:
            findings.extend(loaded.policy.findings(loaded.catalog, loaded.of_resources.catalog))
        if rdf:
            findings.extend(_rdf_findings(loaded, taxonomy))
    failed = any(_ORDER.index(finding.severity) <= _ORDER.index(Severity(fail_on)) for finding in findings)
    if as_json:
        click.echo(json.dumps(_report(findings, failed=failed), ensure_ascii=False))
    else:
        from callsheet.orchestrator.cli.output.catalog_output import show_findings

        show_findings(findings, loaded.catalog, everything=everything)
    return 1 if failed else 0


def _rdf_findings(loaded: Loaded, taxonomy: Taxonomy | None) -> Sequence[Finding]:
    """Findings in the catalog as RDF, and in each RDF file as written."""
    from callsheet.graphs.rdf import rdf_file_findings, rdf_findings

    sources = [Path(line) for line in loaded.label.splitlines()]
    written = [finding for file in sources if file.suffix.lower() in _RDF for finding in rdf_file_findings(file)]
    whole = rdf_findings(loaded.catalog, taxonomy.capabilities if taxonomy else None)
    return list(dict.fromkeys((*written, *whole)))


def _report(findings: Sequence[Finding], *, failed: bool) -> dict[str, object]:
    counts = {str(severity): sum(finding.severity == severity for finding in findings) for severity in Severity}
    return {"findings": [finding.to_dict() for finding in findings], "counts": counts, "passed": not failed}
