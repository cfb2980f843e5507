"""Past runs: those of a thread, step by step, and only what may be seen of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from callsheet.agents.calls.token_usage import usage_of, with_usage_of
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.graphs import Catalog, Loaded, Policy, User
from callsheet.orchestrator.cli.ask import run
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.threads import Threads, stream_in_thread
from callsheet.orchestrator.server import Site
from callsheet.orchestrator.server.runs.local_runs import LocalRuns
from callsheet.orchestrator.server.runs.run_history import MODES, WITHHELD, LiveRun, RunSnapshot, run_of, runs_of
from callsheet.orchestrator.supervisor import create_supervisor
from explored import client_of, explorer, served
from kept_runs import ASKING, ENDED, RESULT, REVISED, USED, Kept, moment
from scripted_model import ScriptedModel, planned

Asked = Callable[..., Any]


def test_a_run_is_shown_step_by_step_with_calls_and_durations(catalog: Catalog, asked: Asked) -> None:
    history = [ENDED, moment("b", "05"), moment("a", "02", waiting=1), moment("a", "01"), RunSnapshot({}, "")]
    app = explorer(catalog, runs=Kept(history))
    assert asked(app, "overview")["runs"]
    assert [thread["id"] for thread in asked(app, "runs")] == ["t"]
    last, first = asked(app, "run", id="t")
    assert (last["request"], last["seconds"], last["note"], last["answer"]) == ("request b", 4.0, "by rules", "4.8 km")
    assert (first["request"], first["answer"], first["status"]) == ("request a", "", "waiting")
    step, waiting = last["steps"]
    assert (step["status"], step["seconds"], step["result"]) == ("done", 0.25, "4.8 km")
    (call,) = step["calls"]
    assert (call["tool"]["id"], call["args"], call["files"]) == ("units/convert_length", '{\n  "value": 3\n}', 1)
    assert step["picked"][0]["why"] == "a may need it"
    assert (waiting["status"], waiting["depends_on"]) == ("waiting", ["1"])


def test_what_a_step_did_with_tools_that_may_not_be_seen_is_withheld(catalog: Catalog, asked: Asked) -> None:
    policy = Policy(default="allow", deny=("units/convert_length",))
    ended = RunSnapshot({**ENDED.values, "revisions": REVISED.values["revisions"]}, ENDED.at)
    (run,) = asked(explorer(catalog, policy, runs=Kept([ended])), "run", id="t")
    step = run["steps"][0]
    assert run["revisions"] == []
    assert (step["status"], step["error"], step["calls"], step["picked"]) == ("done", WITHHELD, [], [])
    assert run["answer"] == WITHHELD
    assert "units" not in str(run)


PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"


def with_picture(path: str, catalog: Catalog, policy: Policy | None = None) -> Any:
    """An explorer over a run whose call has returned this file."""
    call = {**RESULT["calls"][0], "files": [path]}  # type: ignore[index]
    ended = replace(ENDED, values={**ENDED.values, "results": {"1": {**RESULT, "calls": [call]}}})
    return explorer(catalog, policy, runs=Kept([ended]))


def kept_picture(content: bytes = PNG, media: str = "image/png") -> str:
    """The path of a file in the store of results."""
    stored = KeptResults().of("run", "units", "draw")(content, media)
    assert stored is not None
    return stored.path


def test_a_picture_that_a_call_returned_is_shown(catalog: Catalog, asked: Asked) -> None:
    path = kept_picture()
    app = with_picture(path, catalog)
    (run,) = asked(app, "run", id="t")
    assert run["steps"][0]["calls"][0]["pictures"] == [Path(path).name]
    shown = asked(app, "picture", id="t", file=Path(path).name)
    assert (shown["media"], base64.b64decode(shown["data"])) == ("image/png", PNG)


def test_only_a_picture_of_the_store_is_read(catalog: Catalog, asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    elsewhere = tmp_path / "run" / "secret.png"
    elsewhere.write_bytes(PNG)
    linked = Path(kept_picture()).with_name("linked.png")
    linked.symlink_to(elsewhere)
    gone = Path(kept_picture())
    gone.unlink()
    for path in (elsewhere, linked, gone, Path(kept_picture(b"no picture"))):
        asked(with_picture(str(path), catalog), "picture", 404, id="t", file=path.name)
    asked(with_picture(kept_picture(), catalog), "picture", 404, id="t", file="other.png")
    asked(with_picture(kept_picture(), catalog), "picture", 404, id="another", file="other.png")


def test_a_picture_of_a_tool_that_may_not_be_seen_is_withheld(catalog: Catalog, asked: Asked) -> None:
    path = kept_picture()
    app = with_picture(path, catalog, Policy(default="allow", deny=("units/convert_length",)))
    asked(app, "picture", 404, id="t", file=Path(path).name)


def test_questions_revisions_and_usage_are_shown_also_of_a_run_that_has_not_ended(
    catalog: Catalog, asked: Asked
) -> None:
    history = [USED, ASKING, REVISED, moment("a", "01")]
    used, asking, revised, plain = asked(explorer(catalog, runs=Kept(history)), "run", id="t")
    (question,) = asking["questions"]
    assert (question["text"], question["choices"]) == ("Which file?", ["a.txt", "b.txt"])
    (revision,) = revised["revisions"]
    assert (revision["added"], revision["dropped"], revision["refused"]) == (["3"], ["2"], False)
    assert revision["reason"] == "the file is <b>missing</b>"
    assert revised["usage"] == {"calls": 3, "input_tokens": 300, "output_tokens": 30, "cached_tokens": 0}
    assert (plain["questions"], plain["revisions"], plain["usage"]) == ([], [], None)
    assert used["usage"] == {"calls": 3, "input_tokens": 6_000, "output_tokens": 430, "cached_tokens": 4_000}
    assert [(one["role"], one["calls"]) for one in used["roles"]] == [("planner", 1), ("worker", 2)]
    first, second = used["steps"]
    assert (first["usage"]["input_tokens"], second["usage"]) == (5_200, None)


def test_a_discarded_message_is_counted() -> None:
    usage: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11, "input_token_details": {"cache_read": 4}}
    one, other = AIMessage("", usage_metadata=usage), AIMessage("", usage_metadata=usage)
    total = usage_of([with_usage_of(one, other)], 1.5)
    assert (total.calls, total.input_tokens, total.cached_tokens, total.seconds) == (2, 20, 8, 1.5)


def stored(threads: Threads) -> Any:
    """The page's runs, for reading only."""
    nothing: Any = None
    return LocalRuns(nothing, threads, nothing)


async def asks(shop: Any, monkeypatch: Any, threads: Threads, thread: str, approval: Any) -> Loaded:
    loaded: Loaded = shop.loaded(monkeypatch)
    found = served(loaded)
    workflow = create_supervisor(
        loaded, retriever=found.retriever, registry=found.registry, settings=Settings(approval=approval)
    )
    given = {"messages": [{"role": "user", "content": "Look up the exchange rate of the currency 'USD' in euro."}]}
    with threads.locked(thread):
        await run(workflow, threads, thread, given, lambda _: None)
    return loaded


async def test_the_threads_of_the_command_line_are_shown(shop: Any, monkeypatch: Any, tmp_path: Path) -> None:
    threads = Threads(tmp_path / "threads")
    loaded = await asks(shop, monkeypatch, threads, "rates", "never")
    (tmp_path / "threads" / "broken.sqlite").write_text("this is no database, whatever its name says" * 20)
    runs = stored(threads)
    known = {thread["id"]: thread for thread in await runs.recent(None)}
    assert (known["rates"]["request"][:7], known["rates"]["status"]) == ("Look up", "done")
    assert known["broken"]["status"] == "error"
    assert await runs.history(None, "../rates") == []
    client = client_of(explorer(loaded, runs=stored(threads)))
    (shown,) = client.get("/callsheet/api/run", params={"id": "rates"}).json()
    (step,) = shown["steps"]
    assert (step["status"], step["calls"][0]["tool"]["id"]) == ("done", "bank/exchange_rate")
    assert shown["seconds"] > 0
    assert step["result"] in shown["answer"]
    assert "broken.sqlite" in client.get("/callsheet/api/run", params={"id": "broken"}).json()["error"]
    await asks(shop, monkeypatch, threads, "asks", "always")
    assert [thread["status"] for thread in await runs.recent(None) if thread["id"] == "asks"] == ["interrupted"]
    (shown,) = client.get("/callsheet/api/run", params={"id": "asks"}).json()
    (question,) = shown["questions"]
    assert (shown["status"], shown["answer"], shown["steps"][0]["status"]) == ("waiting", "", "needs_approval")
    assert (question["tool"]["id"], question["args"]) == ("bank/exchange_rate", '{\n  "currency": "USD"\n}')


async def test_a_live_run_tells_at_each_moment_what_its_checkpoints_will_tell(
    shop: Any, worker: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    loaded, threads = shop.loaded(monkeypatch), Threads(tmp_path / "threads")
    found = served(loaded)
    seen = Site(lambda: found).visible_to(User())
    plan = planned(("a", "tell the weather of Oslo", []), ("b", "look up the rate of USD", ["a"]))
    workflow = create_supervisor(
        loaded,
        retriever=found.retriever,
        registry=found.registry,
        settings=Settings(),
        planner_model=ScriptedModel(replies=[plan]),
        worker_model=worker,
        answer_model=GenericFakeChatModel(messages=iter([AIMessage("Sun in Oslo, and 0.9 EUR.")] * 2)),
    )
    for request in ("the weather, and then the rate", "and once more"):
        live, told = LiveRun(RunSnapshot({"request": request}, "")), list[Any]()

        def take(*part: Any, live: LiveRun = live, told: list[Any] = told) -> None:
            live.take(*part)
            told.append(run_of(seen, live.snapshot))

        with threads.locked("t"):
            given = {"messages": [{"role": "user", "content": request}]}
            await stream_in_thread(workflow, threads, "t", given, modes=MODES, take=take)
        states = [tuple((step["status"], len(step["calls"])) for step in run["steps"]) for run in told]
        wanted = [
            (("waiting", 0), ("waiting", 0)),
            (("running", 0), ("waiting", 0)),
            (("running", 1), ("waiting", 0)),
            (("done", 1), ("waiting", 0)),
            (("done", 1), ("running", 1)),
            (("done", 1), ("done", 1)),
        ]
        assert [state for state in dict.fromkeys(states) if state in wanted] == wanted
        drafts = [run["answer"] for run in told if run["answer"]]
        assert all(draft.startswith("Sun") for draft in drafts)
        assert len(set(drafts)) > 3
        assert {run["request"] for run in told if run["id"]} == {told[-1]["request"]}
    runs = stored(threads)
    second, first = runs_of(seen, await runs.history(None, "t"))
    assert (second["steps"], second["answer"]) == (told[-1]["steps"], "Sun in Oslo, and 0.9 EUR.")
    assert (first["answer"], first["status"]) == (second["answer"], "done")
