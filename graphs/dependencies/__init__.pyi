from .dependency_files import (
    Proposal as Proposal,
    attach as attach,
    combine as combine,
    decide as decide,
    merge_proposals as merge_proposals,
    parse_dependencies as parse_dependencies,
    read_dependencies as read_dependencies,
    without_cycles as without_cycles,
    write_dependencies as write_dependencies,
)
from .observation import (
    ObservationLog as ObservationLog,
    OutcomeLog as OutcomeLog,
    Outcomes as Outcomes,
    Seen as Seen,
    following as following,
    observed as observed,
    observed_proposals as observed_proposals,
    outcomes_of as outcomes_of,
)
