"""What several rooms' tests stand on: a small catalog of our own, the embedded model, data beside the checkout."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool

if TYPE_CHECKING:
    from callsheet.retrievers import MiniLMEmbeddings

SHARED = Path(__file__).parents[2] / "shared"


def tool(agent: str, name: str, description: str, *parameters: str, needs: Sequence[Dependency] = ()) -> Tool:
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters}, "required": list(parameters)}
    return Tool(agent=agent, name=name, description=description, input_schema=schema, depends_on=tuple(needs))


@pytest.fixture
def catalog() -> Catalog:
    """Four agents with six tools; the trip planner needs the forecast, and the forecast needs the place."""
    directly, loosely = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY
    needs_forecast = Dependency(tool="weather/forecast", kind=directly)
    needs_place = Dependency(tool="maps/find_place", kind=directly)
    may_convert = Dependency(tool="units/convert_length", kind=loosely)
    return Catalog(
        agents=(
            Agent(
                id="weather",
                description="Weather reports.",
                tools=(tool("weather", "forecast", "Weather forecast for a place.", "place", needs=[needs_place]),),
            ),
            Agent(
                id="units",
                description="Unit conversion.",
                tools=(
                    tool("units", "convert_length", "Converts miles, metres and kilometres.", "value", "to"),
                    tool("units", "convert_mass", "Converts pounds and kilograms.", "value", "to"),
                ),
            ),
            Agent(
                id="maps",
                description="Places and routes.",
                tools=(tool("maps", "find_place", "Finds the coordinates of a place by its name.", "name"),),
            ),
            Agent(
                id="travel",
                description="Journeys.",
                tools=(
                    tool("travel", "plan_trip", "Plans a trip by train.", needs=[may_convert, needs_forecast]),
                    tool("travel", "book_hotel", "Books a room in a hotel.", "city"),
                ),
            ),
        )
    )


@pytest.fixture
def shared() -> Path:
    """The folder of public data beside the checkout, where there is one."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout: the public data sets are not here")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests keep indexes, pins and results: nothing of the user's is read or touched."""
    os.environ["CALLSHEET_HOME"] = str(folder := tmp_path_factory.mktemp("home"))
    return folder


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbeddings:
    """The embedded model, loaded once for all tests."""
    from callsheet.retrievers import MiniLMEmbeddings

    return MiniLMEmbeddings()
