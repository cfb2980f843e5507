"""Settings for the supervision of a step's calls, including those of a program for the approval of its tools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from callsheet.agents.approval.questions import OFFERED
from callsheet.agents.calls.review import DecisionType
from callsheet.agents.registry.assurance import Assurance
from callsheet.agents.registry.tool_registry import ToolRegistry
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.graphs.catalog.formats.server_config import ApprovalPolicy
from callsheet.graphs.errors import SettingsError, UnknownNameError, near_names
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.graphs.trust.open_calls import CallLedger

InterruptOn = Mapping[str, bool | Mapping[str, Any]]
"""LangChain's ``interrupt_on`` by tool id: True, False, or ``{"allowed_decisions": ["approve", "reject"]}``."""
Reviews = Mapping[str, tuple[DecisionType, ...]]
"""The decisions that a person can make on calls of each tool; if there are none, no question is asked."""


def reviews_of(interrupt_on: InterruptOn | None, known: Collection[str]) -> Reviews:
    """Reads ``interrupt_on``; ``known`` has the ids of all tools.

    Raises:
        UnknownNameError: A tool is not in the catalog: it would be called without the question.
        SettingsError: A value has another form.
    """
    reviews: dict[str, tuple[DecisionType, ...]] = {}
    for tool_id, wanted in (interrupt_on or {}).items():
        if tool_id not in known:
            raise UnknownNameError(f"interrupt_on: no tool {tool_id!r} in the catalog{near_names(tool_id, known)}")
        words = OFFERED["tool_approval"]
        match wanted:
            case bool():
                reviews[tool_id] = words if wanted else ()
            case {"allowed_decisions": [_, *_] as some} if len(wanted) == 1 and set(some) <= set(words):
                reviews[tool_id] = tuple(some)
            case _:
                raise SettingsError(
                    f"interrupt_on, {tool_id!r}: write True, False or {{'allowed_decisions': [...]}} with some of "
                    f"{', '.join(words)}, not {wanted!r}"
                )
    return reviews


@dataclass(frozen=True, slots=True)
class Supervision:
    """The settings by which the calls of one step are supervised.

    Attributes:
        notice: Whether the model learns that a person has changed its arguments.
        allow: Ids of tools that need no approval, because a person named them for this run.
        confirms: Whether a person must confirm every call that is not known to be harmless, whatever the policy.
        reviews: What the program says of tools by ``interrupt_on``.
        standing: The tools that the user has approved permanently; None if permanent approvals are not possible here.
        ledger: The user's open calls; None: calls are not recorded while they are under way.
    """

    step_id: str
    policy: ApprovalPolicy
    registry: ToolRegistry
    secrets: RunSecrets = field(default_factory=RunSecrets)
    notice: bool = True
    allow: frozenset[str] = frozenset()
    confirms: bool = False
    reviews: Reviews = field(default_factory=dict)
    standing: StandingApprovals | None = None
    ledger: CallLedger | None = None

    def allows(self, tool_id: str, assured: Assurance) -> bool:
        """Returns whether calls of a tool are allowed by name: for this run, in the catalog, or permanently.

        ``assured`` is what is known about the tool. Reads a file.
        """
        if tool_id in self.reviews:
            return not self.reviews[tool_id]
        if tool_id in self.allow or assured.allowed:
            return True
        return self.standing is not None and self.standing.holds(tool_id, self.registry.pin(tool_id))
