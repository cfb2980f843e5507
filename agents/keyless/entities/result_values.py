"""The result of a step as one readable line, a number and a unit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, TypeGuard

from callsheet.agents.keyless.entities.evidence import Kind, Pool, exact_number
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS
from callsheet.agents.keyless.language.references import BEFORE_CRITERION, only_changes, opening
from callsheet.agents.keyless.slots.slot import IDENTIFIERS, stem, value_words, words_of
from callsheet.agents.planning.plan import Call, StepResult
from callsheet.agents.safety.tool_effects import alike

_SALIENT = (
    "result", "converted_value", "converted", "answer", "value", "output", "target", "mean", "average", "total", "sum",
    "count", "datetime", "time",
)  # fmt: skip
"""Names of fields that hold the result, whatever stands beside them, the most likely first."""
_WEAK = frozenset({"text", "content", "message", "summary", "price", "amount", "data", "id", "name"})
"""Names of fields that hold the result if nothing else does."""
_ASIDE = frozenset({"unit", "units", "timezone", "zone", "currency", "success", "ok", "status", "format", "precision"})
"""Words in the names of fields that tell something about the result."""
_RESULTS = _SALIENT[:6]
"""Of these, those that hold the result of a record too."""
_ORIGIN = re.compile(r"(?:^|_)(?:original|from|input|source)(?:_|$)")
_EMPTY = frozenset({"", "[]", "{}", "null", "None"})
_FILE_READERS = frozenset({"cat", "content", "contents", "read"})
"""Words in the names of tools that give the text of a file."""
_AND = re.compile(r"\band\b", re.IGNORECASE)
"""One of two fields would be half an answer."""
_HOW_MANY = re.compile(r"\bhow\s+many\b|\bnumber\s+of\b", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.:/-])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w:/-])")


@dataclass(frozen=True, slots=True)
class Reading:
    """A result in the form that later steps and people use.

    Attributes:
        text: The essential part as text.
        number: Its number, if there is exactly one.
        unit: The unit next to it, if any.
    """

    text: str
    number: float | int | None = None
    unit: str = ""


def read(result: str, said: str = "") -> Reading:
    """Reads a tool's output, plain text or JSON.

    Of a record, an object with an identifier, no field is chosen except one that the step names.

    Args:
        result: The output.
        said: The text of the step.
    """
    try:
        data = json.loads(result)
    except ValueError:
        data = result.strip()
    if isinstance(data, str):
        return Reading(data, _only_number(data), data)
    if (text := _text_of_blocks(data)) or not isinstance(data, Mapping):
        return read(text, said) if text else Reading(_in_words(data), data if _is_number(data) else None)
    value = _salient(data, said)
    if text := _text_of_blocks(value):
        value = text
    text = _with_zone(_in_words(value, said), data)
    unit = next((v for k, v in data.items() if "unit" in k.lower() and isinstance(v, str) and not _is_origin(k)), "")
    if _is_number(value):
        return Reading(f"{text} {unit}".strip(), value, unit)
    if value is data:
        numbers = [one for one in data.values() if _is_number(one)]
        return Reading(text, numbers[0] if len(numbers) == 1 and not _of_record(data) else None, unit)
    inner = read(json.dumps(value), said).number if isinstance(value, Mapping) else None
    return Reading(text, _only_number(text) if isinstance(value, str) else inner, unit)


def line(done: StepResult) -> str:
    """A step and its result in one readable line."""
    said = reading(done, _question(done.text)).text
    if sum(not call.error for call in done.calls) > 1 and said.split(maxsplit=1)[:1] == done.text.split(maxsplit=1)[:1]:
        return said  # a line for each call
    label = done.text.strip().rstrip(".;,")
    return f"{label[:1].upper()}{label[1:]}{'' if label.endswith('?') else ':'} {said}"


def reading(done: StepResult, said: str = "") -> Reading:
    """As ``read``, of a step's result; the text of a file is not read as a record."""
    if not is_file_text(done):
        return read(done.result, said)
    text = done.result.strip()
    return Reading(text, _only_number(text))


def is_file_text(done: StepResult) -> bool:
    """Whether a step's result is the text of files, as it stands in them."""
    made = [call for call in done.calls if not call.error]
    return bool(made) and all(_reads_file(call) for call in made)


def _reads_file(call: Call) -> bool:
    named = words_of(call.tool.rpartition("/")[2])
    return not _FILE_READERS.isdisjoint(named) and any(
        Pool.of(str(value)).free(Kind.PATH) for value in call.args.values()
    )


def _question(text: str) -> str:
    """A step, if it may name fields that are asked for; an order to change something names those that it sets."""
    return "" if only_changes(text) or opening(text) in alike("set") else text


def composed(inputs: Sequence[StepResult]) -> str | None:
    """The text for a writing tool: a single result, or one line per result; texts of files as they stand, in order.

    None if the text of a file was cut, or if the single result is an empty list or nothing at all.
    """
    if any(call.kind == "too_large" for done in inputs if is_file_text(done) for call in done.calls):
        return None
    if len(inputs) == 1 and not is_file_text(inputs[0]):
        said = read(inputs[0].result, _question(inputs[0].text)).text
        return said if said.strip() not in _EMPTY else None
    whole = ""
    for text in (text for done in inputs for text in _texts(done)):
        whole += f"\n{text}" if whole and not whole.endswith("\n") else text
    return whole


def _texts(done: StepResult) -> list[str]:
    return [call.output for call in done.calls if not call.error] if is_file_text(done) else [line(done)]


def _text_of_blocks(value: Any) -> str:
    """The text of MCP content blocks, if a tool wrote them as JSON; empty for anything else."""
    blocks = value if isinstance(value, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping)]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if len(said) == len(blocks) else ""


def identifier(done: StepResult, words: Sequence[str], tool: str) -> str | int | None:
    """The identifier of the record that a step gave, for a parameter of these words: ``book_id`` takes ``id``.

    Args:
        done: The step.
        words: The words of the parameter, lower case, the last one a word for identifiers.
        tool: The name of the tool that takes it.

    Returns:
        The field with the same words, otherwise the one with the last of them alone, if the step was about such a
        record: one of the parameter's other words, or of the tool's. None if there is neither.
    """
    try:
        data = json.loads(done.result)
    except ValueError:
        return None
    if not isinstance(data, Mapping):
        return None
    fields = {words_of(str(key)): value for key, value in data.items()}
    made = [words_of(call.tool.rpartition("/")[2]) for call in done.calls]
    told = {stem(word) for said in (words_of(done.text), *made) for word in said}
    if only_changes(done.text):  # the result is what was made: a comment, not the issue that it was added to
        told = {stem(list(takewhile(lambda word: word not in FUNCTION_WORDS, said))[-1]) for said in made if said}
    named, of_tool = ({stem(word) for word in some} for some in (words[:-1], words_of(tool)[1:]))
    kin = named <= told if named else bool(of_tool & told)
    bare = fields.get(tuple(words[-1:])) if kin else None
    value = fields.get(tuple(words), bare) if named else bare
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _salient(data: Mapping[str, Any], said: str = "") -> Any:
    """The field that holds the result; the whole object if there is none."""
    usable = {str(k).lower(): v for k, v in data.items() if v not in (None, "") and not _is_origin(k)}
    if others := _of_record(data):
        asked = [usable[name] for name in _RESULTS if name in usable][:1] or _asked(others, said)
        return asked[0] if len(asked) == 1 else data
    asked = _asked({name: value for name, value in usable.items() if name not in _SALIENT}, said)
    if named := [usable[name] for name in _SALIENT if name in usable]:
        return asked[0] if len(asked) == 1 and said.endswith("?") else named[0]
    if len(parts := {name: value for name, value in usable.items() if _ASIDE.isdisjoint(words_of(name))}) == 1:
        (value,) = parts.values()
        return value if parts.keys() <= _WEAK or not isinstance(value, Mapping) else data
    found = _asked(usable, said)
    return found[0] if len(found) == 1 else data


def _asked(fields: Mapping[str, Any], said: str) -> list[Any]:
    """The values of the fields that a step names without their values: "the price", not "with price 12"."""
    stems = {stem(word) for word in re.findall(r"[^\W\d_]+", said)}
    given = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", said)}
    counts = _HOW_MANY.search(said)
    stems -= {"number"} if counts else set()
    found = [
        len(value) if counts and isinstance(value, list) else value
        for name, value in fields.items()
        if stems.issuperset(map(stem, value_words(name)))
        and _is_asked(name, said)
        and not (value in given if _is_number(value) else isinstance(value, str) and value in said)
    ]
    return [] if len(found) == 1 and _AND.search(said) else found


def _is_asked(name: str, said: str) -> bool:
    """Whether a step names a field other than as a criterion: "with label 'x'" asks for no labels."""
    last = stem(value_words(name)[-1])
    places = [match.start() for match in re.finditer(r"[^\W\d_]+", said) if stem(match.group()) == last]
    return any(
        not (BEFORE_CRITERION.search(said, 0, start) or said[:start].rstrip()[-1:].isdigit()) for start in places
    )


def _of_record(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record beside its identifiers; empty for what has no identifier, or nothing else."""
    others = {
        str(k): v for k, v in data.items() if str(k) != "number" and IDENTIFIERS.isdisjoint(words_of(str(k))[-1:])
    }
    return others if len(others) < len(data) else {}


def _is_origin(key: str) -> bool:
    return bool(_ORIGIN.search(str(key).lower()))


def _in_words(value: Any, said: str = "") -> str:
    if isinstance(value, str):
        return value
    inner = _salient(value, said) if isinstance(value, Mapping) else value
    if inner is value or not isinstance(value, Mapping):
        shown = float(f"{value:.12g}") if isinstance(value, float) else value  # not 160.01999999999998
        return json.dumps(shown, ensure_ascii=False, default=str)
    unit = value.get("unit")
    words = _in_words(inner, said)
    return _with_zone(f"{words} {unit}" if _is_number(inner) and isinstance(unit, str) else words, value)


def _with_zone(said: str, data: Mapping[str, Any]) -> str:
    """A value with the time zone beside it: a place may have been read as another one."""
    zone = data.get("timezone")
    return f"{said} ({zone})" if isinstance(zone, str) and zone not in said else said


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _only_number(text: str) -> float | int | None:
    """The only plain number in a text, or the first after its only "=" or "is"; dates and times do not count."""
    parts = re.split(r"=|≈|->|→|\b(?:is|are|equals)\b", text)
    found = [match.group() for match in _NUMBER.finditer(parts[-1] if len(parts) == 2 else text)]
    if not found or (len(parts) != 2 and len(found) != 1):
        return None
    value = float(found[0].replace(",", "").replace("−", "-"))
    whole = not re.search(r"[.eE]", found[0])
    return exact_number(value, whole=whole) if math.isfinite(value) or not whole else None
