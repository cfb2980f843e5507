"""What tools can do in the words of a taxonomy: which has what, what a request asks for, and what to make of it."""

from callsheet.retrievers.capabilities.assignment import (
    Assigned,
    Assignments,
    assign_capabilities,
    with_capabilities,
)
from callsheet.retrievers.capabilities.index import CapabilityIndex

__all__ = ["Assigned", "Assignments", "CapabilityIndex", "assign_capabilities", "with_capabilities"]
