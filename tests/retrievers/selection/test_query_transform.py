"""A query that a model rewrites before the search."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage

from callsheet.retrievers import AgentGraphRetriever, transform_query
from callsheet.retrievers.decisions.answers import DecisionError
from scripted import catalog_of
from scripted_model import ScriptedModel


def test_the_rewritten_query_is_searched_with() -> None:
    model = ScriptedModel(replies=[AIMessage(" Convert a length. Send a message. ")])
    retriever = AgentGraphRetriever.from_catalog(catalog_of(units_convert="", mail_send=""), index=":memory:")
    selection = retriever.select("mail Anna 3 miles in km", query_model=model)
    assert selection.query == selection.trace.units[0].text == "Convert a length. Send a message."
    assert model.shown[0]["messages"][-1].text == "mail Anna 3 miles in km"
    assert retriever.select("mail Anna").query == "mail Anna"


@pytest.mark.parametrize(
    ("reply", "error"), [(ValueError("no key"), "failed: ValueError: no key"), (AIMessage("  "), "gave no text")]
)
def test_a_model_that_fails_is_an_error(reply: object, error: str) -> None:
    with pytest.raises(DecisionError, match=error):
        transform_query("mail Anna", ScriptedModel(replies=[reply]))
