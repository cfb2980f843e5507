"""Lint rules for catalogs."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.graphs.capabilities.taxonomy import Taxonomy, default_taxonomy
from callsheet.graphs.dependencies import Proposal
from callsheet.graphs.errors import Finding
from callsheet.graphs.lint import schema_rules, text_rules
from callsheet.graphs.lint.lint_rule import LintRule, Remark, Subject, rule
from callsheet.graphs.sources.loaded import CatalogSource
from callsheet.graphs.sources.loading import load

__all__ = ["RULES", "TRUST_RULES", "LintRule", "Remark", "Subject", "lint", "rule"]

TRUST_RULES = (
    text_rules.hidden_text,
    text_rules.shadowing,
    text_rules.invisible_characters,
    text_rules.long_text,
    text_rules.source_of_many,
)
"""The rules about texts of servers that could mislead a model, or that give a server an advantage."""

RULES = (
    schema_rules.load_problem,
    schema_rules.unread_source,
    schema_rules.ambiguous_name,
    schema_rules.dependency_cycle,
    schema_rules.unknown_capability,
    *TRUST_RULES,
    schema_rules.invalid_schema,
    schema_rules.adapted_schema,
    schema_rules.unresolved_reference,
    text_rules.empty_description,
    text_rules.duplicate_description,
    text_rules.near_identical_tools,
    text_rules.undescribed_agent,
    text_rules.undescribed_parameter,
)
"""All rules; findings are reported in this order."""


def lint(
    *sources: CatalogSource,
    rules: Iterable[LintRule] = RULES,
    taxonomy: Taxonomy | None = None,
    proposals: Iterable[Proposal] = (),
) -> tuple[Finding, ...]:
    """Returns the findings in a catalog, by rule and then in the order of the catalog.

    Examples:
        >>> for finding in lint("manifests/"):
        ...     print(finding.severity, finding.tool, finding.message)

    Args:
        sources: As for ``load``.
        rules: The rules to apply.
        taxonomy: The known capabilities; None: the default taxonomy.
        proposals: The inferred dependencies (``infer_dependencies``); by default, only those in the catalog count.
    """
    loaded = load(*sources)
    subject = Subject(loaded.catalog, taxonomy or default_taxonomy(), loaded.problems, tuple(proposals))
    findings = list[Finding]()
    for each in rules:
        findings += each.findings(subject)
    return tuple(findings)
