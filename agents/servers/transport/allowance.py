"""Limits how much a server may send without being asked."""

from __future__ import annotations

import time
from collections.abc import Callable

MESSAGES = 20_000
MESSAGES_PER_SECOND = 1_000
"""Maximum number of messages, events or lines that a server may send at once, and per second after that."""


class Allowance:
    """A stock of messages or bytes that refills with time; a slow sender never uses it up.

    Args:
        stock: How much may be sent at once.
        per_second: How much of the stock refills in a second.
    """

    def __init__(self, stock: float, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.stock = stock
        self.per_second = per_second
        self._clock = clock
        self._left = stock
        self._when = clock()

    def spend(self, amount: float = 1) -> bool:
        """Takes an amount from the stock; returns False if there is not enough."""
        now = self._clock()
        self._left = min(self.stock, self._left + (now - self._when) * self.per_second)
        self._when = now
        enough = self._left >= amount
        self._left -= amount if enough else 0
        return enough

    def refill(self) -> None:
        """Fills the stock again, for example after an answer."""
        self._left = self.stock

    def __str__(self) -> str:
        """Describes the bound."""
        return f"{self.stock:,} at once and {self.per_second:,} a second"


def allowed_messages() -> Allowance:
    """Returns the allowance of a server for messages, events or lines."""
    return Allowance(MESSAGES, MESSAGES_PER_SECOND)


def allowed_bytes(stock: int) -> Allowance:
    """Returns the allowance of a server for bytes: a twentieth of the stock refills per second."""
    return Allowance(stock, stock // 20)
