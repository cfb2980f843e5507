"""Policies and pins of every sort: a file that cannot be read refuses, and one that can is kept to."""

from __future__ import annotations

import json
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from callsheet.graphs import CallsheetError, SettingsError, User
from callsheet.graphs.errors import TrustError
from fuzzing import fuzzed, mutated, texts
from puppet import result
from stage import Stage

NAMES = ("read_a", "read_b", "write", "delete_all")
TOOLS = [{"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}} for name in NAMES]
patterns = st.sampled_from(
    [
        *(
            *(f"puppet/{name}" for name in NAMES),
            "puppet",
            "*",
            "*/read_?",
            "puppet/*e*",
            "p*",
            "other/*",
            "PUPPET/write",
        ),
        *({"annotations": {"readOnlyHint": True}}, {"capability": "plan"}, {"id": "puppet/write"}),
    ]
)
grants = st.fixed_dictionaries({}, optional={"allow": st.lists(patterns), "deny": st.lists(patterns, max_size=2)})
groups = st.builds(
    lambda rules, members: {**rules, "members": members}, grants, st.lists(st.sampled_from(["ann", "bo"]))
)
policies = st.builds(
    lambda rules, default, users, named: {"default": default, **rules, "users": users, "groups": named},
    grants,
    st.sampled_from(["allow", "deny"]),
    st.dictionaries(st.sampled_from(["ann", "bo"]), grants, max_size=2),
    st.dictionaries(st.sampled_from(["staff", "guests"]), groups, max_size=2),
)
files = policies.map(json.dumps) | policies.flatmap(mutated).map(json.dumps)
files |= st.builds(lambda text, at, odd: text[:at] + odd + text[at + 1 :], files, st.integers(0, 80), texts)
users = st.sampled_from(["ann", "bo", ""])


def permitted(policy: dict[str, Any], name: str, user: str, group: str) -> bool:
    """Whether a policy grants a tool, read as simply as can be; rules that are no patterns grant nothing here."""
    held = [policy, policy.get("users", {}).get(user, {})]
    held += [g for key, g in policy.get("groups", {}).items() if user in g.get("members", ()) or key == group]

    def any_of(effect: str, *, folded: bool) -> bool:
        rules = [rule.get("id") if isinstance(rule, dict) else rule for given in held for rule in given.get(effect, ())]
        pairs = [(rule, known) for rule in rules if rule for known in (f"puppet/{name}", "puppet")]
        return any(
            fnmatchcase(known, rule) or (folded and fnmatchcase(known.casefold(), rule.casefold()))
            for rule, known in pairs
        )

    return not any_of("deny", folded=True) and (policy["default"] == "allow" or any_of("allow", folded=False))


@given(text=files, user=users, group=st.sampled_from(["staff", ""]))
def kept_to(stage: Stage, file: Path, text: str, user: str, group: str) -> None:
    async def example() -> None:
        file.write_text(text, encoding="utf-8", errors="surrogatepass")
        await stage.offer({"tools": TOOLS})
        who = User(user, frozenset({group} - {""}))
        try:
            loaded = stage.accept(file)
        except SettingsError:
            return
        policy = json.loads(text)
        assert loaded.policy is not None
        seen = {tool.name for tool in loaded.policy.view(loaded.catalog, who).catalog.tools.values()}
        for name in NAMES:
            await stage.call(f"puppet/{name}", {}, user=who)
            sent = {call["name"] for call in stage.puppet.calls}
            stage.puppet.sent.clear()
            assert sent == {name} & seen
            assert not sent or permitted(policy, name, user, group)

    stage.run(example())


def test_a_policy_is_kept_to_or_refused(stage: Stage, tmp_path: Path) -> None:
    stage.puppet.answers["tools/call"] = result({"content": [{"type": "text", "text": "done"}]})
    fuzzed(25)(kept_to)(stage, tmp_path / "policy.json")


def forgotten(pins: str) -> bool:
    """Whether a file of pins has none of the server."""
    with suppress(ValueError, TypeError, LookupError):
        return "puppet" not in json.loads(pins)["servers"]
    return False


@given(data=st.data(), more=st.integers(1, 3))
def relied_on(stage: Stage, data: st.DataObject, more: int) -> None:
    async def example() -> None:
        await stage.offer({"tools": TOOLS[more:]})
        stage.accept()
        pins = json.loads(stage.book.file.text())
        changed = data.draw(
            mutated(pins).map(json.dumps) | st.binary(max_size=30).map(lambda odd: odd.decode("latin-1"))
        )
        stage.book.file.replace(changed.encode())
        await stage.offer({"tools": TOOLS})
        with suppress(TrustError):
            stage.read()
        for name in NAMES:
            with suppress(CallsheetError):
                await stage.call(f"puppet/{name}", {})
        if forgotten(changed):
            return  # a server without pins is met for the first time
        assert {call["name"] for call in stage.puppet.calls} <= set(NAMES[more:])

    stage.run(example())


def test_damaged_pins_accept_nothing(stage: Stage) -> None:
    stage.puppet.answers["tools/call"] = result({"content": [{"type": "text", "text": "done"}]})
    fuzzed(20)(relied_on)(stage)
