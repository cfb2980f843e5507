"""Texts, data and media of one result: the data reach the model, once and whole, and media never as text."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import event, given, strategies as st

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.tool_result import KeptResults, outcome_of
from fuzzing import fuzzed

WORDS = st.sampled_from(["no", "nothing known", "true", "null", "1", "1.0", "0", "A", "", "[]", "{}", "none", "é\n"])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([2**60, 0.5, 1.0, -0.0, 1e22]) | WORDS
FIELDS = st.sampled_from(["allowed", "items", "result", "content", "owner", "n"])
data = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3), max_leaves=6
)
WRITTEN: list[Callable[[Any], str]] = [
    json.dumps,
    lambda value: json.dumps(value, indent=2, ensure_ascii=False),
    lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")),
    lambda value: f"The answer is {json.dumps(value)}.",
    str,
]
"""How a server writes data as text."""
KIND = {"image/png": "image", "audio/wav": "audio"}
FORMS: list[Callable[[str, str], Any]] = [
    lambda medium, kind: {"type": KIND[kind], "data": medium, "mimeType": kind},
    lambda medium, kind: {"type": "resource", "resource": {"uri": "x:1", "mimeType": kind, "blob": medium}},
    lambda medium, kind: medium,
    lambda medium, kind: f"data:{kind};base64,{medium}",
    lambda medium, kind: json.dumps({"type": KIND[kind], "data": medium, "mimeType": kind}),
    lambda medium, kind: [{"page": 1, "picture": medium}],
]
"""How a medium that a block holds is repeated in data; the first two are blocks."""
media = st.tuples(st.binary(min_size=12, max_size=60), st.sampled_from(sorted(KIND)))


def plain(value: Any) -> Any:
    """The value in a form that is equal exactly for equal data of JSON."""
    match value:
        case bool() | None | str():
            return repr(value)
        case int() | float():
            return repr(int(value) if value == int(value) else value)
        case list():
            return [plain(one) for one in value]
    return {key: plain(one) for key, one in value.items()}


def data_of(text: str) -> Any:
    """What a text is as JSON; the text itself if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@given(
    value=data,
    told=st.lists(data, max_size=2),
    own=st.lists(st.sampled_from(WRITTEN), max_size=2),
    other=st.sampled_from(WRITTEN),
)
def spoken(value: Any, told: list[Any], own: list[Callable[[Any], str]], other: Callable[[Any], str]) -> None:
    texts = [*map(other, told), *(write(value) for write in own)]
    content = [{"type": "text", "text": text} for text in texts]
    outcome = outcome_of("a", "t", {"content": content, "structuredContent": value}, Limits())
    assert plain(outcome.structured) == plain(value)
    said, follows = "\n".join(texts), "" if value is None else json.dumps(value, ensure_ascii=False)
    readings = [*texts, *map(data_of, texts), texts, [data_of(text) for text in texts]] if texts else []
    meant = [value, *(value.values() if isinstance(value, dict) and len(value) == 1 else ())]
    once = value is None or any(plain(one) == plain(wanted) for one in readings for wanted in meant)
    event(f"the texts are the data: {once}")
    assert outcome.text == (said if once else "\n".join(filter(None, (said, follows))))


@given(
    shown=st.lists(media, min_size=1, max_size=3),
    repeated=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(FORMS)), max_size=4),
    first=st.sampled_from(FORMS[:2]),
    is_in_text=st.booleans(),
)
def drawn(
    folder: Path,
    shown: list[tuple[bytes, str]],
    repeated: list[tuple[int, Callable[[str, str], Any]]],
    first: Callable[[str, str], Any],
    is_in_text: bool,
) -> None:
    written = [(base64.b64encode(medium).decode(), kind) for medium, kind in shown]
    again = [form(*written[place % len(written)]) for place, form in repeated]
    content = [first(*one) for one in written]
    if is_in_text:
        content.append({"type": "text", "text": json.dumps(again)})
    keep = KeptResults(folder).of("run", "a", "t")
    outcome = outcome_of("a", "t", {"content": content, "structuredContent": {"again": again}}, Limits(), keep)
    for medium, _ in written:
        assert medium not in outcome.text
        assert medium not in json.dumps(outcome.structured)
    kept = [Path(stored.path).read_bytes() for stored in outcome.media]
    assert sorted(kept) == sorted({medium for medium, _ in shown})


def test_data_reach_the_model_once() -> None:
    fuzzed(150, long=10_000)(spoken)()


def test_media_are_files_and_notes_never_text(tmp_path: Path) -> None:
    fuzzed(60, long=10_000)(drawn)(tmp_path)
