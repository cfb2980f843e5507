"""Arguments of every sort in a question: all that is sent is shown, and the page sends back what was written."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from hypothesis import event, given, strategies as st

from callsheet.agents.approval.questions import OFFERED
from callsheet.agents.calls.question_text import inexact, shown_value, whole_value
from callsheet.agents.calls.review import flat, review_request
from fuzzing import anything, fuzzed
from page_cards import PageCards, page_cards

UNSEEN = st.text(
    st.characters(categories=["Cc", "Cf", "Co", "Zs", "Zl", "Zp", "Mn", "Nd"]) | st.sampled_from('a \n"\\/é👩'),
    max_size=8,
)
arguments = anything | UNSEEN | st.dictionaries(UNSEEN, anything | UNSEEN, max_size=4)


def strict(value: Any) -> str:
    """A text that differs wherever two values do."""
    return json.dumps(value)


def keys_in(value: Any) -> Iterator[str]:
    """All keys of a value."""
    if isinstance(value, Mapping):
        yield from value
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from keys_in(inner)


def asked(args: Mapping[str, Any]) -> dict[str, Any]:
    """A question about a call, as the server sends it to the page."""
    about = {"step_id": "1", "tool": "a/work", "why": "w", "hash": "h", "shown": shown_value(args)}
    payload = review_request("tool_approval", "a_work", args, "It asks.", OFFERED["tool_approval"], **about)
    told = flat(payload)
    assert told["description"] == f"It asks.\nArguments: {told['shown']}"
    view = {"tool": None, "step": "1", "text": "", "why": "w", "problem": "", "unchecked": "", "always": False}
    view |= {"interrupt": "i", "kind": "tool_approval", "id": "i", "name": "a_work", "hash": "h"}
    view |= {"decisions": told["decisions"], "shown": told["shown"], "args": whole_value(args)}
    read_in_page: dict[str, Any] = json.loads(json.dumps(view))
    return read_in_page


@given(value=arguments, other=arguments)
def read(page: PageCards, value: Any, other: Any) -> None:
    args, edited = {"x": value}, {"x": other}
    for one in (args, edited):
        if refusal := inexact(one):
            event(refusal.reason)
            return
    view = asked(args)
    shown, whole = view["shown"], view["args"]
    assert all(one in "\n " or one.isprintable() for one in shown + whole)
    assert strict(json.loads(whole)) == strict(args)
    if shown != whole:
        event("some of it is left out")
        assert shown.endswith(
            f"(ATTENTION: {len(whole):,} characters in all: each text is shortened, every key is shown)"
        )
        assert all(whole_value(key) in shown for key in keys_in(args))
    card = page.card(view, edited=json.dumps(edited, indent=1))
    assert card.shown == ([] if whole == "{}" else [shown] if shown == whole else [shown, whole])
    assert card.sent("approve") == {"type": "approve", "hash": "h"}
    assert strict(card.sent("unchanged")["edited_action"]["args"]) == strict(args)
    assert strict(card.sent("again")["edited_action"]["args"]) == strict(args)
    assert strict(card.sent("edit")["edited_action"]["args"]) == strict(edited)


def test_the_shown_arguments_are_those_that_are_sent() -> None:
    with page_cards() as page:
        fuzzed(60, long=10_000)(read)(page)
