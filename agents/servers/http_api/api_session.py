"""A connection to an API over HTTP: requests that cannot leave the address and the path of their operation.

It has the limits, faults and redaction of a session with an MCP server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from callsheet.agents.calls.call_context import Progress
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.origins import origin
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.http_api.api_catalog import api, listing_of
from callsheet.agents.servers.session import Session
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.openapi_operations import META, HttpCall, Place, is_form, is_json
from callsheet.graphs.catalog.formats.server_config import is_address

if TYPE_CHECKING:
    import httpx2

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


_MOST_REDIRECTS = 5
_UNKNOWN = frozenset((502, 504))
"""Statuses of a gateway that does not know what became of a request."""


class ApiSession(Session):
    """As ``Session``. Its tools are what the specification says when they are listed, and are called by that."""

    _entries: Mapping[str, Any] = {}

    async def listing(self) -> Listing:
        """The operations of its tag.

        Raises:
            Fault: The specification cannot be read any more.
        """
        try:
            # In a thread: a specification that has changed is parsed again.
            listing = listing_of(await asyncio.to_thread(api, self.server), self.server.tag)
        except CatalogError as error:
            raise Fault("start", str(error), effect="none") from error
        self._entries = {entry["name"]: entry for entry in listing.tools}
        return listing

    async def _live(self) -> Fault | None:
        # In a thread: the import takes a second, and certificates are read.
        stdio, http, timeout = await asyncio.to_thread(_client_library)
        self._child = self._faults.child = child = stdio.ChildProcess(self.limits, self._over)

        def fail(fault: Fault) -> None:
            child.fault = fault

        more = {
            "headers": self._expanded.headers,
            "auth": self._auth(),
            "timeout": timeout(None, connect=self.limits.start),
        }
        make = partial(http.BoundedHttpClient, "openapi", self.limits.message, fail, lambda: 0, **more)
        async with await asyncio.to_thread(make) as client:
            self._client.set_result(client)
            await self._stop.wait()
        return None

    async def _exchange(
        self, client: httpx2.AsyncClient, method: str, params: Mapping[str, Any], progress: Progress | None
    ) -> dict[str, Any]:
        entry = self._entries.get(params["name"])
        if method != "tools/call" or entry is None:
            raise Fault("refused", "its specification no longer has this operation", effect="none")
        call = HttpCall(**entry["_meta"][META])
        request = request_of(call, self._expanded.url or "", params["arguments"])
        try:
            return _result(await self._sent(client, request))
        except Fault as fault:
            if fault.kind == "too_large":
                self.retire()
            raise

    async def _sent(self, client: httpx2.AsyncClient, request: ApiRequest) -> httpx2.Response:
        """The answer to a request; redirects are followed on the same host only."""
        if not is_address(self._expanded.url or ""):
            raise Fault("refused", "its 'url' is not an address with http:// or https://: correct it", effect="none")
        home = origin(self._expanded.url or "")
        if origin(request.url) != home:
            raise Fault("refused", "the path of the operation leads to another host", effect="none")
        sent = client.build_request(
            request.method, request.url, headers=request.headers, content=request.content, files=request.parts
        )
        for _ in range(_MOST_REDIRECTS):
            response = await client.send(sent)
            if response.next_request is None:
                return response
            sent = response.next_request
            if origin(str(sent.url)) != home:
                told = f"its server redirects to another host, {sent.url.host}, to which nothing was sent: "
                raise Fault(
                    "refused", f"{told}if you agree to it, name it as the 'url' of its entry", effect="reported"
                )
        raise Fault("protocol", f"its server answers with more than {_MOST_REDIRECTS} redirects", effect="reported")


def _client_library() -> tuple[Any, Any, Any]:
    import httpx2

    from callsheet.agents.servers.transport import http, stdio

    return stdio, http, httpx2.Timeout


def _result(response: httpx2.Response) -> dict[str, Any]:
    """An answer in the form of the result of ``tools/call``."""
    status = f"{response.status_code} {response.reason_phrase}".strip()
    if response.status_code in _UNKNOWN:
        told = f"{status}: {response.text[:2_000]}; whether the call took effect is unknown"
        raise Fault("tool", told, effect="unknown")
    content = _content(response)
    if response.is_success:
        return content if content.get("content") or "structuredContent" in content else _said(status)
    if "structuredContent" in content:
        content = _said(json.dumps(content["structuredContent"], ensure_ascii=False))
    return {"isError": True, "content": [{"type": "text", "text": status}, *content.get("content", ())]}


def _content(response: httpx2.Response) -> dict[str, Any]:
    media = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not response.content:
        return {}
    if is_json(media or "application/json"):
        try:
            found = response.json()
        except (ValueError, RecursionError):
            return _said(response.text)
        return {"structuredContent": found if isinstance(found, dict) else {"result": found}}
    if (
        media.startswith("text/")
        or media in ("application/xml", "application/yaml")
        or media.endswith(("+xml", "+yaml"))
    ):
        return _said(response.text)
    kind = media.partition("/")[0]
    data = base64.b64encode(response.content).decode()
    return {"content": [{"type": kind if kind in ("image", "audio") else "file", "mimeType": media, "data": data}]}


def _said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}
