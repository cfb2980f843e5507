"""Policies by themselves: rules, users, hints, views, and files that are no policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import (
    Agent,
    Catalog,
    Dependency,
    DependencyKind,
    Grants,
    Group,
    Policy,
    Provenance,
    SettingsError,
    Tool,
    User,
    hints,
    policy_of,
    read_policy,
    shipped_taxonomy,
)
from callsheet.graphs.capabilities.taxonomy import SHIPPED

DIRECT, LOOSE = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY


def made(tool_id: str, **fields: Any) -> Tool:
    agent, name = tool_id.split("/", 1)
    return Tool(agent=agent, name=name, **fields)


def catalog_of(*tools: Tool, empty: tuple[str, ...] = ()) -> Catalog:
    agents = dict.fromkeys(tool.agent for tool in tools)
    return Catalog(
        agents=(
            *(Agent(id=agent, tools=tuple(tool for tool in tools if tool.agent == agent)) for agent in agents),
            *(Agent(id=agent) for agent in empty),
        )
    )


def test_a_policy_rule_matches_ids_by_pattern_and_denies_disguised_names_too() -> None:
    cases = [
        ({"default": "allow"}, "a/x", True),
        ({"default": "deny"}, "a/x", False),
        ({"default": "deny", "allow": ["a"]}, "a/x", True),
        ({"default": "deny", "allow": ["a"]}, "ab/x", False),
        ({"default": "deny", "allow": ["a/x"]}, "a/xy", False),
        ({"default": "deny", "allow": ["a/x*"]}, "a/xy", True),
        ({"default": "deny", "allow": ["*/read_?"]}, "b/read_1", True),
        ({"default": "allow", "deny": ["a"], "allow": ["a/x"]}, "a/x", False),
        ({"default": "deny", "allow": ["*"], "deny": ["a/x"]}, "a/x", False),
        ({"default": "deny", "allow": ["*"], "deny": ["a/x"]}, "a/y", True),
        ({"default": "deny", "allow": ["A"]}, "a/x", False),
        ({"default": "allow", "deny": ["*/DELETE*"]}, "a/delete_all", False),
        ({"default": "allow", "deny": ["*/delete*"]}, "a/Delete_all", False),
        ({"default": "allow", "deny": ["*/delete*"]}, "a/de\u200blete_all", False),
        ({"default": "allow", "deny": ["*/delete*"]}, "a/ｄｅｌｅｔｅ", False),
        ({"default": "deny", "allow": ["a/delete*"]}, "a/de\u200blete", False),
    ]
    for rules, tool, allowed in cases:
        assert Policy(**rules).allows(made(tool)) is allowed


def test_users_and_groups_add_to_the_rules_for_everybody() -> None:
    cases = [
        (None, ["a/x"]),
        ("nobody", ["a/x"]),
        ("ann", ["a/x", "b/x"]),
        ("bob", ["a/x", "c/x"]),
        (User("zoe", frozenset({"staff"})), ["a/x", "c/x"]),
        (User("ann", frozenset({"staff"})), ["a/x", "b/x", "c/x"]),
        ("eve", []),
    ]
    for user, allowed in cases:
        policy = Policy(
            default="deny",
            allow=("a",),
            deny=("d",),
            users={"ann": Grants(allow=("b", "d")), "eve": Grants(deny=("*",))},
            groups={"staff": Group(members=("bob",), allow=("c",))},
        )
        tools = [made(f"{agent}/x") for agent in "abcd"]
        assert [tool.id for tool in tools if policy.allows(tool, user)] == allowed


HARMLESS = {"readOnlyHint": True}


def test_hints_count_only_where_their_author_is_trusted() -> None:
    cases = [
        ({}, False, (False, True, False)),
        (HARMLESS, False, (False, True, False)),
        (HARMLESS, True, (True, False, True)),
        ({"readOnlyHint": True, "destructiveHint": True}, True, (True, False, True)),
        ({"destructiveHint": False, "idempotentHint": True}, True, (False, False, True)),
        ({"destructiveHint": False}, False, (False, True, False)),
        ({"readOnlyHint": "yes"}, True, (False, True, False)),
    ]
    for given, trusted, expected in cases:
        told = hints(made("a/x", annotations=given), trusted=trusted)
        assert (told["readOnlyHint"], told["destructiveHint"], told["idempotentHint"]) == expected


def test_a_hint_tightens_for_all_and_loosens_only_for_the_trusted() -> None:
    allow = Policy(default="deny", allow=({"annotations": HARMLESS},), trust=("good*",))
    assert allow.allows(made("goods/x", annotations=HARMLESS))
    assert not allow.allows(made("liar/x", annotations=HARMLESS))
    assert not allow.allows(made("goods/x"))
    deny = Policy(default="allow", deny=({"annotations": {"destructiveHint": True}},), trust=("good*",))
    assert deny.allows(made("goods/x", annotations=HARMLESS))
    assert not deny.allows(made("liar/x", annotations=HARMLESS))
    assert deny.trusts("goods")
    assert not deny.trusts("liar")


@pytest.mark.parametrize("taxonomy", SHIPPED)
def test_a_capability_tightens_for_all_and_loosens_only_for_the_trusted(taxonomy: Any) -> None:
    shipped = shipped_taxonomy(taxonomy)
    leaf = next(c for c in shipped.leaves if shipped.ancestors(c))
    wide = shipped.ancestors(leaf)[-1]
    for word in (leaf, wide):
        allow = Policy(default="deny", allow=({"capability": word},), trust=("good",))
        assert allow.allows(made("good/x", capabilities=(leaf,)))
        assert not allow.allows(made("liar/x", capabilities=(leaf,)))
        assert not Policy(default="allow", deny=({"capability": word},)).allows(made("liar/x", capabilities=(leaf,)))
    assert Policy(default="allow", deny=({"capability": leaf},)).allows(made("a/x", capabilities=(wide,)))


def test_a_rule_applies_only_if_all_its_conditions_match() -> None:
    policy = Policy(default="allow", deny=({"id": "a", "capability": "own"},))
    assert not policy.allows(made("a/x", capabilities=("own",)))
    assert policy.allows(made("a/x"))
    assert policy.allows(made("b/x", capabilities=("own",)))


def needs(tool: str, kind: DependencyKind = DIRECT, **more: Any) -> tuple[Dependency, ...]:
    return (Dependency(tool=tool, kind=kind, **more),)


def test_a_view_is_closed_under_what_tools_require() -> None:
    catalog = catalog_of(
        made("a/top", depends_on=needs("a/middle")),
        made("a/middle", depends_on=needs("b/forbidden")),
        made("a/loose", depends_on=needs("b/forbidden", LOOSE)),
        made("a/guess", depends_on=needs("b/forbidden", provenance=Provenance.PROPOSED)),
        made("a/round", depends_on=needs("a/round")),
        made("b/forbidden"),
    )
    view = Policy(default="allow", deny=("b",)).view(catalog)
    assert view.tools == {"a/loose", "a/guess", "a/round"}
    assert view.blocked == {"a/top", "a/middle"}
    assert set(view.catalog.by_id) == {"a"}
    assert view.catalog.tool("a/loose").depends_on == ()
    assert view.catalog.tool("a/round").depends_on
    assert "b/forbidden" not in view
    assert "b" not in view
    assert view.summary(6) == "the policy allows 5 of 6 tools; left out because they require one that is not: " + (
        "a/middle, a/top"
    )


def test_agents_without_tools_follow_the_rules_too() -> None:
    catalog = catalog_of(made("a/x"), empty=("bare", "other"))
    assert set(Policy(default="allow", deny=("bare",)).view(catalog).catalog.by_id) == {"a", "other"}
    assert set(Policy(default="deny", allow=("bare",)).view(catalog).catalog.by_id) == {"bare"}


def test_a_view_is_made_once_for_the_same_rules() -> None:
    catalog = catalog_of(made("a/x"), made("b/x"))
    policy = Policy(default="allow", deny=("b",), users={"ann": Grants(deny=("a",))})
    assert policy.view(catalog) is policy.view(catalog, "bob") is policy.view(catalog, User("zoe"))
    assert policy.view(catalog, "ann") is not policy.view(catalog)
    assert not policy.view(catalog, "ann").tools
    assert Policy(default="allow").view(catalog).catalog is catalog
    assert policy.view(catalog_of(made("b/x"))).tools == frozenset()
    for i in range(100):
        policy.view(catalog_of(made(f"c/{i}")))
    assert policy.view(catalog).tools == {"a/x"}


def test_a_rule_that_matches_nothing_is_reported() -> None:
    policy = Policy(
        default="allow",
        deny=("a/x", "a/typo"),
        users={"ann": Grants(allow=({"capability": "none-such"},))},
        trust=("a",),
    )
    found = policy.findings(catalog_of(made("a/x")))
    assert [finding.rule for finding in found] == ["policy-rule-without-effect"] * 2
    assert "deny has the rule 'a/typo'" in found[0].message
    assert "user 'ann', allow has the rule {'capability': 'none-such'}" in found[1].message


def test_a_policy_is_written_and_read_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = Policy(
        default="deny",
        allow=("a", {"capability": "c", "annotations": {"readOnlyHint": True}}),
        commands=("uvx *",),
        groups={"g": Group(members=("ann",), deny=("b",))},
    )
    file = tmp_path / "policy.json"
    file.write_text(policy.model_dump_json())
    assert read_policy(file) == policy == policy_of(str(file)) == policy_of(policy)
    assert policy_of(None) is None
    monkeypatch.setenv("CALLSHEET_POLICY", str(tmp_path / "none.json"))
    with pytest.raises(SettingsError, match=r"none\.json cannot be read"):
        policy_of(None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot be read"),
        ("{}", 'must be an object with "default"'),
        ('{"default": "maybe"}', "default"),
        ('{"default": "deny", "alow": []}', "alow"),
        ('{"default": "deny", "allow": "a"}', "allow"),
        ('{"default": "deny", "allow": [{}]}', 'a rule must be a pattern, or an object with "id"'),
        ('{"default": "deny", "allow": [""]}', "allow"),
        ('{"default": "deny", "deny": [{"annotations": {"readOnlyHint": "no way"}}]}', "annotations"),
        ('{"default": "deny", "users": {"ann": {"members": []}}}', "members"),
        ('{"default": "deny", "callsheet_policy": 2}', "callsheet_policy"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_file_that_is_no_policy_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.json"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        read_policy(file)
    assert str(file) in str(refused.value)
    assert said in str(refused.value)


def test_reviewers_are_named_by_id_or_group_and_nobody_is_one_by_default() -> None:
    policy = Policy(default="allow", reviewers=("ann", "staff"), groups={"staff": Group(members=("cat",))})
    for user, may in (
        (User("ann"), True),
        (User("cat"), True),
        (User("dan", frozenset({"staff"})), True),
        (User("bob"), False),
        (User("staff"), False),
        (User(), False),
    ):
        assert policy.reviews(user) is may
    assert not Policy(default="allow").reviews(User("ann"))
