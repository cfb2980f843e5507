"""Gates of ``callsheet eval``: ``--fail-under METRIC=LEAST``."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import click

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Gate:
    """A metric with its minimum."""

    metric: str
    least: float


def read_gate(demand: str, known: Collection[str], names: str) -> Gate:
    """The gate of one ``--fail-under``.

    Args:
        demand: ``METRIC=LEAST``.
        known: The metrics that there are.
        names: The same in words, for the error.

    Raises:
        BadParameter: It is malformed, or the metric is unknown.
    """
    metric, _, number = demand.partition("=")
    try:
        least = float(number)
    except ValueError:
        least = math.nan
    if not 0 <= least <= 1:
        raise refused_gate(f"{demand!r} is not METRIC=LEAST with a number from 0 to 1, as {next(iter(known))}=.8")
    if metric.strip() not in known:
        raise refused_gate(f"unknown metric {metric.strip()!r}: {names}")
    return Gate(metric.strip(), least)


def refused_gate(message: str) -> click.BadParameter:
    """The error of ``--fail-under``."""
    return click.BadParameter(message, param_hint="--fail-under")


def failed_gates(gates: Sequence[Gate], value: Callable[[str], float]) -> list[Gate]:
    """The gates whose metric is lower than its minimum, by the metric's value."""
    return [gate for gate in gates if value(gate.metric) < gate.least - _ROUNDING]


def tell_failed(failed: Sequence[Gate], value: Callable[[str], float]) -> None:
    """A line on standard error for each failed gate."""
    for gate in failed:
        click.echo(f"failed: {gate.metric} is {value(gate.metric):.4f}, under {gate.least:g}", err=True)
