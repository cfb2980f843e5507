"""Requests of an API over HTTP: where each argument of a call goes, and how it is written there."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from callsheet.agents.calls.tool_result import Fault
from callsheet.graphs.catalog.formats.openapi_operations import HttpCall, Place, is_form, is_json

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(slots=True)
class ApiRequest:
    """A request, without the headers of the catalog."""

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


def request_of(call: HttpCall, base: str, arguments: Mapping[str, Any]) -> ApiRequest:
    """The request of a call; ``Fault``: an argument has no form in its specification, or that of another one."""
    rest = dict(arguments)
    address, _, fixed = base.partition("?")
    path, headers, flat = call.path, dict[bytes, bytes](), defaultdict[str, list[tuple[Place, Any]]](list)
    for place in call.places:
        if place.where == "body" or (value := rest.pop(place.argument, None)) is None:
            continue
        if place.where == "path":
            path = path.replace(f"{{{place.name}}}", _in_path(place, value))
        elif place.where == "header":
            headers[place.name.encode()] = _in_header(place, value)
        else:
            flat[place.where].append((place, value))
    if cookies := _encoded(_pairs(flat["cookie"])):
        headers[b"cookie"] = "; ".join(cookies).encode()
    path = path.partition("#")[0]
    url = address.rstrip("/") + quote(path, safe="/%:@!$&'()*+,;=~", errors="replace")
    if query := [*filter(None, (fixed,)), *_encoded(_pairs(flat["query"], fixed), safe="[]")]:
        url = f"{url}?{'&'.join(query)}"
    request = ApiRequest(call.method, url, headers)
    if call.media and (rest or call.required):
        _add_body(request, call, rest.get(call.body) if call.body else rest)
    return request


def _add_body(request: ApiRequest, call: HttpCall, value: Any) -> None:
    media = call.media if "*" not in call.media else "application/json"
    if not (is_form(media) and isinstance(value, dict)):
        text = _text(Place(argument=call.body, name="", where="body", style=media, explode=False), value)
    else:
        known = {place.name: place for place in call.places if place.where == "body"}
        by_type = partial(Place, where="body", style="", explode=True)
        given = ((known.get(key) or by_type(argument=key, name=key), item) for key, item in value.items())
        fields = _pairs((place, item) for place, item in given if item is not None)
        if not media.lower().startswith("multipart/"):
            text = "&".join(_encoded(fields))
        elif fields:
            request.parts = [(part.name, (None, part.text, part.media)) for part in fields]
            return
        else:  # of no parts, the client library makes no body
            media, text = "multipart/form-data; boundary=end", "--end--\r\n"
    request.headers[b"content-type"] = media.encode("ascii", "replace")
    request.content = text.encode("utf-8", "replace")


def _in_path(place: Place, value: Any) -> str:
    """A value in a path, with everything but its own separators percent-encoded."""
    texts = [part.text for part in _parts(place, value)]
    empty = not "".join(texts)
    if empty or any(part in (".", "..") for text in texts for part in re.split(r"[/\\,]", text)):
        what = "is empty" if empty else "has '.' or '..' as a part of a path"
        told = f"the argument {place.argument!r} {what}, which would lead to another path"
        raise Fault("refused", told, effect="none")
    return _joined(place, value, partial(quote, safe="", errors="replace"))


def _in_header(place: Place, value: Any) -> bytes:
    text = _joined(place, value)
    if _CONTROL.search(text):
        told = f"the argument {place.argument!r} has a control character, which no header may have"
        raise Fault("refused", told, effect="none")
    return text.encode("utf-8", "replace")


def _joined(place: Place, value: Any, encode: Callable[[str], str] = str) -> str:
    """A value in a path or a header (RFC 6570, sections 3.2.2, 3.2.5 and 3.2.7)."""
    prefix, separator = {"label": (".", "."), "matrix": (";", ";")}.get(place.style, ("", ","))
    named = prefix == ";" or (place.explode and isinstance(value, dict))
    parts = _parts(place, value, encode)
    return prefix + separator.join(f"{part.name}={part.text}" if named else part.text for part in parts)


def _pairs(given: Iterable[tuple[Place, Any]], fixed: str = "") -> list[_Part]:
    """Names and texts of several values beside a fixed query; no two of these may have one name."""
    owners = dict.fromkeys((name for name, _ in parse_qsl(fixed, keep_blank_values=True)), "the address of the API")
    pairs = list[_Part]()
    for place, value in given:
        pairs += (parts := _parts(place, value))
        mine = f"the argument {place.argument!r}"
        for part in parts:
            if (other := owners.setdefault(part.name, mine)) != mine:
                told = f"{other} and {mine} would both be sent as {part.name!r}: leave one of them out"
                raise Fault("refused", told, effect="none")
    return pairs


def _parts(place: Place, value: Any, encode: Callable[[str], str] = str) -> list[_Part]:
    """A value by its style; what is null in a list or an object, or is an empty one, has no part."""
    name, style, separator = encode(place.name), place.style, _SEPARATORS.get(place.style, ",")
    by_media = not style or "/" in style

    def part(name: str, *items: Any) -> _Part:
        text = separator.join(encode(_text(place, item)) for item in items)
        if by_media and style and not set(style) & set("*,"):
            return _Part(name, text, style)
        return _Part(name, text, "application/json" if by_media and isinstance(items[0], dict | list) else None)

    if style == "deepObject":
        return [part(name, item) for name, item in _bracketed(place.name, value)]
    if isinstance(value, list) and place.explode and separator == ",":
        return [part(name, item) for item in value if item is not None]
    if by_media or not isinstance(value, dict | list):
        return [part(name, value)]
    if isinstance(value, dict) and place.explode:
        return [part(encode(key), item) for key, item in value.items() if item is not None]
    if isinstance(value, dict):
        value = [*chain(*(pair for pair in value.items() if pair[1] is not None))]
    items = [item for item in value if item is not None]
    return [part(name, *items)] if items else []


def _bracketed(name: str, value: Any) -> list[tuple[str, Any]]:
    """``name[key]`` for each value in an object, ``name[0]`` for each in a list, at any depth."""
    if not isinstance(value, dict | list):
        return [] if value is None else [(name, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return [pair for key, item in items for pair in _bracketed(f"{name}[{key}]", item)]


def _encoded(parts: Iterable[_Part], *, safe: str = "") -> list[str]:
    encode = partial(quote, errors="replace")
    return [f"{encode(part.name, safe=safe)}={encode(part.text, safe='')}" for part in parts]


def _text(place: Place, value: Any) -> str:
    """A value as JSON writes it, but strings as they are; ``Fault``: it has no form in its style."""
    if isinstance(value, dict | list) and place.style and not is_json(place.style):
        told = f"the argument {place.argument!r} has a list or an object where its specification does not say"
        raise Fault("refused", f"{told} how that is sent ({place.style}): give single values", effect="none")
    return value if isinstance(value, str) and not is_json(place.style) else json.dumps(value, ensure_ascii=False)
