"""What tools can do in the words of a taxonomy: which has what, what a request asks for, and what to make of it."""

from callsheet.retrievers.capabilities.assignment import (
    Assigned,
    Assignments,
    assign_capabilities,
    with_capabilities,
)
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.capabilities.discovery import Discovery, discover
from callsheet.retrievers.capabilities.model_assignment import AssignmentError, assign_by_model

__all__ = [
    "Assigned",
    "AssignmentError",
    "Assignments",
    "CapabilityIndex",
    "Discovery",
    "assign_by_model",
    "assign_capabilities",
    "discover",
    "with_capabilities",
]
