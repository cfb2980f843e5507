"""Proposes dependencies from hints: one per argument and tool, the best target of each argument first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from callsheet.graphs import Catalog, DependencyKind, SettingsError, Tool
from callsheet.graphs.dependencies import Proposal, Seen, combine, observed_proposals, without_cycles
from callsheet.retrievers.index.embedding.providers import Embedder
from callsheet.retrievers.inference.matching import Embed, Ends, Hint, matches
from callsheet.retrievers.inference.structural_signals import hints_by_rules
from callsheet.retrievers.inference.term_similarity import Floats

LEAST = 0.5
_AT_ONCE = 256
Progress = Callable[[int, int], None]


def infer_dependencies(
    catalog: Catalog,
    embeddings: Embedder,
    *,
    least: float = LEAST,
    seen: Mapping[Seen, int] | None = None,
    progress: Progress | None = None,
) -> tuple[Proposal, ...]:
    """Proposes dependencies from names, schemas and descriptions, and from observations.

    Nothing is learned from the declared dependencies of a catalog. Of several tools that return a value, only the
    likeliest is proposed as a direct dependency. Dependencies that a person declared or accepted are not proposed.

    Args:
        catalog: The tools.
        embeddings: The embedder; each text is embedded once.
        least: Minimum confidence, above 0 and below 1; observations are proposed with any confidence.
        seen: How often an argument came from another tool's result; see ``ObservationLog``.
        progress: Called with the number of processed texts and arguments and the number of all.

    Returns:
        The proposals by confidence, without cycles of direct dependencies.

    Raises:
        SettingsError: ``least`` is out of range.
    """
    if not 0 < least < 1:
        raise SettingsError(f"least must be above 0 and below 1, not {least!r}")
    tools = list(catalog.tools.values())
    ends = Ends.of(tools)
    hints = [*hints_by_rules(ends), *matches(ends, embedding(embeddings, progress), least=least)]
    best = _best(hint for hint in hints if hint.confidence >= least)
    proposals = [_proposal(hint, tools, first=first) for hint, first in _with_first(best)]
    known = {(tool.id, edge.tool) for tool in tools for edge in tool.depends_on if edge.holds}
    edges = combine(proposals, observed_proposals(seen or {}, catalog))
    return without_cycles([edge for edge in edges if (edge.source, edge.target) not in known], catalog)


def embedding(embeddings: Embedder, progress: Progress | None = None) -> Embed:
    """An embedder as a function from texts to ``(n, d) float32`` with rows of unit length, in batches."""

    def embed(texts: Sequence[str]) -> Floats:
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        vectors = np.zeros((len(texts), 0), np.float32)
        for start in range(0, len(order), _AT_ONCE):
            places = order[start : start + _AT_ONCE]
            block = np.asarray(embeddings.embed_documents([texts[place] for place in places]), np.float32)
            if not start:
                vectors = np.zeros((len(texts), block.shape[1]), np.float32)
            vectors[places] = block / np.maximum(np.linalg.norm(block, axis=1, keepdims=True), 1e-9)
            if progress:
                progress(min(start + _AT_ONCE, len(texts)), len(texts))
        return vectors

    return embed


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


def _with_first(hints: Iterable[Hint]) -> Iterable[tuple[Hint, bool]]:
    """Each hint, and whether it is the first for its argument."""
    seen: set[tuple[int, str | None]] = set()
    for hint in hints:
        yield hint, hint.parameter is None or (hint.source, hint.parameter) not in seen
        seen.add((hint.source, hint.parameter))


def _proposal(hint: Hint, tools: Sequence[Tool], *, first: bool) -> Proposal:
    adverb = "directly" if hint.direct and first else "indirectly"
    return Proposal(
        source=tools[hint.source].id,
        target=tools[hint.target].id,
        kind=DependencyKind(f"{'tool' if hint.parameter is None else 'parameter'}_{adverb}"),
        parameter=hint.parameter,
        confidence=round(hint.confidence, 3),
        evidence=hint.evidence,
    )
