"""What there is to review, as the page shows it, and the files that decisions go to; every text is safe to display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from callsheet.graphs import Change, Dependency, Finding, Severity, dependency_edges, digest, dump, told
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.catalog_files import from_native
from callsheet.graphs.catalog.formats.documents import read_json
from callsheet.graphs.dependencies import Proposal, read_dependencies
from callsheet.graphs.storage import locked, replace_bytes
from callsheet.graphs.trust.changes import sides_of
from callsheet.orchestrator.server.visible_catalog import Link, VisibleCatalog, shown_line, shown_text
from callsheet.retrievers.capabilities import Assigned, Assignments, with_capabilities

NO_DEPENDENCY_FILE = (
    "there is no file for decisions about dependencies: start `callsheet explore --dependencies dependencies.json`, "
    "or name such a file among the catalogs (--catalog, CALLSHEET_CATALOG)"
)
NO_CATALOG_FILE = (
    "capabilities are declared in a catalog of Callsheet's own form: write one with "
    "`callsheet capabilities -o catalog.json`, and open that"
)
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
class Suggestion:
    """A capability of a tool: id, name, confidence, and whether the tool declares it."""

    id: str
    label: str
    confidence: float
    declared: bool


@dataclass(frozen=True, slots=True)
class CapabilityItem:
    """A tool with its capabilities.

    Attributes:
        digest: SHA-256 of exactly these.
        capabilities: Its capabilities; all declared, or all suggested by its text.
        writable: Whether a file can declare them.
    """

    digest: str
    tool: Link
    capabilities: tuple[Suggestion, ...]
    writable: bool


@dataclass(frozen=True, slots=True)
class FindingItem:
    """A finding of ``callsheet check``, with the agent or tool that it is about, if any."""

    severity: str
    rule: str
    message: str
    node: Link | None


def change_of(visible: VisibleCatalog, shown: str) -> Change | None:
    """The change that was shown with this digest, if it still waits."""
    same = (change for change in visible.reviewable if _digest(change) == shown)
    return next((change for change in same if change_item(change).digest), None)


def dependency_items(visible: VisibleCatalog) -> list[tuple[DependencyItem, Proposal]]:
    """Undecided dependencies by confidence, highest first, then decided ones; both of their tools are visible.

    Raises:
        CatalogError: A file of dependencies cannot be read.
    """
    tools = visible.catalog.tools
    edges = [edge for file in visible.loaded.dependency_files for edge in read_dependencies(file).edges]
    decided = [edge for edge in edges if edge.accept is not None and edge.source in tools and edge.target in tools]
    keys = {edge.key for edge in decided}
    inferred = (_proposal(tool, edge) for tool, edge in dependency_edges(visible.knowledge.graph) if not edge.holds)
    waiting = [edge for edge in inferred if edge.key not in keys]
    waiting.sort(key=lambda edge: (-edge.confidence, edge.source, edge.target))
    return [
        (
            DependencyItem(
                digest(edge.model_dump(mode="json")),
                visible.link(edge.source),
                visible.link(edge.target),
                edge.kind.direct,
                shown_line(edge.parameter or ""),
                edge.confidence,
                shown_text(edge.evidence),
                edge.count,
                edge.accept,
            ),
            edge,
        )
        for edge in (*waiting, *decided)
    ]


def finding_items(visible: VisibleCatalog, findings: Sequence[Finding]) -> list[FindingItem]:
    """Findings by severity and rule; those about the policy only if the user may see everything."""
    if visible.policy and visible.whole:
        findings = (*findings, *visible.policy.findings(visible.loaded.catalog, visible.loaded.of_resources.catalog))
    ordered = sorted(findings, key=lambda one: (_SEVERITIES.index(one.severity), one.rule, one.tool or one.agent))
    items = []
    for one in ordered:
        node = one.tool or one.agent
        about = visible.link(node) if node and visible.may_see(node) else None
        items.append(FindingItem(str(one.severity), one.rule, shown_text(one.message), about))
    return items


def file_of(visible: VisibleCatalog, edge: Proposal) -> str:
    """The file of dependencies for a decision: the one with the edge and its decision, or the last one.

    Raises:
        CatalogError: There is none, or it cannot be read.
    """
    files = visible.loaded.dependency_files
    if not files:
        raise CatalogError(NO_DEPENDENCY_FILE)
    known = [(file, one.accept) for file in files for one in read_dependencies(file).edges if one.key == edge.key]
    return next((file for file, accept in known if accept is edge.accept), known[-1][0] if known else files[-1])


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


def capability_items(visible: VisibleCatalog, known: Assignments) -> list[CapabilityItem]:
    """All visible tools: those that a file can declare first, with suggestions, without any, then declared ones."""
    files = catalog_files(visible)
    items = [_item(visible, tool.id, known, writable=tool.agent in files) for tool in visible.catalog.tools.values()]
    return sorted(
        items,
        key=lambda item: (not item.writable, any(one.declared for one in item.capabilities), not item.capabilities),
    )


def declare(visible: VisibleCatalog, tool: str, capabilities: Sequence[str], known: Assignments) -> None:
    """Writes the capabilities of a tool into the file of its catalog, as ``callsheet capabilities -o`` does.

    Raises:
        CatalogError: There is no such file, it has changed, a capability is not in the taxonomy, or none is given.
        TrustError: Another process has locked the file.
    """
    if unknown := sorted(set(capabilities) - set(known.taxonomy.by_id)):
        raise CatalogError(f"the taxonomy has no capability {unknown[0]!r}")
    if not capabilities:
        raise CatalogError("declare at least one capability: a tool without any gets those that its text suggests")
    agent, before = visible.catalog.tools[tool].agent, visible.catalog.tools[tool].capabilities
    file = catalog_files(visible).get(agent)
    if file is None:
        raise CatalogError(NO_CATALOG_FILE)
    file = file.resolve()  # a symbolic link stays one
    with locked(file):
        catalog = from_native(read_json(file), str(file))
        if tool not in catalog.tools or catalog.tools[tool].capabilities != before:
            raise CatalogError(f"the capabilities of {tool} were changed in {file} by somebody else: look again")
        chosen = tuple(Assigned(name, 1.0, "declared") for name in dict.fromkeys(capabilities))
        changed = with_capabilities(catalog, Assignments(known.taxonomy, {tool: chosen}))
        try:
            replace_bytes(file, f"{dump(changed)}\n".encode(), mode=file.stat().st_mode & 0o777, exact=True)
        except OSError as error:
            raise CatalogError(f"{file}: cannot be written: {error.strerror}") from error


def _item(visible: VisibleCatalog, tool: str, known: Assignments, *, writable: bool) -> CapabilityItem:
    assigned, taxonomy = known.of.get(tool, ()), known.taxonomy.by_id
    names = {one.capability: taxonomy[one.capability].name for one in assigned if one.capability in taxonomy}
    return CapabilityItem(
        digest({"tool": tool, "capabilities": [[one.capability, one.by, f"{one.confidence:.4f}"] for one in assigned]}),
        visible.link(tool),
        tuple(
            Suggestion(
                one.capability,
                shown_line(names.get(one.capability, one.capability)),
                one.confidence,
                one.by == "declared",
            )
            for one in assigned
        ),
        writable,
    )


def catalog_files(visible: VisibleCatalog) -> Mapping[str, Path]:
    """The catalog in Callsheet's own form of each agent that has one."""
    found: dict[str, Path] = {}
    for name in visible.loaded.label.splitlines():
        path = Path(name)
        if path.suffix == ".json" and path.is_file():
            found |= dict.fromkeys(_agents(path, path.stat().st_mtime_ns), path)
    return found


@lru_cache(maxsize=8)
def _agents(path: Path, _version: int) -> Sequence[str]:
    """The agents of a file of this form; none of any other."""
    try:
        document = read_json(path)
        native = isinstance(document, dict) and "callsheet" in document
        return [agent.id for agent in from_native(document, str(path)).agents] if native else []
    except CatalogError:  # it was changed since; whoever loads it again is told
        return []
