"""A connection to an API over HTTP, with the limits, faults and redaction of a session with an MCP server."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from callsheet.agents.safety.origins import origin
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.http_api.api_catalog import listing_of
from callsheet.agents.servers.http_api.api_request import ApiRequest, request_of
from callsheet.agents.servers.http_api.specifications import api
from callsheet.agents.servers.session import Session
from callsheet.agents.servers.transport.call_context import Progress
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.openapi_operations import META, HttpCall, is_json
from callsheet.graphs.catalog.formats.server_config import is_address

if TYPE_CHECKING:
    import httpx2

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
