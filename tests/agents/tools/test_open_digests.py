"""A call is recognised by what it means, in whatever form its numbers and texts are written."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.registry.checked_call import open_digest

SCHEMA = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "amount": {"type": "number"},
        "currency": {"type": "string", "default": "EUR"},
        "copies": {"type": "integer", "default": 1},
        "urgent": {"type": "boolean", "default": False},
        "lines": {"type": "array"},
    },
}
CALL: dict[str, Any] = {"to": "Zo\u00eb", "amount": 5}


@pytest.mark.parametrize(
    "args",
    [
        {"amount": 5.0, "to": "Zo\u00eb"},
        {**CALL, "to": "Zoe\u0308"},
        {**CALL, "currency": "EUR", "copies": 1.0, "urgent": False},
        {**CALL, "currency": None, "lines": None},
    ],
)
def test_calls_that_mean_the_same_are_one_call(args: dict[str, Any]) -> None:
    assert open_digest("bank/pay", SCHEMA, args) == open_digest("bank/pay", SCHEMA, CALL)


@pytest.mark.parametrize(
    "args",
    [
        {**CALL, "amount": 5.01},
        {**CALL, "amount": "5"},
        {**CALL, "to": "zo\u00eb"},
        {**CALL, "currency": "USD"},
        {**CALL, "urgent": True},
        {**CALL, "urgent": 0},
        {**CALL, "lines": []},
        {"to": "Zo\u00eb"},
    ],
)
def test_calls_that_mean_something_else_are_others(args: dict[str, Any]) -> None:
    assert open_digest("bank/pay", SCHEMA, args) != open_digest("bank/pay", SCHEMA, CALL)
    assert open_digest("bank/refund", SCHEMA, CALL) != open_digest("bank/pay", SCHEMA, CALL)


def test_numbers_within_lists_and_objects_count_by_value() -> None:
    one, other = ({"lines": [{"net": net, "paid": True}]} for net in (100, 1e2))
    assert open_digest("bank/pay", SCHEMA, one) == open_digest("bank/pay", {}, other)
    assert open_digest("bank/pay", SCHEMA, {"lines": [1]}) != open_digest("bank/pay", SCHEMA, {"lines": [True]})
