"""Records within records: which of several identifiers a bare ``id`` is, and which tools list what it names."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.dependencies import Proposal
from callsheet.retrievers.inference import infer_dependencies
from callsheet.retrievers.inference.word_roles import head_of, name_of, stems

TEXT = {"type": "string"}


def tool(name: str, *needs: str, output: dict[str, Any] | None = None, optional: str = "") -> Tool:
    properties = dict.fromkeys((*needs, *optional.split()), TEXT)
    schema = {"type": "object", "properties": properties, "required": list(needs)}
    return Tool(agent="api", name=name, input_schema=schema, output_schema=output)


def many(**fields: Any) -> dict[str, Any]:
    records = {"type": "array", "items": {"type": "object", "properties": fields or {"id": TEXT}}}
    return {"type": "object", "properties": {"items": records}}


def sources(call: str, argument: str, *tools: Tool) -> list[str]:
    """The tools that give an argument of a call, the likeliest first."""
    catalog = Catalog(agents=(Agent(id="api", tools=tools),))
    found = [e for e in infer_dependencies(catalog) if (e.source, e.parameter) == (f"api/{call}", argument)]

    def sure(edge: Proposal) -> float:
        return -edge.confidence

    return [edge.target.removeprefix("api/") for edge in sorted(found, key=sure)]


@pytest.mark.parametrize(
    ("name", "named", "owner"),
    [
        ("get_incident", "", "incident"),
        ("delete_incident_note", "note", "incident"),
        ("list_incident_notes", "", "incident"),
        ("create_incident_note", "", "incident"),
        ("get_user_notification_rules", "", "user"),
        ("issues_list_for_repo", "", "repo"),
        ("list_notes", "", "notes"),
    ],
)
def test_what_a_bare_id_identifies(name: str, named: str, owner: str) -> None:
    records = {stems("user"), stems("incident")}
    assert name_of(name).container(stems(named), records) == owner


def test_a_bare_id_beside_another_is_that_of_the_whole() -> None:
    incidents, notes = tool("list_incidents", output=many()), tool("list_incident_notes", "id", output=many())
    delete = tool("delete_incident_note", "id", "note_id")
    assert sources("delete_incident_note", "id", incidents, notes, delete)[:1] == ["list_incidents"]
    assert sources("delete_incident_note", "note_id", incidents, notes, delete)[:1] == ["list_incident_notes"]
    assert sources("list_incident_notes", "id", incidents, notes, delete) == ["list_incidents"]


def test_what_nearly_every_tool_requires_tells_no_record_from_another() -> None:
    tools = [tool(f"get_{name}s", "tenant_id", output=many()) for name in ("invoice", "quote", "receipt", "item")]
    tools += [tool(f"delete_{name}", "tenant_id", f"{name}_id") for name in ("invoice", "quote", "receipt")]
    assert sources("delete_quote", "quote_id", *tools) == ["get_quotes"]


def test_a_list_comes_before_a_record_that_is_read_by_a_part_of_the_call() -> None:
    sites, deploy = tool("list_sites", output=many()), tool("get_deploy", "deploy_id", output={"type": "object",
        "properties": {"id": TEXT, "site_id": TEXT}})  # fmt: skip
    restore = tool("restore_site_deploy", "site_id", "deploy_id")
    assert sources("restore_site_deploy", "site_id", sites, deploy, restore) == ["list_sites"]
    assert sources("restore_site_deploy", "site_id", deploy, restore) == ["get_deploy"]


def test_keys_of_deploys_are_no_deploys() -> None:
    assert head_of("list_deploy_keys") == stems("key")
    assert head_of("get_city_details") == stems("city")
    keys, deploys = tool("list_deploy_keys", output=many()), tool("list_site_deploys", output=many())
    assert sources("get_deploy", "deploy_id", keys, deploys, tool("get_deploy", "deploy_id")) == ["list_site_deploys"]


def test_a_filter_is_a_source_only_if_its_result_holds_the_identifier() -> None:
    delete = tool("delete_channel", "channel_id")
    ids, names = (
        tool("list_channel_messages", optional="channel_id", output=many(**{name: TEXT, "text": TEXT}))
        for name in ("channel_id", "title")
    )
    assert sources("delete_channel", "channel_id", ids, delete) == ["list_channel_messages"]
    assert sources("delete_channel", "channel_id", names, delete) == []


def test_a_long_description_does_not_hide_an_identifier_of_the_same_name() -> None:
    files = tool("get_files", output=many(key=TEXT))
    about = {"type": "string", "description": "It stands in the address of an open document, after the last slash."}
    comments = Tool(
        agent="api", name="post_comment", input_schema={"properties": {"file_key": about}, "required": ["file_key"]}
    )
    assert sources("post_comment", "file_key", files, comments) == ["get_files"]


def test_the_end_of_a_page_is_no_identifier() -> None:
    paged = {"type": "object", "properties": {"first_id": TEXT, "last_id": TEXT}}
    assert sources("delete_run", "run_id", tool("page", output=paged), tool("delete_run", "run_id")) == []


@pytest.mark.parametrize("argument", ["account_code", "sort_key"])
def test_an_optional_code_of_a_change_is_what_the_caller_wants(argument: str) -> None:
    accounts = tool("get_accounts", output=many(**{argument: TEXT}))
    change = tool("update_item", "item_ref", optional=argument)
    assert sources("update_item", argument, accounts, change) == []


@pytest.mark.parametrize(
    ("sentence", "needed"),
    [
        ("Use `list_users` to obtain the id.", True),
        ("If the id is missing, please use `list_users` to obtain it.", True),
        ("Please use `list_users` to list users.", False),
        ("Behaves the same as `list_users`, for one team.", False),
        ("To receive webhooks, call `list_users`.", False),
    ],
)
def test_a_sentence_that_only_points_to_another_tool(sentence: str, *, needed: bool) -> None:
    said = Tool(agent="api", name="greet", description=sentence)
    catalog = Catalog(agents=(Agent(id="api", tools=(said, tool("list_users"))),))
    assert bool(infer_dependencies(catalog)) is needed
