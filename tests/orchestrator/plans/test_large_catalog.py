"""A catalog of 3,000 tools: what the planner is sent stays small, and the same for each request."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from callsheet import AgentGraphRetriever, create_supervisor
from callsheet.agents.planning.planner import PlanDraft
from callsheet.graphs import Agent, Catalog, Tool, load
from callsheet.retrievers import SelectSettings
from callsheet.retrievers.roster import count_tokens
from scripted_model import ScriptedModel, calls

MOST = 8_000
VERBS = "get find create update delete analyze calculate check send schedule".split()
THINGS = (
    "Account Balance Bridge Budget Campaign Cargo Climate Contract Course Crop Delivery Diet Disease Emission Engine "
    "Exhibit Fabric Fleet Forest Fossil Gene Glacier Harvest Insurance Invoice Language Library Loan Market Medicine "
    "Mineral Museum Network Orbit Patent Patient Payment Permit Planet Policy Protein Railway Recipe Refund Reserve "
    "River Robot Salary Satellite School Sensor Shipment Signal Species Student Survey Ticket Traffic Treaty Vaccine"
).split()
PARTS = "Cost Count Data Details History Info Level Location Plan Rate Report Result Risk Schedule Status".split()
REQUEST = (
    "First get the climate data of Oslo and check the risk of the glacier. Then create an invoice for the cargo and "
    "send it to the account. Finally schedule the survey of the river, and calculate the salary budget of the school."
)


def made_up() -> Catalog:
    """105 agents with 3,000 tools together, whose names are drawn."""
    chance = random.Random(3_000)
    names = [f"{verb}{thing}{part}" for verb in VERBS for thing in THINGS for part in PARTS]
    chosen = chance.sample(names, 3_000)
    agents = []
    for number in range(105):
        agent = f"{THINGS[number % len(THINGS)].lower()}-{PARTS[number % len(PARTS)].lower()}-{number}"
        owned = (Tool(agent=agent, name=name, description=f"Does {name}.") for name in chosen[number::105])
        agents.append(Agent(id=agent, description=f"Everything about {agent} of a large company.", tools=tuple(owned)))
    return Catalog(agents=tuple(agents))


def sealtools(shared: Path) -> Catalog:
    """The 4,076 tools of Seal-Tools."""
    return load(shared / "benchmarks" / "sealtools" / "catalog").catalog


def prompt_tokens(messages: list[BaseMessage]) -> int:
    """Tokens of a request to a planner, with the form of its answer."""
    form = json.dumps(convert_to_openai_tool(PlanDraft))
    return sum(count_tokens(message.text) for message in messages) + count_tokens(form)


@pytest.mark.parametrize("name", ["made up", "Seal-Tools"])
def test_the_prompt_of_the_planner_stays_under_eight_thousand_tokens(name: str, request: pytest.FixtureRequest) -> None:
    catalog = made_up() if name == "made up" else sealtools(request.getfixturevalue("shared"))
    assert len(catalog.tools) >= 3_000
    model = ScriptedModel(replies=[calls("PlanDraft", answer="Hello.")])
    embeddings, settings = DeterministicFakeEmbedding(size=8), SelectSettings(proposed=False)
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=embeddings, settings=settings)
    app: Any = create_supervisor(catalog, planner_model=model, retriever=retriever).compile()
    for text in (REQUEST, "Refund the ticket of the museum."):
        app.invoke({"messages": text})
    first, second = (shown["messages"] for shown in model.shown)
    assert max(map(prompt_tokens, (first, second))) < MOST
    assert first[0].text == second[0].text  # a prefix that providers cache
    for agent in catalog.agents:
        assert f"\n{agent.id} (" in first[0].text
    assert "Agents that may help, with the names of their tools:\n" in first[-1].text
    assert model.shown[0]["tools"] == ["PlanDraft", "list_tools"]
