"""Requirement 7: what is not known to be harmless waits for a person; hints only tighten; an approval is for one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.approval import call_app
from callsheet.agents.registry.checked_call import call_digest
from callsheet.graphs import Policy, load
from fleet import Fleet, definition
from scripted_model import ScriptedModel, calls

REQUEST = "repair the roof of the house"
THREAD: Any = {"configurable": {"thread_id": "1"}}
READS, HARMS = {"readOnlyHint": True}, {"destructiveHint": True}
NO_HARM = {"destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
TRUSTED, UNASKED, ASKED = {"trusted": True}, {"approval": "never"}, {"approval": "always"}


def repairs(**hints: Any) -> dict[str, Any]:
    made: dict[str, Any] = definition(
        "repair", "Repairs the roof of a house.", **({"annotations": hints} if hints else {})
    )
    return made


def app_of(fleet: Any, memory: InMemorySaver, *, policy: Policy | None = None, approval: Any = "ask") -> Any:
    model = ScriptedModel(replies=[calls("a_repair", x="roof"), AIMessage("Done.")])
    loaded = load(fleet.config, yes=True, policy=policy)
    settings = Settings(approval=approval)
    workflow = create_supervisor(loaded, worker_model=model, settings=settings, policy=policy)
    return workflow.compile(checkpointer=memory)


def asked(state: Any) -> list[Any]:
    return list(state.get("__interrupt__", []))


@pytest.mark.parametrize(
    ("hints", "terms", "why"),
    [
        ({}, {}, "it is not marked as read-only"),
        (READS, {}, "the server is not trusted"),
        ({**READS, **NO_HARM}, {}, "the server is not trusted"),
        (NO_HARM, {}, "it is not marked as read-only"),
        ({}, TRUSTED, "it is not marked as read-only"),
        (NO_HARM, TRUSTED, "it is not marked as read-only"),
        (HARMS, TRUSTED, "may delete or overwrite something"),
        ({**READS, **HARMS}, TRUSTED, "although it is also marked as read-only"),
        ({"readOnlyHint": "true"}, TRUSTED, "it is not marked as read-only"),
        (READS, {**TRUSTED, **ASKED}, "This tool is set to ask before every call."),
        (READS, TRUSTED, ""),
        ({}, UNASKED, ""),
        (HARMS, UNASKED, ""),
    ],
)
async def test_a_call_is_asked_about_by_its_hints_and_the_trust_in_its_server(
    fleet: Fleet, hints: Any, terms: Any, why: str
) -> None:
    fleet.serve("a", repairs(**hints), entry={"callsheet": terms} if terms else None)
    state = await app_of(fleet, InMemorySaver()).ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    found = asked(state)
    assert (fleet.calls("a") == []) is bool(why)
    assert bool(found) is bool(why)
    assert not why or why in found[0].value["why"]


async def test_a_policy_may_trust_a_server_too(fleet: Fleet) -> None:
    fleet.serve("a", repairs(**READS))
    policy = Policy(default="allow", trust=("a",))
    state = await app_of(fleet, InMemorySaver(), policy=policy).ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    assert (asked(state), fleet.calls("a")) == ([], ["repair"])


async def test_a_rejected_call_changes_nothing(fleet: Fleet) -> None:
    fleet.serve("a", repairs())
    app = app_of(fleet, InMemorySaver())
    state = await app.ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    sent = fleet.bytes_sent("a")
    state = await app.ainvoke(Command(resume={found.id: {"type": "reject"} for found in asked(state)}), THREAD)
    assert (fleet.bytes_sent("a"), fleet.calls("a")) == (sent, [])
    assert state["results"]["1"]["status"] == "failed"


async def test_an_approval_is_bound_to_server_tool_definition_and_arguments(fleet: Fleet) -> None:
    hashes = set()
    for name, made, args in (
        ("a", repairs(), {"x": "roof"}),
        ("b", repairs(), {"x": "roof"}),
        ("a", {**repairs(), "title": "Repairs"}, {"x": "roof"}),
        ("a", repairs(), {"x": "cellar"}),
    ):
        fleet.serve(name, made)
        registry = ToolRegistry.from_catalog(
            load(fleet.config, yes=True, pins=str(fleet.folder / f"{len(hashes)}.json"))
        )
        hashes.add(call_digest(f"{name}/repair", registry.pin(f"{name}/repair"), args))
    assert len(hashes) == 4


async def test_an_approval_of_another_definition_is_asked_for_again(fleet: Fleet) -> None:
    """The tool was changed, and the change accepted, while the question waited."""
    memory, pins = InMemorySaver(), fleet.folder / "pins.json"
    fleet.serve("a", repairs())
    first = load(fleet.config, yes=True, pins=str(pins))
    model = ScriptedModel(replies=[calls("a_repair", x="roof"), AIMessage("Done.")])
    settings = Settings()
    workflow = create_supervisor(first, worker_model=model, settings=settings)
    state = await workflow.compile(checkpointer=memory).ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    (question,) = asked(state)
    fleet.serve("a", {**repairs(), "title": "Tears it down"})
    pins.unlink()
    changed = create_supervisor(load(fleet.config, yes=True, pins=str(pins)), worker_model=model, settings=settings)
    app = changed.compile(checkpointer=memory)
    state = await app.ainvoke(Command(resume={question.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == []
    (again,) = asked(state)
    assert "definition has changed since this was asked" in again.value["problem"]
    assert again.value["hash"] != question.value["hash"]
    await app.ainvoke(Command(resume={again.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == ["repair"]


async def test_an_approval_expires(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Approved, but not sent before the approval had grown old."""
    fleet.serve("a", repairs())
    app = app_of(fleet, InMemorySaver())
    state = await app.ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    (question,) = asked(state)
    clock = iter([1_000.0, 10_000.0, *(20_000.0 + n for n in range(1_000))])
    monkeypatch.setattr(call_app, "time", SimpleNamespace(time=lambda: next(clock)))
    state = await app.ainvoke(Command(resume={question.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == []
    (again,) = asked(state)
    assert "too old" in again.value["problem"]
    await app.ainvoke(Command(resume={again.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == ["repair"]


async def test_an_approval_is_used_once(fleet: Fleet) -> None:
    fleet.serve("a", repairs())
    twice = calls("a_repair", x="roof")
    twice.tool_calls.append({**twice.tool_calls[0], "id": "again"})
    model = ScriptedModel(replies=[twice, AIMessage("Done.")])
    loaded = load(fleet.config, yes=True)
    app = create_supervisor(loaded, worker_model=model).compile(checkpointer=InMemorySaver())
    state = await app.ainvoke({"messages": [HumanMessage(REQUEST)]}, THREAD)
    (first,) = asked(state)  # the second call to this server waits behind it
    state = await app.ainvoke(Command(resume={first.id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == ["repair"]
    assert len(asked(state)) == 1
