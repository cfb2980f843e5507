"""Twenty conversations: what the models are sent, and what becomes of each turn, with a model and without.

``conversations.json`` has the turns. Over the demo's agents all calls are real. A turn ``says`` something; a model
makes ``meant`` of it, a planner the ``step``, and a worker then makes the ``call``. Without a model, a turn either ends
in the same call (``rules_call`` where a text differs), or does nothing and says what it ``lacks``. Over the manifests
of a fleet, which nobody can call, the planner must be told of these ``agents``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor
from callsheet.graphs import load
from callsheet.retrievers import AgentGraphRetriever
from deciding_model import DecidingModel
from request_runs import ROOT, Demo, demo

CONVERSATIONS = json.loads((Path(__file__).parent / "conversations.json").read_text("utf-8"))
Turn = Mapping[str, Any]


def conversations(place: str) -> pytest.MarkDecorator:
    told = CONVERSATIONS[place]
    return pytest.mark.parametrize("turns", [one["turns"] for one in told], ids=[one["name"] for one in told])


def meant(turn: Turn) -> str:
    return str(turn.get("meant", turn["says"]))


def step(turn: Turn) -> str:
    """What a planner makes of a turn."""
    return str(turn.get("step", meant(turn)))


def scripted(turns: Sequence[Turn]) -> DecidingModel:
    """A model that understands, plans and works as these turns say, from nothing but the text that it is shown."""
    by_request = {meant(turn): turn for turn in turns}
    by_step = {step(turn): turn for turn in turns}
    by_message = {turn["says"]: meant(turn) for turn in turns}

    def plan(text: str) -> dict[str, Any]:
        request = text.partition("\n")[0]
        reply = by_request[request].get("reply")
        return {"steps": [], "answer": reply} if reply else {"steps": [{"id": "1", "text": step(by_request[request])}]}

    return DecidingModel(
        condense=lambda text: by_message[text.rpartition("\n")[2]],
        plan=plan,
        work=lambda text: by_step[text.partition("\n")[0]]["call"],
    )


def test_there_are_twenty_of_two_to_four_turns() -> None:
    turns = [one["turns"] for place in CONVERSATIONS.values() for one in place]
    assert len(turns) == 20
    assert all(2 <= len(one) <= 4 for one in turns)


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    if not (ROOT / ".venv/.demo").exists():
        pytest.skip("the demo's MCP servers are not set up: run `make test`")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        with demo(tmp_path_factory.mktemp("conversations")) as started:
            yield started


@pytest.mark.server
@conversations("demo")
def test_what_models_are_sent_over_the_demo(agents: Demo, turns: Sequence[Turn]) -> None:
    model = scripted(turns)
    runs = agents.converse([turn["says"] for turn in turns], model=model, planning="once")
    assert [ran.state["request"] for ran in runs] == list(map(meant, turns))
    assert [ran.answer for ran in runs if not ran.done] == []
    for ran, turn in zip(runs, turns, strict=True):
        assert calls(ran) == ([plain(turn["call"])] if "call" in turn else [])
    planner = model.told("planner")
    assert [text.partition("\n")[0] for text in planner] == list(map(meant, turns))
    for turn, text in zip(turns, planner, strict=True):
        assert "call" not in turn or plain(turn["call"])[0] in text
    sent = [text.partition("\n")[0] for text in model.told("worker")[::2]]
    assert sent == [step(turn) for turn in turns if "call" in turn]
    check_condenser(model, turns)


def check_condenser(model: DecidingModel, turns: Sequence[Turn]) -> None:
    """It is shown all that was said before, the answers too, and is asked about the last message."""
    told = model.told("condenser")
    assert len(told) == len(turns) - 1
    for number, text in enumerate(told, 1):
        assert [turn["says"] for turn in turns[:number] if f"User: {turn['says']}\n" not in text] == []
        assert text.endswith(turns[number]["says"])
        assert turns[number].get("shown", "") in text


def calls(ran: Any) -> list[Any]:
    """Tool and arguments of each call, all of which were answered."""
    made = [call for step in ran.steps() for call in step["calls"]]
    assert [call["error"] for call in made if call["error"]] == []
    return [[call["tool"].rpartition("/")[2], call["args"]] for call in made]


def plain(call: Sequence[Any]) -> list[Any]:
    """A call without the agent's name, which a tool has for a model if another agent has a tool of that name."""
    return [call[0].removeprefix("time_"), call[1]]


@pytest.fixture(scope="module")
def fleet(shared: Path) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(load(shared / "fleet" / "manifests"), index=":memory:")


@conversations("fleet")
def test_what_the_planner_is_sent_over_a_fleet(fleet: AgentGraphRetriever, turns: Sequence[Turn]) -> None:
    model = scripted(turns)
    workflow = create_supervisor(fleet.catalog, retriever=fleet, model=model, settings=Settings(planning="once"))
    app: Any = workflow.compile(checkpointer=InMemorySaver(), interrupt_before=["dispatch"])
    config: Any = {"configurable": {"thread_id": "1"}}
    for turn in turns:
        app.invoke({"messages": [{"role": "user", "content": turn["says"]}]}, config)
        plan = app.get_state(config).values["plan"]
        assert [step["text"] for step in plan["steps"]] == ([] if "reply" in turn else [meant(turn)])
        request, _, outline = model.told("planner")[-1].partition("\n")
        assert request == meant(turn)
        assert [agent for agent in turn["agents"] if f"- {agent}" not in outline] == []
    assert len(model.told("condenser")) == len(turns) - 1
    assert model.told("worker") == []
