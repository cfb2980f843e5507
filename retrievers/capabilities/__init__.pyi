from .assignment import (
    Assigned as Assigned,
    Assignments as Assignments,
    assign_capabilities as assign_capabilities,
    with_capabilities as with_capabilities,
)
from .capability_index import CapabilityIndex as CapabilityIndex
from .discovery import Discovery as Discovery, discover as discover
from .model_assignment import AssignmentError as AssignmentError, assign_by_model as assign_by_model
