"""A model whose endpoint is down: it is named once, with its address, and nothing is tried."""

from __future__ import annotations

import pytest
from langchain.chat_models import init_chat_model
from langchain_core.messages import HumanMessage

from callsheet import Settings, create_supervisor
from callsheet.agents import ModelError
from callsheet.agents.models.chat_models import model_answer
from small import small_catalog

ADDRESS = "http://127.0.0.1:9/v1"  # the port of a service that discards, which nothing serves here


@pytest.fixture(autouse=True)
def endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")


@pytest.mark.parametrize("planning", ["auto", "none"])
def test_an_endpoint_that_is_down_is_named_once_with_its_address(planning: str) -> None:
    model = init_chat_model("openai:x", base_url=ADDRESS.replace("//", "//user:word@"), max_retries=0)
    workflow = create_supervisor(small_catalog(), model=model, settings=Settings.model_validate({"planning": planning}))
    state = workflow.compile().invoke({"messages": [HumanMessage("Forecast for Oslo and 3 miles in km")]})
    answer = state["messages"][-1].text
    assert answer.count(f"the model cannot be reached at {ADDRESS}/") == 1
    assert "(connection refused): start its server, or correct its address" in answer
    assert "user" not in answer
    assert "word" not in answer
    assert state["results"] == {} or planning == "none"


async def test_an_error_that_is_among_its_own_causes_is_told_once() -> None:
    """A client that keeps an error and raises it again makes such a circle."""
    error, later = RuntimeError("no credit"), ValueError("raised while the first was handled")
    error.__context__ = later
    later.__context__ = error

    async def answer() -> None:
        raise error

    with pytest.raises(ModelError, match="RuntimeError: no credit"):
        await model_answer(answer())
