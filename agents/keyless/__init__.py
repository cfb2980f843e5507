"""Work without a model: plans, arguments, tool choice and answers by rules."""

from callsheet.agents.keyless.filling import Filled, fill
from callsheet.agents.keyless.language.ellipsis import complete_request, one_clause
from callsheet.agents.keyless.rule_answer import compose, not_done
from callsheet.agents.keyless.rule_model import KeylessModel
from callsheet.agents.keyless.rule_planner import Offered, split, unclear_steps

__all__ = [
    "Filled",
    "KeylessModel",
    "Offered",
    "complete_request",
    "compose",
    "fill",
    "not_done",
    "one_clause",
    "split",
    "unclear_steps",
]
