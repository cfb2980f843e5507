"""Which skills fit a query, and what they bring along."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from callsheet.graphs import Catalog, Policy, Skill
from callsheet.retrievers import AgentGraphRetriever, Selection, explain_tool
from callsheet.retrievers.selection.scoring import NEAR, fitting_skills
from callsheet.retrievers.selection.select_settings import SelectSettings

SLIDES = Skill(name="slides", description="Make a slide deck or presentation for a talk.", tools=("maps/find_place",))
NOTES = Skill(name="meeting-notes", description="Take the minutes of a meeting.", text="Short sentences.")
EVERYTHING = ("weather/forecast", "units/convert_length", "units/convert_mass", "maps/find_place", "travel/book_hotel")


def ranked(*units: Sequence[float], tools: Sequence[float], named: Sequence[int] = ()) -> list[int]:
    """The rows that fit, of nodes whose first is no skill; ``tools``: the best tool of each unit."""
    scored = [np.array(unit, np.float32) for unit in units]
    rows = np.arange(1, len(units[0]))
    return [row for row, _ in fitting_skills(scored, tools, rows, SelectSettings(), named)]


def test_a_skill_fits_if_it_fits_one_clause_and_never_if_it_is_weak() -> None:
    """(1 + .2 * 1.5) * .5 = .65; odds of .1 at T = .04 are .65 + .04 * ln 10 = .7421 for the best tool."""
    limit = 0.65 - 0.04 * math.log(NEAR)
    assert limit == pytest.approx(0.7421, abs=1e-4)
    assert ranked([0, 0.5], tools=[limit - 0.001]) == [1]
    assert ranked([0, 0.5], tools=[limit + 0.001]) == []
    assert ranked([0, 0.1, 0.4], [0, 0.5, 0.6], tools=[0.9, 0.1]) == [2, 1]
    assert ranked([0, 0.29], tools=[-1]) == []
    assert ranked([0, 0.1, 0.5], tools=[0.2], named=[1]) == [1, 2]


def retriever(*skills: Skill, catalog: Catalog) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(Catalog(agents=catalog.agents, skills=skills), index=":memory:")


def ids(selection: Selection) -> list[str]:
    return [skill.id for skill in selection.skills]


def test_a_skill_is_found_with_the_tools_that_it_names(catalog: Catalog) -> None:
    found = retriever(SLIDES, NOTES, catalog=catalog).select(
        "Make a slide deck about our summer party", tools=3, agents=1
    )
    assert ids(found) == ["skills/slides"]
    assert found.skills[0].tools == ("maps/find_place",)
    assert "maps" in [agent.id for agent in found.agents]
    assert explain_tool("maps/find_place", found) == "used by skills/slides"
    assert found.verdict == "found"


def test_skills_do_not_change_other_requests(catalog: Catalog) -> None:
    query = "Weather forecast for a place"
    found = retriever(SLIDES, NOTES, catalog=catalog).select(query, tools=2)
    assert (ids(found), found.tools_of) == (
        [],
        AgentGraphRetriever.from_catalog(catalog).select(query, tools=2).tools_of,
    )


def test_a_skill_gets_half_of_the_budget(catalog: Catalog) -> None:
    greedy = NOTES.model_copy(update={"tools": EVERYTHING})
    found = retriever(greedy, catalog=catalog).select("Take the minutes of the meeting", tools=4)
    assert len(found.skills[0].tools) == 2
    assert {cut.reason for cut in found.trace.cut} >= {"tools that skills name get half of the budget"}
    needy = NOTES.model_copy(update={"tools": ("travel/plan_trip",)})  # requires two more
    found = retriever(needy, catalog=catalog).select("Take the minutes of the meeting", tools=4)
    assert found.skills[0].tools == ()
    assert retriever(needy, catalog=catalog).select("Take the minutes of the meeting", tools=1).skills[0].tools == ()


def test_a_skill_does_not_fit_because_agents_are_left_out(catalog: Catalog) -> None:
    weak = Skill(name="climate", description="Explains the forecast of the climate for journalists.")
    found = retriever(weak, catalog=catalog)
    query = "Weather forecast for a place"
    assert ids(found.select(query)) == ids(found.select(query, without=("weather",))) == []


def test_a_query_may_name_a_skill(catalog: Catalog) -> None:
    found = retriever(SLIDES, NOTES, catalog=catalog)
    assert ids(found.select("forecast the weather with meeting-notes")) == ["skills/meeting-notes"]
    assert ids(found.select("forecast the weather with meeting-notes", skills=0)) == []


def test_a_catalog_of_skills_alone_is_searched() -> None:
    found = AgentGraphRetriever.from_catalog(Catalog(skills=(SLIDES.model_copy(update={"tools": ()}), NOTES)))
    selection = found.select("Take the minutes of the meeting")
    assert (ids(selection), selection.agents, selection.verdict) == (["skills/meeting-notes"], (), "found")
    assert found.select("zxcv").verdict == "nothing_fits"
    document = found.invoke("Take the minutes of the meeting")[0]
    assert (document.id, document.metadata["skill"]) == ("skills/meeting-notes", "skills/meeting-notes")
    assert document.page_content == "Take the minutes of a meeting.\n\nShort sentences."


def test_a_user_who_may_not_see_a_skill_does_not_find_it(catalog: Catalog) -> None:
    source = Catalog(agents=catalog.agents, skills=(SLIDES, NOTES))
    policy = Policy(default="allow", deny=("skills/meeting-notes", "maps"))
    found = AgentGraphRetriever.from_catalog(source, policy=policy).select("Minutes of a meeting and a slide deck")
    assert [(skill.id, skill.tools) for skill in found.skills] == [("skills/slides", ())]
