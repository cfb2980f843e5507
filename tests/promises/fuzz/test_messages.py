"""Whatever a server writes before it answers, or instead: the call ends as data, and is sent once."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

from hypothesis import given, strategies as st

from fuzzing import anything, fuzzed, mutated, numbers, scalars, texts
from odd_messages import FORMS, ID, RAW, TEXT
from puppet import line, result
from stage import Stage

TOOL = {"name": "work", "inputSchema": {"type": "object"}}
forms = st.sampled_from(FORMS).flatmap(mutated) | st.dictionaries(texts, anything, max_size=4)
raw = st.sampled_from(RAW) | st.binary(max_size=40)
pieces = st.tuples(forms | raw, st.sampled_from([1, 1, 1, 1, 5, 200]), st.sampled_from([b"\n", b"\n", b"\r\n", b""]))
endings = st.sampled_from(["answer", "answer", "answer", "end", "wrong id"])


def told(value: Any, number: Any) -> Any:
    """A form with the id of the call in its places."""
    match value:
        case str():
            return number if value == ID else value
        case dict():
            return {key: told(item, number) for key, item in value.items()}
        case list():
            return [told(item, number) for item in value]
        case _:
            return value


def spoken(parts: list[Any], number: Any) -> bytes:
    """The bytes of all pieces."""
    said = [(part if isinstance(part, bytes) else line(told(part, number))[:-1], *more) for part, *more in parts]
    return b"".join((part + end) * (times if len(part) < 2_000 else 1) for part, times, end in said)


@given(parts=st.lists(pieces, max_size=5), ending=endings, other=scalars | numbers)
def messages(stage: Stage, parts: list[Any], ending: str, other: Any) -> None:
    def answer(number: Any) -> bytes | None:
        final = {"answer": result(TEXT)(number), "end": b"", "wrong id": result(TEXT)(other) + result(TEXT)(number)}
        stage.puppet.answers["tools/call"] = lambda _: None  # a second call ends it
        return spoken(parts, number) + b"\n" + final[ending]

    async def example() -> None:
        stage.puppet.answers["tools/call"], stage.puppet.mortal = answer, ending == "end"
        outcome = await stage.call("puppet/work", {"x": "y"})
        assert outcome is not None
        assert outcome.artifact["kind"] != "timeout"
        assert len(stage.puppet.calls) <= 1
        for call in stage.puppet.calls:
            assert call == {"name": "work", "arguments": {"x": "y"}, "_meta": {"progressToken": ANY}}

    stage.run(example())


def test_a_call_ends_as_data_whatever_is_said_meanwhile(stage: Stage) -> None:
    stage.open(TOOL)
    fuzzed(50)(messages)(stage)
