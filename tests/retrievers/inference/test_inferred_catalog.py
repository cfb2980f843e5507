"""A retriever has inferred dependencies without being asked for them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Grants, Policy, Provenance, Tool, load
from callsheet.graphs.dependencies import write_dependencies
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings, SelectSettings
from callsheet.retrievers.inference import dependency_proposals, infer_dependencies, with_inferred

CONTACT = {"type": "object", "properties": {"contact_id": {"type": "string"}}}
FIND = Tool(agent="crm", name="find_contacts", description="Finds contacts.", output_schema=CONTACT)
DELETE = Tool(
    agent="crm",
    name="delete_contact",
    description="Deletes a contact.",
    input_schema={**CONTACT, "required": ["contact_id"]},
)


def catalog(*tools: Tool) -> Catalog:
    return Catalog(agents=(Agent(id="crm", description="Contacts.", tools=tools),))


def edges(found: Catalog) -> list[tuple[str, Provenance]]:
    return [(edge.tool, edge.provenance) for tool in found.tools.values() for edge in tool.depends_on]


def retriever(source: object, **more: object) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(source, index=":memory:", embeddings=MiniLMEmbeddings(), **more)  # type: ignore[arg-type]


def test_a_retriever_brings_what_a_tool_seems_to_need_and_requires_nothing() -> None:
    made = retriever(catalog(FIND, DELETE))
    assert edges(made.catalog) == [(FIND.id, Provenance.PROPOSED)]
    (picked,) = [tool for tool in made.select("delete_contact").tools if tool.via != (tool.id,)]
    assert (picked.id, picked.via, picked.required) == (FIND.id, (DELETE.id, FIND.id), False)
    assert picked.inferred == "its result holds contact_id, which fits contact_id"
    assert edges(retriever(catalog(FIND, DELETE), settings=SelectSettings(proposed=0)).catalog) == []


def test_declared_dependencies_stay_declared() -> None:
    edge = Dependency(tool=FIND.id, kind=DependencyKind.PARAMETER_DIRECTLY, parameter="contact_id")
    whole = catalog(FIND, DELETE.model_copy(update={"depends_on": (edge,)}))
    assert with_inferred(whole) is whole
    assert {tool.inferred for tool in retriever(whole).select("delete_contact").tools} == {""}


@pytest.mark.parametrize(
    ("accept", "left"), [(True, [Provenance.REVIEWED]), (False, []), (None, [Provenance.PROPOSED])]
)
def test_the_decision_of_a_person_wins_also_when_the_catalog_changes(
    accept: bool | None, left: list[Provenance], tmp_path: Path
) -> None:
    (proposal,) = infer_dependencies(catalog(FIND, DELETE))
    file = tmp_path / "dependencies.json"
    write_dependencies((proposal.model_copy(update={"accept": accept}),), file)
    loaded = load(catalog(FIND, DELETE), file)
    made = retriever(loaded)
    assert [provenance for _, provenance in edges(made.catalog)] == left
    ping = Tool(agent="crm", name="ping", description="Whether it is there.")
    made.follow(load(catalog(FIND, DELETE, ping), file))
    assert [provenance for _, provenance in edges(made.catalog)] == left
    assert edges(load(load(loaded)).catalog) == edges(loaded.catalog)
    assert load(loaded).rejected == loaded.rejected


def test_inference_for_an_unchanged_catalog_comes_from_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Catalog] = []

    def counting(of: Catalog, **terms: Any) -> object:
        asked.append(of)
        return infer_dependencies(of, **terms)

    monkeypatch.setattr(dependency_proposals, "infer_dependencies", counting)
    whole, place = catalog(FIND, DELETE), tmp_path / "inferred"
    found = [edges(with_inferred(whole, cache=place)) for _ in range(2)]
    assert found[0] == found[1] == [(FIND.id, Provenance.PROPOSED)]
    assert len(asked) == 1
    with_inferred(catalog(DELETE), cache=place)
    assert len(asked) == 2, "another content"
    monkeypatch.setattr(dependency_proposals, "RECIPE", 0)
    with_inferred(whole, cache=place)
    assert len(asked) == 3, "other rules"
    for file in place.iterdir():
        file.write_text("{", encoding="utf-8")
    assert edges(with_inferred(whole, cache=place)) == found[0]
    assert len(asked) == 4, "a damaged file"


def test_the_cache_keeps_the_last_contents_and_an_unwritable_folder_is_tolerated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependency_proposals, "_MOST_FILES", 2)
    for number in range(4):
        with_inferred(catalog(FIND, Tool(agent="crm", name=f"t{number}")), cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert edges(with_inferred(catalog(FIND, DELETE), cache=tmp_path / "file")) == [(FIND.id, Provenance.PROPOSED)]


SYSTEM = {"crm": "", "mail": ""}
"""Two agents that are two systems."""


def across(system: Mapping[str, str], *more: Tool) -> Catalog:
    """The tool that deletes a contact, and one of another agent that returns contacts."""
    find = FIND.model_copy(update={"agent": "mail"})
    tools = (DELETE, find, *more)
    return Catalog(
        agents=tuple(
            Agent(id=name, system=of, tools=tuple(tool for tool in tools if tool.agent == name))
            for name, of in system.items()
        )
    )


def test_between_agents_a_proposal_holds_only_within_a_system_or_on_a_trusted_agent(tmp_path: Path) -> None:
    apart, found = across(SYSTEM), [("mail/find_contacts", Provenance.PROPOSED)]
    assert [edge.target for edge in infer_dependencies(apart)] == ["mail/find_contacts"], "for a person to review"
    assert edges(with_inferred(apart)) == []
    assert edges(with_inferred(apart, trusted=["crm"])) == [], "the source of the argument is not trusted"
    assert edges(with_inferred(apart, trusted=["mail", "gone"])) == found
    assert edges(with_inferred(across(dict.fromkeys(SYSTEM, "suite")))) == found
    assert edges(with_inferred(across({"crm": "mail", "mail": ""}))) == [], "an id is no system"
    for trusted, expected in (((), []), (("mail",), found), ((), [])):
        assert edges(with_inferred(apart, trusted=trusted, cache=tmp_path)) == expected
    policy = Policy(default="allow", trust=("mail",))
    assert edges(retriever(apart).catalog) == []
    assert edges(retriever(apart, policy=policy).catalog) == found
    (edge,) = infer_dependencies(apart)
    file = tmp_path / "dependencies.json"
    write_dependencies((edge.model_copy(update={"accept": True}),), file)
    assert edges(retriever(load(apart, file)).catalog) == [("mail/find_contacts", Provenance.REVIEWED)]


@pytest.mark.parametrize("name", ["get_contact_id_{}", "list_contacts_{}", "lookup_contact_{}", "find_contacts_{}"])
def test_many_tools_of_another_agent_do_not_displace_the_own_source(name: str) -> None:
    flood = tuple(
        Tool(agent="mail", name=name.format(i), description="Returns the contact id.", output_schema=CONTACT)
        for i in range(40)
    )
    own = Catalog(agents=(Agent(id="crm", tools=(FIND, DELETE)), Agent(id="mail", tools=flood)))
    assert edges(with_inferred(own)) == edges(with_inferred(catalog(FIND, DELETE))) != []


def test_no_dependency_on_a_tool_of_an_untrusted_agent_is_inferred() -> None:
    needs = {"properties": {"email": {"type": "string"}}, "required": ["email"]}
    send = Agent(id="mail", tools=(Tool(agent="mail", name="send", input_schema=needs),))
    for name in ("validate_email", "verify_email", "check_email", "get_email"):
        other = Agent(id="evil", tools=(Tool(agent="evil", name=name, description="Returns the email address."),))
        assert edges(with_inferred(Catalog(agents=(send, other)))) == []


def test_a_user_sees_no_inferred_dependency_on_a_hidden_tool() -> None:
    policy = Policy(default="deny", users={"ada": Grants(allow=("crm/delete_contact",))})
    made = retriever(catalog(FIND, DELETE), policy=policy)
    assert edges(made.within("ada").catalog) == []
    assert set(made.within("ada").catalog.tools) == {DELETE.id}, "an inferred dependency blocks nothing"
