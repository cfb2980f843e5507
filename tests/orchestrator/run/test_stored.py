"""What a run finds in the store that its workflow is compiled with."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from callsheet import Settings, create_supervisor
from callsheet.orchestrator.run.run_context import PREFERENCES, namespace_of

RATE = "look up the rate of USD"


def user(name: str) -> Any:
    return {"configurable": {"langgraph_auth_user": {"identity": name}}}


@pytest.fixture
def store() -> InMemoryStore:
    made = InMemoryStore()
    made.put(namespace_of("ann"), PREFERENCES, {"tools": 1, "worker_prompt": "Ann likes brevity."})
    made.put(namespace_of("bob"), PREFERENCES, {"tools": "many", "hat": 3})
    return made


def test_a_user_gets_what_she_prefers_unless_the_run_says_otherwise(
    catalog: Any, worker: Any, store: InMemoryStore
) -> None:
    app: Any = create_supervisor(catalog, worker_model=worker, settings=Settings(tool_floor=0)).compile(store=store)

    def tools(name: str, **context: Any) -> int:
        return len(app.invoke({"messages": RATE}, user(name), context=context or None)["results"]["1"]["tools"])

    assert tools("ann") == 1
    assert worker.shown[0]["messages"][0].text == "Ann likes brevity."
    assert tools("ann", tools=2) == 2
    assert tools("carl") > 2
    store.put(namespace_of("d.e@example.org"), PREFERENCES, {"tools": 1})
    assert tools("d.e@example.org") == 1
    assert tools("d%2Ee@example%2Eorg") > 2


async def test_the_preferred_model_gives_way_to_that_of_the_run(catalog: Any, store: InMemoryStore) -> None:
    store.put(namespace_of("ann"), PREFERENCES, {"model": "nobody:hers"})
    app: Any = create_supervisor(catalog).compile(store=store)
    assert "nobody:hers" in (await app.ainvoke({"messages": RATE}, user("ann")))["plan"]["note"]
    state = await app.ainvoke({"messages": RATE}, user("ann"), context={"model": "nobody:its"})
    assert "nobody:its" in state["plan"]["note"]


def test_wrong_preferences_are_named_and_nothing_is_done(catalog: Any, shop: Any, store: InMemoryStore) -> None:
    app: Any = create_supervisor(catalog).compile(store=store)
    said = app.invoke({"messages": RATE}, user("bob"))["messages"][-1].text
    assert "the preferences of 'bob' in the store" in said
    assert "setting 'tools'" in said
    assert "there is no setting 'hat'" in said
    assert shop.called == []
