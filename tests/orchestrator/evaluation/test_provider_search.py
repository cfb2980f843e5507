"""The arm in which the provider's own search finds the tools: request bodies in the providers' published forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet import AgentGraphRetriever
from callsheet.graphs import SettingsError, load
from callsheet.orchestrator.apps.evaluation_arms import Arms, recorded
from callsheet.orchestrator.apps.model_evaluation import graded
from callsheet.retrievers import LabelledQuery
from choosing_model import ChoosingModel
from provider_stub import MESSAGE, TEXT, anthropic, claude, function_call, gpt, openai, use

CATALOG = Path(__file__).parents[3] / "examples" / "eval" / "catalog"
REQUEST = "Will it rain in Oslo tomorrow?"
CASE = LabelledQuery("rain", REQUEST, agents=(("weather",),), tools=(("weather/forecast",),))
FORECAST = {"place": "Oslo", "days": "1"}


def claude_found(*names: str) -> list[dict[str, Any]]:
    references = [{"type": "tool_reference", "tool_name": name} for name in names]
    result = {"type": "tool_search_tool_search_result", "tool_references": references}
    asked = {"type": "server_tool_use", "id": "s1", "name": "tool_search_tool_bm25", "input": {"query": "rain"}}
    return [asked, {"type": "tool_search_tool_result", "tool_use_id": "s1", "content": result}]


def gpt_found(*names: str) -> list[dict[str, Any]]:
    tools = [{"type": "function", "name": name, "parameters": {}, "strict": False} for name in names]
    shared = {"call_id": None, "execution": "server", "status": "completed"}
    asked = {"type": "tool_search_call", "id": "tsc", "arguments": {"query": "rain"}, **shared}
    return [asked, {"type": "tool_search_output", "id": "tso", "tools": tools, **shared}]


@pytest.fixture(scope="module")
def arm() -> Callable[[Any], Any]:
    loaded = load(CATALOG)
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    return lambda model: Arms(recorded(loaded), retriever, model).named("search")


async def test_claude_searches_deferred_tools(arm: Any) -> None:
    answers = ([*claude_found("weather_forecast", "weather_air_quality"), *use("weather_forecast", **FORECAST)], TEXT)
    with anthropic(*answers) as (url, bodies, betas):
        attempt = await arm(claude(url)).attempt(REQUEST)
    *deferred, search = bodies[0]["tools"]
    assert search["type"] == "tool_search_tool_bm25_20251119"
    assert len(deferred) > 5
    assert all(tool["defer_loading"] for tool in deferred)
    assert "advanced-tool-use-2025-11-20" in betas[0]
    assert bodies[1]["tools"] == bodies[0]["tools"]
    assert attempt.offered == ("weather/forecast", "weather/air_quality")
    assert [call.tool for call in attempt.calls] == ["weather/forecast"]
    assert (graded(CASE, attempt).cause, attempt.answer, attempt.usage.calls) == ("", "done", 2)


async def test_gpt_searches_deferred_tools(arm: Any) -> None:
    with openai([*gpt_found("weather_forecast"), *function_call("weather_forecast", **FORECAST)], MESSAGE) as (
        url,
        bodies,
    ):
        attempt = await arm(gpt(url)).attempt(REQUEST)
    *deferred, search = bodies[0]["tools"]
    assert search == {"type": "tool_search"}
    assert all(tool["defer_loading"] for tool in deferred)
    assert attempt.offered == ("weather/forecast",)
    assert (graded(CASE, attempt).cause, attempt.answer) == ("", "done")


async def test_a_tool_that_the_search_does_not_find_is_not_retrieved(arm: Any) -> None:
    with anthropic([*claude_found("weather_air_quality"), *TEXT]) as (url, *_):
        assert graded(CASE, await arm(claude(url)).attempt(REQUEST)).cause == "not retrieved"
    with anthropic(TEXT) as (url, *_):
        assert graded(CASE, await arm(claude(url)).attempt(REQUEST)).cause == "not retrieved"


async def test_a_loop_ends_at_the_limit_and_a_dead_provider_is_a_model_error(arm: Any) -> None:
    with anthropic(*(use("weather_air_quality", place=f"Oslo {turn}") for turn in range(9))) as (url, bodies, _):
        attempt = await arm(claude(url)).attempt(REQUEST)
    assert (len(bodies), attempt.usage.calls) == (8, 8)
    assert attempt.stopped == "the limit of 8 model calls"
    assert graded(CASE, await arm(claude("http://127.0.0.1:9")).attempt(REQUEST)).cause == "model error"


def test_other_providers_have_no_search(arm: Any) -> None:
    with pytest.raises(SettingsError, match="anthropic or openai"):
        arm(ChoosingModel(choices={}))
