"""Makes the requests of an API over HTTP: puts each argument of a call in its place, in the required form."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from callsheet.agents.calls.outcome import Fault
from callsheet.graphs.catalog.formats.openapi_operations import HttpCall, Place, is_form, is_json

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PATH_SEPARATORS = re.compile(r"[/\\,]")
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(slots=True)
class ApiRequest:
    """A request to an API, without the headers that the catalog sets."""

    method: str
    url: str
    headers: dict[bytes, bytes]
    content: bytes | None = None
    parts: Sequence[tuple[str, tuple[None, str, str | None]]] = ()


class _Part(NamedTuple):
    """A name and a text of a query, a cookie or a form; ``media`` is the media type in a multipart form."""

    name: str
    text: str
    media: str | None


def api_request(call: HttpCall, base: str, arguments: Mapping[str, object]) -> ApiRequest:
    """Makes the HTTP request for a call.

    Args:
        call: The operation.
        base: The address of the API, which may have a query.
        arguments: The arguments of the call; what no place takes is the body.

    Raises:
        Fault: An argument has no form in its specification, or that of another one.
    """
    rest = dict(arguments)
    address, _, fixed = base.partition("?")
    path = call.path
    headers: dict[bytes, bytes] = {}
    pairs: defaultdict[str, list[tuple[Place, Any]]] = defaultdict(list)  # of query and cookies
    for place in call.places:
        value = None if place.where == "body" else rest.pop(place.argument, None)
        if value is None:
            continue
        if place.where == "path":
            path = path.replace(f"{{{place.name}}}", _in_path(place, value))
        elif place.where == "header":
            headers[place.name.encode()] = _in_header(place, value)
        else:
            pairs[place.where].append((place, value))
    cookies = _encoded(_pairs(pairs["cookie"]))
    if cookies:
        headers[b"cookie"] = "; ".join(cookies).encode()
    path = path.partition("#")[0]
    url = address.rstrip("/") + quote(path, safe="/%:@!$&'()*+,;=~", errors="replace")
    query = _encoded(_pairs(pairs["query"], fixed), safe="[]")
    if fixed:
        query.insert(0, fixed)
    if query:
        url = f"{url}?{'&'.join(query)}"
    request = ApiRequest(call.method, url, headers)
    if call.media and (rest or call.required):
        _add_body(request, call, rest.get(call.body) if call.body else rest)
    return request


def _add_body(request: ApiRequest, call: HttpCall, value: object) -> None:
    """Writes the body of a request: a form as its fields, anything else as one text."""
    media = call.media if "*" not in call.media else "application/json"
    if not (is_form(media) and isinstance(value, dict)):
        text = _text(Place(argument=call.body, name="", where="body", style=media, explode=False), value)
    else:
        fields = _pairs(_form_places(call, value))
        if not media.lower().startswith("multipart/"):
            text = "&".join(_encoded(fields))
        elif fields:
            request.parts = [(part.name, (None, part.text, part.media)) for part in fields]
            return
        else:  # of no parts, the client library makes no body
            media = "multipart/form-data; boundary=end"
            text = "--end--\r\n"
    request.headers[b"content-type"] = media.encode("ascii", "replace")
    request.content = text.encode("utf-8", "replace")


def _form_places(call: HttpCall, value: Mapping[str, object]) -> list[tuple[Place, Any]]:
    """Returns the fields of a form with their places; one that the specification does not describe goes by its type."""
    described = {place.name: place for place in call.places if place.where == "body"}
    fields: list[tuple[Place, Any]] = []
    for key, item in value.items():
        if item is not None:
            place = described.get(key) or Place(argument=key, name=key, where="body", style="", explode=True)
            fields.append((place, item))
    return fields


def _in_path(place: Place, value: object) -> str:
    """Writes a value in a path, with everything but its own separators percent-encoded."""
    texts = [part.text for part in _parts(place, value)]
    wrong = ""
    if not any(texts):
        wrong = "is empty"
    for text in texts:
        if {".", ".."}.intersection(_PATH_SEPARATORS.split(text)):
            wrong = "has '.' or '..' as a part of a path"
    if wrong:
        why = f"the argument {place.argument!r} {wrong}, which would lead to another path"
        raise Fault("refused", why, effect="none")
    return _joined(place, value, partial(quote, safe="", errors="replace"))


def _in_header(place: Place, value: object) -> bytes:
    text = _joined(place, value)
    if _CONTROL.search(text):
        why = f"the argument {place.argument!r} has a control character, which no header may have"
        raise Fault("refused", why, effect="none")
    return text.encode("utf-8", "replace")


def _joined(place: Place, value: object, encode: Callable[[str], str] = str) -> str:
    """Writes a value in a path or a header (RFC 6570, sections 3.2.2, 3.2.5 and 3.2.7)."""
    prefix, separator = {"label": (".", "."), "matrix": (";", ";")}.get(place.style, ("", ","))
    named = prefix == ";" or (place.explode and isinstance(value, dict))
    parts = _parts(place, value, encode)
    return prefix + separator.join(f"{part.name}={part.text}" if named else part.text for part in parts)


def _pairs(given: Iterable[tuple[Place, Any]], fixed: str = "") -> list[_Part]:
    """Writes several values beside a fixed query; raises a Fault if two of them would have the same name."""
    owners: dict[str, str] = {}  # name -> what is sent by it
    for name, _ in parse_qsl(fixed, keep_blank_values=True):
        owners[name] = "the address of the API"
    pairs: list[_Part] = []
    for place, value in given:
        argument = f"the argument {place.argument!r}"
        for part in _parts(place, value):
            owner = owners.setdefault(part.name, argument)
            if owner != argument:
                why = f"{owner} and {argument} would both be sent as {part.name!r}: leave one of them out"
                raise Fault("refused", why, effect="none")
            pairs.append(part)
    return pairs


def _parts(place: Place, value: object, encode: Callable[[str], str] = str) -> list[_Part]:
    """Writes a value by its style; what is null in a list or an object, or is an empty one, has no part."""
    name = encode(place.name)
    separator = _SEPARATORS.get(place.style, ",")
    if place.style == "deepObject":
        pairs = _bracketed(place.name, value)
    elif isinstance(value, list) and place.explode and separator == ",":
        pairs = [(name, item) for item in value]
    elif _is_by_media(place) or not isinstance(value, dict | list):
        return [_part(place, name, value, encode)]
    elif isinstance(value, dict) and place.explode:
        pairs = [(encode(key), item) for key, item in value.items()]
    else:
        items = _flat(value)
        text = separator.join(encode(_text(place, item)) for item in items)
        return [_Part(name, text, None)] if items else []
    return [_part(place, key, item, encode) for key, item in pairs if item is not None]


def _is_by_media(place: Place) -> bool:
    """Returns whether the style of a place is a media type, or missing, as for a field of a form."""
    return not place.style or "/" in place.style


def _part(place: Place, name: str, item: object, encode: Callable[[str], str]) -> _Part:
    """Writes one value as a part, with a media type if its place has one."""
    text = encode(_text(place, item))
    if not _is_by_media(place):
        return _Part(name, text, None)
    is_one_type = place.style and "*" not in place.style and "," not in place.style
    if is_one_type:
        return _Part(name, text, place.style)
    return _Part(name, text, "application/json" if isinstance(item, dict | list) else None)


def _flat(value: dict[str, Any] | list[Any]) -> list[Any]:
    """Returns the items of a list, or keys and values of an object in turn, without those that are null."""
    if isinstance(value, list):
        return [item for item in value if item is not None]
    items: list[Any] = []
    for key, item in value.items():
        if item is not None:
            items += [key, item]
    return items


def _bracketed(name: str, value: object) -> list[tuple[str, Any]]:
    """Returns names each value in an object ``name[key]``, and each in a list ``name[0]``, at any depth."""
    if not isinstance(value, dict | list):
        return [] if value is None else [(name, value)]
    pairs: list[tuple[str, Any]] = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        pairs += _bracketed(f"{name}[{key}]", item)
    return pairs


def _encoded(parts: Iterable[_Part], *, safe: str = "") -> list[str]:
    encode = partial(quote, errors="replace")
    return [f"{encode(part.name, safe=safe)}={encode(part.text, safe='')}" for part in parts]


def _text(place: Place, value: object) -> str:
    """Writes a value as JSON, but strings as they are; raises a Fault for a value that has no form in its style."""
    if isinstance(value, dict | list) and place.style and not is_json(place.style):
        why = f"the argument {place.argument!r} has a list or an object where its specification does not say"
        raise Fault("refused", f"{why} how that is sent ({place.style}): give single values", effect="none")
    return value if isinstance(value, str) and not is_json(place.style) else json.dumps(value, ensure_ascii=False)
