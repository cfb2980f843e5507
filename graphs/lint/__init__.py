"""Rules that look at a catalog and find what its author, or whoever runs it, should know."""

from __future__ import annotations

from collections.abc import Iterable

from callsheet.graphs.capabilities import Taxonomy, default_taxonomy
from callsheet.graphs.findings import Finding
from callsheet.graphs.given import CatalogSource
from callsheet.graphs.lint import schemas, structure, texts, trust
from callsheet.graphs.lint.rule import Remark, Rule, Subject, rule
from callsheet.graphs.loading import load

__all__ = ["RULES", "TRUST_RULES", "Remark", "Rule", "Subject", "lint", "rule"]

TRUST_RULES = (
    trust.poisoned_text,
    trust.hidden_text,
    trust.shadowing,
    trust.invisible_characters,
    trust.long_text,
)
"""Rules on what a server says to a model."""

RULES = (
    structure.load_problem,
    structure.dependency_cycle,
    structure.unknown_capability,
    *TRUST_RULES,
    schemas.invalid_schema,
    schemas.schema_not_object,
    schemas.unresolved_reference,
    schemas.remote_reference,
    schemas.undeclared_required,
    schemas.large_schema,
    schemas.foreign_pattern,
    texts.empty_description,
    texts.duplicate_description,
    texts.near_identical_tools,
    texts.description_hides_tools,
    texts.undescribed_agent,
    texts.undescribed_parameter,
)
"""Every rule, in the order of their findings."""


def lint(
    *sources: CatalogSource, rules: Iterable[Rule] = RULES, taxonomy: Taxonomy | None = None
) -> tuple[Finding, ...]:
    """What the rules find in a catalog.

    Args:
        sources: As for ``load``.
        rules: The rules that look; all by default.
        taxonomy: The capabilities that are known; the default ones where none is given.

    Returns:
        The findings, by rule and then in the order of the catalog.

    Raises:
        CatalogError: A source cannot be read, or the whole is not consistent.
    """
    loaded = load(*sources)
    subject = Subject(loaded.catalog, taxonomy or default_taxonomy(), loaded.problems)
    return tuple(finding for each in rules for finding in each.findings(subject))
