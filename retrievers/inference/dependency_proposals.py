"""Proposes dependencies from hints, one per argument and tool, and adds them to catalogs, cached by content."""

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
_NAMED, _MOST = 0.55, 3


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
        trusted: Ids of the agents on whose tools those of other systems may depend; None: all agents.
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
    held = dependency_edges(knowledge_graph(catalog))
    filled = {(tool, edge.parameter) for tool, edge in held if edge.holds and edge.parameter}
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
    """For each input at most three tools, and the tools that descriptions name."""
    candidates = Candidates(ends, model)
    for need, features in candidates.needs(least):
        if found := candidates.of(need):
            sure = model.confidences(candidates.scores(need, features, found))
            for place in np.argsort(-sure, kind="stable")[:_MOST].tolist():
                one = found[place]
                why = _why(need, one)
                yield Hint(need.tool, one.tool, need.parameter, float(sure[place]), need.field.required, why)
    for row, tool in enumerate(ends.tools):
        for other in candidates.named_in(row, tool.description):
            yield Hint(row, other, None, _NAMED, direct=False, evidence="its description names it")


def _why(need: Need, found: Candidate) -> str:
    fit, name, *_, named = found.features
    if named:
        return f"the description of {need.parameter} names it"
    if found.value and found.value.field and 2 * fit >= name:
        return f"its result holds {'.'.join(found.value.field.path)}, which fits {need.parameter}"
    return f"its name and description fit {need.parameter}"


def with_observed(proposals: Iterable[Proposal], seen: Mapping[Seen, int], catalog: Catalog) -> tuple[Proposal, ...]:
    """The proposals with those from observations, without cycles of direct dependencies and without known edges."""
    known = {(tool, edge.tool) for tool, edge in dependency_edges(knowledge_graph(catalog)) if edge.holds}
    edges = combine(proposals, observed_proposals(seen, catalog))
    return without_cycles([edge for edge in edges if (edge.source, edge.target) not in known], catalog)


def _best(hints: Iterable[Hint]) -> list[Hint]:
    """The strongest hint for each source, target and argument; hints on the whole call only if there are no others."""
    best: dict[tuple[int, int, str | None], Hint] = {}
    for hint in hints:
        key = (hint.source, hint.target, hint.parameter)
        if key not in best or hint.confidence > best[key].confidence:
            best[key] = hint
    by_parameter = {(hint.source, hint.target) for hint in best.values() if hint.parameter is not None}
    hints = [
        hint for hint in best.values() if hint.parameter is not None or (hint.source, hint.target) not in by_parameter
    ]
    return sorted(hints, key=lambda hint: (-hint.confidence, hint.source, hint.parameter or "", hint.target))


def _proposals(hints: Iterable[Hint], tools: Sequence[Tool]) -> Iterator[Proposal]:
    """A proposal of each hint; only the first of an argument is direct."""
    seen: set[tuple[int, str | None]] = set()
    for hint in hints:
        first = hint.parameter is None or (hint.source, hint.parameter) not in seen
        seen.add((hint.source, hint.parameter))
        adverb = "directly" if hint.direct and first else "indirectly"
        yield Proposal(
            source=tools[hint.source].id,
            target=tools[hint.target].id,
            kind=DependencyKind(f"{'tool' if hint.parameter is None else 'parameter'}_{adverb}"),
            parameter=hint.parameter,
            confidence=round(hint.confidence, 3),
            evidence=hint.evidence,
        )


RECIPE = 11
"""Version of the inference; a cache of another version is not used."""
_KEPT = 32


def with_inferred(
    catalog: Catalog,
    *,
    rejected: Collection[tuple[str, str, str | None]] = (),
    trusted: Collection[str] = (),
    cache: Path | None = None,
    seen: Mapping[Seen, int] | None = None,
) -> Catalog:
    """The catalog with inferred dependencies after those that it has.

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
    agents, _ = attach(catalog.agents, [("inference", edges)])
    return Catalog(agents=agents, skills=catalog.skills) if edges else catalog


def _cached(catalog: Catalog, trusted: Sequence[str], folder: Path) -> Sequence[Proposal]:
    digest = hashlib.sha256(f"{RECIPE}\n{trusted}\n{catalog.model_dump_json()}".encode()).hexdigest()
    file = folder / f"{digest[:32]}.json"
    with suppress(CatalogError):
        return read_dependencies(file)
    found = infer_dependencies(catalog, trusted=trusted)
    with suppress(OSError, CatalogError):  # without the file, the next start infers again
        private_folder(folder)
        write_dependencies(found, file)
        for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_KEPT:]:
            old.unlink(missing_ok=True)
    return found
