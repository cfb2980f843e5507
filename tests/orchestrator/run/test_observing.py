"""What runs show of dependencies is counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from callsheet import Settings, create_supervisor
from callsheet.agents import Call, Plan, Step, StepResult
from callsheet.graphs import CallLedger, Loaded, Policy
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Outcomes
from callsheet.orchestrator.run.run_context import observed_in
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, planned

RATE, NOTE = "look up the rate of USD", "write a note with it"


def result(step: str, *calls: Call) -> StepResult:
    return StepResult(id=step, text="x", calls=calls)


def test_only_results_of_steps_that_a_step_builds_on_count() -> None:
    plan = Plan(
        steps=(
            Step(id="1", text="a"),
            Step(id="2", text="b"),
            Step(id="3", text="c", depends_on=("1",)),
            Step(id="4", text="d", depends_on=("3",)),
        )
    )
    give = Call(agent="a", tool="a/give", output="K-123")
    other = Call(agent="b", tool="b/give", output="K-123")
    use = Call(agent="a", tool="a/use", args={"key": "K-123"})
    results = {"1": result("1", give), "2": result("2", other), "3": result("3"), "4": result("4", use, use)}
    assert observed_in(plan, results, "please") == {("a/use", "a/give", "key"): 2}
    assert observed_in(plan, results, "please use K-123") == {}
    assert observed_in(plan, {**results, "1": result("1")}, "please") == {}, "step 2 is none of its"


def test_the_latest_by_the_clock_counts_under_its_own_agent() -> None:
    plan = Plan(steps=(Step(id="1", text="a"), Step(id="2", text="b"), Step(id="3", text="c", depends_on=("1", "2"))))
    late = Call(agent="disk", tool="disk/read", output="K-123", began=20.0)
    early = Call(agent="web", tool="web/read", output="K-123", began=10.0)
    use = Call(agent="disk", tool="disk/write", args={"key": "K-123"}, began=30.0)
    results = {"1": result("1", late), "2": result("2", early), "3": result("3", use)}
    assert observed_in(plan, results, "please") == {("disk/write", "disk/read", "key"): 1}


def test_what_a_worker_does_itself_is_no_tool_of_the_catalog() -> None:
    plan = Plan(steps=(Step(id="1", text="a"), Step(id="2", text="b", depends_on=("1",))))
    give = Call(agent="a", tool="a/give", output="K-123", began=1.0)
    program = Call(agent="", tool="run_program", output="K-123", began=2.0)
    unknown = Call(agent="", tool="use", args={"key": "K-123"}, error="use is not among the tools of this step")
    use = Call(agent="b", tool="b/use", args={"key": "K-123"}, began=4.0)
    results = {"1": result("1", give, program), "2": result("2", unknown, use)}
    assert observed_in(plan, results, "please") == {("b/use", "a/give", "key"): 1}


def run(catalog: Any, planner: Any, worker: Any, observed: ObservationLog | None) -> Any:
    app = create_supervisor(catalog, planner_model=planner, worker_model=worker, observed=observed).compile()
    return app.invoke({"messages": [HumanMessage(f"{RATE} and {NOTE}")]})


def test_a_run_is_counted_in_the_log_and_each_run_adds(catalog: Loaded, noting: ScriptedModel, tmp_path: Path) -> None:
    log = ObservationLog(tmp_path / "observed.json")
    for times in (1, 2):
        run(catalog, ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]))]), noting, log)
        assert log.read() == {("notebook/write_note", "bank/exchange_rate", "text"): times}


def test_a_run_does_not_fail_because_nothing_can_be_kept(
    catalog: Loaded,
    noting: ScriptedModel,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = ObservationLog(tmp_path / "observed.json")
    log.file.replace(b"not ours")
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]))])
    with caplog.at_level(logging.WARNING):
        state = run(catalog, planner, noting, log)
    assert [state["results"][i]["status"] for i in "12"] == ["done", "done"]
    assert "observed.json" in caplog.text
    assert log.file.text() == "not ours"


def test_without_a_log_nothing_is_written(catalog: Loaded, noting: ScriptedModel) -> None:
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]))])
    run(catalog, planner, noting, None)
    assert ObservationLog().file.version() is None


@pytest.fixture
def outcomes(noting: ScriptedModel, tmp_path: Path) -> Callable[..., Any]:
    """Runs the two steps, as a user or as nobody, and returns the outcomes that are counted beside the log."""

    def run(catalog: Any, user: str = "", policy: Policy | None = None, **settings: Any) -> Any:
        app: Any = create_supervisor(
            replace(catalog, policy=policy),
            planner_model=ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]))]),
            worker_model=noting,
            settings=Settings(**settings),
            observed=ObservationLog(tmp_path / "observed.json"),
        ).compile()
        ledger = CallLedger("")
        for entry in ledger.unsettled(everybody=True):  # somebody has looked
            ledger.settle(entry.id, "not-done")
        config: Any = {"configurable": {"langgraph_auth_user": {"identity": user}}} if user else None
        app.invoke({"messages": [HumanMessage(f"{RATE} and {NOTE}")]}, config)
        return OutcomeLog(tmp_path / "outcomes.json").of(catalog.catalog)

    return run


def test_outcomes_are_counted_beside_the_log_unless_the_setting_is_off(
    catalog: Loaded, shop: FakeAgents, outcomes: Callable[..., Any]
) -> None:
    shop.crashing.add("write_note")
    assert outcomes(catalog, learn=False) == {}
    assert outcomes(catalog) == {"bank/exchange_rate": Outcomes(done=1), "notebook/write_note": Outcomes(failed=1)}


def test_what_a_tool_itself_reports_is_no_failure(
    catalog: Loaded, shop: FakeAgents, outcomes: Callable[..., Any]
) -> None:
    shop.broken.add("write_note")
    assert outcomes(catalog) == {"bank/exchange_rate": Outcomes(done=1)}


def test_outcomes_of_users_are_counted_only_if_the_policy_says_so(
    catalog: Loaded, shop: FakeAgents, outcomes: Callable[..., Any]
) -> None:
    shop.crashing.add("write_note")
    assert outcomes(catalog, "mallory") == {}
    assert outcomes(catalog, "mallory", Policy(default="allow")) == {}
    for _ in range(3):
        counted = outcomes(catalog, "mallory", Policy(default="allow", shared_outcomes=True))
    assert counted["notebook/write_note"] == Outcomes(failed=1)
    assert outcomes(catalog)["notebook/write_note"] == Outcomes(failed=2)
