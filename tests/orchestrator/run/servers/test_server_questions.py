"""Questions that a server asks in the middle of a call are questions of the run, where its protocol lets them wait."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.calls.review import decision_on, flat
from callsheet.graphs import load
from scripted_model import ScriptedModel, calls, ended

pytestmark = pytest.mark.server
GATEWAY = Path(__file__).parents[2] / "server" / "gateway"
THREAD: Any = {"configurable": {"thread_id": "1"}}
ORDER: Any = {"messages": [HumanMessage("Order a shirt")]}


def app_of(folder: Path, script: str, *, trusted: bool = True, **settings: Any) -> Any:
    """A supervisor whose worker orders a shirt once."""
    config = folder / "mcp.json"
    args = [str(GATEWAY / script), str(folder / "log")]
    server = {"command": sys.executable, "args": args, "callsheet": {"trusted": trusted}}
    config.write_text(json.dumps({"mcpServers": {"shop": server}}))
    worker = ScriptedModel(replies=[calls("shop_order"), lambda told: ended(told[-1])])
    options = Settings(planning="none", allow=("shop/order",), **settings)
    workflow = create_supervisor(load(str(config), yes=True), worker_model=worker, settings=options)
    return workflow.compile(checkpointer=InMemorySaver())


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize(("answer", "said"), [("edit", "accept: XL"), ("reject", "no size: decline")])
async def test_a_question_of_a_server_waits_for_the_person_and_its_call_goes_on_then(
    tmp_path: Path, answer: Any, said: str, *, trusted: bool
) -> None:
    app = app_of(tmp_path, "asking_server.py", trusted=trusted)
    state = await app.ainvoke(ORDER, THREAD)
    (asked,) = state["__interrupt__"]
    assert flat(asked.value)["description"] == "Step 1: the server of 'shop' asks: Which size?"
    given = {"args": {"size": "XL"}} if answer == "edit" else {}
    state = await app.ainvoke(Command(resume={asked.id: decision_on(answer, asked.value, **given)}), THREAD)
    (result,) = state["results"].values()
    (call,) = result["calls"]
    assert (call["output"], call["error"]) == (said, "")


async def test_where_nobody_can_be_asked_the_call_ends_with_the_servers_own_word(tmp_path: Path) -> None:
    state = await app_of(tmp_path, "asking_server.py", approval="never").ainvoke(ORDER, THREAD)
    (result,) = state["results"].values()
    assert "licitation" in result["calls"][0]["error"]


async def test_a_server_whose_call_would_have_to_wait_is_not_told_of_the_person(tmp_path: Path) -> None:
    state = await app_of(tmp_path, "old_asking_server.py").ainvoke(ORDER, THREAD)
    assert "__interrupt__" not in state
    assert set((tmp_path / "log").read_text().splitlines()) == {"['extensions']"}
