"""Pauses calls of agents that have failed repeatedly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Kind, Outcome
from callsheet.agents.calls.refusal import Refusal
from callsheet.graphs.text.messages import counted

_FAILURES: frozenset[Kind] = frozenset(("start", "timeout", "crash", "protocol"))


class Circuits:
    """Counts consecutive failures by agent; after some of them, the agent is not called for a while.

    Any answer of a tool, even an error, resets the count, because it shows that the server works.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        # Agent -> failures in a row, the error of the last one, and the end of the pause.
        self._failures: dict[str, tuple[int, str, float]] = {}

    def refusal(self, agent_id: str) -> Refusal | None:
        """Returns why the agent must not be called now; None if it may."""
        number, last, until = self._failures.get(agent_id, (0, "", 0.0))
        left = until - self._clock()
        if number < self._limits.failures or left <= 0:
            return None
        failures = counted(number, "failure")
        return Refusal(f"not called for another {left:.0f} s after {failures} in a row; the last: {last}")

    def told(self, agent_id: str, outcome: Outcome) -> None:
        """Takes the outcome of a call: counts a failure of the server, or resets the count."""
        if outcome.kind not in _FAILURES or (outcome.effect == "reported" and outcome.kind != "protocol"):
            if outcome.kind != "refused":
                self._failures.pop(agent_id, None)
        else:
            number = self._failures[agent_id][0] + 1 if agent_id in self._failures else 1
            self._failures[agent_id] = number, outcome.error, self._clock() + self._limits.pause

    def open(self) -> Mapping[str, str]:
        """Returns the agents that must not be called now, with the reasons."""
        # Those of single users (``CallRequest.circuit``) are nobody else's.
        refusals = {agent: self.refusal(agent) for agent in list(self._failures) if "\0" not in agent}
        return {agent: refusal.reason for agent, refusal in refusals.items() if refusal}
