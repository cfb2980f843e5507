"""Arguments of a call as a request, which cannot leave the address and the path of its operation."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.catalog.formats.openapi_operations import HttpCall, Place, is_form, is_json

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SEPARATORS = {"spaceDelimited": " ", "pipeDelimited": "|"}
_PREFIXES = {"label": ".", "matrix": ";"}


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request, without the headers of the catalog."""

    method: str
    url: str
    headers: Mapping[bytes, bytes]
    content: bytes | None = None
    parts: Mapping[str, tuple[None, str]] | None = None


def request_of(call: HttpCall, base: str, arguments: Mapping[str, Any]) -> ApiRequest:
    """The request of a call.

    Raises:
        Fault: An argument would lead the request elsewhere, or cannot be written; nothing was sent.
    """
    rest = dict(arguments)
    placed = [(place, rest.pop(place.argument, None)) for place in call.places]
    given = [(place, value) for place, value in placed if value is not None]
    address, _, fixed = base.partition("?")
    path, query = call.path, [*filter(None, [fixed])]
    headers: dict[bytes, bytes] = {}
    cookies: list[str] = []
    for place, value in given:
        match place.where:
            case "path":
                path = path.replace(f"{{{place.name}}}", _in_path(place, value))
            case "query":
                query += [f"{quote(key, safe='[]')}={quote(text, safe='')}" for key, text in _pairs(place, value)]
            case "header":
                headers[place.name.encode()] = _in_header(place, value)
            case "cookie":
                cookies += [f"{quote(key, safe='')}={quote(text, safe='')}" for key, text in _pairs(place, value)]
    if cookies:
        headers[b"cookie"] = "; ".join(cookies).encode()
    path, _, own = path.partition("#")[0].partition("?")
    url = address.rstrip("/") + quote(path, safe="/%:@!$&'()*+,;=~")
    if query := [*filter(None, [own]), *query]:
        url = f"{url}?{'&'.join(query)}"
    return _with_body(call, ApiRequest(call.method, url, headers), rest)


def _with_body(call: HttpCall, request: ApiRequest, rest: dict[str, Any]) -> ApiRequest:
    if not call.media or not rest:
        return request
    value = rest.get(call.body) if call.body else rest
    media = call.media if "*" not in call.media else "application/json"
    headers = {**request.headers, b"content-type": media.encode("ascii", "replace")}
    if is_json(media):
        content = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return ApiRequest(request.method, request.url, headers, content)
    if is_form(media) and isinstance(value, dict):
        if media.lower().startswith("multipart/"):
            parts = {str(key): (None, _text(item)) for key, item in value.items()}
            return ApiRequest(request.method, request.url, request.headers, parts=parts)
        form = Place(argument="", name="", where="query", style="form", explode=True)
        fields = [pair for key, item in value.items() for pair in _pairs(form.model_copy(update={"name": key}), item)]
        text = "&".join(f"{quote(key, safe='')}={quote(item, safe='')}" for key, item in fields)
        return ApiRequest(request.method, request.url, headers, text.encode())
    return ApiRequest(request.method, request.url, headers, _text(value).encode("utf-8", "replace"))


def _in_path(place: Place, value: Any) -> str:
    text = _joined(place, value)
    if not text or any(part in (".", "..") for part in re.split(r"[/\\]", text)):
        what = "is empty" if not text else "has '.' or '..' as a part of a path"
        raise Fault(
            "refused", f"the argument {place.argument!r} {what}, which would lead to another path", effect="none"
        )
    prefix = _PREFIXES.get(place.style, "")
    return f"{prefix}{place.name}={text}" if place.style == "matrix" else f"{prefix}{text}"


def _in_header(place: Place, value: Any) -> bytes:
    text = json.dumps(value) if place.style == "json" else _plainly(place, value)
    if _CONTROL.search(text):
        told = f"the argument {place.argument!r} has a control character, which no header may have"
        raise Fault("refused", told, effect="none")
    return text.encode("utf-8", "replace")


def _joined(place: Place, value: Any) -> str:
    """A value in a path, with everything but its own commas percent-encoded; empty if that would be a path itself."""
    match value:
        case list():
            texts = [_text(item) for item in value]
        case dict():
            join = "=" if place.explode else ","
            texts = [f"{key}{join}{_text(item)}" for key, item in value.items()]
        case _:
            texts = [json.dumps(value) if place.style == "json" else _text(value)]
    if any(part in (".", "..") for text in texts for part in re.split(r"[/\\]", text)):
        return ".."
    return ",".join(quote(text, safe="") for text in texts)


def _plainly(place: Place, value: Any) -> str:
    match value:
        case list():
            return ",".join(map(_text, value))
        case dict():
            join = "=" if place.explode else ","
            return ",".join(f"{key}{join}{_text(item)}" for key, item in value.items())
        case _:
            return _text(value)


def _pairs(place: Place, value: Any) -> list[tuple[str, str]]:
    """Names and values of a parameter in a query, a cookie or a form."""
    name, separator = place.name, _SEPARATORS.get(place.style, ",")
    match value:
        case _ if place.style == "json":
            return [(name, json.dumps(value, ensure_ascii=False))]
        case list() if place.explode and separator == ",":
            return [(name, _text(item)) for item in value]
        case list():
            return [(name, separator.join(map(_text, value)))]
        case dict() if place.style == "deepObject":
            return [(f"{name}[{key}]", _text(item)) for key, item in value.items()]
        case dict() if place.explode:
            return [(str(key), _text(item)) for key, item in value.items()]
        case dict():
            return [(name, separator.join(f"{key}{separator}{_text(item)}" for key, item in value.items()))]
        case _:
            return [(name, _text(value))]


def _text(value: Any) -> str:
    """A value as JSON writes it, but strings as they are."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
