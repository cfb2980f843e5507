"""A2A endpoints with cards and answers of every sort: nothing is sent to another host, nor under a changed card."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, strategies as st
from starlette.responses import Response

from a2a_server import answering
from callsheet import A2AAgent, ToolRegistry
from callsheet.agents import Limits
from callsheet.graphs import load
from fuzzing import anything, fuzzed, mutated
from servers import HANG
from stage import sound

LIMITS = Limits(start=HANG, call=2, message=1_000_000, output=20_000)
ELSEWHERE = "{elsewhere}"
CARD = {
    "name": "clerk",
    "description": "Works in an office.",
    "version": "1",
    "supportedInterfaces": [
        {"url": "{here}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
        {"url": ELSEWHERE, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "capabilities": {"streaming": False},
    "skills": [{"id": "forms", "name": "Forms", "description": "Files forms.", "tags": ["office"]}],
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
}
DONE = {"state": "TASK_STATE_COMPLETED", "message": {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}
MADE = [{"artifactId": "a", "parts": [{"text": "filed"}, {"data": {"a": 1}}, {"raw": "AAAA", "filename": "f"}]}]
TASK = {"id": "1", "contextId": "c", "status": DONE, "artifacts": MADE}
ANSWER = {"jsonrpc": "2.0", "id": "1", "result": {"task": TASK}}
AWAY = {**CARD, "supportedInterfaces": CARD["supportedInterfaces"][1:]}
cards = mutated(CARD) | mutated(AWAY) | anything
answers = mutated(ANSWER).map(json.dumps) | anything.map(json.dumps) | st.binary(max_size=60)
SAID = {"SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"}


class Shown(Response):
    """A card that is what it says now."""

    media_type = "application/json"


@pytest.fixture
def elsewhere() -> Iterator[socket.socket]:
    """A host that a card names, and nobody may go to."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.setblocking(False)
        yield door


@given(card=cards, later=st.none() | cards, answer=answers)
def dealt_with(runner: asyncio.Runner, elsewhere: socket.socket, card: Any, later: Any, answer: Any) -> None:
    other = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"

    def placed(document: Any) -> str:
        return json.dumps(document).replace(ELSEWHERE, other)

    async def example() -> None:
        shown = Shown(placed(card))
        with answering(shown, lambda _: Response(answer, media_type="application/json")) as (url, sent):
            loaded = await asyncio.to_thread(load, {"clerk": A2AAgent(url)})
            assert bool(loaded.catalog.tools) != bool(loaded.problems)
            assert [what for what, _ in sent] == ["card"]
            shown.body = placed(card if later is None else later).encode()
            registry = ToolRegistry.from_catalog(loaded, limits=LIMITS)
            for tool in registry.bind(list(loaded.catalog.tools), "run").values():
                arguments = {"request": "file a form"}
                message = await tool.ainvoke({"type": "tool_call", "name": tool.name, "args": arguments, "id": "1"})
                sound(message)
                methods = [what["method"] for what, _ in sent if what != "card"]
                assert set(methods) <= SAID
                assert sum(method.startswith("Send") for method in methods) <= 1
                assert not methods or told(card) == told(card if later is None else later)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()

    runner.run(example())


def told(card: Any) -> Any:
    """What of a card a person accepted, so far as a change of it must not be used: what it is for."""
    return card.get("description", "") if isinstance(card, dict) else None


def test_a_card_is_used_as_it_was_accepted_or_not_at_all(elsewhere: socket.socket) -> None:
    with asyncio.Runner() as runner:
        fuzzed(30)(dealt_with)(runner, elsewhere)
