"""The names under which a model sees tools."""

from __future__ import annotations

import re

import pytest

from callsheet.agents.registry.binding import model_names
from callsheet.graphs import Agent, Catalog, Tool

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def manifest(*ids: str) -> Catalog:
    agents: dict[str, list[Tool]] = {}
    for agent, name in (i.split("/", 1) for i in ids):
        agents.setdefault(agent, []).append(Tool(agent=agent, name=name))
    return Catalog(agents=tuple(Agent(id=agent, tools=tuple(tools)) for agent, tools in agents.items()))


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        (["a/x", "b/y"], ["a_x", "b_y"]),
        (["a/x", "b/x"], ["a_x", "b_x"]),
        (["a/my tool/é"], ["a_my_tool__"]),
        (["my server/x", "my server/my server-x"], ["my_server_x", "my_server-x"]),
        (["git/git_log", "git/git-log", "git/gitlog"], ["git_log", "git-log", "git_gitlog"]),
        (["fetch/fetch", "fetch/refetch"], ["fetch", "fetch_refetch"]),
        (["git/git_log", "git/log"], ["git_git_log", "git_log"]),
        (["need/tool"], ["need_tool_d3e73b283931f8dd"]),
    ],
)
def test_names_that_a_model_sees(ids: list[str], names: list[str]) -> None:
    catalog = manifest(*ids)
    assert model_names([catalog.tool(i) for i in ids]) == names


def test_a_name_does_not_depend_on_the_other_tools() -> None:
    catalog = manifest("a/x", "b/x", "b/y", f"{'a' * 40}/{'x' * 40}")
    alone = [model_names([tool])[0] for tool in catalog.tools.values()]
    assert model_names(list(catalog.tools.values())) == alone
    assert alone[-1].startswith(f"{'a' * 23}_{'x' * 23}_"), "what is too long shows both, and a digest"
    assert len(alone[-1]) == 64


def test_names_stay_unique_whatever_the_ids() -> None:
    ids = [
        "a/x y",
        "a/x_y",
        "b/x.y",
        f"c/{'n' * 80}",
        f"d/{'n' * 80}",
        f"e/{'n' * 64}",
        "a_b/c",
        "a/b_c",
        "a/a_b_c",
        "a/c",
        "é/c",
        "è/c",
    ]
    catalog = manifest(*ids)
    names = model_names([catalog.tool(i) for i in ids])
    assert len(set(names)) == len(ids)
    assert all(NAME.match(name) for name in names)
    backwards = model_names([catalog.tool(i) for i in reversed(ids)])
    assert backwards == names[::-1]
