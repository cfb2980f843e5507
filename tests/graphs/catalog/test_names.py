"""Names of tools, as a model writes them."""

from __future__ import annotations

from callsheet.graphs import Agent, Catalog, Skill, Tool
from callsheet.graphs.catalog.names import named_tools


def _agent(agent: str, *names: str) -> Agent:
    return Agent(id=agent, tools=tuple(Tool(agent=agent, name=name) for name in names))


CATALOG = Catalog(
    agents=(_agent("files", "read_file", "write_file"), _agent("git", "git_log", "read_file"), _agent("wiki", "查询")),
    skills=(Skill(name="report"),),
)


def test_a_tool_is_found_however_its_name_is_written() -> None:
    cases = ["files/write_file", "write_file", "Files/Write_File", "files__write_file", "files.write-file"]
    for name in cases:
        assert named_tools(CATALOG, [name]).ids == ("files/write_file",)


def test_a_bare_name_that_two_agents_have_is_unknown_and_both_are_shown() -> None:
    named = named_tools(CATALOG, ["read_file", "git_log"])
    assert named.ids == ("git/git_log",)
    assert named.unknown == {"read_file": ("files/read_file", "git/read_file")}


def test_the_name_of_an_agent_does_not_mean_a_tool() -> None:
    named = named_tools(CATALOG, ["git", "skills/report", "查询"])
    assert (named.agents, named.ids) == (("git",), ("skills/report", "wiki/查询"))


def test_an_unknown_name_has_the_nearest_ids_beside_it() -> None:
    near = named_tools(CATALOG, ["files/write_fil"]).unknown["files/write_fil"]
    assert near[0] == "files/write_file"
    assert named_tools(CATALOG, ["", "zzz"]).unknown == {"": (), "zzz": ()}


def test_a_tool_named_twice_or_in_two_forms_counts_once() -> None:
    assert named_tools(CATALOG, ["git_log", "git/git_log", "git_log"]).ids == ("git/git_log",)


def test_a_name_with_a_hidden_character_is_found_as_it_is_seen() -> None:
    catalog = Catalog(agents=(_agent("bank", "pay\u200bment", "send\nmoney"),))
    assert named_tools(catalog, ["bank/payment", "send money"]).ids == ("bank/pay\u200bment", "bank/send\nmoney")
