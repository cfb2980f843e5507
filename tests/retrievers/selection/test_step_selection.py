from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings, strategies as st
from langchain_core.documents import Document

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Policy, Provenance, SettingsError, Skill, Tool
from callsheet.retrievers import AgentGraphRetriever, Selection, StepNeed, explain_tool
from callsheet.retrievers.selection.decision import Judgement
from callsheet.retrievers.selection.step_selection import select_steps
from scripted import catalog_of, selector

FIRST, SECOND = "First thing", "Second thing"


def ids(selection: Selection) -> list[str]:
    return [tool.id for tool in selection.tools]


def reasons(selection: Selection) -> Mapping[str, str]:
    return {one.id: one.reason for one in selection.trace.cut}


def all_of(selections: Sequence[Selection]) -> set[str]:
    return {tool for selection in selections for tool in ids(selection)}


def test_named_tools_come_first_in_the_order_of_the_plan_whatever_their_scores() -> None:
    made = selector(catalog_of(a_x="", b_y="", c_z=""), {"a/x": 0.9, "b/y": 0.2})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("c/z", "b/y"))], fill=2)
    assert ids(picked) == ["c/z", "b/y"]
    assert [agent.id for agent in picked.agents] == ["c", "b"]
    assert explain_tool("c/z", picked) == "named in the plan"
    assert (picked.verdict, picked.trace.verdict) == ("found", "the plan names what is needed")


def test_named_tools_are_given_without_any_limit_of_agents() -> None:
    names = [f"{letter}/t" for letter in "abcdefghijkl"]
    made = selector(catalog_of(**{name.replace("/", "_"): "" for name in names}), {})
    (picked,) = select_steps(made, [StepNeed(FIRST, tuple(names))])
    assert ids(picked) == names


def test_named_tools_beyond_the_limit_are_reported_and_the_first_stay() -> None:
    made = selector(catalog_of(a_x="", a_y="", b_z=""), {"a/y": 0.9})
    needs = [StepNeed(FIRST, ("a/x",)), StepNeed(SECOND, ("b/z", "a/y"))]
    one, two = select_steps(made, needs, tools=2)
    assert (ids(one), ids(two)) == (["a/x"], ["b/z"])
    assert reasons(two)["a/y"] == "the budget is spent"


def test_a_named_tool_with_too_long_a_schema_is_reported_and_shorter_ones_stay() -> None:
    long = Tool(agent="a", name="long", description="word " * 500)
    short = Tool(agent="a", name="short")
    made = selector(Catalog(agents=(Agent(id="a", tools=(short, long)),)), {})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/long", "a/short"))], schema_tokens=100)
    assert ids(picked) == ["a/short"]
    assert "tokens of schemas, 100 are allowed" in reasons(picked)["a/long"]


def test_requirements_of_named_tools_come_before_the_best_by_text() -> None:
    made = selector(catalog_of(a_x="b_y", b_y="c_z", d_w="", d_v=""), {"d/w": 0.9, "d/v": 0.8})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x",))], fill=4)
    assert set(ids(picked)) == {"a/x", "b/y", "c/z", "d/w"}
    needed = next(tool for tool in picked.tools if tool.id == "c/z")
    assert (needed.via, needed.required) == (("a/x", "b/y", "c/z"), True)
    assert explain_tool("c/z", picked) == "required by a/x > b/y"
    assert picked.tools_of["a"] == ("a/x", "b/y", "c/z")  # given for the tool that needs them


def test_required_tools_may_exceed_the_number_to_fill_up_and_optional_ones_may_not() -> None:
    made = selector(catalog_of(a_x="b_y c_z? d_w?"), {})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x",))], fill=1)
    assert ids(picked) == ["a/x", "b/y"]
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x",))], fill=3)
    assert ids(picked) == ["a/x", "b/y", "c/z"]
    assert explain_tool("c/z", picked) == "used by a/x"


@pytest.mark.parametrize(
    ("provenance", "given"),
    [(Provenance.REVIEWED, True), (Provenance.OBSERVED, True), (Provenance.PROPOSED, False)],
)
def test_only_a_proposed_dependency_of_a_named_tool_takes_no_place(provenance: Provenance, given: bool) -> None:
    edge = Dependency(tool="b/y", kind=DependencyKind.TOOL_DIRECTLY, provenance=provenance, reason="it was seen")
    tools = Tool(agent="a", name="x", depends_on=(edge,)), Tool(agent="b", name="y"), Tool(agent="c", name="z")
    made = selector(Catalog(agents=tuple(Agent(id=tool.agent, tools=(tool,)) for tool in tools)), {"c/z": 0.9})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x",))], fill=2)
    assert ("b/y" in ids(picked)) is given


def test_the_best_of_each_step_are_added_in_turn() -> None:
    first = {"a/x": 0.9, "a/y": 0.88, "a/z": 0.86}
    second = {"b/x": 0.9, "b/y": 0.88, "b/z": 0.86}
    made = selector(
        catalog_of(a_x="", a_y="", a_z="", b_x="", b_y="", b_z=""), {}, parts={FIRST: first, SECOND: second}
    )
    one, two = select_steps(made, [StepNeed(FIRST), StepNeed(SECOND)], fill=3)
    assert (sorted(ids(one)), ids(two)) == (["a/x", "a/y"], ["b/x"])
    assert reasons(two)["b/y"] == "the budget is spent"


def test_a_step_without_named_tools_is_selected_by_its_text_beside_one_with_names() -> None:
    made = selector(catalog_of(a_x="", b_y="", c_z=""), {}, parts={FIRST: {"a/x": 0.9}, SECOND: {"b/y": 0.9}})
    one, two = select_steps(made, [StepNeed(FIRST, ("c/z",)), StepNeed(SECOND)], fill=2)
    assert (ids(one), ids(two)) == (["c/z"], ["b/y"])
    one, two = select_steps(made, [StepNeed(FIRST, ("c/z",)), StepNeed(SECOND)], fill=3)
    assert (ids(one), ids(two)) == (["c/z", "a/x"], ["b/y"])


def test_only_likely_tools_are_added_to_a_step_with_named_tools() -> None:
    made = selector(catalog_of(a_x="", b_y="", c_z=""), {"a/x": 0.9, "b/y": 0.6})
    (alone,) = select_steps(made, [StepNeed(FIRST)], floor=0.0)
    assert "b/y" in ids(alone)
    (picked,) = select_steps(made, [StepNeed(FIRST, ("c/z",))], floor=0.0)
    assert ids(picked) == ["c/z", "a/x"]
    assert "the minimum beside named tools is" in reasons(picked)["b/y"]


def test_a_tool_that_two_steps_name_stands_in_both_and_counts_once() -> None:
    made = selector(catalog_of(a_x="", b_y="", c_z=""), {"b/y": 0.9, "c/z": 0.88})
    one, two = select_steps(made, [StepNeed(FIRST, ("a/x",)), StepNeed(SECOND, ("a/x",))], fill=2, tools=2)
    assert ids(one) == ["a/x", "b/y"]
    assert ids(two) == ["a/x", "b/y"]
    assert len(all_of((one, two))) == 2


def test_names_that_are_not_tools_are_reported() -> None:
    made = selector(catalog_of(a_x="", b_y=""), {"b/y": 0.9})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/gone", "nothing", "a"))])
    assert ids(picked)[0] == "b/y"  # by the text, since nothing that is there is named
    unknown = {"a/gone": "unknown", "nothing": "unknown", "a": "an agent, not a tool"}
    assert reasons(picked).items() >= unknown.items()
    assert picked.trace.verdict != "the plan names what is needed"


def test_a_named_tool_of_an_agent_that_is_left_out_is_reported() -> None:
    made = selector(catalog_of(a_x="", b_y=""), {"b/y": 0.9})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x", "b/y"))], without=("a",))
    assert ids(picked) == ["b/y"]
    assert reasons(picked)["a/x"] == "its agent is left out"


def test_a_named_tool_that_the_policy_hides_is_unknown() -> None:
    whole = selector(catalog_of(a_x="", b_y="c_z?", c_z=""), {"a/x": 0.9, "b/y": 0.5})
    made = whole.within(Policy(default="allow", deny=("a", "c")).view(whole.catalog))
    (picked,) = select_steps(made, [StepNeed(FIRST, ("a/x", "b/y"))])
    assert ids(picked) == ["b/y"]
    assert reasons(picked) == {"a/x": "unknown"}


def test_a_judge_is_asked_only_of_steps_without_named_tools() -> None:
    asked: list[str] = []

    class Judge:
        name = "a judge"

        def judge(self, request: str, tools: Sequence[Document]) -> Judgement:
            asked.append(request)
            return Judgement([str(tool.metadata["id"]) for tool in reversed(tools)], {})

    made = selector(catalog_of(a_x="", b_y="", c_z=""), {"a/x": 0.9, "b/y": 0.89})
    steps = [StepNeed(FIRST, ("c/z",)), StepNeed(SECOND)]
    one, two = select_steps(made, steps, Judge(), fill=2)
    assert asked == [SECOND]
    assert (one.decision, two.decision and two.decision.by) == (None, "a judge")
    assert (ids(one), ids(two)) == (["c/z"], ["c/z", "b/y"])  # the judge puts the shared one first


def _with_skill() -> Catalog:
    catalog = catalog_of(a_x="", b_y="c_z", d_w="")
    skill = Skill(name="report", description="Writes reports.", text="Do.", tools=("b/y",))
    return Catalog(agents=catalog.agents, skills=(skill,))


def test_a_named_skill_is_given_with_the_tools_that_it_names_and_what_they_require() -> None:
    made = selector(_with_skill(), {"d/w": 0.9})
    (picked,) = select_steps(made, [StepNeed(FIRST, ("skills/report", "a/x"))], fill=3)
    assert [(skill.id, skill.tools) for skill in picked.skills] == [("skills/report", ("b/y",))]
    assert set(ids(picked)) == {"a/x", "b/y", "c/z"}
    assert explain_tool("b/y", picked) == "used by skills/report"
    (without,) = select_steps(made, [StepNeed(FIRST, ("skills/report",))], skills=0)
    assert (without.skills, reasons(without)["skills/report"]) == ((), "skills are turned off")


def test_a_skill_that_fits_the_text_of_a_step_is_given_as_before() -> None:
    scores = {"skills/report": 0.9, "a/x": 0.5}
    made = selector(_with_skill(), scores)
    (picked,) = select_steps(made, [StepNeed(FIRST)])
    assert [skill.id for skill in picked.skills] == ["skills/report"]
    assert "b/y" in ids(picked)


def test_no_steps_need_no_selections() -> None:
    assert select_steps(selector(catalog_of(a_x=""), {}), []) == ()


@pytest.mark.parametrize("text", ["", "  "])
def test_a_step_without_text_has_its_named_tools_only(text: str) -> None:
    made = selector(catalog_of(a_x="b_y", c_z=""), {"c/z": 0.9})
    named, empty = select_steps(made, [StepNeed(text, ("a/x",)), StepNeed(text)])
    assert (ids(named), named.verdict) == (["a/x", "b/y"], "found")
    assert [explain_tool(tool, named) for tool in ids(named)] == ["named in the plan", "required by a/x"]
    assert (ids(empty), empty.verdict) == ([], "nothing_fits")


def test_an_empty_catalog_gives_nothing() -> None:
    (picked,) = select_steps(selector(Catalog(), {}), [StepNeed(FIRST, ("a/x",))])
    assert (picked.verdict, reasons(picked)) == ("nothing_fits", {"a/x": "unknown"})


@pytest.mark.parametrize("wrong", [{"fill": -1}, {"fill": 1.5}, {"tools": 0}, {"schema_tokens": 0}, {"bogus": 1}])
def test_a_wrong_setting_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        select_steps(selector(catalog_of(a_x=""), {}), [StepNeed(FIRST)], **wrong)  # type: ignore[arg-type]


def test_the_retriever_selects_steps_for_its_user() -> None:
    made = selector(catalog_of(a_x="", b_y=""), {"b/y": 0.9})
    retriever = AgentGraphRetriever(selector=made, k=1, policy=Policy(default="allow", deny=("b",)))
    (picked,) = retriever.select_steps([StepNeed(FIRST, ("a/x", "b/y"))])
    assert (ids(picked), reasons(picked)) == (["a/x"], {"b/y": "unknown"})


NAMES = [f"{agent}_{tool}" for agent in "abc" for tool in "xyz"]
IDS = [name.replace("_", "/") for name in NAMES]
NEEDED = st.lists(st.sampled_from([*NAMES, *(f"{name}?" for name in NAMES)]), max_size=2, unique=True)
EDGES = st.fixed_dictionaries(dict.fromkeys(NAMES, NEEDED))
STEPS = st.lists(st.lists(st.sampled_from([*IDS, "gone/tool"]), max_size=5), min_size=1, max_size=3)
SCORES = st.dictionaries(st.sampled_from(IDS), st.floats(0, 1), max_size=9)


@given(EDGES, STEPS, SCORES, st.integers(1, 9), st.integers(0, 12))
@settings(max_examples=100, deadline=None)
def test_for_any_plan_the_limits_hold_and_every_named_tool_is_given_or_explained(
    edges: dict[str, list[str]], plan: list[list[str]], scores: dict[str, float], tools: int, fill: int
) -> None:
    own = {name: " ".join(one for one in needed if one.rstrip("?") != name) for name, needed in edges.items()}
    made = selector(catalog_of(**own), scores)
    steps = [StepNeed(f"step {number}", tuple(names)) for number, names in enumerate(plan)]
    picked = select_steps(made, steps, fill=fill, tools=tools)
    given_ids = all_of(picked)
    assert len(given_ids) <= tools
    named = {name for names in plan for name in names} - {"gone/tool"}
    assert len(named & given_ids) == min(len(named), tools)
    for step, selection in zip(steps, picked, strict=True):
        in_order = [name for name in dict.fromkeys(step.tools) if name in given_ids]
        assert ids(selection)[: len(in_order)] == in_order
        assert set(step.tools) <= {*ids(selection), *reasons(selection)}
        assert not {*ids(selection)} & {*reasons(selection)}
        assert all(explain_tool(tool, selection) for tool in ids(selection))
