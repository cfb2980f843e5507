"""What there is to review, as the page shows it; every text is safe to display."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from callsheet.graphs import Change, Dependency, Finding, Severity, digest, told
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.dependencies import Proposal, read_dependencies
from callsheet.graphs.trust.changes import sides_of
from callsheet.orchestrator.server.explorer.answers.json_answers import Link, shown_line, shown_text
from callsheet.orchestrator.server.explorer.answers.search_results import link
from callsheet.orchestrator.server.explorer.site import Seen

_MOST_SHOWN, _LINE = 500_000, 50  # characters of a definition; a line of the page costs as much as so many
_SEVERITIES = tuple(Severity)


@dataclass(frozen=True, slots=True)
class ChangeItem:
    """A change of a server that waits.

    Attributes:
        digest: SHA-256 of exactly this change; empty if it is too long to be shown, so that it cannot be accepted here.
        label: ``agent/tool``, or the agent.
        kind: As in ``Change``.
        quarantines: Whether the tool or server is not used until somebody accepts it.
        lines: The accepted and the present line side by side, as of ``sides_of``.
    """

    digest: str
    label: str
    kind: str
    told: str
    quarantines: bool
    lines: tuple[tuple[str | None, str | None], ...]


@dataclass(frozen=True, slots=True)
class DependencyItem:
    """A dependency that a program proposes, or that a person decided about.

    Attributes:
        digest: SHA-256 of exactly this proposal and its decision.
        required: Whether the source requires the target once the dependency is accepted.
        parameter: The argument, if it concerns one.
        count: How often calls showed it.
        accept: The decision; None if there is none.
    """

    digest: str
    source: Link
    target: Link
    required: bool
    parameter: str
    confidence: float
    evidence: str
    count: int
    accept: bool | None


@dataclass(frozen=True, slots=True)
class FindingItem:
    """A finding of ``callsheet check``, with the agent or tool that it is about, if any."""

    severity: str
    rule: str
    message: str
    node: Link | None


def change_of(seen: Seen, shown: str) -> Change | None:
    """The change that was shown with this digest, if it still waits."""
    found = (change for change in seen.reviewable if _digest(change) == shown)
    return next((change for change in found if change_item(change).digest), None)


def dependency_items(seen: Seen) -> list[tuple[DependencyItem, Proposal]]:
    """Undecided dependencies by confidence, highest first, then decided ones; both of their tools are visible.

    Raises:
        CatalogError: A file of dependencies cannot be read.
    """
    decided = [edge for edge in _in_files(seen) if edge.accept is not None and _visible(edge, seen)]
    keys = {edge.key for edge in decided}
    open_ = [edge for edge in _inferred(seen) if edge.key not in keys]
    open_.sort(key=lambda edge: (-edge.confidence, edge.source, edge.target))
    return [(_dependency(edge, seen), edge) for edge in (*open_, *decided)]


def finding_items(seen: Seen, findings: Sequence[Finding]) -> list[FindingItem]:
    """Findings by severity and rule; those about the policy only if the user may see everything."""
    if seen.policy and seen.whole:
        findings = (*findings, *seen.policy.findings(seen.loaded.catalog, seen.loaded.of_resources.catalog))
    ordered = sorted(findings, key=lambda one: (_SEVERITIES.index(one.severity), one.rule, one.tool or one.agent))
    return [_finding(finding, seen) for finding in ordered]


def file_of(seen: Seen, edge: Proposal) -> str:
    """The file of dependencies for a decision: the one with the edge and its decision, or the last one.

    Raises:
        CatalogError: There is none, or it cannot be read.
    """
    files = seen.loaded.dependency_files
    if not files:
        raise CatalogError(NO_FILE)
    known = [(file, one.accept) for file in files for one in read_dependencies(file).edges if one.key == edge.key]
    return next((file for file, accept in known if accept is edge.accept), known[-1][0] if known else files[-1])


NO_FILE = (
    "there is no file for decisions about dependencies: start `callsheet explore --dependencies dependencies.json`, "
    "or name such a file among the catalogs (--catalog, CALLSHEET_CATALOG)"
)


def change_item(change: Change) -> ChangeItem:
    """A change as the page shows it; slow for a long definition."""
    lines = sides_of(change)
    shown = sum(_LINE + len(line) for pair in lines for line in pair if line) <= _MOST_SHOWN
    return ChangeItem(
        _digest(change) if shown else "",
        shown_line(change.id),
        change.kind,
        told(change),
        change.quarantines,
        lines if shown else (),
    )


def _digest(change: Change) -> str:
    of = {"before": change.before, "after": change.after, "kind": change.kind, "id": change.id}
    return digest({**of, "sha256": change.sha256, "pinned": change.pinned})


def _inferred(seen: Seen) -> Iterator[Proposal]:
    for tool in seen.catalog.tools.values():
        for edge in tool.depends_on:
            if not edge.holds:
                yield _proposal(tool.id, edge)


def _proposal(source: str, edge: Dependency) -> Proposal:
    return Proposal(
        source=source,
        target=edge.tool,
        kind=edge.kind,
        parameter=edge.parameter,
        confidence=edge.confidence,
        evidence=edge.reason,
        count=edge.count,
    )


def _in_files(seen: Seen) -> Iterator[Proposal]:
    for file in seen.loaded.dependency_files:
        yield from read_dependencies(file).edges


def _visible(edge: Proposal, seen: Seen) -> bool:
    return edge.source in seen.catalog.tools and edge.target in seen.catalog.tools


def _dependency(edge: Proposal, seen: Seen) -> DependencyItem:
    return DependencyItem(
        digest(edge.model_dump(mode="json")),
        link(edge.source, seen.catalog),
        link(edge.target, seen.catalog),
        edge.kind.direct,
        shown_line(edge.parameter or ""),
        edge.confidence,
        shown_text(edge.evidence),
        edge.count,
        edge.accept,
    )


def _finding(finding: Finding, seen: Seen) -> FindingItem:
    node = finding.tool or finding.agent
    about = link(node, seen.catalog) if node and seen.may_see(node) else None
    return FindingItem(str(finding.severity), finding.rule, shown_text(finding.message), about)
