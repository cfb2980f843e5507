"""A catalog with the dependencies that inference proposes, cached by its content."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from callsheet.graphs import Catalog, CatalogError
from callsheet.graphs.dependencies import DependencyFile, Proposal, Seen, attach, read_dependencies, write_dependencies
from callsheet.graphs.storage import private_folder
from callsheet.retrievers.inference.dependency_proposals import infer_dependencies, with_observed

RECIPE = 2
"""Version of the rules of inference; a cache of another version is not used."""
_KEPT = 32


def with_inferred(
    catalog: Catalog,
    *,
    rejected: Collection[tuple[str, str, str | None]] = (),
    cache: Path | None = None,
    seen: Mapping[Seen, int] | None = None,
) -> Catalog:
    """The catalog with inferred dependencies after those that it has.

    Their provenance is ``proposed``, or ``observed`` where calls took an argument from the other tool's result.

    Args:
        catalog: The agents and tools.
        rejected: Source, target and parameter of each dependency that a person rejected.
        cache: A folder for what was inferred, a file for each content of a catalog; None: nothing is stored.
        seen: Observations of earlier runs, as in ``infer_dependencies``.
    """
    proposals = infer_dependencies(catalog) if cache is None else _cached(catalog, cache)
    if seen:
        proposals = with_observed(proposals, seen, catalog)
    edges = tuple(edge for edge in proposals if edge.key not in rejected)
    agents, _ = attach(catalog.agents, [("inference", DependencyFile(edges=edges))])
    return Catalog(agents=agents, skills=catalog.skills) if edges else catalog


def _cached(catalog: Catalog, folder: Path) -> Sequence[Proposal]:
    digest = hashlib.sha256(f"{RECIPE}\n{catalog.model_dump_json()}".encode()).hexdigest()
    file = folder / f"{digest[:32]}.json"
    with suppress(CatalogError):
        return read_dependencies(file).edges
    found = infer_dependencies(catalog)
    with suppress(OSError, CatalogError):  # without the file, the next start infers again
        private_folder(folder)
        write_dependencies(DependencyFile(edges=found), file)
        for old in sorted(folder.glob("*.json"), key=lambda path: -path.stat().st_mtime)[_KEPT:]:
            old.unlink(missing_ok=True)
    return found
