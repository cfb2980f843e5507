"""Dependencies that nobody wrote into the catalog: rules, proposals, and what was seen while running."""

from callsheet.graphs.inference.attach import attach
from callsheet.graphs.inference.circles import without_circles
from callsheet.graphs.inference.observed import CallRecord, ObservationLog, Seen, observed, observed_proposals
from callsheet.graphs.inference.proposals import (
    DependencyFile,
    Proposal,
    combine,
    merge_proposals,
    parse_dependencies,
    read_dependencies,
    write_dependencies,
)
from callsheet.graphs.inference.rules import Rule, Selector

__all__ = [
    "CallRecord",
    "DependencyFile",
    "ObservationLog",
    "Proposal",
    "Rule",
    "Seen",
    "Selector",
    "attach",
    "combine",
    "merge_proposals",
    "observed",
    "observed_proposals",
    "parse_dependencies",
    "read_dependencies",
    "without_circles",
    "write_dependencies",
]
