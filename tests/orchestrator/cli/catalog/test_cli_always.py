"""Options of an entry that name its tools; ``always``, from the file to the shortlist of a worker."""

from __future__ import annotations

import json

import pytest

from callsheet.graphs import Catalog, load
from commands import run
from fleet import Fleet, definition

RATE = definition("exchange_rate", "Looks up the exchange rate of a currency.")
OPEN = definition("open_session", "Opens a session.")
OTHER = definition("branch_hours", "Tells the opening hours of a branch.")


def serve(fleet: Fleet, *always: str, **more: object) -> str:
    entry: dict[str, object] = {"callsheet": {"always": list(always)}, **more}
    return str(fleet.serve("bank", RATE, OPEN, OTHER, entry=entry))


def test_retrieve_shows_that_a_tool_always_comes_and_why(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("retrieve", "look up the exchange rate of USD", "--tools", "2", "--yes")
    status, said, _ = run(capsys, *words, "--catalog", serve(fleet, "open_session"), "--json")
    (agent,) = json.loads(said)["agents"]
    assert (status, [tool["id"] for tool in agent["tools"]]) == (0, ["bank/exchange_rate", "bank/open_session"])
    status, said, _ = run(capsys, *words, "--catalog", serve(fleet, "open_session"))
    assert "always, with bank/exchange_rate" in said
    status, said, _ = run(capsys, *words, "--catalog", serve(fleet), "--json")
    assert "always, with" not in said
    assert '"always": true' not in said


def test_an_unknown_name_is_reported_with_the_near_ones_and_the_rest_works(
    fleet: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    config = serve(fleet, "open_sesion", "exchange_rate", excludeTools=["branch_hours"])
    loaded = load(config, yes=True)
    (problem,) = loaded.problems
    assert str(problem) == (
        "bank: 'always' of its entry names 'open_sesion', which is none of its tools (did you mean 'open_session'?): "
        "correct the name"
    )
    assert [tool.name for tool in loaded.catalog.tools.values() if tool.always] == ["exchange_rate"]
    _, said, told = run(capsys, "check", "--catalog", config, "--yes")
    assert "did you mean 'open_session'?" in said + told


def test_a_name_that_is_switched_off_is_reported_too(fleet: Fleet) -> None:
    (problem,) = load(serve(fleet, "branch_hours", excludeTools=["branch_hours"]), yes=True).problems
    assert "names 'branch_hours', which is none of its tools" in problem.message


@pytest.mark.parametrize("option", ["allow", "reads", "tools"])
def test_a_name_in_any_option_of_an_entry_that_is_none_of_the_tools_is_reported(fleet: Fleet, option: str) -> None:
    names = ["bank/exchange_rate", "open_session"]
    said = {name: {"call": 9} for name in names} if option == "tools" else names
    (problem,) = load(str(fleet.serve("bank", RATE, OPEN, entry={"callsheet": {option: said}})), yes=True).problems
    assert str(problem) == (
        f"bank: '{option}' of its entry names 'bank/exchange_rate', which is none of its tools "
        "(did you mean 'exchange_rate'?): correct the name"
    )


def test_an_exported_catalog_keeps_it(fleet: Fleet) -> None:
    catalog = load(serve(fleet, "open_session"), yes=True).catalog
    again = Catalog.model_validate(json.loads(catalog.model_dump_json()))
    assert [tool.name for tool in again.tools.values() if tool.always] == ["open_session"]


def test_an_entry_of_a_kind_that_has_one_tool_cannot_say_it(fleet: Fleet) -> None:
    fleet.config.write_text(
        json.dumps({"mcpServers": {"clerk": {"a2a": "https://x", "callsheet": {"always": ["run"]}}}})
    )
    (problem,) = load(str(fleet.config), yes=True).problems
    assert "'always' of 'callsheet' does not apply to an entry with 'a2a'" in problem.message
