"""Working without a model: planning, arguments, tool choice and answers by rules, honestly."""

from callsheet.agents.keyless.answer import compose
from callsheet.agents.keyless.arguments import Filled, fill
from callsheet.agents.keyless.model import KeylessModel
from callsheet.agents.keyless.steps import split

__all__ = ["Filled", "KeylessModel", "compose", "fill", "split"]
