"""What the models of a run used: by role and by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage

from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.graphs import Catalog
from explored import explorer
from kept_runs import USED, Kept


def test_the_page_is_told_the_usage_by_role_and_step_also_of_a_run_that_has_not_ended(
    catalog: Catalog, asked: Callable[..., Any]
) -> None:
    (run,) = asked(explorer(catalog, runs=Kept([USED])), "run", id="t")
    assert run["usage"] == {"calls": 3, "input_tokens": 6_000, "output_tokens": 430, "cached_tokens": 4_000}
    assert [(one["role"], one["calls"]) for one in run["roles"]] == [("planner", 1), ("worker", 2)]
    first, second = run["steps"]
    assert (first["usage"]["input_tokens"], second["usage"]) == (5_200, None)


def test_a_discarded_message_is_counted() -> None:
    usage: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    one, other = AIMessage("", usage_metadata=usage), AIMessage("", usage_metadata=usage)
    total = usage_of([with_usage_of(one, other)], 1.5)
    assert (total.calls, total.input_tokens, total.cached_tokens, total.seconds) == (2, 20, 8, 1.5)
