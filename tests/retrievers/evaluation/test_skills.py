"""Labelled skills, and the recall of the skills of a selection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from callsheet.graphs import Catalog, Skill
from callsheet.retrievers import AgentGraphRetriever, QueriesError, evaluate, read_queries
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery


def test_skills_are_labelled_and_measured(tmp_path: Path, catalog: Catalog) -> None:
    skills = (
        Skill(name="pdf-forms", description="Fill in the fields of PDF forms."),
        Skill(name="minutes", description="Write the minutes of a meeting."),
    )
    catalog = Catalog(agents=catalog.agents, skills=skills)
    lines = [
        {"query": "fill in this PDF form", "skills": ["pdf-forms"]},
        {"query": "write the minutes of the meeting", "tools": ["forecast"], "skills": [["minutes", "pdf-forms"]]},
        {"query": "weather forecast for Oslo", "skills": ["skills/minutes"]},
        {"query": "convert 3 miles to kilometres", "tools": ["convert_length"]},
    ]
    path = tmp_path / "queries.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    queries = read_queries(path, catalog)
    assert queries[0] == LabelledQuery("1", "fill in this PDF form", (), skills=(("skills/pdf-forms",),))
    assert queries[1].skills == (("skills/minutes", "skills/pdf-forms"),)
    done = evaluate(AgentGraphRetriever.from_catalog(catalog), queries)
    assert (done.n, done.n_agent, done.n_tool, done.n_skill, done.agents_from_tools) == (4, 2, 2, 3, 2)
    assert done.skill["recall@1"] == done.metric("skill.recall@2") == pytest.approx(2 / 3)
    assert set(done.intervals) >= {"skill.recall@1", "skill.recall@2"}
    last = {miss.id: miss for miss in done.missed}["3"]
    assert [(lacking.kind, lacking.why) for lacking in last.lacking] == [
        ("skill", "the best tool or another skill fits better")
    ]
    path.write_text('{"query": "x", "skills": ["minuts"]}')
    with pytest.raises(QueriesError, match=r"no skill 'minuts' in the catalog \(did you mean 'minutes'\?\)"):
        read_queries(path, catalog)
