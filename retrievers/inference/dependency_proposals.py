"""Proposes dependencies between tools from evidence, and adds them to catalogs; results are cached by content."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from callsheet.graphs import (
    Catalog,
    CatalogError,
    DependencyKind,
    SettingsError,
    Tool,
    dependency_edges,
    knowledge_graph,
)
from callsheet.graphs.dependencies import (
    Proposal,
    Seen,
    attach,
    combine,
    observed_proposals,
    read_dependencies,
    without_cycles,
    write_dependencies,
)
from callsheet.graphs.storage import private_folder
from callsheet.retrievers.inference.candidates import Candidate, Candidates, Ends, Need
from callsheet.retrievers.inference.edge_model import EdgeModel, edge_model

LEAST = 0.5
"""Minimum confidence of a proposal, by default."""
_NAMED = 0.55
"""Confidence that a tool needs one that its description names."""
_MOST = 3
"""Maximum number of sources that are proposed for one input."""


def infer_dependencies(
    catalog: Catalog,
    *,
    least: float = LEAST,
    seen: Mapping[Seen, int] | None = None,
    trusted: Collection[str] | None = None,
    model: EdgeModel | None = None,
) -> tuple[Proposal, ...]:
    """Proposes dependencies from names, schemas and descriptions, and from observations.

    A small model that was trained on public catalogs compares each input with the results of other tools; nothing is
    learned from the declared dependencies of this catalog. Of several tools that return a value, only the
    likeliest is proposed as a direct dependency. Dependencies that a person declared or accepted are not proposed, nor
    are other sources of the same argument.

    Args:
        catalog: The tools.
        least: Minimum confidence, above 0 and below 1; observations are proposed with any confidence.
        seen: How often an argument came from another tool's result; see ``ObservationLog``.
        trusted: Ids of agents on which tools of other systems may depend; None: all agents.
        model: Other weights than those of the package.

    Returns:
        The proposals by confidence, without cycles of direct dependencies.
    """
    if not 0 < least < 1:
        raise SettingsError(f"least must be above 0 and below 1, not {least!r}")
    model = model or edge_model()
    tools = list(catalog.tools.values())
    ends = Ends.of(tools, {agent.id: agent.system_key for agent in catalog.agents}, trusted, model)
    best = _best(hint for hint in _hints(ends, model, least) if hint.confidence >= least)
    known = dependency_edges(knowledge_graph(catalog))
    filled = {(tool, edge.parameter) for tool, edge in known if edge.holds and edge.parameter}
    proposals = [edge for edge in _proposals(best, tools) if (edge.source, edge.parameter) not in filled]
    return with_observed(proposals, seen or {}, catalog)


@dataclass(frozen=True, slots=True)
class Hint:
    """Evidence that one tool needs another.

    Attributes:
        source, target: Rows of the tools.
        parameter: The argument concerned; None if the hint concerns the whole call.
        direct: Whether the source can hardly work without the target.
    """

    source: int
    target: int
    parameter: str | None
    confidence: float
    direct: bool
    evidence: str


def _hints(ends: Ends, model: EdgeModel, least: float) -> Iterator[Hint]:
    """Iterates over the likeliest tools for each input, at most three, and over the tools that descriptions name."""
    candidates = Candidates(ends, model)
    for need, features in candidates.needs(least):
        sources = candidates.of(need)
        if not sources:
            continue
        confidences = model.confidences(candidates.scores(need, features, sources))
        for place in np.argsort(-confidences, kind="stable")[:_MOST].tolist():
            source = sources[place]
            yield Hint(
                source=need.tool,
                target=source.tool,
                parameter=need.parameter,
                confidence=float(confidences[place]),
                direct=need.field.required,
                evidence=_why(need, source),
            )
    for row, tool in enumerate(ends.tools):
        for other in candidates.named_in(row, tool.description):
            yield Hint(row, other, None, _NAMED, direct=False, evidence="its description names it")


def _why(need: Need, source: Candidate) -> str:
    """Returns in words what speaks most for a source."""
    fit, name_fit, *_, is_named = source.features
    if is_named:
        return f"the description of {need.parameter} names it"
    if source.value and source.value.field and 2 * fit >= name_fit:
        return f"its result holds {'.'.join(source.value.field.path)}, which fits {need.parameter}"
    return f"its name and description fit {need.parameter}"


def with_observed(proposals: Iterable[Proposal], seen: Mapping[Seen, int], catalog: Catalog) -> tuple[Proposal, ...]:
    """Joins proposals with those from observations; removes known edges and cycles of direct dependencies."""
    known = {(tool, edge.tool) for tool, edge in dependency_edges(knowledge_graph(catalog)) if edge.holds}
    edges = combine(proposals, observed_proposals(seen, catalog))
    return without_cycles([edge for edge in edges if (edge.source, edge.target) not in known], catalog)


def _best(hints: Iterable[Hint]) -> list[Hint]:
    """Returns the strongest hint for each source, target and argument, the surest first.

    A hint on the whole call stays only if there is none on an argument.
    """
    best: dict[tuple[int, int, str | None], Hint] = {}
    for hint in hints:
        key = (hint.source, hint.target, hint.parameter)
        if key not in best or hint.confidence > best[key].confidence:
            best[key] = hint
    on_arguments = {(hint.source, hint.target) for hint in best.values() if hint.parameter is not None}

    def is_needed(hint: Hint) -> bool:
        return hint.parameter is not None or (hint.source, hint.target) not in on_arguments

    strongest = filter(is_needed, best.values())
    return sorted(strongest, key=lambda hint: (-hint.confidence, hint.source, hint.parameter or "", hint.target))


def _proposals(hints: Iterable[Hint], tools: Sequence[Tool]) -> Iterator[Proposal]:
    """Makes a proposal of each hint; only the first of an argument is direct."""
    seen: set[tuple[int, str | None]] = set()
    for hint in hints:
        is_first = hint.parameter is None or (hint.source, hint.parameter) not in seen
        seen.add((hint.source, hint.parameter))
        what = "tool" if hint.parameter is None else "parameter"
        adverb = "directly" if hint.direct and is_first else "indirectly"
        yield Proposal(
            source=tools[hint.source].id,
            target=tools[hint.target].id,
            kind=DependencyKind(f"{what}_{adverb}"),
            parameter=hint.parameter,
            confidence=round(hint.confidence, 3),
            evidence=hint.evidence,
        )


RECIPE = 11
"""The version of the inference; cached results of another version are not used."""
_MOST_FILES = 32
"""Maximum number of contents of catalogs whose dependencies are stored."""


def with_inferred(
    catalog: Catalog,
    *,
    rejected: Collection[tuple[str, str, str | None]] = (),
    trusted: Collection[str] = (),
    cache: Path | None = None,
    seen: Mapping[Seen, int] | None = None,
) -> Catalog:
    """Returns the catalog with inferred dependencies after those that it has.

    Their provenance is ``proposed``, or ``observed`` where calls took an argument from the other tool's result. What is
    only proposed stays within one system or leads to a trusted agent: otherwise, an agent could become the source of
    everybody's arguments by the names of its tools.

    Args:
        catalog: The agents and tools.
        rejected: Source, target and parameter of each dependency that a person rejected.
        trusted: Ids of the trusted agents.
        cache: A folder for what was inferred, a file for each content of a catalog; None: nothing is stored.
        seen: Observations of earlier runs.
    """
    trusted = sorted({*trusted} & catalog.by_id.keys())
    proposals = infer_dependencies(catalog, trusted=trusted) if cache is None else _cached(catalog, trusted, cache)
    if seen:
        proposals = with_observed(proposals, seen, catalog)
    edges = tuple(edge for edge in proposals if edge.key not in rejected)
    if not edges:
        return catalog
    agents, _ = attach(catalog.agents, [("inference", edges)])
    return Catalog(agents=agents, skills=catalog.skills)


def _cached(catalog: Catalog, trusted: Sequence[str], folder: Path) -> Sequence[Proposal]:
    """Reads what was inferred for this content of the catalog, or infers and stores it."""
    digest = hashlib.sha256(f"{RECIPE}\n{trusted}\n{catalog.model_dump_json()}".encode()).hexdigest()
    file = folder / f"{digest[:32]}.json"
    with suppress(CatalogError):
        return read_dependencies(file)
    proposals = infer_dependencies(catalog, trusted=trusted)
    with suppress(OSError, CatalogError):  # without the file, the next start infers again
        private_folder(folder)
        write_dependencies(proposals, file)
        for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_MOST_FILES:]:
            old.unlink(missing_ok=True)
    return proposals
