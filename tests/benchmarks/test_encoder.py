"""What the encoder learns from, read from small files of the published forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.encoder import BATCH, Pairs
from benchmarks.sets.publications import Source, stabletoolbench


def written(folder: Path, name: str, content: Any, *, lines: bool = False) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content), encoding="utf-8")


def api(tool: str, name: str) -> dict[str, Any]:
    required = [{"name": "place"}]
    return {
        "tool_name": tool, "api_name": name, "api_description": f"The {name}.", "required_parameters": required,
        "optional_parameters": [], "template_response": {"degrees": "float"},
    }  # fmt: skip


def test_apis_that_were_offered_and_not_wanted_are_the_others(tmp_path: Path) -> None:
    row = {"query": "Will it rain in Oslo?", "api_list": [api("Weather", "forecast"), api("Weather", "history")]}
    place = "StableToolBench/solvable_queries/test_instruction/G1.json"
    written(tmp_path, place, [{**row, "relevant APIs": [["Weather", "forecast"]]}])
    (example,) = Source("stabletoolbench").read(stabletoolbench, tmp_path).examples
    assert example.wanted == ("stabletoolbench Weather/forecast",)
    assert example.others == ("stabletoolbench Weather/history",)


@pytest.fixture
def sources() -> list[tuple[Source, float]]:
    asked, documented = Source("asked"), Source("documented")
    for number in range(8):
        asked.asked(f"question number {number}", [asked.tool(f"agent {number}", "run", "Runs it.", ["speed"])])
        documented.documented("service", f"do_{number}", f"Does the thing {number}.", ["id"])
    return [(asked, 3), (documented, 1)]


def test_a_tool_is_shown_without_the_documentation_that_asks_for_it(sources: list[tuple[Source, float]]) -> None:
    pairs = [pair for _ in range(4) for pair in Pairs(sources, seed=1).batch()]
    documented = [pair for pair in pairs if pair.tool.startswith("documented")]
    assert documented
    assert not [pair for pair in documented if "thing" in pair.shown]


def test_joined_requests_keep_the_spans_of_their_parts(sources: list[tuple[Source, float]]) -> None:
    batch = Pairs(sources, seed=1).batch()
    joined = [pair for pair in batch if pair.span]
    assert len(batch) == BATCH
    assert len(joined) == BATCH // 3 // 2 * 2  # all requests here are short: a third of them, two by two
    for pair in joined:
        assert pair.span
        number = pair.tool.split()[2][0] if pair.tool.startswith("asked") else pair.tool[-1]
        part = pair.text[slice(*pair.span)].rstrip(".")
        assert part in (f"question number {number}", f"Does the thing {number}")
