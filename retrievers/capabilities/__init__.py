"""What tools can do in the words of a taxonomy: which has what, what a request asks for, and what to make of it."""

from callsheet.retrievers.capabilities.assignment import (
    Assigned,
    Assignments,
    assign_capabilities,
    with_capabilities,
)
from callsheet.retrievers.capabilities.by_model import AssignmentError, assign_by_model
from callsheet.retrievers.capabilities.discovery import Discovery, discover
from callsheet.retrievers.capabilities.index import CapabilityIndex

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
