"""A circuit breaker: a server that keeps failing is not called for a while."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Kind, Outcome
from callsheet.graphs.text.sanitizing import counted

_FAILURES: frozenset[Kind] = frozenset(("start", "timeout", "crash", "protocol"))


@dataclass(slots=True)
class _Circuit:
    failures: int = 0
    last: str = ""
    until: float = 0.0
    trying: bool = False


class Circuits:
    """Counts consecutive failures by agent. After some it is not called for a pause, then once as a trial.

    Any answer of a tool, an error included, resets the count: its server works.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._circuits: dict[str, _Circuit] = {}

    def barred(self, agent_id: str) -> str:
        """Why the agent must not be called now; empty if it may. After the pause, this starts the trial."""
        circuit = self._circuits.get(agent_id)
        if circuit is None or circuit.failures < self._limits.failures:
            return ""
        if not circuit.trying and self._clock() >= circuit.until:
            circuit.trying = True
            return ""
        return self._said(circuit)

    def told(self, agent_id: str, outcome: Outcome) -> None:
        """Counts the outcome of a call."""
        if outcome.kind == "refused":
            self.given_up(agent_id)
            return
        if outcome.kind not in _FAILURES or (outcome.effect == "reported" and outcome.kind != "protocol"):
            self._circuits.pop(agent_id, None)
            return
        circuit = self._circuits.setdefault(agent_id, _Circuit())
        circuit.failures += 1
        circuit.last, circuit.trying = outcome.error, False
        circuit.until = self._clock() + self._limits.pause

    def given_up(self, agent_id: str) -> None:
        """A call ended without an answer of the server; if it was the trial, there may be another one."""
        if (circuit := self._circuits.get(agent_id)) is not None:
            circuit.trying = False

    def open(self) -> Mapping[str, str]:
        """The agents that must not be called now, and why."""
        now = self._clock()
        return {
            agent_id: self._said(circuit)
            for agent_id, circuit in list(self._circuits.items())
            if circuit.failures >= self._limits.failures and now < circuit.until
        }

    def _said(self, circuit: _Circuit) -> str:
        left = max(0.0, circuit.until - self._clock())
        return (
            f"not called for another {left:.0f} s after {counted(circuit.failures, 'failure')} in a row; "
            f"the last: {circuit.last.splitlines()[0]}"
        )
