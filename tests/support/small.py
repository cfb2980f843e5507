"""A small catalog of our own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Loaded, Tool, load


def tool(agent: str, name: str, description: str, *parameters: str, needs: Sequence[Dependency] = ()) -> Tool:
    schema = {"type": "object", "properties": {p: {"type": "string"} for p in parameters}, "required": list(parameters)}
    return Tool(agent=agent, name=name, description=description, input_schema=schema, depends_on=tuple(needs))


def small_catalog() -> Catalog:
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


def outside(objects: Any) -> Loaded:
    """Tools of this process as if they came from outside, so that their calls are asked about."""
    loaded = load(objects)
    own = {name: replace(to, own=False) for name, to in loaded.connections.items()}  # type: ignore[type-var]
    return replace(loaded, connections=own)
