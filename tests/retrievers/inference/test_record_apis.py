"""APIs of records: which tools give the identifiers and values of a call, and which only hold the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.dependencies import Proposal
from callsheet.retrievers.inference import infer_dependencies

TEXT = {"type": "string"}


def tool(name: str, *optional: str, needs: Sequence[str] = (), output: Mapping[str, Any] | None = None) -> Tool:
    agent, _, bare = name.rpartition("/")
    properties: dict[str, Any] = {}
    for argument in (*needs, *optional):
        holder, _, value = argument.rpartition(".")
        at = properties.setdefault(holder, {"type": "object", "properties": {}})["properties"] if holder else properties
        at[value] = TEXT
    return Tool(
        agent=agent or "crm",
        name=bare,
        input_schema={"type": "object", "properties": properties, "required": list(needs)},
        output_schema={"type": "object", "properties": dict(output)} if output else None,
    )


def listed(**fields: Any) -> Mapping[str, Any]:
    return {"items": {"type": "array", "items": {"type": "object", "properties": fields}}}


def proposals(*tools: Tool) -> Mapping[tuple[str, str], Proposal]:
    agents = dict.fromkeys(one.agent for one in tools)
    catalog = Catalog(
        agents=tuple(Agent(id=name, system="s", tools=tuple(t for t in tools if t.agent == name)) for name in agents)
    )
    return {(e.source.partition("/")[2], e.target.partition("/")[2]): e for e in infer_dependencies(catalog)}


GET_USERS = tool("get_users", output=listed(id=TEXT, name=TEXT))
DELETE_USER = tool("delete_user", needs=["user_id"])


def test_where_tools_read_what_an_identifier_names_others_that_hold_it_are_no_sources() -> None:
    scrapers = tool("get_scrapers", output=listed(id=TEXT, user_id=TEXT))
    assert proposals(GET_USERS, scrapers, DELETE_USER).keys() == {("delete_user", "get_users")}
    assert proposals(scrapers, tool("ping"), DELETE_USER).keys() == {("delete_user", "get_scrapers")}


def test_an_identifier_of_another_record_is_less_sure_than_that_of_the_record() -> None:
    orders = tool("find_orders", needs=["query"], output=listed(user_id=TEXT))
    users = tool(
        "find_people", needs=["query"], output={"users": {"type": "array", "items": {"properties": {"id": TEXT}}}}
    )
    held, own = (proposals(one, tool("ping"), DELETE_USER)["delete_user", one.name] for one in (orders, users))
    assert held.confidence == pytest.approx(0.6 * own.confidence, abs=0.1)


def test_what_can_be_filtered_by_an_identifier_is_a_source_only_where_nothing_else_reads_it() -> None:
    orders = tool("get_orders", "user_id").model_copy(update={"description": "The orders of a user."})
    assert ("delete_user", "get_orders") in proposals(orders, DELETE_USER)
    assert ("delete_user", "get_orders") not in proposals(orders, GET_USERS, DELETE_USER)


@pytest.mark.parametrize("word", ["id", "gid", "sid", "uid", "oid", "uuid"])
def test_the_identifier_of_a_part_is_not_that_of_the_record(word: str) -> None:
    records = listed(**{word: TEXT, "name": TEXT})
    found = proposals(
        tool("get_projects", output=records),
        tool("get_project_events", output=listed(author={"type": "object", "properties": {word: TEXT}})),
        tool("delete_project", needs=[f"project_{word}"]),
    )
    assert ("delete_project", "get_projects") in found
    assert ("delete_project", "get_project_events") not in found


def test_a_tool_is_no_source_of_its_own_input() -> None:
    both = tool("get_member", "owner.user_id", needs=["user_id"]).model_copy(update={"description": "Of a user."})
    assert ("get_member", "get_member") not in proposals(both, tool("ping"))
    assert ("delete_user", "get_member") in proposals(both, tool("ping"), DELETE_USER), "as a lookup"


def test_a_list_of_what_a_call_already_names_is_no_source_of_the_name() -> None:
    keys = tool("get_keys", needs=["app_id"], output=listed(id=TEXT, app_id=TEXT))
    rename = tool("rename_app", needs=["app_id"])
    assert ("rename_app", "get_keys") not in proposals(keys, rename)
    similar = tool("similar_apps", needs=["app_id"], output=listed(id=TEXT))
    assert ("rename_app", "similar_apps") in proposals(similar, rename)


def test_a_tool_that_makes_a_record_is_less_sure_where_another_reads_it_and_never_required_to_change_it() -> None:
    make = tool("create_user", "name", output={"id": TEXT})
    alone, beside = proposals(make, DELETE_USER), proposals(make, GET_USERS, DELETE_USER)
    assert beside["delete_user", "create_user"].confidence < 0.8 * alone["delete_user", "create_user"].confidence
    assert beside["delete_user", "get_users"].kind.direct
    assert not alone["delete_user", "create_user"].kind.direct


def test_the_values_of_a_new_record_are_not_read_from_others_of_its_kind() -> None:
    domains = listed(domain=TEXT)
    make = tool("create_endpoint", needs=["domain"])
    assert not proposals(tool("list_endpoints", output=domains), make)
    assert proposals(tool("list_purchases", output=domains), make)


def test_optional_parts_and_addresses_are_what_the_caller_wants() -> None:
    users = tool("describe_company", output={"fax": TEXT, "callback_url": TEXT})
    assert not proposals(users, tool("process", "item.fax"), tool("ping"))
    assert proposals(users, tool("process", needs=["fax"]), tool("ping"))
    assert not proposals(users, tool("update_hook", "callback_url"), tool("ping"))


def test_times_and_fixed_values_are_not_looked_up_in_records() -> None:
    get = tool("get_rule", output={"start_date": TEXT, "level": {"enum": ["low", "high"]}})
    assert not proposals(get, tool("filter_logs", needs=["start_date"]))
    assert not proposals(get, tool("filter_logs", needs=["level"]))
    assert proposals(tool("get_rule", output={"level": TEXT}), tool("filter_logs", needs=["level"]))


def test_what_a_tool_changes_is_read_with_the_inputs_at_hand_by_its_own_agent_and_not_to_remove_it() -> None:
    get, update = tool("get_limits", needs=["team"]), tool("update_limits", needs=["team"])
    assert ("update_limits", "get_limits") in proposals(get, update)
    assert ("delete_limits", "get_limits") not in proposals(get, tool("delete_limits", needs=["team"]))
    assert ("update_limits", "get_limits") not in proposals(tool("get_limits", needs=["owner", "repo"]), update)
    assert ("update_limits", "get_limits") not in proposals(tool("other/get_limits", needs=["team"]), update)


def described(one: Tool, argument: str, description: str) -> Tool:
    properties = {**one.input_schema["properties"], argument: {**TEXT, "description": description}}
    return one.model_copy(update={"input_schema": {**one.input_schema, "properties": properties}})


@pytest.mark.parametrize("description", ["", "ID of the resource", "ID of the certificate"])
def test_an_id_of_the_resource_is_that_of_the_record_in_the_name(description: str) -> None:
    certificates = {"certificates": {"type": "array", "items": {"properties": {"id": TEXT, "name": TEXT}}}}
    get = described(tool("get_certificates_id", needs=["id"]), "id", description)
    found = proposals(tool("get_certificates", output=certificates), get)
    assert found["get_certificates_id", "get_certificates"].confidence > 0.7


def test_the_types_of_servers_are_no_servers() -> None:
    types = tool("get_server_types", output={"server_types": listed(id=TEXT, cores=TEXT)["items"]})
    servers = tool("get_servers", output={"servers": listed(id=TEXT, created=TEXT)["items"]})
    delete = tool("delete_server", needs=["server_id"])
    assert proposals(types, servers, delete).keys() == {("delete_server", "get_servers")}
    get_type = tool("delete_server_type", needs=["server_type_id"])
    assert proposals(types, servers, get_type)["delete_server_type", "get_server_types"].kind.value.endswith(
        "_directly"
    )


def test_a_value_of_another_record_comes_after_its_own() -> None:
    watches = tool("get_stopwatches", output=listed(seconds=TEXT, repo_owner_name=TEXT))
    repos = tool("list_repos", output=listed(owner=TEXT, size=TEXT))
    merge = described(tool("merge_pull_request", needs=["owner"]), "owner", "owner of the repo")
    assert proposals(watches, repos, merge).keys() == {("merge_pull_request", "list_repos")}
    assert proposals(watches, tool("delete_repo"), merge).keys() == {("merge_pull_request", "get_stopwatches")}


def test_a_record_that_is_read_by_its_own_identifier_comes_after_one_that_is_found() -> None:
    by_id = tool("get_repo_by_id", needs=["repo_id"], output={"name": TEXT, "owner": TEXT})
    found = tool("search_repos", needs=["query"], output=listed(name=TEXT, owner=TEXT))
    merge = tool("merge_pull_request", needs=["repo"])
    assert ("merge_pull_request", "get_repo_by_id") not in proposals(by_id, found, merge)
    assert ("merge_pull_request", "get_repo_by_id") in proposals(by_id, tool("ping"), merge)


def test_an_optional_argument_has_sources_beside_its_parents() -> None:
    firewall = tool("get_firewall", needs=["firewall_id"], output={"server": {"properties": {"id": TEXT}}})
    servers = tool("get_servers", output={"servers": listed(id=TEXT)["items"]})
    apply = tool("apply_firewall", "server_id", needs=["firewall_id"])
    assert ("apply_firewall", "get_servers") in proposals(firewall, servers, apply)
