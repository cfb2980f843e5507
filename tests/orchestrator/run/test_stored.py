"""What a run finds and leaves in the store that its workflow is compiled with."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from callsheet import Settings, create_supervisor
from callsheet.graphs.dependencies import ObservationLog
from callsheet.orchestrator.cli.main import main
from callsheet.orchestrator.run.run_context import OBSERVED, PREFERENCES, counts_of, namespace_of

RATE, NOTE = "look up the rate of USD", "write a note with it"
EDGE = ("notebook/write_note", "bank/exchange_rate", "text")


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


def run(catalog: Any, noting: Any, scripted: Any, say: Any, store: Any, log: ObservationLog, who: str = "") -> None:
    planner = scripted(replies=[say["planned"](("1", RATE, []), ("2", NOTE, ["1"]))])
    models: dict[str, Any] = {"planner_model": planner, "worker_model": noting}
    app: Any = create_supervisor(catalog, **models, observed=log).compile(store=store)
    app.invoke({"messages": f"{RATE} and {NOTE}"}, user(who) if who else None)


def test_what_is_observed_is_counted_in_the_store(
    catalog: Any, noting: Any, scripted: Any, say: Any, store: Any, tmp_path: Any
) -> None:
    log = ObservationLog(tmp_path / "observed.json")
    run(catalog, noting, scripted, say, store, log)
    run(catalog, noting, scripted, say, store, log)
    assert counts_of(item.value for item in store.search(OBSERVED)) == {EDGE: 2}
    assert log.file.version() is None
    for who in ("mallory", "mallory", "mallory", "ann"):
        run(catalog, noting, scripted, say, store, log, who)
    assert counts_of(item.value for item in store.search(OBSERVED)) == {EDGE: 4}, "a user counts once"


def test_a_store_that_fails_is_no_reason_to_fail(
    catalog: Any, noting: Any, scripted: Any, say: Any, tmp_path: Any, caplog: Any
) -> None:
    class Full(InMemoryStore):
        async def aput(self, *args: Any, **kwargs: Any) -> None:
            raise OSError("the disk is full")

    with caplog.at_level(logging.WARNING):
        run(catalog, noting, scripted, say, Full(), ObservationLog(tmp_path / "observed.json"))
    assert "not stored: the disk is full" in caplog.text


def test_items_that_hold_no_count_are_passed_over(caplog: Any) -> None:
    with caplog.at_level(logging.WARNING):
        assert counts_of([{"edge": list(EDGE), "count": 3}, {"edge": 5}, {}]) == {EDGE: 3}
    assert "is not a count" in caplog.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--server", "http://127.0.0.1:9"], "the store of http://127.0.0.1:9 cannot be read"),
        (["--server", "http://[::1"], "cannot be read"),
    ],
)
def test_infer_names_a_server_that_cannot_be_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, words: list[str], said: str
) -> None:
    monkeypatch.setattr("httpcore._async.connection.RETRIES_BACKOFF_FACTOR", 0.01)  # seconds before the second attempt
    with pytest.raises(SystemExit) as ended:
        main(["infer", "--catalog", "examples/eval/catalog", *words])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
