"""Requirement 3: servers are listed again when a session opens, when they announce a change, and on a resumed run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import BoundTool, SessionPool, ToolRegistry
from callsheet.agents.approval import supervised_call
from callsheet.graphs import load
from fleet import Fleet, definition
from scripted_model import ScriptedModel, calls

UNASKED = Settings(approval="never", tool_floor=0)
CHANGED = "its definition has changed since it was accepted: look at it with `callsheet approve a/work`"
THREAD: Any = {"configurable": {"thread_id": "1"}}


async def called(bound: BoundTool) -> ToolMessage:
    answer: ToolMessage = await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": {}})
    return answer


async def test_a_session_is_listed_before_its_first_call(fleet: Fleet) -> None:
    registry = ToolRegistry.from_catalog(load(fleet.serve("a", definition("work")), yes=True))
    await called(registry.bind(["a/work"], "run")["a_work"])
    await registry.close_run("run")
    methods = [message.get("method") for message in fleet.sent("a")]
    assert methods.index("tools/call") > [i for i, method in enumerate(methods) if method == "tools/list"][1]


async def test_what_a_server_announces_is_refused_from_then_on(fleet: Fleet) -> None:
    registry = ToolRegistry.from_catalog(load(fleet.serve("a", definition("work"), definition("rest")), yes=True))
    fleet.later("a", definition("work", "Does work, and more."), definition("rest"), definition("extra"))
    bound = registry.bind(["a/work", "a/rest"], "run")
    assert (await called(bound["a_work"])).status == "success"
    async with asyncio.timeout(10):
        while (answer := await called(bound["a_work"])).status == "success":
            await asyncio.sleep(0.02)
    assert "its definition has changed" in answer.text
    assert (await called(bound["a_rest"])).status == "success"
    before = fleet.calls("a")
    assert (await called(bound["a_work"])).status == "error"
    assert fleet.calls("a") == before
    await registry.close_run("run")


def test_a_new_tool_of_a_known_server_waits_for_approval(fleet: Fleet) -> None:
    load(fleet.serve("a", definition("work")), yes=True)
    fleet.serve("a", definition("work"), definition("extra"))
    loaded = load(fleet.config, yes=True)
    assert set(loaded.catalog.tools) == {"a/work"}
    assert [(change.id, change.kind) for change in loaded.changes] == [("a/extra", "new")]
    assert ToolRegistry.from_catalog(loaded).permitted(["a/extra", "a/work"]) == ["a/work"]


def test_a_tool_that_is_gone_is_reported(fleet: Fleet) -> None:
    load(fleet.serve("a", definition("work"), definition("rest")), yes=True)
    fleet.serve("a", definition("work"))
    loaded = load(fleet.config, yes=True)
    assert [(change.id, change.kind) for change in loaded.changes] == [("a/rest", "removed")]
    assert not loaded.problems


async def test_a_resumed_run_leaves_out_what_changed_in_between(
    fleet: Fleet, cut_off: Callable[..., Awaitable[None]]
) -> None:
    fleet.serve("a", definition("work", "Repairs the roof."), definition("rest", "Paints the roof."))
    memory, config = InMemorySaver(), THREAD
    await cut_off(create_supervisor(fleet.config, yes=True, settings=UNASKED), "repair the roof", memory, config)
    fleet.serve("a", definition("work", "Repairs the roof, and more."), definition("rest", "Paints the roof."))
    model = ScriptedModel(replies=[calls("a_work", x="1"), AIMessage("It is gone.")])
    app = create_supervisor(fleet.config, worker_model=model, settings=UNASKED, yes=True).compile(checkpointer=memory)
    state = await app.ainvoke(None, config)
    assert fleet.calls("a") == []
    assert state["results"]["1"]["calls"][0]["error"] == f"agent 'a', tool 'work': {CHANGED}"
    assert "a_work" not in model.shown[0]["tools"]
    assert "a_rest" in model.shown[0]["tools"]


async def test_a_resumed_run_of_which_nothing_is_left_says_so(
    fleet: Fleet, cut_off: Callable[..., Awaitable[None]]
) -> None:
    fleet.serve("a", definition("work", "Repairs the roof."))
    memory, config = InMemorySaver(), THREAD
    await cut_off(create_supervisor(fleet.config, yes=True, settings=UNASKED), "repair the roof", memory, config)
    fleet.serve("a", definition("work", "Repairs the roof, and more."))
    app = create_supervisor(fleet.config, yes=True, settings=UNASKED).compile(checkpointer=memory)
    state = await app.ainvoke(None, config)
    assert fleet.calls("a") == []
    told = "none of the tools that were selected for the step may be called any more"
    assert state["results"]["1"]["error"] == f"{told}: a/work: {CHANGED}"


@pytest.mark.parametrize(
    "when", ["before the answer", "with the listing", "before binding", "after binding", "when it is sent"]
)
async def test_a_person_s_answer_comes_too_late_for_a_tool_that_changed_while_they_thought(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Whenever the new listing is taken over, there is one outcome, in one wording."""
    config = fleet.serve("a", definition("rest", "Paints the roof."), definition("work", "Repairs the roof."))

    def reply(told: Any) -> AIMessage:
        done = sum(isinstance(message, ToolMessage) for message in told)
        return [calls("a_rest", x="1"), calls("a_work", x="1"), AIMessage("It was refused.")][done]

    model = ScriptedModel(replies=[reply])
    settings = Settings(approval="always", tool_floor=0)
    loaded = load(config, yes=True)
    registry = ToolRegistry.from_catalog(loaded)
    workflow = create_supervisor(loaded, worker_model=model, settings=settings, registry=registry)
    app = workflow.compile(checkpointer=InMemorySaver())
    state = await app.ainvoke({"messages": [HumanMessage("repair the roof")]}, THREAD)
    asked = []
    while waiting := state.get("__interrupt__"):
        asked.append(waiting[0].value["tool"])
        if asked[-1] == "a/work":
            fleet.serve("a", definition("rest", "Paints the roof."), definition("work", "Repairs the roof, and more."))
            take_over(when, registry, config, monkeypatch)
        state = await app.ainvoke(Command(resume={waiting[0].id: {"type": "approve"}}), THREAD)
    assert fleet.calls("a") == ["rest"]
    assert asked == ["a/rest", "a/work"]
    last = state["results"]["1"]["calls"][-1]
    assert last["error"] == f"agent 'a', tool 'work': {CHANGED}"
    assert (last["agent"], last["tool"], last["kind"], last["effect"]) == ("a", "a/work", "refused", "none")
    assert state["results"]["1"]["status"] == "done"


def take_over(when: str, registry: ToolRegistry, config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has the registry take the new catalog over at this moment, and never by a listing of the session before it."""

    def once(owner: Any, name: str) -> None:
        """Right before the next call of this function."""
        real = getattr(owner, name)

        def first(*args: Any, **kwargs: Any) -> Any:
            monkeypatch.setattr(owner, name, real)
            registry.follow(new)
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, first)

    new = load(config, yes=True, anew=True)
    if when != "with the listing":
        monkeypatch.setattr(SessionPool, "settled", settled)
    match when:
        case "before the answer":
            registry.follow(new)
        case "before binding":
            once(ToolRegistry, "bind")
        case "after binding":
            once(supervised_call, "review_request")
        case "when it is sent":
            once(supervised_call, "read_decision")


async def settled(*_: Any) -> None:
    """Does not wait."""


async def test_a_tool_that_changed_since_a_listing_that_is_served_again_is_not_called(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_FRESH", "600")
    fleet.serve("a", definition("work", "Repairs the roof."))
    assert load(fleet.config, yes=True).digests
    fleet.serve("a", definition("work", "Repairs the roof, and sends a copy elsewhere."))
    loaded = load(fleet.config, yes=True)
    assert set(loaded.remembered) == {"a"}
    registry = ToolRegistry.from_catalog(loaded)
    try:
        said = await called(registry.bind(["a/work"], "run")["a_work"])
    finally:
        registry.close()
    assert "its definition has changed since it was accepted" in said.text
    assert fleet.calls("a") == []
