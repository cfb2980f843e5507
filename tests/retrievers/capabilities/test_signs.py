"""Words that tell a capability."""

from __future__ import annotations

import pytest

from callsheet.graphs import Tool
from callsheet.retrievers.capabilities.capability_index import Signs
from known import capability

SIGNS = Signs([capability("mail", None, "send", "mail"), capability("post", None, "send", "web search")])


def told(tool: Tool) -> list[float]:
    return [round(float(x), 3) for x in SIGNS.of_tool(tool)]


def test_a_sign_counts_by_where_it_stands_and_how_many_share_it() -> None:
    assert told(Tool(agent="a", name="send_it")) == [0.5, 0.5]
    assert told(Tool(agent="a", name="mail_it")) == [1.0, 0.0]
    assert told(Tool(agent="a", name="x", description="Goes by mail. Then it searches.")) == [0.6, 0.0]
    schema = {"type": "object", "properties": {"mailAddress": {"type": "string"}}}
    assert told(Tool(agent="a", name="x", input_schema=schema)) == [0.4, 0.0]
    assert told(Tool(agent="a", name="send_mail")) == [1.0, 0.5]


def test_a_phrase_counts_where_all_of_it_stands_together() -> None:
    assert told(Tool(agent="a", name="webSearch")) == [0.0, 1.0]
    assert told(Tool(agent="a", name="search_web")) == [0.0, 0.0]


def test_words_are_stemmed() -> None:
    assert told(Tool(agent="a", name="x", description="Mailing and sending.")) == [0.6, 0.3]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mail it to Ada and Bob and Cy", [1.0, 0.0]),
        ("write it down for me now and then mail it", [0.6, 0.0]),
        ("", [0.0, 0.0]),
        ("邮件", [0.0, 0.0]),
        ("\u202e" * 50, [0.0, 0.0]),
    ],
)
def test_in_a_request_the_first_words_count_more(text: str, found: list[float]) -> None:
    assert [round(float(x), 3) for x in SIGNS.of_request(text)] == found


def test_a_huge_text_is_not_read_to_its_end() -> None:
    assert SIGNS.of_request("x " * 1_000_000 + "mail").tolist() == [0.0, 0.0]
