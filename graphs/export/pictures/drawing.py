"""How kinds of dependencies are called, and which ones nobody has reviewed."""

from __future__ import annotations

from collections.abc import Mapping

from callsheet.graphs.catalog.model import DependencyKind, Provenance

KINDS: Mapping[DependencyKind, tuple[str, str]] = {
    DependencyKind.TOOL_DIRECTLY: ("td", "needs the tool"),
    DependencyKind.TOOL_INDIRECTLY: ("ti", "may need the tool"),
    DependencyKind.PARAMETER_DIRECTLY: ("pd", "needs it for a parameter"),
    DependencyKind.PARAMETER_INDIRECTLY: ("pi", "may need it for a parameter"),
}
"""The CSS class of a dependency's line, and its meaning."""
UNREVIEWED = frozenset({Provenance.PROPOSED, Provenance.OBSERVED})
