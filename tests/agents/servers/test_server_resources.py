"""Resources and prompts of a server: which are listed, which are left out, and what a bad answer costs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mcp import MCPError

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.registry.tool_registry import hidden_resource
from callsheet.agents.servers.catalogs.listings import (
    MOST_RESOURCES,
    entries_of,
    listed_resources,
    listed_tools,
    read_outcome,
    read_request,
    resources_of,
)
from callsheet.graphs import Catalog, Loaded, Policy, User

BOTH = SimpleNamespace(resources=True, prompts=True)
LIMITS = Limits(list=0.2, output=200)


class Server:
    """Answers of a server by method; an exception is raised, and None never answers."""

    def __init__(self, **answers: Any) -> None:
        self.answers, self.asked = answers, list[str]()

    async def __call__(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        self.asked.append(method)
        answer = self.answers.get(method.split("/")[-2 if method.count("/") == 2 else 0], {})
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            await asyncio.sleep(60)
        return cast("dict[str, Any]", answer)


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [str(entry.get("name")) for entry in entries]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "no answer to prompts/list: TimeoutError"),
        (MCPError(-32000, "out of order"), "no answer to prompts/list: MCPError: out of order"),
        (MCPError(-32601, "Method not found"), ""),
        (asyncio.CancelledError(), "no answer to prompts/list: CancelledError"),
        ({"prompts": "none"}, "its answer to prompts/list has no list of prompts"),
        ({"prompts": [], "nextCursor": "again"}, ""),
    ],
)
async def test_a_list_that_is_not_answered_costs_no_other_list(answer: Any, why: str) -> None:
    server = Server(resources={"resources": [{"uri": "x:1"}]}, templates={"resourceTemplates": []}, prompts=answer)
    entries, missing = await listed_resources(server, BOTH, LIMITS)
    assert names(entries) == ["resource:x:1"]
    assert (why in missing) if why else not missing


async def test_there_are_never_more_than_a_thousand_of_a_kind() -> None:
    many = [{"name": f"p{number}"} for number in range(MOST_RESOURCES + 1)]
    entries, missing = await listed_resources(Server(prompts={"prompts": many}), SimpleNamespace(prompts=True), LIMITS)
    assert len(entries) == MOST_RESOURCES
    assert missing == "prompts/list: more than 1,000 prompts, of which the first are used"


async def test_a_list_that_does_not_end_is_not_cut_in_silence() -> None:
    async def endless(method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        cursor = f"{params.get('cursor', '')}x"
        return {"tools": [], "prompts": [{"name": f"p{len(cursor)}"}], "nextCursor": cursor}

    with pytest.raises(Fault, match="more than 200 pages"):
        await listed_tools(endless, None, Limits())
    entries, missing = await listed_resources(endless, SimpleNamespace(prompts=True), Limits())
    assert (len(entries), missing) == (201, "prompts/list: more than 200 pages of prompts, of which the first are used")


A, B = {"name": "a"}, {"name": "b"}
PAGED: list[tuple[dict[Any, tuple[list[Any], Any]], list[Any], str]] = [
    ({None: ([A], "")}, [A], ""),
    ({None: ([A], None)}, [A], ""),
    ({None: ([A], "1"), "1": ([B], "")}, [A, B], ""),
    ({None: ([A], "1"), "1": ([A, B], None)}, [A, A, B], ""),
    ({None: ([A], "1"), "1": ([A], "2"), "2": ([B], None)}, [A], "page 2 repeats an earlier one"),
    ({None: ([A], "1"), "1": ([B], "2"), "2": ([A], "1")}, [A, B], "page 3 repeats an earlier one"),
    ({None: ([A], "1"), "1": ([B], "1")}, [A, B], "its cursor does not advance"),
    ({None: ([A], "1"), "1": ([B], "2"), "2": ([], "1")}, [A, B], "its cursor does not advance"),
    ({None: ([A], 1)}, [A], "its cursor is not a text"),
    ({None: ([A], {"page": 2})}, [A], "its cursor is not a text"),
    ({None: ([], "1"), "1": ([], "2"), "2": ([A], None)}, [A], ""),
]


@pytest.mark.parametrize(("pages", "entries", "odd"), PAGED)
@pytest.mark.parametrize("field", ["tools", "prompts"])
async def test_a_list_ends_where_it_repeats_itself(
    pages: dict[Any, tuple[list[Any], Any]], entries: list[Any], odd: str, field: str
) -> None:
    async def server(method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        page, cursor = pages[params.get("cursor")]
        return {field: page, "nextCursor": cursor}

    if field == "tools":
        listed, missing = await listed_tools(server, None, LIMITS)
    else:
        listed, missing = await listed_resources(server, SimpleNamespace(prompts=True), LIMITS)
        entries = entries_of("prompts/list", entries)
    assert listed == entries
    assert (odd in missing and f"{field}/list" in missing) if odd else not missing


UNKNOWN = Fault("protocol", "the server answered tools/list with error -32601", effect="reported")
UNKNOWN.__cause__ = MCPError(-32601, "Method not found")


@pytest.mark.parametrize(
    ("offered", "answer", "asked", "why"),
    [
        (SimpleNamespace(resources=True), UNKNOWN, [], ""),
        (SimpleNamespace(prompts=True), UNKNOWN, [], ""),
        (SimpleNamespace(prompts=True, tools=None), {"tools": [A]}, [], ""),
        (SimpleNamespace(tools=True, prompts=True), UNKNOWN, ["tools/list"], "it has no tools: "),
        (SimpleNamespace(tools=SimpleNamespace()), {"tools": []}, ["tools/list"], ""),
        (SimpleNamespace(), {"tools": []}, ["tools/list"], ""),
        (None, {"tools": []}, ["tools/list"], ""),
    ],
)
async def test_only_what_a_server_offers_is_asked_for(offered: Any, answer: Any, asked: list[str], why: str) -> None:
    server = Server(tools=answer)
    tools, missing = await listed_tools(server, offered, LIMITS)
    assert (tools, server.asked) == ([], asked)
    assert missing.startswith(why) if why else not missing


async def test_a_server_that_offers_tools_only_and_knows_none_is_an_error() -> None:
    for offered in (SimpleNamespace(tools=True), SimpleNamespace(), None):
        with pytest.raises(Fault, match="-32601"):
            await listed_tools(Server(tools=UNKNOWN), offered, LIMITS)


DENIES = Policy(default="allow", deny=("a/resource:x://secret*",))
ALLOWS = Policy(default="deny", allow=("a/template:*", "a/resource:x://open"), users={"anna": {"allow": ["a"]}})


@pytest.mark.parametrize(
    ("policy", "user", "name", "hidden"),
    [
        (DENIES, "anna", "secret", True),
        (DENIES, "anna", "secret of nobody's list", True),
        (DENIES, "anna", "open", False),
        (ALLOWS, "bert", "secret", True),
        (ALLOWS, "bert", "open", False),
        (ALLOWS, "bert", "unlisted", False),
        (ALLOWS, "anna", "secret", False),
        (None, "bert", "secret", False),
    ],
)
def test_a_template_does_not_read_what_the_policy_hides(policy: Any, user: str, name: str, hidden: bool) -> None:
    entries = entries_of("resources/list", [{"uri": "x://open"}, {"uri": "x://secret"}])
    entries += entries_of("resources/templates/list", [{"uriTemplate": "x://{name}"}, {"uriTemplate": "x:{+name}"}])
    catalog = Catalog(agents=(resources_of("a", entries)[0],))
    simple, reserved = catalog.tools["a/template:x://{name}"], catalog.tools["a/template:x:{+name}"]
    ways = [(simple, name), (reserved, f"//{name}"), (reserved, f"//%{ord(name[0]):x}{name[1:]}")]
    loaded = Loaded(catalog, policy=policy)
    refusals = [hidden_resource(tool, {"name": value}, loaded, User(user)) for tool, value in ways]
    assert ["does not allow" in str(refusal) for refusal in refusals] == [hidden] * 3


def test_a_malformed_entry_is_left_out_and_reported() -> None:
    assert entries_of("resources/templates/list", [{"name": "x"}, {"uriTemplate": None}]) == [{}, {}]
    odd = [None, {}, {"uri": 5}, {"uri": "x:1"}, {"uri": "x:2"}, {"uri": "x:2", "title": "X"}, {"uri": "x" * 2_000}]
    agent, problems = resources_of("a", entries_of("resources/list", odd))
    assert [tool.id for tool in agent.tools] == ["a/resource:x:1"]
    assert len(problems) == 5
    assert all(problem.message.startswith("resources and prompts, read as tools: ") for problem in problems)


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "p", "description": "fine\U000e0041\U000e0042"},
        {"name": "p\u202e", "description": "fine"},
        {"name": "p\ntools: none", "description": "fine"},
        {"name": "p", "arguments": [{"name": "x", "description": "fine\x1b[8m"}]},
    ],
)
def test_an_entry_that_hides_characters_is_left_out(entry: dict[str, Any]) -> None:
    agent, (problem,) = resources_of("a", entries_of("prompts/list", [entry, {"name": "good"}]))
    assert [tool.name for tool in agent.tools] == ["prompt:good"]
    assert problem.kind == "suspect"
    assert "\n" not in problem.message
    assert "\u202e" not in problem.message


def test_a_request_reads_what_the_name_says() -> None:
    assert read_request("resource:x:{1}", {}) == ("resources/read", {"uri": "x:{1}"})
    assert read_request("template:x:{a}{?b}", {"a": "1/2"}) == ("resources/read", {"uri": "x:1%2F2"})
    assert read_request("prompt:p:q", {"a": "1"}) == ("prompts/get", {"name": "p:q", "arguments": {"a": "1"}})


@pytest.mark.parametrize("result", [{}, {"contents": None}, {"messages": []}, {"contents": {"text": "x"}}])
def test_an_answer_without_contents_is_an_error(result: dict[str, Any]) -> None:
    outcome = read_outcome("a", "resource:x", result, LIMITS)
    assert (outcome.kind, outcome.effect) == ("protocol", "reported")
    assert "its answer has no list of contents" in outcome.error
