"""What makes a tool harmless: a person's word, or a hint that is believed; never its name."""

from __future__ import annotations

from typing import Any

from callsheet.graphs import Tool
from callsheet.graphs.trust.harm import harm_of

READS = {"readOnlyHint": True}
VERB_FIRST = """
get_time convert_length calculate read_file list_orders search_replace find_and_replace fetch_and_merge
get_or_create_user show_and_apply list_unsubscribe read_then_move sendMessage
""".split()


def harm(name: str = "tell", about: str = "", *, trusted: bool = False, vouched: bool = False, **hints: Any) -> str:
    return harm_of(Tool(agent="a", name=name, description=about, annotations=hints), trusted=trusted, vouched=vouched)


def test_a_harmless_verb_in_the_name_does_not_make_a_tool_harmless() -> None:
    for trusted in (False, True):
        assert {harm(name, "Looks up something.", trusted=trusted) for name in VERB_FIRST} == {"change"}


def test_a_read_only_hint_counts_only_from_a_trusted_server() -> None:
    assert harm("get_time", **READS) == "change"
    assert harm("get_time", trusted=True, **READS) == "none"
    assert harm("sendMessage", trusted=True, **READS) == "none"
    assert harm("get_time", trusted=True, readOnlyHint="true") == "change"


def test_a_destructive_name_outweighs_a_read_only_hint_of_a_trusted_server() -> None:
    assert harm("delete_all", trusted=True, **READS) == "destroy"
    assert harm("get_and_clear_cache", trusted=True, **READS) == "destroy"
    assert harm("execute_command") == "destroy"


def test_a_tool_that_a_person_marked_as_reading_is_harmless_unless_its_server_calls_it_destructive() -> None:
    assert harm("clear_sky_forecast", vouched=True) == "none"
    assert harm("clear_sky_forecast", vouched=True, destructiveHint=True) == "destroy"
