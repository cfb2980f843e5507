"""Checks the answers of decision models, and limits the time of waiting for them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

from callsheet.graphs import CallsheetError, shown

T = TypeVar("T")
_MAX_LABEL = 60
_SUM = 0.05


class DecisionError(CallsheetError, RuntimeError):
    """Raised if a decision model gives no usable answer; it has the numbers of tokens that were used nevertheless."""

    input_tokens: int = 0
    output_tokens: int = 0


def shares_of(probabilities: Mapping[str, float], labels: Sequence[str]) -> dict[str, float]:
    """Returns a probability for each label; raises a ``DecisionError`` for an unknown label or a sum that is not 1."""
    unknown = [label for label in probabilities if label not in labels]
    if unknown:
        raise DecisionError(f"the answer has the unknown label {shown(unknown[0], most=_MAX_LABEL)!r}")
    total = math.fsum(probabilities.values())
    if abs(total - 1) > _SUM:
        raise DecisionError(f"the probabilities sum to {total:.3g}, not to 1")
    return {label: probabilities.get(label, 0.0) / total for label in labels}


def within(seconds: float, call: Callable[[], T]) -> T:
    """Runs a call in a new thread and returns its result; after a ``TimeoutError``, the thread is not stopped."""
    result: Future[T] = Future()
    context = copy_context()

    def work() -> None:
        try:
            result.set_result(context.run(call))
        except BaseException as error:  # noqa: BLE001 raised where the result is waited for
            result.set_exception(error)

    threading.Thread(target=work, name="callsheet-decision", daemon=True).start()
    return result.result(timeout=seconds)
