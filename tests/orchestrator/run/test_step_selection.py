"""The selection of a step in the state of a run: written as JSON values, and read back as what it was."""

from __future__ import annotations

import json

from callsheet.orchestrator.run_events import pick_notes
from callsheet.orchestrator.step_selection import StepSelection
from callsheet.retrievers import AgentGraphRetriever
from small import small_catalog


def test_a_selection_is_read_back_from_json_without_its_trace() -> None:
    found = AgentGraphRetriever.from_catalog(small_catalog(), index=":memory:").select("weather forecast for a place")
    given = StepSelection(found, left_out={"mail": "it failed"}, why={found.tools[0].id: "score 0.9"})
    read = StepSelection.from_dict(json.loads(json.dumps(given.to_dict())))
    assert read.selection.agents == found.agents
    assert (read.tool_ids, read.agent_ids) == (given.tool_ids, given.agent_ids)
    assert (read.left_out, read.down, read.not_given, read.why) == (given.left_out, {}, {}, given.why)
    assert ("warning", "without mail: it failed") in pick_notes(read)


def test_a_search_that_failed_has_its_reason_alone() -> None:
    failed = StepSelection.from_dict({"error": "nothing could be retrieved: no index"})
    assert failed.to_dict() == {"error": "nothing could be retrieved: no index"}
    assert (failed.tool_ids, pick_notes(failed)) == ([], [])


def test_a_state_that_somebody_wrote_by_hand_is_an_error_of_this_step() -> None:
    damaged = StepSelection.from_dict({"query": "x", "agents": [{"id": 7}]})
    assert damaged.error.startswith("what was selected cannot be read: ")
    assert damaged.tool_ids == []


def test_a_step_without_a_selection_has_no_tools() -> None:
    assert StepSelection.from_dict(None).tool_ids == StepSelection.from_dict({}).tool_ids == []
