"""Labelled queries, read and refused; evaluations with the arithmetic by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from callsheet.graphs import Agent, Catalog, SettingsError, Skill, Tool, load
from callsheet.retrievers import (
    AgentGraphRetriever,
    Cut,
    Evidence,
    PickedAgent,
    PickedTool,
    QueriesError,
    Selection,
    SelectSettings,
    Trace,
    evaluate,
    metric_names,
    read_queries,
)
from callsheet.retrievers.evaluation.labelled_queries import LabelledQuery
from callsheet.retrievers.selection.budget import SchemaTokens, openai_form

PLACE = "weather/forecast", "maps/find_place"


class Scripted:
    """Answers each query with tools given beforehand, a tool's use by its place; keeps what it was asked."""

    def __init__(self, catalog: Catalog, answers: Mapping[str, Sequence[str]], trace: Trace | None = None) -> None:
        self.catalog, self.answers, self.trace = catalog, answers, trace or Trace()
        self.k, self.selector = 5, SimpleNamespace(settings=SelectSettings())
        self.asked: list[tuple[str, int, int]] = []

    def select(self, query: str, *, agents: int, tools: int) -> Selection:
        self.asked.append((query, agents, tools))
        picked: dict[str, list[PickedTool]] = {}
        for place, tool in enumerate(self.answers[query]):
            picked.setdefault(self.catalog.tool(tool).agent, []).append(
                PickedTool(tool, 1.0, (tool,), use=1 - place / 100)
            )
        found = tuple(PickedAgent(agent, 1.0, tuple(of)) for agent, of in picked.items())
        return Selection(query, found, "found" if found else "nothing_fits", self.trace)


def scripted(catalog: Catalog, answers: Mapping[str, Sequence[str]], trace: Trace | None = None) -> AgentGraphRetriever:
    return cast("AgentGraphRetriever", Scripted(catalog, answers, trace))


def written(folder: Path, *lines: object) -> Path:
    path = folder / "queries.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), encoding="utf-8")
    return path


def test_labelled_queries_may_have_agents_tools_or_both(tmp_path: Path, catalog: Catalog) -> None:
    path = written(
        tmp_path,
        {"id": "1", "query": "rain?", "agents": ["weather", ["units", "maps"]]},
        "",
        {"query": "miles", "tools": ["convert_length", ["weather/forecast", "find_place"]], "note": "passed over"},
        {"id": 7, "query": "both\u2028lines", "agents": ["travel"], "tools": ["plan_trip"]},
        "",
    )
    first, second, third = read_queries(path, catalog)
    assert first == LabelledQuery("1", "rain?", (("weather",), ("units", "maps")))
    assert second == LabelledQuery(
        "3", "miles", (("units",), ("weather", "maps")), (("units/convert_length",), PLACE), agents_from_tools=True
    )
    assert (third.id, third.agents, third.tools) == ("7", (("travel",),), (("travel/plan_trip",),))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{nope", "not JSON"),
        ("[1]", "not a JSON object"),
        ({"tools": ["forecast"]}, '"query" must be a text'),
        ({"query": " ", "tools": ["forecast"]}, '"query" must be a text'),
        ({"query": "x"}, 'no "agents", "tools" or "skills"'),
        ({"query": "x", "tools": []}, 'no "agents", "tools" or "skills"'),
        ({"query": "x", "tool": ["forecast"]}, "unknown field 'tool' (did you mean 'tools'?)"),
        ({"query": "x", "tools": "forecast"}, '"tools" must be a list'),
        ({"query": "x", "tools": [["forecast", 3]]}, '"tools" must hold names'),
        ({"query": "x", "agents": [[]]}, '"agents" must hold names'),
        ({"query": "x", "id": {}, "tools": ["forecast"]}, '"id" must be'),
        ({"query": "x", "agents": ["wether"]}, "no agent 'wether' in the catalog (did you mean 'weather'?)"),
        ({"query": "x", "tools": ["units/convert_mas"]}, "did you mean 'units/convert_mass'"),
        ({"query": "x", "tools": ["forcast"]}, "did you mean 'forecast'"),
    ],
)
def test_a_wrong_line_of_labelled_queries_is_named_with_its_cure(
    tmp_path: Path, catalog: Catalog, line: Any, said: str
) -> None:
    path = written(tmp_path, {"query": "rain?", "tools": ["forecast"]}, line)
    with pytest.raises(QueriesError) as raised:
        read_queries(path, catalog)
    assert f"{path}, line 2: " in str(raised.value)
    assert said in str(raised.value)


def test_a_bare_name_that_two_agents_have_is_refused(tmp_path: Path) -> None:
    catalog = Catalog(agents=tuple(Agent(id=a, tools=(Tool(agent=a, name="search"),)) for a in ("mail", "files")))
    with pytest.raises(QueriesError, match="2 agents have a tool 'search': write one of mail/search, files/search"):
        read_queries(written(tmp_path, {"query": "x", "tools": ["search"]}), catalog)


def test_all_wrong_lines_are_reported_at_once(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(QueriesError) as raised:
        read_queries(written(tmp_path, *["?"] * 8), catalog)
    said = str(raised.value).splitlines()
    assert len(said) == 6
    assert said[-1] == "and 3 more lines"


def test_an_empty_or_unreadable_file_of_labelled_queries_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(QueriesError, match="has no labelled query"):
        read_queries(written(tmp_path, "", "  "), catalog)
    with pytest.raises(QueriesError, match="cannot be read"):
        read_queries(tmp_path / "nowhere.jsonl", catalog)
    (tmp_path / "latin.jsonl").write_bytes(b'{"query": "caf\xe9"}')
    with pytest.raises(QueriesError, match="not UTF-8"):
        read_queries(tmp_path / "latin.jsonl", catalog)


def test_figures_are_means_over_the_queries_that_have_labels(catalog: Catalog) -> None:
    queries = [
        LabelledQuery("1", "one", (("units",),), (("units/convert_mass",),), agents_from_tools=True),
        LabelledQuery("2", "two", (("weather",), ("maps",)), (("weather/forecast",), ("maps/find_place",))),
        LabelledQuery("3", "three", (("travel",),)),
    ]
    answers = {
        "one": ["units/convert_length", "units/convert_mass"],  # agent at 1, tool at 2
        "two": ["weather/forecast", "travel/plan_trip"],  # one of two
        "three": [],
    }
    retriever = scripted(catalog, answers)
    done = evaluate(retriever, queries)
    assert cast("Scripted", retriever).asked == [("one", 5, 10), ("two", 5, 10), ("three", 5, 10)]
    assert (done.n, done.n_tool, done.agents_from_tools, done.nothing_fits) == (3, 2, 1, 1)
    assert list(done.agent) == [f"{m}@{k}" for m in ("recall", "map", "ndcg") for k in (1, 3, 5)]
    assert done.agent["recall@1"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert done.tool["recall@1"] == pytest.approx((0 + 1 / 2) / 2)
    assert done.tool["recall@10"] == pytest.approx((1 + 1 / 2) / 2)
    assert done.tool["map@3"] == pytest.approx((1 / 2 + 1 / 2) / 2)
    assert done.complete == {"complete@10": pytest.approx(1 / 2)}
    assert done.metric("recall@1") == done.metric("agent.recall@1") == done.agent["recall@1"]
    assert done.metric("tool.map@3") == done.tool["map@3"]
    with pytest.raises(SettingsError, match=r"recall@7 was not measured.*there are agent\.recall@1"):
        done.metric("recall@7")


def test_intervals_hold_the_mean_and_are_the_same_for_the_same_seed(catalog: Catalog) -> None:
    tool = "units/convert_mass"
    queries = [LabelledQuery(str(i), str(i), (("units",),), ((tool,),)) for i in range(40)]
    retriever = scripted(catalog, {str(i): [tool] if i % 4 else ["weather/forecast"] for i in range(40)})
    seen: list[tuple[int, int]] = []
    first = evaluate(retriever, queries, seed=3, progress=lambda now, of: seen.append((now, of)))
    again = evaluate(retriever, queries, seed=3)
    assert (seen[0], seen[-1]) == ((1, 40), (40, 40))
    low, high = first.intervals["tool.recall@5"]
    assert first.tool["recall@5"] == 0.75
    assert low == pytest.approx(0.75 - 1.96 * (0.75 * 0.25 / 40) ** 0.5, abs=0.03)  # of a binomial
    assert low < 0.75 < high
    assert first.intervals == again.intervals
    assert {"agent.ndcg@5", "tool.map@10", "complete@10"} <= set(first.intervals)


def test_cut_offs_follow_the_size_of_the_selection(catalog: Catalog) -> None:
    queries = [LabelledQuery("1", "one", (("units",),), (("units/convert_mass",),), skills=(("skills/a",),))]
    wide = evaluate(scripted(catalog, {"one": []}), queries, agents=8, tools=20)
    assert [name for name in wide.agent if name.startswith("recall")] == [
        "recall@1",
        "recall@3",
        "recall@5",
        "recall@8",
    ]
    assert list(wide.complete) == ["complete@10", "complete@20"]
    narrow = evaluate(scripted(catalog, {"one": []}), queries, agents=2, tools=4)
    assert list(narrow.complete) == ["complete@4"]
    for done, sizes in ((wide, (8, 20)), (narrow, (2, 4))):
        assert all(done.metric(name) == 0 for name in metric_names(*sizes))


def test_without_tool_labels_no_tool_metrics_are_reported(catalog: Catalog) -> None:
    done = evaluate(scripted(catalog, {"one": []}), [LabelledQuery("1", "one", (("units",),))])
    assert (done.tool, done.complete, done.confused) == ({}, {}, ())
    assert done.to_dict()["complete@10"] is None
    with pytest.raises(SettingsError, match="no labelled query"):
        evaluate(scripted(catalog, {}), [])


def test_unwanted_tools_ranked_above_a_wanted_one_are_reported_as_confused(catalog: Catalog) -> None:
    length, mass, forecast, place = "units/convert_length", "units/convert_mass", *PLACE
    queries = [
        LabelledQuery("1", "one", (("units",),), ((mass,),)),
        LabelledQuery("2", "two", (("units",),), ((mass,), (forecast,))),
        LabelledQuery("3", "three", (("units",),), ((place, mass),)),
    ]
    answers = {
        "one": [length, forecast, mass],
        "two": [length, forecast, mass],  # the forecast is wanted too, so it is nobody's rival
        "three": [mass, place],
    }
    trace = Trace(nodes=(Evidence(place, "tool", 0.4), Evidence(forecast, "tool", 0.3)))
    queries.append(LabelledQuery("4", "four", (("weather", "maps"),), (PLACE,)))  # the nearest of alternatives
    found = evaluate(scripted(catalog, {**answers, "four": [length]}, trace), queries).confused
    assert [(pair.wanted, pair.instead, pair.count) for pair in found] == [
        (mass, length, 2),
        (mass, forecast, 1),
        (forecast, length, 1),
        (place, length, 1),
    ]


def test_a_miss_lists_the_missing_and_the_returned_ids(catalog: Catalog) -> None:
    nodes = (
        Evidence("units", "agent", 0.9),
        Evidence("units/convert_length", "tool", 0.8),
        Evidence("weather/forecast", "tool", 0.4, 0.3, 5, 1.5, 9),
    )
    queries = [
        LabelledQuery("a", "q", (("weather",),), (PLACE,), agents_from_tools=True),
        LabelledQuery("c", "q", (("travel",),)),
        LabelledQuery("d", "q", (("units",),), (("units/convert_length",),)),
    ]
    retriever = scripted(catalog, {"q": ["units/convert_length"]}, Trace(nodes=nodes))
    first, second = evaluate(retriever, queries).missed
    assert (first.id, first.got) == ("a", ("units/convert_length",))
    assert [(lacking.ids, lacking.rank) for lacking in first.lacking] == [(PLACE, 2)]
    (lacking,) = second.lacking
    assert (second.got, lacking.kind, lacking.rank, lacking.why) == (
        ("units",),
        "agent",
        None,
        "not among the 3 best nodes",
    )


NODES = (Evidence("weather/forecast", "tool", 0.4), Evidence("units/convert_mass", "tool", 0.3))
RANKED = Trace({"agents": 1}, nodes=NODES)
CUT = Trace(RANKED.settings, nodes=RANKED.nodes, cut=(Cut("units/convert_mass", 0.3, "the budget is spent"),))


@pytest.mark.parametrize(
    ("trace", "wanted", "why"),
    [
        (RANKED, ("weather/forecast", "units/convert_mass"), "ranked too low to be picked"),  # units was picked
        (CUT, ("weather/forecast", "units/convert_mass"), "cut: the budget is spent"),
        (Trace(), ("weather/forecast", "units/convert_mass"), "not among the 0 best nodes"),
        (RANKED, ("weather/forecast", "maps/find_place"), "no agent with it (weather, maps) is among the 1 picked"),
        (RANKED, ("weather/forecast",), "no agent with it (weather) is among the 1 picked"),
        (Trace(nodes=NODES), ("weather/forecast",), "ranked too low to be picked"),  # no limit of agents: -k is no help
    ],
)
def test_a_miss_with_alternatives_explains_the_closest_one(
    catalog: Catalog, trace: Trace, wanted: tuple[str, ...], why: str
) -> None:
    agents = tuple(tool.partition("/")[0] for tool in wanted)
    query = LabelledQuery("a", "q", (agents,), (wanted,), agents_from_tools=True)
    (miss,) = evaluate(scripted(catalog, {"q": ["units/convert_length"]}, trace), [query]).missed
    assert [lacking.why for lacking in miss.lacking] == [why]


def test_schema_tokens_are_counted_as_a_model_sees_the_schemas(catalog: Catalog) -> None:
    tool = Tool(agent="a", name="add", description="Adds.", input_schema={"type": "object"})
    shown = '{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object"}}}'
    assert openai_form(tool) == shown
    words = 10  # type function function name add description adds parameters type object
    count = SchemaTokens(Catalog(agents=(Agent(id="a", tools=(tool,)),))).count(["a/add"])
    assert count == sum(char in '{}":,.' for char in shown) + words
    queries = [LabelledQuery(q, q, (("units",),)) for q in ("none", "two")]
    two = ["units/convert_mass", "units/convert_length"]
    done = evaluate(scripted(catalog, {"none": [], "two": two}), queries)
    cost = SchemaTokens(catalog)
    assert done.tokens.selected == cost.count(two) / 2
    assert done.tokens.all == sum(cost.count([tool]) for tool in catalog.tools)
    assert done.tokens.share == pytest.approx(done.tokens.selected / done.tokens.all)


def test_the_program_in_the_documentation_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    page = (root / "docs" / "how-to" / "evaluation.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(program, {})
    assert re.match(r"1\.0 \(1\.0, 1\.0\) \d+\n", capsys.readouterr().out)


def test_the_labelled_queries_in_the_documentation_can_be_read(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    page = (root / "docs" / "how-to" / "evaluation.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    queries = read_queries(written(tmp_path, "".join(blocks)), load(root / "examples" / "eval" / "catalog").catalog)
    assert [query.id for query in queries] == ["rain", "both", "coat", "rain"]
    assert queries[-1].arguments == {"weather/forecast": {"place": "Oslo"}}


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
    assert [(lacking.kind, lacking.why) for lacking in last.lacking] == [("skill", "ranked too low to be picked")]
    path.write_text('{"query": "x", "skills": ["minuts"]}')
    with pytest.raises(QueriesError, match=r"no skill 'minuts' in the catalog \(did you mean 'minutes'\?\)"):
        read_queries(path, catalog)
