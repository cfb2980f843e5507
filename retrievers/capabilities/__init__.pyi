from .capability_index import (
    Assigned as Assigned,
    Assignments as Assignments,
    CapabilityIndex as CapabilityIndex,
    assign_capabilities as assign_capabilities,
    with_capabilities as with_capabilities,
)
