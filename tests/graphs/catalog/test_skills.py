"""Folders of Agent Skills, well-formed and not."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, CatalogError, Policy, Skill, Tool, User, dump, load
from callsheet.graphs.catalog.formats import skill_folders
from callsheet.graphs.catalog.names import skill_named
from callsheet.graphs.export import to_cypher, to_graphml
from callsheet.graphs.lint import lint
from callsheet.graphs.rdf import from_rdf, rdf_findings, to_rdf
from callsheet.graphs.sources.loaded import SourceCatalog

PDF = "---\nname: pdf\ndescription: Fill in PDF forms.\nallowed-tools: {allowed}\n---\n# Forms\nUse `fill_form`.\n"


GOOD = "---\ndescription: Good.\n---\n"
BOMB = "a: &a [1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in ("ab", "bc", "cd", "de", "ef")
)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).mkdir(parents=True, exist_ok=True)
    file = folder / name / "SKILL.md"
    file.write_text(text, encoding="utf-8")
    return file


def tools(*ids: str) -> Catalog:
    agents: dict[str, list[Tool]] = {}
    for agent, _, name in (tool.partition("/") for tool in ids):
        agents.setdefault(agent, []).append(Tool(agent=agent, name=name))
    return Catalog(agents=tuple(Agent(id=agent, tools=tuple(own)) for agent, own in agents.items()))


def test_a_folder_of_skills_is_a_catalog(tmp_path: Path) -> None:
    write(tmp_path, "forms/pdf", PDF.format(allowed="office/read_file"))
    write(tmp_path, "notes", "---\ndescription: Take notes.\n---\nWrite.")
    loaded = load(tmp_path, tools("office/fill_form", "office/read_file", "web/get"))
    assert loaded.problems == ()
    assert loaded.catalog.sizes == "2 agents, 3 tools, 2 skills"
    notes, pdf = loaded.catalog.skills
    assert (notes.name, notes.text, notes.tools) == ("notes", "Write.", ())
    assert (pdf.id, pdf.description, pdf.text) == ("skills/pdf", "Fill in PDF forms.", "# Forms\nUse `fill_form`.")
    assert pdf.tools == ("office/read_file", "office/fill_form")


@pytest.mark.parametrize("allowed", ["mcp__office__read_file", "[read_file]", "Read(*.pdf), read_file", "read_file"])
def test_tool_names_in_the_forms_of_coding_agents_are_found(tmp_path: Path, allowed: str) -> None:
    write(tmp_path, "pdf", PDF.format(allowed=allowed))
    loaded = load(tmp_path, tools("office/fill_form", "office/read_file"))
    assert loaded.catalog.skills[0].tools == ("office/read_file", "office/fill_form")
    assert loaded.problems == ()


def test_an_ordinary_word_in_a_skill_is_not_taken_for_a_tool(tmp_path: Path) -> None:
    write(tmp_path, "web", "---\ndescription: d\n---\nCall `fetch`, `web/fetch2` or `readPage`.")
    loaded = load(tmp_path, tools("web/fetch", "web/fetch2", "web/readPage"))
    assert loaded.catalog.skills[0].tools == ("web/fetch2", "web/readPage")


@pytest.mark.parametrize(
    "text",
    [PDF.format(allowed="fill_form"), "---\nname: pdf\ndescription: d\n---\nCall `fill_form`, then `fill_form` again."],
)
def test_an_ambiguous_tool_name_in_a_skill_means_the_tool_of_the_server_pinned_first(tmp_path: Path, text: str) -> None:
    write(tmp_path, "pdf", text)
    agents = tools("a/fill_form", "b/fill_form").agents
    loaded = load(tmp_path, SourceCatalog(agents, places={"a": 2, "b": 1}))
    assert loaded.catalog.skills[0].tools == ("b/fill_form",)
    (problem,) = loaded.problems
    assert str(problem) == (
        "skills/pdf: names 'fill_form', which could be b/fill_form or a/fill_form: b/fill_form is meant, whose server "
        "came first; to be sure, give the id"
    )
    assert load(tmp_path, tools("a/fill_form", "b/fill_form")).catalog.skills[0].tools == ("a/fill_form",)


def test_a_loaded_folder_joined_with_agents_later_keeps_the_names_that_it_allows(tmp_path: Path) -> None:
    write(tmp_path, "pdf", PDF.format(allowed="Bash, read_file, get"))
    first = load(load(tmp_path), tools("office/read_file"))
    assert first.catalog.skills[0].tools == ("office/read_file",)
    whole = load(first, tools("web/get"), tools("more/read_file"))
    assert whole.catalog.skills[0].tools == ("office/read_file", "web/get")
    assert whole.problems == ()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "it has no front matter") for text in (b"no front matter", b"---\nname: x\n")),
        (b"---\n\xff\n---\n", "it cannot be read as UTF-8"),
        ("---\n- a\n---\n", "is not a mapping"),
        ("---\ndescription: [a]\n---\n", "'description' in its front matter is not a text"),
        ("---\nname: x\n---\n", "it has no description"),
        ("---\nname: a/b\ndescription: d\n---\n", "its name 'a/b' is not 1 to 64 plain characters"),
        (f"---\nname: {'n' * 65}\ndescription: d\n---\n", "is not 1 to 64 plain characters"),
        ("---\nname: a\u202eb\ndescription: d\n---\n", "is not 1 to 64 plain characters"),
        ("---\ndescription: d\nallowed-tools: 3\n---\n", "'allowed-tools' in its front matter is not a list of names"),
        (f"---\n{BOMB}---\n", "too many nodes"),
        ("---\na: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *c]\n---\n", "not valid YAML"),
        ("---\ndescription: d\n---\n" + "x" * 500_001, "larger than 500 KB"),
    ],
)
def test_a_malformed_skill_is_left_out_and_says_why(tmp_path: Path, text: str | bytes, why: str) -> None:
    write(tmp_path, "good", GOOD)
    write(tmp_path, "bad", "").write_bytes(text if isinstance(text, bytes) else text.encode())
    loaded = load(tmp_path)
    assert [skill.name for skill in loaded.catalog.skills] == ["good"]
    assert [(problem.agent, problem.kind) for problem in loaded.problems] == [("bad/SKILL.md", "malformed")]
    assert why in loaded.problems[0].message


def test_a_skill_whose_front_matter_is_not_valid_yaml_is_still_read(tmp_path: Path) -> None:
    cases = [
        ("argument-hint: [a] [b]\ndescription: Good.", "Good."),
        ("description: Good.\nargument-hint: <file>: `x` | [y] z\nmodel: *fast", "Good."),
        ("description: Use when: asked", "Use when: asked"),
        ("description: `gh` for GitHub", "`gh` for GitHub"),
        ("description: [Beta] Writes\n  texts: long ones\nlicense: @us", "[Beta] Writes texts: long ones"),
        ('description: "quoted" and: not\n\nhooks: {a: b}}', '"quoted" and: not'),
        ("version: 1: 2\ndescription: >-\n  Two\n\n  lines\n", "Two\nlines"),
    ]
    for front, description in cases:
        write(tmp_path, "good", f"---\n{front}\nname: good\nallowed-tools:\n- get\n---\nText.")
        loaded = load(tmp_path, tools("web/get"))
        assert loaded.problems == ()
        (skill,) = loaded.catalog.skills
        assert (skill.name, skill.description, skill.tools) == ("good", description, ("web/get",))


def test_skills_are_found_at_any_depth_and_below_others(tmp_path: Path) -> None:
    places = (".", "skills/a", "skills/a/parts/b", "plugins/p/1.0/skills/c", "1/2/3/4/5/6/7/8/d", ".claude/skills/e")
    for place in places:
        write(tmp_path, place, f"---\nname: {place.replace('/', '-')}\ndescription: d\n---\n")
    (tmp_path / "lower").mkdir()
    (tmp_path / "lower" / "skill.md").write_text(GOOD)
    for place in ("node_modules/x", "skills/node_modules/x", ".git/x"):
        write(tmp_path, place, GOOD)
    loaded = load(tmp_path)
    assert loaded.problems == ()
    assert {skill.name for skill in loaded.catalog.skills} == {*(place.replace("/", "-") for place in places), "lower"}
    assert load(tmp_path / "lower" / "skill.md").catalog.sizes == "0 agents, 0 tools, 1 skill"


def test_folders_that_are_not_searched_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "skills"
    write(folder, "good", GOOD)
    write(tmp_path, "other/one", GOOD)
    (folder / "more").symlink_to(tmp_path / "other")
    (folder / "again").symlink_to(folder)
    (folder / "alias").symlink_to(folder / "good")
    (folder / ".claude").mkdir()
    (folder / ".claude" / "skills").symlink_to(tmp_path / "other")
    (folder / "closed").mkdir()
    walk = os.walk

    def walked(top: Path, onerror: Any) -> Any:
        onerror(PermissionError(13, "Permission denied", str(folder / "closed")))
        return walk(top)

    monkeypatch.setattr(os, "walk", walked)
    loaded = load(folder)
    assert [skill.name for skill in loaded.catalog.skills] == ["good"]
    why = f"it is a link to {tmp_path / 'other'}, outside the folder: name that folder as a catalog"
    said = ["closed: it cannot be searched: Permission denied", f"more: {why}", f".claude/skills: {why}"]
    assert [str(problem) for problem in loaded.problems] == said
    assert [(finding.rule, finding.severity.value) for finding in lint(loaded)] == [("unread-source", "warning")] * 3


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = write(tmp_path, "private", "---\nname: secret\ndescription: Of somebody else.\n---\n")
    folder = tmp_path / "skills"
    write(folder, "good", GOOD)
    (folder / "bad").mkdir()
    (folder / "bad" / "SKILL.md").symlink_to(secret)
    (folder / "linked").symlink_to(tmp_path / "private")
    loaded = load(folder)
    assert [skill.name for skill in loaded.catalog.skills] == ["good"]
    assert all("outside the folder" in problem.message for problem in loaded.problems)
    assert [problem.agent for problem in loaded.problems] == ["linked/SKILL.md", "bad/SKILL.md"]


def test_a_skill_that_only_people_may_choose_is_left_out(tmp_path: Path) -> None:
    write(tmp_path, "good", GOOD)
    for value in ("true", "True", "yes", '"true"'):
        write(tmp_path, f"own {value}", f"---\ndescription: d\ndisable-model-invocation: {value}\n---\n")
    loaded = load(tmp_path)
    assert ([skill.name for skill in loaded.catalog.skills], loaded.problems) == (["good"], ())


def test_a_pipe_in_place_of_a_skill_file_does_not_hang(tmp_path: Path) -> None:
    write(tmp_path, "good", GOOD)
    for name in ("fifo", "folder", "circle"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "fifo" / "SKILL.md")
    (tmp_path / "folder" / "SKILL.md").mkdir()
    (tmp_path / "circle" / "SKILL.md").symlink_to("SKILL.md")
    loaded = load(tmp_path)
    assert [skill.name for skill in loaded.catalog.skills] == ["good"]
    places = [problem.agent for problem in loaded.problems]
    assert places == ["circle/SKILL.md", "fifo/SKILL.md", "folder/SKILL.md"]


def test_a_long_list_of_brackets_is_read_in_linear_time(tmp_path: Path) -> None:
    write(tmp_path, "a", f'---\ndescription: d\nallowed-tools: "{"(" * 400_000}"\n---\n')
    assert load(tmp_path).catalog.skills[0].tools == ()


def test_manifests_are_read_although_a_folder_has_too_many_subfolders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_folders, "_MOST_FOLDERS", 20)
    (tmp_path / "web.json").write_text('{"name": "web", "tools": [{"name": "get"}]}')
    for number in range(30):
        (tmp_path / "node_modules" / str(number)).mkdir(parents=True)
    assert load(tmp_path).problems == ()
    for number in range(30):
        (tmp_path / str(number)).mkdir()
    loaded = load(tmp_path)
    assert loaded.catalog.sizes == "1 agent, 1 tool"
    assert "more than 20 folders" in loaded.problems[0].message


def test_the_second_skill_of_a_name_is_left_out_and_named(tmp_path: Path) -> None:
    for place in ("one", "two"):
        write(tmp_path, place, "---\nname: same\ndescription: d\n---\n")
    loaded = load(tmp_path)
    assert len(loaded.catalog.skills) == 1
    assert "a second skill is named 'same'" in loaded.problems[0].message


def test_a_skill_with_extra_files_and_a_folder_that_also_has_manifests_are_read(tmp_path: Path) -> None:
    write(tmp_path, "pdf", GOOD)
    (tmp_path / "pdf" / "theme.json").write_text("[]")
    write(tmp_path / "pdf", "inner", "not a skill")
    loaded = load(tmp_path / "pdf")
    assert loaded.catalog.sizes == "0 agents, 0 tools, 1 skill"
    assert [problem.agent for problem in loaded.problems] == ["inner/SKILL.md"]
    (tmp_path / "web.json").write_text('{"name": "web", "tools": [{"name": "get"}]}')
    both = load(tmp_path)
    assert both.catalog.sizes == "1 agent, 1 tool, 1 skill"
    assert [problem.agent for problem in both.problems] == ["pdf/inner/SKILL.md"]


def test_a_skill_must_name_tools_of_its_catalog() -> None:
    with pytest.raises(CatalogError, match="skill 'pdf' names 'office/get', which is not in the catalog"):
        Catalog(skills=(Skill(name="pdf", tools=("office/get",)),))
    with pytest.raises(CatalogError, match="two nodes of the catalog have the id 'skills/pdf'"):
        Catalog(agents=tools("skills/pdf").agents, skills=(Skill(name="pdf"),))


def test_a_policy_hides_skills_and_the_tools_that_they_name() -> None:
    catalog = tools("office/fill_form", "web/get")
    named = Skill(name="pdf", tools=("office/fill_form", "web/get"))
    catalog = Catalog(agents=catalog.agents, skills=(named, Skill(name="secret")))
    policy = Policy(default="allow", deny=("web", "skills/secret"))
    seen = policy.view(catalog, User()).catalog
    assert [(skill.name, skill.tools) for skill in seen.skills] == [("pdf", ("office/fill_form",))]
    assert Policy(default="deny", allow=("web",)).view(catalog, User()).catalog.skills == ()
    assert policy.findings(catalog) == ()
    assert len(Policy(default="allow", deny=("skills/sekret",)).findings(catalog)) == 1


def test_exports_keep_skills(tmp_path: Path) -> None:
    agents = tools("office/fill_form", "office/read_file").agents
    skill = Skill(name="p.d f", description="d", text="t\n", tools=("office/read_file", "office/fill_form"))
    catalog = Catalog(agents=agents, skills=(skill, Skill(name="other")))
    for name, text in (("callsheet.json", dump(catalog)), ("catalog.ttl", to_rdf(catalog))):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert load(tmp_path / name).catalog == catalog
    assert from_rdf(to_rdf(catalog)) == catalog
    assert not [finding for finding in rdf_findings(catalog) if "skill" in finding.message]
    assert "MERGE (n:Skill {key: 'skill/p%2Ed%20f'})" in to_cypher(catalog)
    assert ":USES" in to_cypher(catalog)
    assert "uses" in to_graphml(catalog)


def test_hidden_characters_in_a_skill_are_a_finding() -> None:
    catalog = Catalog(skills=(Skill(name="a", description="d", text="Fill in the form. \U000e0041"),))
    assert [(finding.rule, finding.severity.value) for finding in lint(catalog)] == [("hidden-text", "error")]


def test_skills_of_one_name_on_two_servers_and_in_a_folder_are_three_skills_in_every_format() -> None:
    agents = [Agent(id=name, tools=(Tool(agent=name, name="t"),)) for name in ("ops", "shop")]
    served = [Skill(name="refunds", description=f"Of {agent.id}.", agent=agent.id) for agent in agents]
    own = Skill(name="refunds", description="Ours.", text="Text.")
    catalog = Catalog(agents=tuple(agents), skills=(*served, own))
    assert set(catalog.skills_by_id) == {"ops/skill:refunds", "shop/skill:refunds", "skills/refunds"}
    assert from_rdf(to_rdf(catalog)) == catalog
    assert Catalog(**catalog.model_dump(mode="json")) == catalog
    assert to_graphml(catalog).count('<node id="skill/') == 3


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("ops/skill:a", ("ops/skill:a", "")),
        ("ops/skill:a/b", ("ops/skill:a/b", "")),
        ("ops/skill:a/b/c.md", ("ops/skill:a/b", "c.md")),
        ("ops/skill:a/d/c.md", ("ops/skill:a", "d/c.md")),
        ("skills/a/c.md", None),
        ("ops/skill", None),
    ],
)
def test_a_name_below_a_served_skill_is_that_of_a_file_of_it(name: str, meant: tuple[str, str] | None) -> None:
    served = [Skill(name=path, agent="ops") for path in ("a", "a/b")]
    found = skill_named(Catalog(skills=(*served, Skill(name="a"))), name)
    assert (found and (found[0].id, found[1])) == meant
