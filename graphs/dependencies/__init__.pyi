from .attaching import attach as attach, decide as decide
from .dependency_rules import Rule as Rule, Selector as Selector
from .observation import (
    CallRecord as CallRecord,
    ObservationLog as ObservationLog,
    Seen as Seen,
    observed as observed,
    observed_proposals as observed_proposals,
)
from .outcomes import (
    OutcomeLog as OutcomeLog,
    Outcomes as Outcomes,
    following as following,
    outcomes_of as outcomes_of,
)
from .proposals import (
    DependencyFile as DependencyFile,
    Proposal as Proposal,
    combine as combine,
    merge_proposals as merge_proposals,
    parse_dependencies as parse_dependencies,
    read_dependencies as read_dependencies,
    without_cycles as without_cycles,
    write_dependencies as write_dependencies,
)
